#include "tools/probe/check.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/campaign/day.hpp"
#include "reference/contract/describe/json.hpp"
#include "tools/commands/usage.hpp"
#include "tools/probe/trace_plans.hpp"
#include "tools/testing/probe_server.hpp"
#include "traces/formats/formats.hpp"
#include "traces/formats/sample.hpp"

namespace kvo::tools {
namespace {

using testing::HasSubstr;

// A server of this process, until its end.
std::uint16_t port_of(const HttpHandler& handler) {
  auto port = std::make_shared<std::promise<std::uint16_t>>();
  std::thread([port, handler] {
    serve_http(
        0, [&](std::uint16_t at) { port->set_value(at); }, handler);
  }).detach();
  return port->get_future().get();
}

ProbeOptions options_for(const HttpHandler& handler) {
  ProbeOptions options;
  options.endpoint = {"127.0.0.1", std::to_string(port_of(handler)), "/v1"};
  options.requests = 160;
  options.limits.longest = 512;
  options.timeout = std::chrono::duration<double>(20);
  return options;
}

HttpHandler with_fault(std::string_view fault) {
  const auto server = server_with_fault(fault);
  return [server](const std::string& path, const std::string& body) {
    return server->answer(path, body);
  };
}

class ProbeFault : public TestWithDay<std::string_view> {};

// What a fault of the server is called where it is found.
const std::multimap<std::string_view, std::string_view>& names() {
  static const std::multimap<std::string_view, std::string_view> kNames{
      {"stale_tail", "stale tail"},
      {"stale_tail", "foreign prefix"},  // of a text that shares less than a block
      {"lost_prefix", "lost prefix"},
      {"foreign_block", "foreign block"},
      {"moved_rows", "moved rows"},
      {"rows_off_by_1", "shifted by one"},
  };
  return kNames;
}

TEST_P(ProbeFault, IsFoundAndNamed) {
  const std::string_view fault = GetParam();
  const ProbeReport report = probe_engine(options_for(with_fault(fault)));
  EXPECT_EQ(report.failed_requests, 0U) << report.failure;
  EXPECT_GE(report.requests, 160U);
  EXPECT_GT(report.telling, 100U);
  EXPECT_GT(2 * report.cells_read, report.cells);
  if (fault == "none") {
    EXPECT_EQ(report.wrong_requests, 0U);
    return;
  }
  ASSERT_GT(report.wrong_requests, 0U);
  std::size_t named = 0;
  for (const WrongAnswer& wrong : report.wrong) {
    if (fault == "rounding")
      EXPECT_EQ(wrong.cause, Cause::kArithmetic) << wrong.evidence;
    else if (fault == "sampling")
      EXPECT_EQ(wrong.cause, Cause::kNeither) << wrong.evidence;
    else
      EXPECT_EQ(wrong.cause, Cause::kMemory) << wrong.evidence;
    bool is_named = false;
    for (auto [name, end] = names().equal_range(fault); name != end; ++name)
      is_named |= wrong.fault == name->second ||
                  std::ranges::find(wrong.also, name->second) != wrong.also.end();
    named += is_named ? 1 : 0;
  }
  // One wrong token may have several causes.
  EXPECT_EQ(report.memory + report.arithmetic + report.neither, report.wrong_requests);
  if (!names().contains(fault)) return;
  EXPECT_GT(2 * named, report.wrong.size());
  EXPECT_GE(report.shrunk.size(), fault == "stale_tail" ? 1U : 2U);  // any text has a tail
  EXPECT_LE(report.shrunk.size(), 3U);
  for (const ShrunkRequest& request : report.shrunk) EXPECT_LE(request.prompt.size(), 100U);
}

INSTANTIATE_TEST_SUITE_P(Each, ProbeFault,
                         testing::Values("none", "stale_tail", "lost_prefix", "foreign_block",
                                         "moved_rows", "rows_off_by_1", "rounding", "sampling"),
                         [](const auto& each) { return std::string(each.param); });

TEST(ProbeEngine, TextIsSentWhereTokensAreRefused) {
  const HttpHandler inner = with_fault("none");
  const auto options = options_for([inner](const std::string& path, const std::string& body) {
    if (body.find("\"prompt\":[") != body.npos) return HttpAnswer{400, "{}", ""};
    return inner(path, body);
  });
  const ProbeReport report = probe_engine(options);
  EXPECT_EQ(report.wrong_requests + report.failed_requests, 0U) << report.failure;
  EXPECT_GE(report.requests, 160U);
}

TEST(ProbeEngine, AnEngineThatAnswersNoMoreEndsTheRun) {
  const HttpHandler inner = with_fault("none");
  const auto answered = std::make_shared<std::atomic<int>>(0);
  auto options = options_for([=](const std::string& path, const std::string& body) {
    return ++*answered > 20 ? HttpAnswer{429, "slow down", ""} : inner(path, body);
  });
  options.retries = 0;
  const ProbeReport report = probe_engine(options);
  EXPECT_EQ(report.wrong_requests, 0U);
  EXPECT_GE(report.failed_requests, 8U);
  EXPECT_LE(report.failed_requests, 16U);
  EXPECT_THAT(report.failure, HasSubstr("status 429: slow down"));
}

// As a cache of 4 bits makes some tokens wrong: one bit of some last tokens, shared or not.
HttpHandler with_noise(std::string_view fault) {
  const HttpHandler inner = with_fault(fault);
  return [inner](const std::string& path, const std::string& body) {
    HttpAnswer answer = inner(path, body);
    boost::json::value given = boost::json::parse(answer.body);
    const auto prompt = boost::json::value_to<ProbeTokens>(boost::json::parse(body).at("prompt"));
    if (probe::mix({prompt.size(), prompt.back()}) % 3 != 0 || prompt.size() <= 64) return answer;
    boost::json::value& text = given.at("choices").at(0).at("text");
    ProbeTokens tokens = tokens_of_text(text.as_string()).value();
    tokens.back() ^= 1U;
    text = probe_text(tokens);
    answer.body = boost::json::serialize(given);
    return answer;
  };
}

TEST(ProbeEngine, AControlSeparatesNoiseFromMemory) {
  for (const std::string_view fault : {"none", "lost_prefix"}) {
    ProbeOptions options = options_for(with_noise(fault));
    options.control = true;
    options.requests = 60;
    const ProbeReport report = probe_engine(options);
    EXPECT_EQ(report.failed_requests, 0U) << report.failure;
    EXPECT_GT(report.control_wrong, 8U);
    EXPECT_GT(report.arithmetic, 4U);
    EXPECT_EQ(report.memory > 0, fault != "none");
    EXPECT_EQ(report.neither, 0U);
    for (const WrongAnswer& wrong : report.wrong)
      EXPECT_EQ(wrong.cause == Cause::kArithmetic, wrong.token == options.limits.tokens - 1)
          << wrong.request << ' ' << wrong.evidence;
  }
}

TEST(ProbeEngine, APlanAloneIsThePlanOfTheRun) {
  ProbeOptions options = options_for(with_fault("lost_prefix"));
  options.requests = 60;
  std::vector<PlanResult> plans;
  const ProbeReport whole = probe_engine(options, [&](const PlanResult& plan) {
    EXPECT_EQ(plan.number, plans.size());
    plans.push_back(plan);
  });
  ASSERT_FALSE(whole.wrong.empty());
  const WrongAnswer& first = whole.wrong.front();
  std::size_t before = 0;
  for (std::size_t i = 0; i < first.plan_number; ++i) before += plans[i].requests;
  options = options_for(with_fault("lost_prefix"));
  options.plan_number = first.plan_number;
  const ProbeReport alone = probe_engine(options);
  EXPECT_EQ(alone.requests, plans[first.plan_number].requests);
  ASSERT_FALSE(alone.wrong.empty());
  EXPECT_EQ(alone.wrong.front().request + before, first.request);
  EXPECT_EQ(alone.wrong.front().token, first.token);
  EXPECT_EQ(alone.wrong.front().got, first.got);
  EXPECT_EQ(alone.wrong.front().evidence, first.evidence);
}

// Answers wrongly what it answers at the same time as another request.
TEST(ProbeEngine, AFaultOfRequestsAtOnceIsShrunkToAWave) {
  struct Crowd {
    std::mutex mutex;
    std::condition_variable changed;
    int inside = 0;
    int met = 0;
  };
  const HttpHandler inner = with_fault("none");
  const auto crowd = std::make_shared<Crowd>();
  ProbeOptions options = options_for([=](const std::string& path, const std::string& body) {
    HttpAnswer answer = inner(path, body);
    std::unique_lock lock(crowd->mutex);
    if (++crowd->inside > 1) ++crowd->met;
    const int met = crowd->met;
    crowd->changed.notify_all();
    const bool meets = crowd->changed.wait_for(
        lock, std::chrono::milliseconds(40), [&] { return crowd->inside > 1 || crowd->met > met; });
    --crowd->inside;
    if (!meets) return answer;
    boost::json::value given = boost::json::parse(answer.body);
    boost::json::value& text = given.at("choices").at(0).at("text");
    ProbeTokens tokens = tokens_of_text(text.as_string()).value();
    tokens.front() ^= 1U;
    text = probe_text(tokens);
    answer.body = boost::json::serialize(given);
    return answer;
  });
  options.requests = 4;
  options.limits.longest = 100;
  const ProbeReport report = probe_engine(options);
  EXPECT_GE(report.wrong_requests, 2U);
  EXPECT_EQ(report.memory, report.wrong_requests);
  ASSERT_GE(report.shrunk.size(), 2U);
  EXPECT_LE(report.shrunk.size(), 3U);
  EXPECT_EQ(report.shrunk.back().wave, 0U);
  EXPECT_LE(report.shrunk.back().prompt.size(), 30U);
}

TEST(ProbePlans, ShowWhatTheyWouldReadWithoutAnEngine) {
  ProbeOptions options;
  options.requests = 100;
  options.limits.longest = 300;
  const ProbeReport report = probe_plans(options);
  EXPECT_EQ(write_json(report), write_json(probe_plans(options)));
  EXPECT_GE(report.requests, 100U);
  EXPECT_EQ(report.wrong_requests + report.failed_requests, 0U);
  for (const FaultCount& fault : report.faults) EXPECT_GT(fault.requests, 0U) << fault.fault;
  std::uint64_t cells = 0;
  std::uint64_t read = 0;
  for (const CellCount& count : report.coverage) {
    EXPECT_GT(5 * count.read, count.cells) << count.first;
    cells += count.cells;
    read += count.read;
  }
  EXPECT_EQ(cells, report.cells);
  EXPECT_EQ(read, report.cells_read);
  // One text alone shows no fault of reuse.
  options.plan_number = 0;
  options.limits.at_once = 1;
  EXPECT_EQ(probe_plans(options).requests, 1U);
  EXPECT_EQ(probe_plans(options).telling, 0U);
}

TEST(ProbeEngine, AnEngineThatReadsLessIsRefusedByName) {
  const auto server = server_with_fault("none");
  const auto options = options_for([server](const std::string& path, const std::string& body) {
    boost::json::object request = boost::json::parse(body).as_object();
    boost::json::array& prompt = request.at("prompt").as_array();
    prompt.erase(prompt.begin() + 1, prompt.begin() + 4);
    return server->answer(path, boost::json::serialize(request));
  });
  try {
    (void)probe_engine(options);
    ADD_FAILURE() << "it was accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("it truncates the context"));
  }
}

TEST(ProbeEngine, ShrinkingEndsWithTheRequestsThatAreAllowed) {
  auto options = options_for(with_fault("lost_prefix"));
  options.requests = 20;
  options.most_sent = 100;
  const ProbeReport report = probe_engine(options);
  EXPECT_GT(report.wrong_requests, 0U);
  EXPECT_LE(report.sent, 100U);
}

struct BadServer {
  const char* name;
  HttpAnswer answer;
  const char* said;
};

class BadEngine : public testing::TestWithParam<BadServer> {};

TEST_P(BadEngine, IsRefusedInOneLine) {
  auto options = options_for([](const std::string&, const std::string&) {
    if (GetParam().answer.status == 0) std::this_thread::sleep_for(std::chrono::seconds(5));
    return GetParam().answer.status == 0 ? HttpAnswer{200, "late", ""} : GetParam().answer;
  });
  options.timeout = std::chrono::duration<double>(GetParam().answer.status == 0 ? 0.3 : 10);
  try {
    (void)probe_engine(options);
    ADD_FAILURE() << "it was accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().said));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_LT(std::string(error.what()).size(), 600U);
  }
}

std::string text_answer(const std::string& text) {
  return boost::json::serialize(
      boost::json::object{{"choices", boost::json::array{boost::json::object{{"text", text}}}}});
}

const std::string kEight = probe_text({272, 273, 274, 275, 276, 277, 278, 279});

INSTANTIATE_TEST_SUITE_P(
    Each, BadEngine,
    testing::Values(
        BadServer{"Fails", {500, "out of\nmemory", ""}, "status 500: out of"},
        BadServer{"SaysNoJson", {200, "<html>", ""}, "no JSON: <html>"},
        BadServer{"HasNoChoices", {200, R"({"choices":[]})", ""}, "no choices: "},
        BadServer{"HasNoText", {200, R"({"choices":[{}]})", ""}, "no text: "},
        BadServer{"TellsStories",
                  {200, text_answer("Once upon"), ""},
                  "other text than the probe's: Once upon"},
        BadServer{
            "StopsEarly", {200, text_answer(probe_text({272, 273})), ""}, "2 tokens, 8 were asked"},
        BadServer{"HasOtherTokens",
                  {200, R"({"choices":[{"token_ids":[1,2,3,4,5,6,7,4416]}]})", ""},
                  "token 4416: the probe has 0 to 4415"},
        BadServer{"ServesAnother", {200, text_answer(kEight), ""}, "serves another model"},
        BadServer{"IsEndless",
                  {200, std::string(std::size_t{17} << 20U, 'x'), ""},
                  "no whole answer: body limit exceeded"},
        BadServer{"IsSilent", {0, "", ""}, "no whole answer in 0.3 s"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(ProbeEngine, NoServerIsRefused) {
  ProbeOptions options;
  options.endpoint = endpoint_of("http://127.0.0.1:1/v1");
  EXPECT_THROW((void)probe_engine(options), UsageError);
}

// ---- Plans ----

class ProbePlanKind : public testing::TestWithParam<std::size_t> {};

// Each kind alone: a sound engine passes, and some requests would show a fault.
TEST_P(ProbePlanKind, ProvesSomething) {
  const HttpHandler inner = with_fault("none");
  auto options = options_for([inner](const std::string& path, const std::string& body) {
    if (path.starts_with("/slots/0?action=")) return HttpAnswer{200, "{}", ""};
    return inner(path, body);
  });
  options.kinds = {GetParam()};
  options.requests = plan_words().at(GetParam()) == "idle" ? 3 : 6;
  const ProbeReport report = probe_engine(options);
  EXPECT_EQ(report.wrong_requests, 0U);
  EXPECT_EQ(report.failed_requests, 0U) << report.failure;
  EXPECT_GE(report.requests, 3U);
  EXPECT_GT(report.telling, 0U);
  EXPECT_EQ(report.dropped > 0, plan_words().at(GetParam()) == "cancel");
  EXPECT_THAT(report.skipped, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Each, ProbePlanKind, testing::ValuesIn(all_plan_kinds()),
                         [](const auto& each) {
                           std::string name;
                           for (const std::string word = plan_words().at(each.param);
                                const char c : word)
                             if (c != '-') name += c;
                           return name;
                         });

TEST(ProbePlans, KindsThatTheEngineLacksAreSkippedByName) {
  const probe::Tables tables;
  DrawnPlans plans(tables, {}, 1, all_plan_kinds(), {}, [] { return std::string("status 501"); });
  std::map<std::string_view, int> drawn;
  for (std::size_t i = 0; i < 15 * 8; ++i) ++drawn[plans.next()->kind];
  EXPECT_EQ(drawn.size(), plan_kinds().size() - 1);
  EXPECT_EQ(drawn["fork"], 8);
  EXPECT_EQ(drawn["idle"], 1);  // it takes a second
  EXPECT_EQ(drawn.count("save and restore"), 0U);
  EXPECT_THAT(plans.skipped(), testing::ElementsAre("save and restore: status 501"));
}

// docs/probe.md: a window that is one token too short or too long shows.
TEST(ProbePlans, TextsOfAWindowReadItsFirstRow) {
  constexpr std::size_t kWindow = 64;
  const probe::Tables tables({.window = kWindow, .past_window = true});
  traces::Random random(1);
  std::size_t too_short = 0;
  std::size_t too_long = 0;
  std::size_t longer = 0;
  for (std::size_t kind = 0; kind < plan_kinds().size(); ++kind)
    for (const auto& wave : draw_plan(kind, tables, {.longest = 400}, random).waves)
      for (const ProbeRequest& request : wave) {
        if (request.prompt.size() <= kWindow) continue;
        const auto answer = [&](std::size_t window) {
          probe::Rows rows(tables, window);
          rows.extend(request.prompt);
          return rows.generate(request.tokens);
        };
        ++longer;
        too_short += answer(kWindow) == answer(kWindow - 1) ? 0 : 1;
        too_long += answer(kWindow) == answer(kWindow + 1) ? 0 : 1;
      }
  EXPECT_GT(longer, 50U);
  EXPECT_GT(10 * too_short, 9 * longer) << too_short << " of " << longer;
  EXPECT_GT(10 * too_long, 9 * longer) << too_long << " of " << longer;
}

TEST(ProbePlans, AWindowIsChecked) {
  const auto server = server_with_fault("none", {.window = 64});
  auto options = options_for([server](const std::string& path, const std::string& body) {
    return server->answer(path, body);
  });
  options.shape.window = 64;
  const ProbeReport report = probe_engine(options);
  EXPECT_EQ(report.wrong_requests + report.failed_requests, 0U) << report.failure;
  EXPECT_GT(report.telling, 100U);
}

// ---- Traces ----

ProbeReport report_of_sample(std::string_view fault) {
  auto reader = traces::open_trace(
      traces::TextSource::in_memory("sample", std::string(traces::sample_trace())));
  auto requests = traces::read_all(**reader).value();
  requests.resize(100);
  ProbeOptions options = options_for(with_fault(fault));
  options.requests = requests.size();
  const probe::Tables tables;
  TracePlans plans(tables, std::move(requests), {.longest = 512}, 1);
  return probe_engine(options, plans);
}

TEST(ProbeTrace, ASoundEngineHasNoWrongToken) {
  const ProbeReport report = report_of_sample("none");
  EXPECT_EQ(report.wrong_requests + report.failed_requests, 0U) << report.failure;
  EXPECT_EQ(report.requests, 100U);
  EXPECT_GT(report.telling, 80U);
}

TEST(ProbeTrace, AFaultIsFoundAndNamed) {
  const ProbeReport report = report_of_sample("lost_prefix");
  ASSERT_GT(report.wrong_requests, 10U);
  EXPECT_EQ(report.wrong.front().plan, "trace");
  EXPECT_EQ(report.wrong.front().cause, Cause::kMemory);
  EXPECT_THAT(report.wrong.front().evidence, HasSubstr("lost prefix"));
  EXPECT_EQ(report.shrunk.size(), 2U);
}

TEST(ProbeText, HasACharacterForEachValue) {
  const ProbeTokens tokens{272, 400, 2000, 4367};
  EXPECT_EQ(tokens_of_text(probe_text(tokens)), tokens);
  EXPECT_EQ(probe_text({1, 272, 20}), probe_text({272}));
  EXPECT_EQ(tokens_of_text(""), ProbeTokens());
  for (const char* text : {"abc", "\xE4\xB8", "\xE4\xB8\x7F", "\xE3\xBF\xBF", "\xE5\xB8\x80"})
    EXPECT_FALSE(tokens_of_text(text)) << text;
}

TEST(Endpoint, IsReadFromAnUrl) {
  const Endpoint whole = endpoint_of("http://[::1]:8080/a/v1/");
  EXPECT_EQ(whole.host, "::1");
  EXPECT_EQ(whole.port, "8080");
  EXPECT_EQ(whole.path, "/a/v1");
  EXPECT_EQ(endpoint_of("http://host").port, "80");
  EXPECT_FALSE(whole.tls);
  EXPECT_EQ(url_of(whole), "http://[::1]:8080/a/v1");
  EXPECT_TRUE(endpoint_of("https://host").tls);
  EXPECT_EQ(url_of(endpoint_of("https://host/v1")), "https://host:443/v1");
  for (const char* url : {"ftp://host", "host:80", "http://", "http://host:", "http://host:x",
                          "http://host:70000", "http://:80/v1"})
    EXPECT_THROW((void)endpoint_of(url), UsageError) << url;
}

TEST(ProbePlan, HasTextsWithinItsLimits) {
  const probe::Tables tables;
  for (const std::size_t longest : {64U, 200U, 1024U}) {
    const PlanLimits limits{.longest = longest, .tokens = 4, .at_once = 3};
    traces::Random random(longest);
    traces::Random same(longest);
    for (std::size_t kind = 0; kind < plan_kinds().size(); ++kind) {
      const ProbePlan plan = draw_plan(kind, tables, limits, random);
      const ProbePlan again = draw_plan(kind, tables, limits, same);
      ASSERT_EQ(plan.waves.size(), again.waves.size());
      for (std::size_t wave = 0; wave < plan.waves.size(); ++wave)
        for (std::size_t i = 0; i < plan.waves[wave].size(); ++i) {
          const ProbeTokens& prompt = plan.waves[wave][i].prompt;
          EXPECT_EQ(prompt, again.waves[wave][i].prompt);
          EXPECT_EQ(prompt.front(), probe::kBegin) << plan.kind;
          EXPECT_LE(prompt.size(), longest) << plan.kind;
          EXPECT_GE(prompt.size(), 15U) << plan.kind;
          // 2^class is beyond the begin of the text.
          EXPECT_GT(std::size_t{1} << tables[prompt.back()].token_class, prompt.size() - 1);
        }
    }
  }
}

}  // namespace
}  // namespace kvo::tools
