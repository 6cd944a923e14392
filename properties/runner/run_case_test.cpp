// An operation that finds no memory and is not tried again has changed nothing.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/conform.hpp"
#include "properties/contracts.hpp"
#include "properties/runner/linked_script.hpp"
#include "properties/runner/shrunk.hpp"
#include "reference/block_pool/operations.hpp"
#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/probe.hpp"
#include "reference/layered/cache.hpp"
#include "reference/positional/operations.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/provider/paged.hpp"

namespace kvo {
namespace {

/// An operation whose allocations fail, in turn, in a session of its own each.
struct GivenUp {
  std::string name;
  std::string_view subject;
  Record config;
  std::vector<Op> before;
  Op failing;
  Op query;  ///< changes nothing

  // NOLINTNEXTLINE(readability-identifier-naming): a name of theirs
  friend void PrintTo(const GivenUp& given_up, std::ostream* out) { *out << given_up.name; }
};

class GivenUpTest : public testing::TestWithParam<GivenUp> {};

// False when the operation makes so few allocations that none has failed.
bool fails_and_changes_nothing(const GivenUp& given, std::int64_t allocation) {
  const Subject* subject = contracts().find_subject(given.subject);
  auto session = subject->open({.profile = Profile::kOriginal, .config = given.config});
  Probe probe;
  for (const Op& op : given.before) {
    const Observation seen = (*session)->apply(op, probe);
    EXPECT_FALSE(seen.error) << op.kind().name << ": " << seen.error->text();
  }
  const Observation want = (*session)->apply(given.query, probe);
  allocation_gate.fail_at = allocation;
  const Observation got = (*session)->apply(given.failing, probe);
  const bool failed = allocation_gate.fail_at < 0 && got.failed_with(Code::kOutOfMemory);
  allocation_gate.fail_at = -1;
  if (!failed) return false;
  EXPECT_FALSE(observation_difference(want, (*session)->apply(given.query, probe)))
      << "allocation " << allocation;
  return true;
}

TEST_P(GivenUpTest, ChangesNothing) {
  std::int64_t failed = 0;
  while (fails_and_changes_nothing(GetParam(), failed)) ++failed;
  EXPECT_GT(failed, 1);
}

Tensor row(float value, std::initializer_list<std::int64_t> shape) {
  return tensor_of(shape, std::vector<float>{value});
}

GivenUp append_to_a_pinned_layer() {
  const auto append = [](float value) {
    return Op::of(layered::Append{0, 0, row(value, {1}), row(-value, {1})});
  };
  return {.name = "append",
          .subject = "layered.vector@reference",
          .config = {},
          .before = {Op::of(layered::New{1, 1, 1}), append(1), Op::of(layered::Pin{0, 0})},
          .failing = append(2),
          .query = Op::of(layered::Pinned{0, 0})};
}

// Sequence 1 loses its token to the window of a batch that does not fit.
GivenUp refused_start(std::string_view subject) {
  positional::CacheConfig config;
  config.window = 1;
  return {.name = "start_forward_of_" + std::string(subject.substr(subject.find('@') + 1)),
          .subject = subject,
          .config = Record::of(config),
          .before = {Op::of(positional::Init{.max_sequences = 1, .capacity = 4, .max_batch = 1}),
                     Op::of(positional::StartForward{.positions = {0}, .seqs = {1}})},
          .failing = Op::of(
              positional::StartForward{.positions = {12, 13, 14, 15, 16}, .seqs = {1, 1, 1, 1, 1}}),
          .query = Op::of(positional::CanResume{.seq = 1, .pos = 0})};
}

// A cache whose block was freed by others finds it again, and writes behind its rows into them.
GivenUp update_of_a_shared_block(std::string name, Op query) {
  const auto update = [](float value) {
    return Op::of(provider::Update{.k = row(value, {1, 1, 1}), .v = row(-value, {1, 1, 1})});
  };
  return {.name = std::move(name),
          .subject = "provider.paged@cuda-sim",
          .config = {},
          .before = {Op::of(provider::NewPool{
                         .num_layers = 1, .block_size = 1, .head_dim = 1, .max_memory_mb = 1}),
                     Op::of(provider::NewPaged{.num_layers = 1}), update(1),
                     Op::of(block_pool::FreeBlock{.block = 0})},
          .failing = update(2),
          .query = std::move(query)};
}

INSTANTIATE_TEST_SUITE_P(
    Each, GivenUpTest,
    testing::Values(append_to_a_pinned_layer(), refused_start("positional.swa@reference"),
                    refused_start("positional.swa@optimized"),
                    update_of_a_shared_block("update_and_rows",
                                             Op::of(provider::Get{.keep = false})),
                    update_of_a_shared_block("update_and_pool", Op::of(block_pool::Available{}))),
    [](const auto& trial) { return trial.param.name; });

// The reference, which breaks at an append where its schedule says 3.
class DrawingSession final : public Session {
 public:
  DrawingSession(std::unique_ptr<Session> sound, Schedule schedule)
      : sound_(std::move(sound)), schedule_(std::move(schedule)) {}

  Observation apply(const Op& op, Probe& probe) override {
    if (schedule_.choose(4) == 3 && op.as<layered::Append>() != nullptr) broken_ = true;
    return sound_->apply(op, probe);
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return broken_ ? std::optional<std::string>("appended too early") : std::nullopt;
  }
  [[nodiscard]] std::vector<std::uint32_t> choices() const override { return schedule_.taken(); }

 private:
  std::unique_ptr<Session> sound_;
  Schedule schedule_;
  bool broken_ = false;
};

const CacheKind& kind() {
  return *contracts().find_kind("layered", "vector");
}

Subject drawing_subject() {
  Subject subject = contracts().reference_of(kind());
  subject.variant = "drawing";
  subject.scheduled = true;
  subject.open = [](const Setup& setup) -> Result<std::unique_ptr<Session>> {
    auto sound = contracts().reference_of(kind()).open(setup);
    if (!sound) return sound.error();
    return std::make_unique<DrawingSession>(std::move(*sound), setup.schedule);
  };
  return subject;
}

std::vector<Op> script() {
  const auto row = [](float value) { return tensor_of({1}, std::vector<float>{value}); };
  std::vector<Op> ops{Op::of(layered::New{1, 1, 1})};
  for (const float value : {1.0F, 2.0F}) {
    ops.push_back(Op::of(layered::Append{0, 0, row(value), row(-value)}));
    ops.push_back(Op::of(layered::Len{0}));
  }
  return ops;
}

CasePlan plan_of(const Subject& subject, Schedule schedule) {
  return {.kind = &kind(),
          .name = "drawn",
          .setup = {.schedule = std::move(schedule)},
          .baseline = &contracts().reference_of(kind()),
          .subjects = {&subject},
          .ops = [] { return std::make_unique<ListedOps>(script()); }};
}

// A seed in whose schedule the script passes, while it fails in a later one.
std::uint64_t quiet_seed(const Subject& subject) {
  for (std::uint64_t seed = 1; seed < 100; ++seed)
    if (!run_script(plan_of(subject, Schedule(seed)), subject, script()).failed()) return seed;
  return 0;
}

// What an operation frees follows the block that it was given, where others are missing.
TEST(LinkedScript, HandlesFollowWhatTheReferenceReturns) {
  const Subject& reference = contracts().reference_of(block_pool::stack_kind());
  const Script script{Op::of(block_pool::New{1, 1, 1, 1}), Op::of(block_pool::Alloc{}),
                      Op::of(block_pool::Alloc{}), Op::of(block_pool::FreeBlock{1}),
                      Op::of(block_pool::SetUsed{7, 1})};
  const LinkedScript linked(reference, {}, script);
  const Script fewer = linked.resolved(without(script, 1, 1), {});
  ASSERT_EQ(fewer.size(), 4U);
  EXPECT_EQ(*fewer[2].as<block_pool::FreeBlock>()->block, 0);
  EXPECT_EQ(fewer[3].as<block_pool::SetUsed>()->block, 7);  // refers to nothing
  const Script none = linked.resolved(without(script, 1, 2), {});
  EXPECT_EQ(*none[1].as<block_pool::FreeBlock>()->block, 1);
}

TEST(LinkedScript, AListFollowsAWholeResult) {
  const Subject& reference = contracts().reference_of(prefix::blocks_kind());
  prefix::BlocksConfig config;
  config.num_blocks = 9;
  config.max_model_len = 9;
  const kvo::Setup setup{.config = Record::of(config)};
  const Script script{Op::of(prefix::Take{2}), Op::of(prefix::Take{3}),
                      Op::of(prefix::Release{{3, 4, 5}}), Op::of(prefix::Release{{2, 1}})};
  const LinkedScript linked(reference, setup, script);
  const Script fewer = linked.resolved(without(script, 0, 1), setup);
  ASSERT_EQ(fewer.size(), 3U);
  EXPECT_EQ(fewer[1].as<prefix::Release>()->blocks, prefix::Ids({1, 2, 3}));
  EXPECT_EQ(fewer[2].as<prefix::Release>()->blocks, prefix::Ids({2, 1}));
}

TEST(Schedules, ALaterOneBringsTheFaultToLightAndIsShrunk) {
  const Subject subject = drawing_subject();
  CasePlan plan = plan_of(subject, Schedule(quiet_seed(subject)));
  EXPECT_FALSE(run_case(plan, {}).subjects.back().verdict.failed());

  plan.schedules = 50;
  const SubjectResult result = run_case(plan, {}).subjects.back();
  ASSERT_TRUE(result.repeats());
  EXPECT_GT(result.schedule.value_or(0), *plan.setup.schedule.seed());
  EXPECT_EQ(result.shrunk->operations, 1U);
  EXPECT_EQ(result.shrunk->schedule, "choices 3");
}

TEST(Schedules, WhoDrawsFromNoneHasNoneInItsScript) {
  const Subject subject = contracts().reference_of(kind());
  const CasePlan plan = plan_of(subject, Schedule(1));
  const Smaller smaller = smaller_case(plan, subject, script(), {});
  EXPECT_FALSE(log_of(smaller, subject).header.schedule.has_value());
}

TEST(Schedules, StandInTheHeaderOfALog) {
  const Subject subject = drawing_subject();
  traces::Case written{.header = {.kind = &kind(), .name = "a"}};
  for (const Op& op : script()) written.steps.push_back({op, std::nullopt});
  const auto read = [&](std::optional<Schedule> schedule) {
    written.header.schedule = std::move(schedule);
    std::string text;
    for (const std::string& line : traces::lines_of(written)) text += line + "\n";
    auto log = traces::LogReader::in_memory("log", text, contracts().kind_finder());
    return conform_next(
               contracts(), log,
               [&](const CacheKind& /*kind*/) { return std::vector<const Subject*>{&subject}; })
        .value()
        ->subjects.front();
  };
  EXPECT_TRUE(read(Schedule(std::vector<std::uint32_t>{0, 3})).verdict.failed());
  EXPECT_FALSE(read(Schedule(std::vector<std::uint32_t>{3, 0})).verdict.failed());
  EXPECT_FALSE(read(Schedule(quiet_seed(subject))).verdict.failed());
}

TEST(Schedules, OfALogAreAsManyAsOneAsksFor) {
  const Subject subject = drawing_subject();
  traces::Case written{
      .header = {.kind = &kind(), .name = "a", .schedule = Schedule(quiet_seed(subject))}};
  for (const Op& op : script()) written.steps.push_back({op, std::nullopt});
  std::string text;
  for (const std::string& line : traces::lines_of(written)) text += line + "\n";
  auto log = traces::LogReader::in_memory("log", text, contracts().kind_finder());
  const CaseResult result = *conform_next(contracts(), log,
                                          [&](const CacheKind& /*kind*/) {
                                            return std::vector<const Subject*>{&subject};
                                          },
                                          {.schedules = 50})
                                 .value();
  EXPECT_TRUE(result.subjects.front().verdict.failed());
  EXPECT_GT(result.subjects.front().schedule.value_or(0), quiet_seed(subject));
}

TEST(Schedules, ThatAreNoneAreRefused) {
  for (const char* schedule : {"-1", "\"a\"", "[1,-2]", "[1,99999999999]", "{}", "1.5"}) {
    const std::string text = R"({"kvlog":1,"contract":"layered","cache":"vector","schedule":)" +
                             std::string(schedule) + "}\n";
    auto log = traces::LogReader::in_memory("log", text, contracts().kind_finder());
    const auto header = log.next_case();
    ASSERT_FALSE(header.has_value()) << schedule;
    EXPECT_NE(header.error().text().find("schedule"), std::string::npos) << schedule;
  }
}

}  // namespace

}  // namespace kvo
