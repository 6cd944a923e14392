#include "properties/campaign/quirk_attribution.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/campaign/conform.hpp"
#include "properties/contracts.hpp"
#include "reference/positional/operations.hpp"

namespace kvo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Lines of a log.
using Lines = std::vector<std::string>;

std::string init() {
  return R"({"op":"init","args":{"max_sequences":1,"capacity":8,"max_batch":4,"dtype":"f32"},)"
         R"("ret":{}})";
}

std::string rows(const std::string& shape, const std::string& k, const std::string& v) {
  return R"("k":{"shape":)" + shape + R"(,"data":)" + k + R"(},"v":{"shape":)" + shape +
         R"(,"data":)" + v + "}";
}

std::string started(const std::string& positions, const std::string& seqs) {
  return R"({"op":"start_forward","args":{"positions":)" + positions + R"(,"seqs":)" + seqs +
         R"(,"reserve":false},"ret":{}})";
}

std::string put(const std::string& rows, const std::string& returns) {
  return R"({"op":"put","args":{)" + rows + R"(},"ret":)" + returns + "}";
}

std::string got(const std::string& rows, const std::string& mask_shape, const std::string& mask) {
  return R"({"op":"get","args":{},"ret":{)" + rows + R"(,"mask":{"shape":)" + mask_shape +
         R"(,"data":)" + mask + "}}}";
}

std::string resumes(int seq, int pos, const std::string& value) {
  return R"({"op":"can_resume","args":{"seq":)" + std::to_string(seq) + R"(,"pos":)" +
         std::to_string(pos) + R"(},"ret":{"value":)" + value + "}}";
}

std::string refused_remove(int begin, int end) {
  return R"({"op":"remove","args":{"seq":0,"begin":)" + std::to_string(begin) + R"(,"end":)" +
         std::to_string(end) + R"(},"ret":{"error":"not_supported"}})";
}

// The log of a causal cache that can shift nothing: a pass of the keys 1, 2, 3, and the given
// lines.
std::string log_of(const Lines& lines) {
  std::string text = R"({"kvlog":1,"contract":"positional","cache":"causal",)"
                     R"("config":{"shift":null},"case":"a"})";
  text += "\n" + init() + "\n" + started("[0,1,2]", "[0,0,0]") + "\n" +
          put(rows("[3,1,1]", "[1,2,3]", "[-1,-2,-3]"), "{}") + "\n";
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

traces::Case read(const std::string& text) {
  auto log = traces::LogReader::in_memory("log", text, contracts().kind_finder());
  traces::Case made{*log.next_case().value()};
  while (auto step = log.next_step().value()) made.steps.push_back(std::move(*step));
  return made;
}

QuirkAttribution explain(const traces::Case& recorded) {
  return attribute_quirks(contracts().reference_of(*recorded.header.kind), recorded);
}

// "1 can_resume OK-55 anything_resumes"
std::vector<std::string> texts(const std::vector<Attribution>& partings) {
  std::vector<std::string> all;
  all.reserve(partings.size());
  for (const Attribution& parting : partings)
    all.push_back(std::to_string(parting.op_index) + " " + parting.op + " " + parting.rule + " " +
                  parting.quirk);
  return all;
}

CaseResult documented(const std::string& text, std::vector<const Subject*> subjects) {
  auto log = traces::LogReader::in_memory("log", text, contracts().kind_finder());
  const auto result = conform_next(contracts(), log, [&](const CacheKind&) { return subjects; },
                                   {.profile = Profile::kDocumented});
  EXPECT_TRUE(result.has_value()) << result.error().text();
  return **result;
}

const CacheKind& causal() {
  return positional::kind_of(positional::MemberKind::kCausal);
}

// ---- Explaining ----

TEST(Attributions, ALogThatKeepsTheContractHasNone) {
  const QuirkAttribution explanation = explain(read(log_of({resumes(0, 3, "true")})));
  EXPECT_THAT(explanation.explained, IsEmpty());
  EXPECT_EQ(explanation.rest.outcome, Outcome::kAgrees);
}

std::string resumes_anywhere() {
  return log_of({resumes(0, 3, "true"), resumes(0, 5, "true"), resumes(7, 5, "true")});
}

TEST(Attributions, OneQuirkIsNamedWhereItFirstShows) {
  const QuirkAttribution explanation = explain(read(resumes_anywhere()));
  EXPECT_THAT(texts(explanation.explained), ElementsAre("4 can_resume OK-55 anything_resumes"));
  EXPECT_EQ(explanation.rest.outcome, Outcome::kAgrees) << explanation.rest.text();
}

TEST(Attributions, AQuirkShowsWhereItCanBeSeen) {
  // The copy empties the sequence (OK-54); the next pass shows it.
  const QuirkAttribution explanation = explain(
      read(log_of({R"({"op":"copy_prefix","args":{"src":0,"dst":0,"len":2},"ret":{}})",
                   started("[2]", "[0]"), got(rows("[1,1,1]", "[1]", "[-1]"), "[1,1]", "[0]")})));
  EXPECT_THAT(texts(explanation.explained), ElementsAre("5 get OK-54 copy_onto_itself_empties"));
  EXPECT_EQ(explanation.rest.outcome, Outcome::kAgrees) << explanation.rest.text();
}

TEST(Attributions, TwoQuirksAreNamedWhereNeitherExplainsAlone) {
  // An empty range is walked (OK-68), and then asks for a shift function in vain (OK-66).
  const QuirkAttribution explanation = explain(read(log_of({refused_remove(5, 5)})));
  EXPECT_THAT(texts(explanation.explained), ElementsAre("3 remove OK-66 nothing_to_move_refused",
                                                        "3 remove OK-68 empty_range_shifts"));
  EXPECT_EQ(explanation.rest.outcome, Outcome::kAgrees) << explanation.rest.text();
}

TEST(Attributions, LaterAttributionsAreFoundBehindEarlierOnes) {
  const QuirkAttribution explanation =
      explain(read(log_of({refused_remove(5, 5), resumes(0, 9, "true"), refused_remove(0, 1),
                           R"({"op":"set_causal","args":{"except":[0]},"ret":{}})",
                           got(rows("[3,1,1]", "[1,2,3]", "[-1,-2,-3]"), "[3,3]",
                               R"(["-inf",0,0,"-inf",0,0,"-inf",0,0])")})));
  EXPECT_THAT(
      texts(explanation.explained),
      ElementsAre("3 remove OK-66 nothing_to_move_refused", "3 remove OK-68 empty_range_shifts",
                  "4 can_resume OK-55 anything_resumes", "7 get OK-66 positions_move_first"));
  EXPECT_EQ(explanation.rest.outcome, Outcome::kAgrees) << explanation.rest.text();
}

std::string refuses_what_is_held() {
  return log_of({resumes(0, 5, "true"), resumes(0, 3, "false")});
}

TEST(Attributions, WhatNoQuirkExplainsIsLeft) {
  const QuirkAttribution explanation = explain(read(refuses_what_is_held()));
  EXPECT_THAT(texts(explanation.explained), ElementsAre("3 can_resume OK-55 anything_resumes"));
  EXPECT_EQ(explanation.rest.outcome, Outcome::kMismatch);
  EXPECT_EQ(explanation.rest.text(), "op 4 can_resume: value: want false, got true");
}

TEST(Attributions, AnAbortEndsTheCase) {
  const QuirkAttribution explanation = explain(
      read(log_of({put(rows("[1,1,1]", "[1]", "[-1]"), R"({"panic":"inconsistent batch sizes"})"),
                   resumes(0, 3, "false")})));
  EXPECT_THAT(explanation.explained, IsEmpty());
  EXPECT_EQ(explanation.rest.outcome, Outcome::kAgrees) << explanation.rest.text();
}

// ---- Conform in profile documented ----

TEST(ConformDocumented, TellsTheAttributionsAndBlamesNobody) {
  const CaseResult result = documented(resumes_anywhere(), contracts().subjects_of(causal()));
  EXPECT_THAT(texts(result.attributions), ElementsAre("4 can_resume OK-55 anything_resumes"));
  EXPECT_EQ(result.subjects.size(), contracts().subjects_of(causal()).size());
  for (const SubjectResult& subject : result.subjects)
    EXPECT_EQ(subject.verdict.outcome, Outcome::kAgrees)
        << subject.subject << ": " << subject.verdict.text();
}

TEST(ConformDocumented, WhatNoQuirkExplainsIsAMismatchOfTheReferenceAlone) {
  for (const Subject* chosen : contracts().subjects_of(causal())) {
    const CaseResult result = documented(refuses_what_is_held(), {chosen});
    for (const SubjectResult& subject : result.subjects)
      EXPECT_EQ(subject.verdict.outcome,
                subject.subject == contracts().reference_of(causal()).name() ? Outcome::kMismatch
                                                                             : Outcome::kAgrees)
          << subject.subject << ": " << subject.verdict.text();
    EXPECT_EQ(result.subjects.front().subject, contracts().reference_of(causal()).name())
        << "shown though only " << chosen->name() << " was asked for";
  }
}

TEST(ConformDocumented, OthersAreJudgedByTheReferenceAndNotByTheLog) {
  // The second part of the prompt does not see the first: the mutant and this log agree.
  const std::string text =
      log_of({started("[3]", "[0]"), got(rows("[4,1,1]", "[1,2,3,0]", "[-1,-2,-3,0]"), "[1,4]",
                                         R"(["-inf","-inf","-inf",0])")});
  const Subject* mutant = contracts().find_subject("positional.causal@mutant:mask_starts_at_batch");
  ASSERT_NE(mutant, nullptr);
  const CaseResult result = documented(text, {mutant});
  ASSERT_EQ(result.subjects.size(), 2U);
  EXPECT_EQ(result.subjects[0].subject, contracts().reference_of(causal()).name());
  EXPECT_EQ(result.subjects[0].verdict.outcome, Outcome::kMismatch);
  EXPECT_EQ(result.subjects[1].subject, mutant->name());
  EXPECT_EQ(result.subjects[1].verdict.text(),
            "op 4 get: mask[token 0, cell 0]: want 0, got -inf (3 of 4 elements differ)");
}

TEST(ConformDocumented, AnExplainedLogShowsOnlyWhoWasAskedFor) {
  const Subject* optimized = contracts().find_subject("positional.causal@optimized");
  ASSERT_NE(optimized, nullptr);
  const CaseResult result = documented(log_of({refused_remove(5, 5)}), {optimized});
  ASSERT_EQ(result.subjects.size(), 1U);
  EXPECT_EQ(result.subjects[0].subject, optimized->name());
  EXPECT_EQ(result.subjects[0].verdict.outcome, Outcome::kAgrees);
  EXPECT_EQ(result.attributions.size(), 2U);
}

}  // namespace
}  // namespace kvo
