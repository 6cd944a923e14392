// Engines that behave badly, and what is said of each.
#include "tools/probe/engine.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/usage.hpp"
#include "tools/probe/events.hpp"
#include "tools/probe/scripted_server.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

const ProbeTokens kFour{272, 2000, 300, 4000};
const ProbeRequest kRequest{{1, 400, 500, 600, 700, 800, 900, 1000}, kFour.size()};

EngineOptions options_at(std::uint16_t port) {
  EngineOptions options;
  options.endpoint = {"127.0.0.1", std::to_string(port), "/v1"};
  options.timeout = std::chrono::duration<double>(5);
  return options;
}

std::string completion(const ProbeTokens& tokens, std::size_t read = 0) {
  json::object answer{{"choices", {json::object{{"text", probe_text(tokens)}}}}};
  if (read > 0) answer["usage"] = {{"prompt_tokens", read}};
  return json::serialize(answer);
}

std::string events_of(const ProbeTokens& tokens) {
  std::string events = ": a comment\r\n\r\n";
  for (const probe::Token token : tokens) events += "data: " + completion({token}) + "\r\n\r\n";
  return events + "data: [DONE]\n\n";
}

constexpr std::string_view kStreams =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

// ---- No answer ----

struct Misbehaviour {
  const char* name;
  void (*script)(Peer& peer);
  const char* said;
  bool stream = false;
};

void PrintTo(const Misbehaviour& server, std::ostream* out) {
  *out << server.name << ", of which is said: " << server.said;
}

class BadHttp : public testing::TestWithParam<Misbehaviour> {};

TEST_P(BadHttp, HasAReason) {
  EngineOptions options = options_at(serve_script(GetParam().script));
  options.timeout = std::chrono::milliseconds(400);
  options.stream = GetParam().stream;
  options.retries = 2;
  const auto begin = std::chrono::steady_clock::now();
  const EngineAnswer given = Engine(options).ask(kRequest, true);
  EXPECT_THAT(given.failure, HasSubstr(GetParam().said));
  EXPECT_LT(given.failure.size(), 400U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

// Until the client ends the connection.
void send_without_end(Peer& peer, std::string_view bytes) {
  while (peer.send(bytes)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadHttp,
    testing::Values(
        Misbehaviour{"DropsTheConnection", [](Peer&) {}, "no whole answer: end of stream"},
        Misbehaviour{"DropsItInAHeader", [](Peer& peer) { peer.send("HTTP/1.1 200"); },
                     "no whole answer: partial message"},
        Misbehaviour{
            "DropsItInABody",
            [](Peer& peer) { peer.send(http_bytes(200, completion(kFour)).substr(0, 100)); },
            "no whole answer: partial message"},
        Misbehaviour{"DropsAStream",
                     [](Peer& peer) {
                       peer.send(std::string(kStreams) +
                                 chunk("data: " + completion({272}) + "\n\n"));
                     },
                     "no whole answer: partial message", true},
        Misbehaviour{"HasEmptyEvents",
                     [](Peer& peer) { peer.send(std::string(kStreams) + chunk("data: {}\n\n")); },
                     "no choices: {}", true},
        Misbehaviour{"SpeaksAnotherProtocol",
                     [](Peer& peer) { peer.send("220 mail ready\r\n\r\n"); },
                     "no whole answer: bad version"},
        Misbehaviour{"HasAHeaderWithoutEnd",
                     [](Peer& peer) {
                       peer.send("HTTP/1.1 200 OK\r\n");
                       for (int i = 0; i < 2000 && peer.send("A: bbbbbbbbbb\r\n"); ++i) continue;
                       (void)peer.ends();
                     },
                     "no whole answer: header limit exceeded"},
        Misbehaviour{"IsSilent", [](Peer& peer) { (void)peer.ends(); }, "no whole answer in 0.4 s"},
        Misbehaviour{"NeverEnds",
                     [](Peer& peer) {
                       peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
                       send_without_end(peer, " ");
                     },
                     "no whole answer in 0.4 s"},
        Misbehaviour{"NeverEndsAStream",
                     [](Peer& peer) {
                       peer.send(kStreams);
                       send_without_end(peer, chunk(": alive\n\n"));
                     },
                     "no whole answer in 0.4 s", true},
        Misbehaviour{"HasAnEventWithoutEnd",
                     [](Peer& peer) {
                       peer.send(kStreams);
                       const std::string part = chunk(std::string(1U << 16U, 'x'));
                       while (peer.send(part)) continue;
                     },
                     "an event of more than 1048576 bytes", true},
        Misbehaviour{"DoesNotStream",
                     [](Peer& peer) { peer.send(http_bytes(200, completion(kFour))); },
                     "no server-sent event: {", true},
        Misbehaviour{"FailsInAStream",
                     [](Peer& peer) {
                       peer.send(std::string(kStreams) +
                                 chunk("data: {\"error\":{\"message\":\"no memory\"}}\n\n"));
                     },
                     R"(error: {"message":"no memory"})", true},
        Misbehaviour{"EndsAStreamEarly",
                     [](Peer& peer) {
                       peer.send(std::string(kStreams) + chunk(events_of({300, 301})) + chunk(""));
                     },
                     "2 tokens, 4 were asked", true},
        Misbehaviour{
            "LimitsTheRate",
            [](Peer& peer) { peer.send(http_bytes(429, "slow down", "Retry-After: 0\r\n")); },
            "status 429: slow down"},
        Misbehaviour{
            "WantsToBeAskedMuchLater",
            [](Peer& peer) { peer.send(http_bytes(503, "loading", "Retry-After: 3600\r\n")); },
            "status 503: loading; it is to be sent again after 3600 s, later than the"}),
    [](const auto& each) { return std::string(each.param.name); });

// ---- An answer all the same ----

TEST(Engine, ABusyOneIsAskedAgain) {
  Engine engine(options_at(serve_script([](Peer& peer) {
    const char* when = peer.number == 0 ? "Retry-After: 0\r\n" : "";  // else after 0.5 s
    peer.send(peer.number < 2 ? http_bytes(peer.number == 0 ? 429 : 503, "busy", when)
                              : http_bytes(200, completion(kFour)));
  })));
  const EngineAnswer given = engine.ask(kRequest, true);
  EXPECT_EQ(given.failure, "");
  EXPECT_EQ(given.tokens, kFour);
  EXPECT_EQ(engine.counts().sent, 3U);
  EXPECT_EQ(engine.counts().retried, 2U);
}

TEST(Engine, SendsNoMoreThanAllowed) {
  EngineOptions options = options_at(serve_script(
      [](Peer& peer) { peer.send(http_bytes(429, "slow down", "Retry-After: 0\r\n")); }));
  options.most_sent = 3;
  const Engine engine(options);
  EXPECT_EQ(engine.ask(kRequest, true).failure, "3 requests were sent, the most that are allowed");
  EXPECT_EQ(engine.counts().sent, 3U);
}

TEST(Engine, AnswersInPiecesAreRead) {
  const auto script = [](Peer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const char c : completion(kFour)) peer.send(chunk({&c, 1}));
    peer.send(chunk(""));
  };
  EXPECT_EQ(Engine(options_at(serve_script(script))).ask(kRequest, true).tokens, kFour);
}

TEST(Engine, AnswersUntilTheConnectionEndsAreRead) {
  const auto script = [](Peer& peer) { peer.send("HTTP/1.0 200 OK\r\n\r\n" + completion(kFour)); };
  EXPECT_EQ(Engine(options_at(serve_script(script))).ask(kRequest, true).tokens, kFour);
}

TEST(Engine, StreamsAreReadWhereverTheyAreCut) {
  EngineOptions options = options_at(serve_script([](Peer& peer) {
    EXPECT_THAT(peer.body, HasSubstr(R"("stream":true)"));
    peer.send(kStreams);
    const std::string events = events_of(kFour);
    const std::size_t size = 1 + static_cast<std::size_t>(peer.number);
    for (std::size_t at = 0; at < events.size(); at += size)
      peer.send(chunk(std::string_view(events).substr(at, size)));
    peer.send(chunk(""));
  }));
  options.stream = true;
  const Engine engine(options);
  for (int i = 0; i < 7; ++i) {
    const EngineAnswer given = engine.ask(kRequest, true);
    EXPECT_EQ(given.failure, "");
    EXPECT_EQ(given.tokens, kFour);
  }
}

TEST(Engine, IdsOfEventsAreReadAndTheirUsage) {
  EngineOptions options = options_at(serve_script([](Peer& peer) {
    peer.send(std::string(kStreams) +
              chunk("data: {\"choices\":[{\"text\":\"?\",\"token_ids\":[272,2000]}]}\n\n"
                    "data: {\"choices\":[{\"text\":\"?\",\"token_ids\":[300,4000]}]}\n\n"
                    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5}}\n\ndata: [DONE]\n\n"));
  }));
  options.stream = true;
  const EngineAnswer given = Engine(options).ask(kRequest, true);
  EXPECT_EQ(given.failure, "");
  EXPECT_EQ(given.tokens, kFour);
  EXPECT_THAT(given.misread, HasSubstr("read 5 tokens of a prompt that has 8"));
}

TEST(Engine, ADroppedRequestEndsItsConnection) {
  const auto ended = std::make_shared<std::atomic<int>>(0);
  const auto port = serve_script([ended](Peer& peer) {
    if (peer.body.find("stream") != peer.body.npos)
      peer.send(std::string(kStreams) + chunk("data: " + completion({272}) + "\n\n") +
                chunk("data: " + completion({2000}) + "\n\n"));
    *ended += peer.ends() ? 1 : 0;
  });
  const Engine engine(options_at(port));
  for (const std::size_t tokens : {std::size_t{0}, std::size_t{2}}) {
    ProbeRequest request = kRequest;
    request.manner.drop_after = tokens;
    const EngineAnswer given = engine.ask(request, true);
    EXPECT_EQ(given.failure, "");
    EXPECT_EQ(given.tokens.size(), tokens);
  }
  for (int i = 0; i < 100 && *ended < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(*ended, 2);
  EXPECT_EQ(engine.counts().dropped, 2U);
}

TEST(Engine, OneThatCannotStreamMayAnswerADroppedRequest) {
  const auto script = [](Peer& peer) { peer.send(http_bytes(200, completion(kFour))); };
  const Engine engine(options_at(serve_script(script)));
  ProbeRequest request = kRequest;
  request.manner.drop_after = 1;
  EXPECT_EQ(engine.ask(request, true).tokens, kFour);
  EXPECT_EQ(engine.counts().dropped, 0U);
}

// ---- What it read of the prompt ----

struct Reading {
  std::size_t read;
  const char* said;
};
void PrintTo(const Reading& reading, std::ostream* out) {
  *out << reading.read << " of 8";
}
class ReadTokens : public testing::TestWithParam<Reading> {};

TEST_P(ReadTokens, AreCompared) {
  const auto script = [](Peer& peer) {
    peer.send(http_bytes(200, completion(kFour, GetParam().read)));
  };
  const EngineAnswer given = Engine(options_at(serve_script(script))).ask(kRequest, true);
  EXPECT_EQ(given.tokens, kFour);
  EXPECT_EQ(given.misread, GetParam().said);
}

INSTANTIATE_TEST_SUITE_P(
    Each, ReadTokens,
    testing::Values(
        Reading{8, ""},
        Reading{4, "the engine read 4 tokens of a prompt that has 8: it truncates the context"},
        Reading{20,
                "the engine read 20 tokens of a prompt that has 8: it puts a template or other "
                "tokens around the prompt"}));

// ---- Interfaces ----

TEST(Engine, LlamaServersOwnInterfaceIsFound) {
  EngineOptions options = options_at(serve_script([](Peer& peer) {
    if (peer.target != "/completion") {
      peer.send(http_bytes(404, "not here"));
    } else if (peer.body.find("\"n_predict\":4") == peer.body.npos) {
      peer.send(http_bytes(400, "n_predict"));
    } else {
      peer.send(
          http_bytes(200, R"({"content":"?","tokens":[272,2000,300,4000],"tokens_evaluated":8})"));
    }
  }));
  options.endpoint.path = "";
  Engine engine(options);
  const EngineAnswer given = engine.meet(kRequest);
  EXPECT_EQ(given.failure, "");
  EXPECT_EQ(given.tokens, kFour);
  EXPECT_EQ(given.misread, "");
  EXPECT_THAT(engine.where(), testing::EndsWith("/completion"));
}

// As transformers serve, which takes text and the members of OpenAI's interface alone.
TEST(Engine, OneThatRefusesFurtherMembersIsAskedWithoutThem) {
  Engine engine(options_at(1), [](const HttpRequest& request) -> HttpAnswer {
    const json::object body = json::parse(request.body).as_object();
    for (const char* other : {"cache_prompt", "cache_salt", "ignore_eos", "return_token_ids"})
      if (body.contains(other)) return {422, "Unexpected fields", ""};
    return {body.at("prompt").is_string() ? 200U : 422U, completion(kFour), ""};
  });
  const EngineAnswer given = engine.meet(kRequest);
  EXPECT_EQ(given.failure, "");
  EXPECT_EQ(given.tokens, kFour);
  EXPECT_FALSE(engine.can_ask_alone());
  EXPECT_EQ(engine.counts().sent, 4U);
}

// Under one salt the second of two texts that are asked alone would use rows of the first.
TEST(Engine, WhatIsAskedAloneHasASaltOfItsOwn) {
  std::vector<std::string> salts;
  Engine engine(options_at(1), [&](const HttpRequest& request) -> HttpAnswer {
    const json::object body = json::parse(request.body).as_object();
    salts.emplace_back(body.contains("cache_salt") ? body.at("cache_salt").as_string() : "none");
    return {200, completion(kFour), ""};
  });
  for (const bool shares : {false, true, false}) (void)engine.ask(kRequest, shares);
  EXPECT_THAT(salts, testing::ElementsAre("alone 0", "none", "alone 1"));
}

TEST(Engine, APathThatIsNowhereIsNamed) {
  EngineOptions options =
      options_at(serve_script([](Peer& peer) { peer.send(http_bytes(404, "not here")); }));
  options.endpoint.path = "/api";
  Engine engine(options);
  EXPECT_EQ(engine.meet(kRequest).failure, "status 404: not here (does the URL lack /v1?)");
  EXPECT_EQ(engine.counts().sent, 4U);
}

TEST(Engine, SlotsAreSavedAtTheRoot) {
  const auto targets = std::make_shared<std::vector<std::string>>();
  const Engine engine(options_at(serve_script([targets](Peer& peer) {
    targets->push_back(peer.target);
    peer.send(http_bytes(peer.number < 2 ? 200 : 501, completion(kFour)));
  })));
  ProbeRequest request = kRequest;
  request.manner = {.slot = 0, .before = SlotAction::kRestore};
  EXPECT_EQ(engine.ask(request, true).tokens, kFour);
  EXPECT_THAT(*targets, testing::ElementsAre("/slots/0?action=restore", "/v1/completions"));
  EXPECT_THAT(engine.save_failure(), HasSubstr("status 501"));
}

// ---- TLS ----

std::string file_with(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("kvoracle-{}-{}.pem", ::getpid(), std::hash<std::string>()(text));
  std::ofstream(path) << text;
  return path.string();
}

void answer_four(Peer& peer) {
  peer.send(http_bytes(200, completion(kFour)));
}

std::string failure_over_tls(const std::string& named, const std::string& host, bool trusted) {
  const Certificate certificate = certificate_for(named);
  EngineOptions options = options_at(serve_script(answer_four, certificate));
  options.endpoint.host = host;
  options.endpoint.tls = true;
  const std::string file = file_with(certificate.certificate);
  if (trusted) options.ca_file = file;
  const EngineAnswer given = Engine(options).ask(kRequest, true);
  EXPECT_EQ(given.tokens, given.failure.empty() ? kFour : ProbeTokens());
  std::filesystem::remove(file);
  return given.failure;
}

TEST(Tls, AServerWithATrustedCertificateIsAsked) {
  EXPECT_EQ(failure_over_tls("DNS:localhost", "localhost", true), "");
  EXPECT_EQ(failure_over_tls("IP:127.0.0.1", "127.0.0.1", true), "");
}

TEST(Tls, AnUnknownCertificateIsRefused) {
  EXPECT_EQ(failure_over_tls("DNS:localhost", "localhost", false),
            "no secure connection: certificate: self-signed certificate");
}

TEST(Tls, ACertificateForAnotherHostIsRefused) {
  EXPECT_EQ(failure_over_tls("DNS:other.example", "localhost", true),
            "no secure connection: certificate: hostname mismatch");
  EXPECT_EQ(failure_over_tls("DNS:localhost", "127.0.0.1", true),
            "no secure connection: certificate: IP address mismatch");
}

TEST(Tls, AServerWithoutItIsRefused) {
  EngineOptions options = options_at(serve_script(answer_four));
  options.timeout = std::chrono::milliseconds(400);
  options.endpoint.tls = true;
  EXPECT_THAT(Engine(options).ask(kRequest, true).failure, HasSubstr("no secure connection"));
}

TEST(Tls, AFileWithoutCertificatesIsRefused) {
  EngineOptions options = options_at(1);
  options.endpoint.tls = true;
  options.ca_file = file_with("nothing");
  EXPECT_THROW(Engine{options}, FileError);
  std::filesystem::remove(options.ca_file);
  EXPECT_THROW(Engine{options}, FileError);
}

}  // namespace
}  // namespace kvo::tools
