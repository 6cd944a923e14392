// An operation that finds no memory and is not tried again has changed nothing.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "reference/block_pool/operations.hpp"
#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/probe.hpp"
#include "reference/layered/cache.hpp"
#include "reference/positional/config.hpp"
#include "reference/positional/operations.hpp"
#include "reference/provider/paged_operations.hpp"

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

}  // namespace
}  // namespace kvo
