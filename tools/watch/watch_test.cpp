// Streams of a publisher of its own over loopback: both wire formats, and every fault of a channel.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "properties/campaign/conform.hpp"
#include "properties/contracts.hpp"
#include "reference/events/operations.hpp"
#include "tools/watch/watcher.hpp"

namespace kvo::tools {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string packed(const Json& value) {
  const auto bytes = Json::to_msgpack(value);
  return {bytes.begin(), bytes.end()};
}
std::string batch_of(const std::vector<Json>& events, const Json& rank = 0) {
  return packed(Json::array({1.5, events, rank}));
}
Json stored(const std::vector<Json>& keys, const Json& parent, const std::vector<int>& tokens,
            const Json& more = Json::object()) {
  Json event{{"type", "BlockStored"}, {"block_hashes", keys}, {"parent_block_hash", parent},
             {"token_ids", tokens},   {"block_size", 2},      {"lora_id", nullptr},
             {"medium", "GPU"}};
  event.update(more);
  return event;
}
Json removed(const std::vector<Json>& keys) {
  return {{"type", "BlockRemoved"}, {"block_hashes", keys}, {"medium", "GPU"}};
}
Json cleared() {
  return {{"type", "AllBlocksCleared"}};
}

class Watch : public testing::Test {
 protected:
  void SetUp() override {
    try {
      publisher_ = std::make_unique<ZeroMqSocket>(ZeroMqSocket::Kind::kPublisher);
      router_ = std::make_unique<ZeroMqSocket>(ZeroMqSocket::Kind::kRouter);
    } catch (const ZeroMqError& error) {
      GTEST_SKIP() << error.what();
    }
    endpoint_ = publisher_->bind("tcp://127.0.0.1:*");
    replay_ = router_->bind("tcp://127.0.0.1:*");
  }

  /// What is seen of messages (number and payload), sent once a subscriber listens.
  Watched seen_of(const std::vector<std::pair<std::int64_t, std::string>>& messages,
                  StreamLog* log = nullptr, bool replay = false,
                  std::chrono::milliseconds time = milliseconds{20'000}, Prober* prober = nullptr) {
    const std::int64_t last = static_cast<std::int64_t>(messages.size());
    std::thread watcher;
    Watched seen;
    bool listening = false;
    WatchOptions options{
        .endpoints = {endpoint_}, .batches = last, .time = time, .patience = milliseconds{300}};
    if (replay) options.replays = {replay_};
    if (prober != nullptr) {
      options.batches = 0;
      options.prober = prober;
      options.between_probes = milliseconds{50};
    }
    // A message that is thrown away, until one arrives: a publisher does not see its subscribers.
    ZeroMqSocket probe(ZeroMqSocket::Kind::kSubscriber);
    probe.connect(endpoint_);
    while (!listening) {
      publisher_->send({"", number_frame(0), "x"});
      listening = probe.receive(milliseconds{20}).has_value();
    }
    watcher = std::thread([&] {
      seen = watch(
          options, log, [] { return false; }, [](const auto&) {});
    });
    std::this_thread::sleep_for(milliseconds{200});
    for (const auto& [number, payload] : messages)
      publisher_->send({"kv@pod", number_frame(number), payload});
    if (replay) answer();
    watcher.join();
    return seen;
  }

  /// The findings, "G3 tokens do not fit keys: 1".
  static std::vector<std::string> findings(const Watched& seen) {
    std::vector<std::string> all;
    for (const StreamFinding& one : seen.findings)
      all.push_back((one.law.empty() ? "" : one.law + " ") + one.what + ": " +
                    std::to_string(one.count));
    return all;
  }

  std::vector<std::string> buffered_ = {};  ///< payloads from number 0 on

 private:
  // One request for a replay.
  void answer() {
    const auto request = router_->receive(milliseconds{2'000});
    if (!request) return;
    const std::int64_t from = batch_number(request->back()).value_or(0);
    for (std::int64_t n = from; n < std::ssize(buffered_); ++n)
      router_->send({request->front(), "", "kv@pod", number_frame(n),
                     buffered_[static_cast<std::size_t>(n)]});
    router_->send({request->front(), "", "", number_frame(-1), ""});
  }

  std::unique_ptr<ZeroMqSocket> publisher_;
  std::unique_ptr<ZeroMqSocket> router_;
  std::string endpoint_;
  std::string replay_;
};

TEST_F(Watch, MapsWithKeysOfAllSorts) {
  const Json bytes = Json::binary({1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto seen =
      seen_of({{0, batch_of({stored({-5, 18446744073709551615ULL}, nullptr, {1, 2, 3, 4}),
                             stored({bytes}, -5, {5, 6}, {{"group_idx", 0}, {"colour", "red"}})})},
               {1, batch_of({removed({bytes})})}});
  EXPECT_THAT(findings(seen), ElementsAre("fields that are not read: BlockStored.colour: 1",
                                          "groups without a kind: 1"));
  const StreamJudge::Held& held = seen.engines.at({0, 0});
  EXPECT_EQ(held.keys, 2U);
  EXPECT_TRUE(held.maps);
  EXPECT_EQ(seen.block_size, 2);
  EXPECT_THAT(seen.topics, ElementsAre("kv@pod"));
}

TEST_F(Watch, Arrays) {
  const Json event = Json::array({"BlockStored", {7}, nullptr, {1, 2}, 2, nullptr, "GPU"});
  const auto seen = seen_of({{0, batch_of({event}, nullptr)},
                             {1, batch_of({Json::array({"BlockRemoved", {7}, "GPU"})})},
                             {2, batch_of({Json::array({"AllBlocksCleared"})})}});
  EXPECT_THAT(findings(seen), IsEmpty());
  EXPECT_FALSE(seen.engines.at({0, 0}).maps);
  EXPECT_EQ(seen.engines.at({0, 0}).events, 3);
}

TEST_F(Watch, LawsOfProducers) {
  const auto seen = seen_of(
      {{0, batch_of(
               {stored({1}, nullptr, {1, 2}), stored({2}, 9, {3, 4}), stored({3}, 1, {3, 4, 5})})},
       {1, batch_of({stored({4, 5}, nullptr, {1, 2, 3, 4})})},
       {2, batch_of({stored({4}, nullptr, {7, 7}), removed({6}), removed({4}), removed({4})})}});
  EXPECT_THAT(findings(seen),
              ElementsAre("G2 a parent that is not held: 1", "G3 tokens do not fit keys: 1",
                          "G4 a key with two contents: 1", "G5 removed more often than stored: 1",
                          "G6 removed before a block that hangs on it: 1"));
}

TEST_F(Watch, LossRepetitionAndRestart) {
  const auto one = [](int key) { return batch_of({stored({key}, nullptr, {key, key})}); };
  const auto seen = seen_of({{0, one(1)}, {1, one(2)}, {1, one(2)}, {5, one(3)}, {0, one(4)}});
  EXPECT_THAT(findings(seen),
              ElementsAre("batches that came twice, or too late: 1", "G1 batches lost: 3",
                          "numbering began again: the engine restarted: 1"));
  EXPECT_EQ(seen.engines.at({0, 0}).keys, 1U);
}

TEST_F(Watch, ANewLifeWithoutItsFirstBatchHasUnknownBlocks) {
  const auto one = [](int key) { return batch_of({stored({key}, nullptr, {key, key})}); };
  const auto seen =
      seen_of({{0, one(1)}, {1, one(2)}, {2, one(3)}, {1, batch_of({stored({5}, 4, {5, 5})})}});
  EXPECT_THAT(findings(seen), ElementsAre("numbering began again: the engine restarted: 1"));
}

TEST_F(Watch, AReplayFillsWhatIsMissing) {
  for (int key = 0; key < 3; ++key)
    buffered_.push_back(batch_of({stored({key}, key > 0 ? Json(key - 1) : Json(), {key, key})}));
  const auto late = seen_of({{3, batch_of({stored({3}, 2, {3, 3})})}});
  EXPECT_THAT(findings(late), ElementsAre("joined late: blocks from before are not known: 1"));
  const auto filled = seen_of({{3, batch_of({stored({3}, 2, {3, 3})})}}, nullptr, true);
  EXPECT_THAT(findings(filled), IsEmpty());
  EXPECT_EQ(filled.engines.at({0, 0}).keys, 4U);
}

TEST_F(Watch, MessagesThatAreNoBatch) {
  const std::string good = batch_of({cleared()});
  const std::vector<std::pair<std::string, std::string>> wrong{
      {good.substr(0, good.size() - 4), "no msgpack"},
      {packed(Json::array({1.0})), "batch: has no events"},
      {packed({{"ts", 1}}), "batch: object: a list is expected"},
      {batch_of({cleared()}, -1), "batch[2]: -1: at least 0"},
      {batch_of({Json{{"type", "Blocks"}}}), "events[0].type: 'Blocks'"},
      {batch_of({Json{{"colour", 1}}}), "events[0].type: is missing"},
      {batch_of({Json::array()}), "events[0]: array: a map or an array is expected"},
      {batch_of({stored({1}, nullptr, {1, 2}, {{"block_size", 0}})}), "block_size: 0: at least 1"},
      {batch_of({stored({"x"}, nullptr, {1, 2})}), "block_hashes[0]: string: an integer or bytes"},
      {batch_of({stored({1}, nullptr, {-1, 2})}), "token_ids[0]: -1: at least 0"},
      {batch_of({Json{{"type", "BlockStored"}}}), "events[0].block_hashes: is missing"}};
  KeyNumbers keys;
  for (const auto& [payload, words] : wrong) {
    const auto batch = decoded(payload, keys);
    ASSERT_TRUE(std::holds_alternative<std::string>(batch)) << words;
    EXPECT_THAT(std::get<std::string>(batch), HasSubstr(words));
  }
  const auto seen = seen_of({{0, good}, {1, "nonsense"}, {2, good}});
  EXPECT_THAT(findings(seen), ElementsAre("messages that are no batch: 1", "G1 batches lost: 1"));
  EXPECT_THAT(seen.findings.front().first, HasSubstr("batch 1: "));
}

TEST_F(Watch, TheLogReplaysAndHidesTokensAndSalts) {
  const std::vector<std::pair<std::int64_t, std::string>> messages{
      {0, batch_of({stored({1, 2}, nullptr, {4711, 4712, 4713, 4714},
                           {{"extra_keys", {{"4711"}, nullptr}}})})},
      {1, batch_of({stored({3}, 2, {4711, 4712})})},
      {3, batch_of({removed({3})})},
      {0, batch_of({cleared()})}};
  StreamLog log(contracts(), "a key", false);
  (void)seen_of(messages, &log);
  const std::string text = log.text();
  EXPECT_THAT(text, testing::Not(HasSubstr("4711")));
  auto reader = traces::LogReader::in_memory("log", text, contracts().kind_finder());
  const auto result =
      conform_next(contracts(), reader,
                   [](const CacheKind& kind) {
                     return std::vector<const Subject*>{&contracts().reference_of(kind)};
                   },
                   {});
  ASSERT_TRUE(result && *result);
  EXPECT_FALSE((*result)->subjects.front().verdict.failed());
  // The same tokens have the same hash, under one key.
  StreamLog same(contracts(), "a key", false);
  (void)seen_of(messages, &same);
  EXPECT_EQ(text, same.text());
  StreamLog other(contracts(), "another", false);
  (void)seen_of(messages, &other);
  EXPECT_NE(text, other.text());
}

// The log queries what each batch is about.
TEST_F(Watch, AFollowerIsJudgedByTheStream) {
  StreamLog log(contracts(), "a key", false);
  (void)seen_of({{0, batch_of({stored({1, 2}, nullptr, {1, 2, 3, 4})})},
                 {1, batch_of({stored({1}, nullptr, {1, 2})})},
                 {2, batch_of({removed({1})})}},
                &log);
  EXPECT_THAT(log.text(), HasSubstr(R"("op":"query")"));
  const CacheKind& kind = events::kind_of(events::Form::kDynamo);
  const Subject& reference = contracts().reference_of(kind);
  EXPECT_FALSE(log.judged(reference).failed());
  // As dynamo answers: it forgets both copies of a block with the first removal.
  Subject dynamo = reference;
  dynamo.open = [&](kvo::Setup setup) {
    setup.profile = Profile::kOriginal;
    return reference.open(setup);
  };
  const Verdict verdict = log.judged(dynamo);
  EXPECT_EQ(verdict.op, "query");
  EXPECT_THAT(verdict.text(), HasSubstr("matches"));
}

class ProbedStream : public Watch {
 protected:
  /// What is found if the engine announces these events, or two blocks, and answers this.
  std::vector<std::string> findings_with(const std::string& answer, unsigned status = 200,
                                         const std::vector<Json>& events = {
                                             stored({1, 2}, nullptr, {5, 6, 7, 8})}) {
    Prober prober(endpoint_of("http://127.0.0.1:1/v1"), "m", [&](const HttpRequest& request) {
      asked_.push_back(request.path + " " + request.body);
      return HttpAnswer{.status = status, .body = answer};
    });
    return findings(seen_of({{0, batch_of(events)}}, nullptr, false, milliseconds{1'000}, &prober));
  }
  static std::string reuse_of(int tokens) {
    return Json{{"usage", {{"prompt_tokens_details", {{"cached_tokens", tokens}}}}}}.dump();
  }

  std::vector<std::string> asked_;
};

TEST_F(ProbedStream, TheEngineReusesWhatItAnnounced) {
  EXPECT_THAT(findings_with(reuse_of(4)), IsEmpty());
  EXPECT_THAT(asked_, ElementsAre(R"(/v1/completions {"prompt":[5,6,7,8,8],"max_tokens":1,)"
                                  R"("temperature":0,"model":"m"})"));
}

TEST_F(ProbedStream, TheEngineReusesLessOrMore) {
  for (const int reused : {2, 5})
    EXPECT_THAT(findings_with(reuse_of(reused)),
                ElementsAre("the engine reuses other tokens than it announced: 1"));
}

// Their blocks have keys that the prompt alone does not give.
TEST_F(ProbedStream, SaltedTextsAreNotAsked) {
  const std::vector<Json> events{
      stored({1}, nullptr, {5, 6}, {{"lora_name", nullptr}, {"extra_keys", {{"salt"}}}}),
      stored({2}, 1, {7, 8}, {{"extra_keys", {nullptr}}})};
  EXPECT_THAT(findings_with(reuse_of(0), 200, events), IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(ProbedStream, AHoleEndsWhatIsAnnounced) {
  const std::vector<Json> events{stored({1, 2}, nullptr, {5, 6, 7, 8}), removed({1})};
  EXPECT_THAT(findings_with(reuse_of(0), 200, events),
              ElementsAre("G6 removed before a block that hangs on it: 1"));
  EXPECT_THAT(findings_with(reuse_of(2), 200, events),
              ElementsAre("G6 removed before a block that hangs on it: 1",
                          "the engine reuses other tokens than it announced: 1"));
}

// What one group or tier holds need not be reused; more than any holds cannot be.
TEST_F(ProbedStream, AnEngineWithGroupsOrTiersMayReuseLess) {
  const Json window{{"group_idx", 1}, {"kv_cache_spec_kind", "sliding_window"}};
  const Json host{{"medium", "CPU"}};
  for (const Json& more : {window, host}) {
    const std::vector<Json> events{stored({1, 2}, nullptr, {5, 6, 7, 8}, more)};
    EXPECT_THAT(findings_with(reuse_of(2), 200, events), IsEmpty());
    EXPECT_THAT(findings_with(reuse_of(5), 200, events),
                ElementsAre("the engine reuses other tokens than it announced: 1"));
  }
}

TEST_F(ProbedStream, TheEngineDoesNotSay) {
  for (const char* answer : {"{}", "no JSON", R"({"usage":{"prompt_tokens_details":null}})"})
    EXPECT_THAT(findings_with(answer), ElementsAre("the engine does not say what it reuses: 1"));
  EXPECT_THAT(findings_with(reuse_of(4), 404),
              ElementsAre("the engine does not say what it reuses: 1"));
}

TEST_F(Watch, SequencesWithoutTheirBeginAreNotQueried) {
  StreamLog log(contracts(), "a key", false);
  (void)seen_of({{7, batch_of({stored({3}, 2, {5, 6})})}}, &log);
  EXPECT_THAT(log.text(), testing::Not(HasSubstr(R"("op":"query")")));
}

TEST_F(Watch, AFloodIsBounded) {
  std::vector<std::pair<std::int64_t, std::string>> messages;
  for (int i = 0; i < 20'000; ++i)
    messages.emplace_back(i, batch_of({stored({i}, nullptr, {i, i})}));
  const auto seen = seen_of(messages, nullptr, false, milliseconds{3'000});
  EXPECT_GT(seen.messages, 0);
  for (const StreamFinding& one : seen.findings) EXPECT_EQ(one.law, "G1") << one.what;
}

}  // namespace
}  // namespace kvo::tools
