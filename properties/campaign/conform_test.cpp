#include "properties/campaign/conform.hpp"

#include <bit>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "reference/block_pool/operations.hpp"
#include "reference/layered/cache.hpp"

namespace kvo {
namespace {

traces::LogReader log_of(const std::string& text) {
  return traces::LogReader::in_memory("log", text, contracts().kind_finder());
}

std::vector<const Subject*> everybody(const CacheKind& kind) {
  return contracts().subjects_without_card(kind);
}

// Replays a whole log on all subjects and adds every fault as a test failure. Returns its cases.
std::uint64_t conforming_cases(const std::string& path) {
  auto log = traces::LogReader::open(path, contracts().kind_finder());
  EXPECT_TRUE(log.has_value()) << (log ? "" : log.error().text());
  std::uint64_t cases = 0;
  while (log) {
    const auto result = conform_next(contracts(), *log, everybody);
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
    if (!result || !*result) break;
    ++cases;
    for (const SubjectResult& subject : (*result)->subjects)
      EXPECT_EQ(subject.verdict.outcome, Outcome::kAgrees)
          << path << ": " << (*result)->name << ": " << subject.subject << ": "
          << subject.verdict.text();
  }
  return cases;
}

TEST(Conform, TheEmbeddedLogsReplayOnEverySubject) {
  std::uint64_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KVO_LOGS))
    if (entry.path().extension() == ".gz") cases += conforming_cases(entry.path().string());
  EXPECT_GE(cases, 100U);
}

TEST(Conform, TheRecordedLogsReplayOnEverySubject) {
  const std::filesystem::path shared(KVO_SHARED_DATA);
  if (!std::filesystem::exists(shared / "vectors"))
    GTEST_SKIP() << "no folder of recorded logs: set KVO_SHARED_DATA";
  for (const char* contract : {"layered", "provider", "positional", "snapshot", "generation",
                               "prefix", "groups", "events", "cells", "dynamic", "mlx_lm"})
    for (const auto& entry : std::filesystem::directory_iterator(shared / "vectors" / contract))
      EXPECT_GT(conforming_cases(entry.path().string()), 0U);
}

constexpr std::string_view kHeader =
    R"({"kvlog":1,"contract":"layered","cache":"vector","config":{"build":"debug"},"case":"a"})";

std::string with_header(std::string_view lines) {
  return std::string(kHeader) + "\n" + std::string(lines);
}

Verdict first_verdict(const std::string& text) {
  auto log = log_of(text);
  const auto result = conform_next(contracts(), log, everybody);
  EXPECT_TRUE(result.has_value()) << result.error().text();
  return (*result)->subjects.front().verdict;
}

TEST(Conform, ADifferentValueIsAMismatch) {
  const Verdict verdict = first_verdict(with_header(
      R"({"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":0}}
{"op":"len","args":{"cache":0},"ret":{"len":3}}
)"));
  EXPECT_EQ(verdict.text(), "op 1 len: len: want 3, got 0");
}

TEST(Conform, WhatStandsBehindARecordedPanicIsJudged) {
  const Verdict verdict = first_verdict(with_header(
      R"({"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":0}}
{"op":"k","args":{"cache":0,"layer":4},"ret":{"panic":"index out of bounds"}}
{"op":"len","args":{"cache":0},"ret":{"len":99}}
)"));
  EXPECT_EQ(verdict.text(), "op 2 len: len: want 99, got 0");
}

TEST(Conform, APanicThatDoesNotHappenIsAMismatch) {
  const Verdict verdict = first_verdict(with_header(
      R"({"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":0}}
{"op":"k","args":{"cache":0,"layer":0},"ret":{"panic":"index out of bounds"}}
)"));
  EXPECT_EQ(verdict.outcome, Outcome::kMismatch);
}

// A recorded length of 3 that nobody else sees, behind operations that do not matter.
constexpr std::string_view kWrongLength =
    R"({"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":0}}
{"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":1}}
{"op":"clear","args":{"cache":0}}
{"op":"advance","args":{"cache":0}}
{"op":"is_empty","args":{"cache":1},"ret":{"is_empty":true}}
{"op":"len","args":{"cache":0},"ret":{"len":3}}
{"op":"len","args":{"cache":0},"ret":{"len":1}}
)";

std::optional<std::string> sides_of(const std::string& text, const Subject& subject) {
  auto log = log_of(text);
  const auto result = conform_next(contracts(), log, [&](const CacheKind& /*kind*/) {
    return std::vector<const Subject*>{&subject};
  });
  EXPECT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ((*result)->subjects.size(), 1U) << "the reference was not asked for";
  return (*result)->subjects.front().sides;
}

TEST(Conform, TellsWhoAgreesWithWhom) {
  const Subject& sound = *contracts().find_subject("layered.vector@optimized");
  const Subject& faulty = *contracts().find_subject("layered.vector@mutant:clone_drops_pending");
  EXPECT_EQ(sides_of(with_header(kWrongLength), sound),
            "reference and subject agree: two to one against the recording");
  const std::string cloned = with_header(
      R"({"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":0}}
{"op":"append","args":{"cache":0,"layer":0,)"
      R"("k":{"shape":[1],"data":[1]},"v":{"shape":[1],"data":[2]}}}
{"op":"clone","args":{"cache":0},"ret":{"cache":1}}
{"op":"k","args":{"cache":1,"layer":0},"ret":{"k":{"shape":[1],"data":[1]}}}
)");
  EXPECT_EQ(sides_of(cloned, faulty),
            "reference and recording agree: two to one against the subject");
  EXPECT_EQ(sides_of(cloned, sound), std::nullopt);
}

TEST(Conform, AnExcerptOfARecordingShowsTheSameDifference) {
  const std::string text = with_header(kWrongLength);
  auto log = log_of(text);
  traces::Case recorded{.header = **log.next_case()};
  while (auto step = *log.next_step()) recorded.steps.push_back(std::move(*step));
  const Subject& sound = *contracts().find_subject("layered.vector@optimized");
  const Verdict before = run_recorded(recorded, sound, {.config = recorded.header.config});
  const traces::Case excerpt = shrink_recorded(recorded, sound, {.config = recorded.header.config});
  const Verdict after = run_recorded(excerpt, sound, {.config = recorded.header.config});
  EXPECT_EQ(before.text(), "op 5 len: len: want 3, got 1");
  EXPECT_EQ(after.text(), "op 2 len: len: want 3, got 1") << "new, advance, len";
  EXPECT_EQ(op_text(excerpt.steps[1].op), op_text(recorded.steps[3].op)) << "arguments stay";
}

std::string error_of(const std::string& text) {
  auto log = log_of(text);
  while (true) {
    const auto result = conform_next(contracts(), log, everybody);
    if (!result) return result.error().text();
    if (!*result) return "no error";
  }
}

TEST(LogReader, NamesFileLineFieldAndValueOfWhatItRefuses) {
  EXPECT_EQ(error_of(R"({"kvlog":1,"contract":"nonsense","cache":"x"})"),
            "log:1: contract: nonsense.x: is no known contract and cache");
  EXPECT_EQ(error_of(with_header(R"({"op":"fly","args":{}})")),
            "log:2: op: fly: is no operation of layered.vector");
  EXPECT_EQ(error_of(with_header(R"({"op":"len","args":{"cache":-1}})")),
            "log:2: args.cache: -1: is not an unsigned 64-bit integer");
  EXPECT_EQ(error_of(with_header(R"({"op":"len","args":{"cache":0,"wings":2}})")),
            "log:2: args.wings: 2: is a field that this record does not have");
  EXPECT_EQ(error_of(with_header(R"({"op":"len","args":{}})")),
            "log:2: args: {}: has no field \"cache\"");
  EXPECT_EQ(error_of(R"({"op":"len","args":{"cache":0}})").substr(0, 12), "log:1: kvlog");
}

// A case whose arguments refer to results: block 0 is taken, then block 1.
std::string referring(const std::string& line) {
  return R"({"kvlog":1,"contract":"block_pool","cache":"stack","references":true})"
         "\n"
         R"({"op":"new","args":{"num_layers":1,"block_size":1,"head_dim":1,"max_memory_mb":1}})"
         "\n"
         R"({"op":"alloc"})"
         "\n"
         R"({"op":"alloc"})"
         "\n" +
         line + "\n";
}

TEST(LogReader, AnArgumentMayReferToAResult) {
  const std::string text =
      referring(R"({"op":"set_used","args":{"block":{"result":2,"member":"block"},"used":1}})");
  auto log = log_of(text);
  const auto read = log.next_whole_case();
  ASSERT_TRUE(read.has_value()) << read.error().text();
  const auto* op = (*read)->steps.back().op.as<block_pool::SetUsed>();
  ASSERT_NE(op, nullptr);
  const auto seen =
      observe_case(**read, contracts().reference_of(*(*read)->header.kind), Profile::kOriginal);
  EXPECT_EQ(op->block, seen[2].as<block_pool::Alloc::Returns>().block);
  EXPECT_NE(op->block, seen[1].as<block_pool::Alloc::Returns>().block);
}

TEST(LogReader, NamesThePlaceOfAReferenceToNothing) {
  const auto error_of_block = [](const std::string& block) {
    return error_of(referring(R"({"op":"free_block","args":{"block":)" + block + "}}"));
  };
  EXPECT_EQ(error_of_block(R"({"result":3,"member":"block"})"),
            "log:5: args.block: 3: refers to an operation that has not run: this is operation 3");
  EXPECT_EQ(error_of_block(R"({"result":0,"member":"block"})"),
            "log:5: args.block: 0: operation 0, new, returned no single block as 'block'");
  EXPECT_EQ(error_of_block(R"({"result":1,"member":"wing"})"),
            "log:5: args.block: 1: operation 1, alloc, returned no single block as 'wing'");
  EXPECT_EQ(error_of_block(R"({"result":1,"member":"block","wing":0})"),
            "log:5: args.block.wing: 0: is no member of a reference: result, member, at");
  EXPECT_EQ(
      error_of(with_header(R"({"op":"len","args":{"cache":{"result":0,"member":"cache"}}})")),
      "log:2: args.cache: {\"result\":0,\"member\":\"cache\"}: refers to a result: the header "
      "of the case must have \"references\": true");
}

TEST(LogReader, NamesTheErrorThatAReferredOperationReturned) {
  const std::string before = referring(R"({"op":"drain","args":{"leave":0}})");
  EXPECT_EQ(error_of(before + R"({"op":"alloc"})" + "\n" +
                     R"({"op":"free_block","args":{"block":{"result":4,"member":"block"}}})"),
            "log:7: args.block: 4: operation 4, alloc, returned an error: exhausted");
}

TEST(LogReader, RefusesJsonThatStopsInTheMiddle) {
  EXPECT_NE(error_of(with_header(R"({"op":"len","args":{"cac)")).find("log:2: "),
            std::string::npos);
  EXPECT_NE(error_of("[1,2]").find("is not a JSON object"), std::string::npos);
}

TEST(LogReader, RefusesATensorWhoseShapeWouldNeedTerabytes) {
  const auto error_of_shape = [](const std::string& shape) {
    return error_of(with_header(R"({"op":"append","args":{"cache":0,"layer":0,"k":{"shape":)" +
                                shape + R"(,"data":[1]},"v":{"shape":[1],"data":[1]}}})"));
  };
  EXPECT_EQ(error_of_shape("[1000000,1000000,1000]"),
            "log:2: args.k.shape: [1000000,1000000,1000]: does not fit 1 elements");
  EXPECT_EQ(error_of_shape("[-1]"), "log:2: args.k.shape: [-1]: does not fit 1 elements");
}

TEST(LogReader, ReadsBackWhatWasWritten) {
  Tensor odd = make_tensor({2, 2});
  odd.floats()[0] = std::bit_cast<float>(0x7FC12345U);  // a NaN with a payload
  odd.floats()[1] = -0.0F;
  odd.floats()[2] = std::numeric_limits<float>::denorm_min();
  odd.floats()[3] = 0.1F;
  const Op op = Op::of(layered::Append{0, 0, odd, tensor_of({1}, std::vector<float>{1})});
  const std::string text = with_header(traces::step_line(op, {}) + "\n");
  auto log = log_of(text);
  ASSERT_TRUE(log.next_case().has_value());
  const auto step = log.next_step();
  ASSERT_TRUE(step.has_value()) << step.error().text();
  EXPECT_EQ(op_text((*step)->op), op_text(op));
  EXPECT_EQ(op_text(op).find("\"data\""), op_text(op).rfind("\"data\"")) << "k is written as bits";
}

}  // namespace
}  // namespace kvo
