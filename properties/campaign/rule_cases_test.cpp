// Rule cases: those of this tree on every subject, and what a file of them may say.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/conform.hpp"
#include "properties/contracts.hpp"
#include "traces/log/case_notation.hpp"
#include "traces/log/cases.hpp"

namespace kvo {
namespace {

using traces::Case;

std::vector<Case> cases_of(const std::string& text) {
  auto cases = traces::read_cases("a.cases", text, contracts().kind_finder());
  EXPECT_TRUE(cases) << (cases ? "" : cases.error().text());
  return cases ? *cases : std::vector<Case>();
}

// ---- The cases of this tree ----

class RuleCases : public testing::TestWithParam<traces::EmbeddedFile> {};

TEST_P(RuleCases, EverySubjectConforms) {
  auto log = traces::LogReader::in_memory(std::string(GetParam().name), GetParam().text,
                                          contracts().kind_finder());
  while (true) {
    const auto result = conform_next(contracts(), log, [](const CacheKind& kind) {
      return contracts().subjects_without_card(kind);
    });
    ASSERT_TRUE(result) << result.error().text();
    if (!*result) break;
    for (const SubjectResult& subject : (*result)->subjects) {
      const bool is_reference = subject.subject == (*result)->kind + "@reference";
      const bool conforms = subject.verdict.outcome == Outcome::kAgrees ||
                            (subject.verdict.outcome == Outcome::kNotSupported && !is_reference);
      EXPECT_TRUE(conforms) << subject.sides.value_or((*result)->name) << "\n"
                            << subject.subject << ", " << (*result)->name << ": "
                            << subject.verdict.text();
    }
  }
}

// Scripts of rules reach what random ones seldom do.
TEST_P(RuleCases, LawsHold) {
  for (const char* law : {"recompute_equivalence", "failed_allocation_changes_nothing"}) {
    auto log = traces::LogReader::in_memory(std::string(GetParam().name), GetParam().text,
                                            contracts().kind_finder());
    while (true) {
      const auto result = conform_next(
          contracts(), log,
          [](const CacheKind& kind) { return contracts().subjects_without_card(kind); },
          {.law = contracts().find_law(law)});
      ASSERT_TRUE(result) << result.error().text();
      if (!*result) break;
      for (const SubjectResult& subject : (*result)->subjects)
        EXPECT_FALSE(subject.verdict.failed()) << law << ": " << subject.subject << ", "
                                               << (*result)->name << ": " << subject.verdict.text();
    }
  }
}

TEST_P(RuleCases, TheWriterWritesWhatTheReaderReads) {
  for (const Case& read : cases_of(std::string(GetParam().text))) {
    const std::string text = traces::lines_of(read).front();
    const std::vector<Case> again = cases_of(text);
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again.front().header.rules, read.header.rules);
    EXPECT_EQ(traces::lines_of(again.front()).front(), text);
    ASSERT_EQ(again.front().steps.size(), read.steps.size()) << text;
    for (std::size_t i = 0; i < read.steps.size(); ++i) {
      const traces::Step& step = again.front().steps[i];
      EXPECT_EQ(op_text(step.op), op_text(read.steps[i].op));
      EXPECT_EQ(observation_difference(*step.recorded, *read.steps[i].recorded), std::nullopt)
          << op_text(step.op);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, RuleCases,
                         testing::ValuesIn(rule_case_files().begin(), rule_case_files().end()),
                         [](const auto& file) {
                           std::string name(file.param.name);
                           name = name.substr(name.find('/') + 1);
                           name.erase(name.find("/cases"), std::string("/cases").size());
                           name.resize(name.size() - std::string(".cases").size());
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

TEST(StorageOfACase, LeavesOutASubjectThatRefusesIt) {
  for (const char* storage : {"f32", "q8"}) {
    const std::string text = std::string("kind provider.contiguous\ncase a\nprofile original\n") +
                             "config storage " + storage + "\nnew num_layers 1, max_seq_len 4\n";
    auto log = traces::LogReader::in_memory("a.cases", text, contracts().kind_finder());
    const auto result = conform_next(contracts(), log, [](const CacheKind& kind) {
      return contracts().subjects_without_card(kind);
    });
    ASSERT_TRUE(result && *result);
    EXPECT_EQ(std::ranges::count((*result)->subjects, "provider.contiguous@cuda-sim",
                                 &SubjectResult::subject),
              storage == std::string("f32") ? 1 : 0);
    EXPECT_GE((*result)->subjects.size(), 1U);
  }
}

// ---- Notation ----

constexpr const char* kBlocks = "kind prefix.blocks\nconfig block_size 2, max_model_len 64\n";

// How the reference of prefix.blocks comes out of the first case.
Verdict verdict_of(const std::string& text) {
  const std::vector<Case> cases = cases_of(kBlocks + text);
  if (cases.empty()) return {};
  return run_recorded(cases.front(), contracts().reference_of(*cases.front().header.kind),
                      setup_of(cases.front().header, {}));
}

TEST(CaseNotation, MembersThatAreNotNamedAreNotCompared) {
  const std::string made = "case a\nconfig num_blocks 8\nrequest request 0, tokens \"abcd\"\n";
  EXPECT_EQ(verdict_of(made + "state -> free 7").text(), "agrees");
  EXPECT_EQ(verdict_of(made + "state -> free 6").text(), "op 1 state: free: want 6, got 7");
  EXPECT_EQ(verdict_of(made + "events -> events []").text(), "agrees");
}

TEST(CaseNotation, AnElementOfAListNamesItsMembers) {
  const std::string made =
      "case a\nconfig num_blocks 8, events true\nrequest tokens \"abcd\"\nallocate tokens 4\n";
  EXPECT_EQ(verdict_of(made + "events -> events [{kind stored}]").text(), "agrees");
  EXPECT_EQ(verdict_of(made + "events -> events [{kind stored, keys [0]}]").text(),
            "op 2 events: events[0].keys.size: want 1, got 2");
  EXPECT_EQ(verdict_of(made + "events -> events [{kind stored, keys absent}]").text(),
            "op 2 events: events[0].keys: want absent, got [0,1]");
}

TEST(CaseNotation, LoopsRepeatOperationsAndCases) {
  const std::vector<Case> cases = cases_of(std::string(kBlocks) + R"(
case turns rules PX-2
for (blocks, least) (8, 1) (9, 2)
config num_blocks blocks
profile original
for i 1 to 2
  2 times
    request request 2 * i + least, tokens [i, 3 times 7, 1 to 2] -> keys [0, 1]
  end
end
)");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[1].header.name, "turns/blocks=9/least=2");
  EXPECT_EQ(cases[1].header.rules, std::vector<std::string>{"PX-2"});
  ASSERT_EQ(cases[1].steps.size(), 4U);
  EXPECT_EQ(op_text(cases[1].steps[3].op),
            R"({"op":"request","args":{"request":6,"tokens":[2,7,7,7,1,2]}})");
  EXPECT_EQ(cases[1].steps[3].line, 10U);
}

TEST(CaseNotation, NamesOfTurnsCanBeWritten) {
  const std::vector<Case> cases = cases_of(std::string(kBlocks) + R"(
case a rules MR-A6
for (tokens, eagle, salt) ([1,2], true, "a b") ([3], false, "")
profile original
config eagle eagle
request tokens tokens, salt salt
)");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[1].header.name, "a/tokens.2/eagle=false/salt.2");
  EXPECT_EQ(cases_of(traces::lines_of(cases[1]).front()).front().header.name, cases[1].header.name);
}

TEST(CaseNotation, AMemberMayHaveTheNameOfAnAnswer) {
  const std::vector<Case> cases = cases_of(
      "kind snapshot.kv\ncase a\nprofile original\nrestore target 1 -> ok false\nfree -> ok\n");
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(traces::answer_text(*cases[0].steps[0].recorded), "ok false");
  EXPECT_FALSE(cases[0].steps[1].recorded->returns);
}

TEST(CaseNotation, ProfilesMayHaveTheirOwnAnswers) {
  const std::string text =
      std::string(kBlocks) +
      "case a\nrequest tokens [1] -> keys []\nmatch -> length 0 | original: precondition\n";
  const std::vector<Case> cases = cases_of(text);
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].header.name, "a/original");
  EXPECT_TRUE(cases[0].steps[1].recorded->error);
  EXPECT_EQ(cases[1].header.profile, Profile::kDocumented);
  EXPECT_FALSE(cases[1].steps[1].recorded->error);
}

TEST(CaseNotation, TensorsAreNestedListsOrWords) {
  const std::string text = R"(kind layered.vector
case a
new num_layers 1, num_kv_heads 1, head_dim 4 -> cache 0
append k counting [4] from -1, v bits [0x7fc12345, 0, 0x80000000, 1]
k -> k [-1 to 2]
v -> v f32 bits [[0x7fc12345, 0, 0x80000000, 1]]
append k [inf, -0, 1e-3, 2], v filled [4] with -inf
)";
  const std::vector<Case> cases = cases_of(text);
  ASSERT_FALSE(cases.empty());
  EXPECT_EQ(traces::case_text(cases.front()), R"(case a/original
profile original
new num_layers 1, num_kv_heads 1, head_dim 4 -> cache 0
append cache 0, layer 0, k [-1,0,1,2], v bits [0x7fc12345,0x0,0x80000000,0x1]
k cache 0 -> k [-1,0,1,2]
v cache 0 -> v bits [[0x7fc12345,0x0,0x80000000,0x1]]
append cache 0, layer 0, k [inf,-0,0.001,2], v [-inf,-inf,-inf,-inf]

)");
}

// ---- What is refused ----

struct Refused {
  const char* text;
  const char* why;  ///< after "a.cases:"
};

class RefusedCases : public testing::TestWithParam<Refused> {};

TEST_P(RefusedCases, NamesLineWordAndWhatIsAllowed) {
  const auto cases = traces::read_cases(
      "a.cases", kBlocks + std::string("case a\n") + GetParam().text, contracts().kind_finder());
  ASSERT_FALSE(cases);
  EXPECT_EQ(cases.error().text().substr(0, std::string(GetParam().why).size() + 8),
            std::string("a.cases:") + GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(
    Every, RefusedCases,
    testing::Values(
        Refused{"rekuest tokens [1]", "4: rekuest: is no operation of prefix.blocks: request, "},
        Refused{"free reqest 1", "4: reqest: is none of the members request"},
        Refused{"free request 1, request 2", "4: request: is there twice"},
        Refused{"free request x", "4: x: is no integer and no loop variable"},
        Refused{"free request 1.5", "4: request: 1.5E0: is not a 64-bit integer"},
        Refused{"config blocks 8\nreset", "4: blocks: is none of the members num_blocks, "},
        Refused{"config attention half\nreset", "4: attention: \"half\": is none of full, "},
        Refused{"reset -> don true", "4: don: is no answer of `reset`: ok, its members (done), "},
        Refused{"reset -> done maybe", "4: maybe: is neither true nor false"},
        Refused{"reset -> other:x | documented: full | documented: ok",
                "4: documented: has two answers"},
        Refused{"reset -> ok | full", "4: full: is a second answer for both profiles"},
        Refused{"reset -> original: ok", "4: reset: has no answer in profile documented"},
        Refused{"profile original\nreset -> ok | documented: full",
                "5: reset: has an answer in another profile, documented"},
        Refused{"reset -> ?", "4: ?: is no answer: `conform --update` writes it"},
        Refused{"for i\nreset\nend", "4: i: has no values"},
        Refused{"for i 1 2\nend", "4: for: begins a loop without operations"},
        Refused{"reset\nfor i 1 2\nreset", "5: for: begins a loop without `end`"},
        Refused{"reset\nend", "5: end: ends no loop"},
        Refused{"for (i, j) (1, 2) 3\nfree request i\nend", "4: 3: begins no (VALUE, VALUE)"},
        Refused{"0 times\nreset\nend", "4: 0: is not a number of turns from 1 to 100000"},
        Refused{"100000 times\n2 times\nreset\nend\nend", "6: reset: is after 100000 operations"},
        Refused{"for i 1 2\nfor i 3 4\nreset\nend\nend", "5: i: is the variable of a loop around"},
        Refused{"2 times\n2 times\n2 times\n2 times\n2 times\n2 times\n2 times\n2 times\n2 times\n"
                "2 times\n2 times\n2 times\n2 times\n2 times\n2 times\n2 times\n2 times\nreset",
                "20: 2: is in more than 16 loops"},
        Refused{"for i 9 to 1\nreset\nend", "4: end of the statement: is after a range that is"},
        Refused{"request tokens [5000000 times 1]", "4: 1: is after more than 4194304 elements"},
        Refused{"request tokens \"ab", "4: \"ab: is no string that ends in its line"},
        Refused{"request tokens [1", "4: end of the statement: is neither , nor ]"},
        Refused{"profile new\nreset", "4: new: is no profile: original or documented"},
        Refused{"reset\nconfig num_blocks 8", "5: config: must be before the first operation"},
        Refused{"case b rules PX2\nreset", "3: case: is a case without operations"},
        Refused{"reset\ncase b rules PX2\nreset", "5: rules: PX2: is no rule number"},
        Refused{"reset\nkind prefix.bloks", "5: kind: prefix.bloks: is no known contract and "},
        Refused{"reset $", "4: $: begins no word, number, string or comment"}));

// ---- Answers that are written by the reference ----

std::vector<Observation> observe(const Case& script) {
  return observe_case(script, contracts().reference_of(*script.header.kind),
                      *script.header.profile);
}

TEST(UpdatedCases, AConfigThatTheReferenceRefusesIsNamed) {
  const std::string text = std::string(kBlocks) +
                           "case a\nconfig attention chunked_local, chunk 8, eagle true\n"
                           "reset -> ?\n";
  const auto updated = traces::updated_cases("a.cases", text, contracts().kind_finder(), observe);
  ASSERT_FALSE(updated);
  EXPECT_EQ(updated.error().text(),
            "a.cases:3: case: a/documented: has a config that the reference does not support");
}

TEST(UpdatedCases, DocumentedAnswersAreThoseOfTheReference) {
  const std::string text = std::string(kBlocks) + R"(case a   # an empty prompt
config num_blocks 8
for tokens 0 1
request request tokens, tokens [] -> ?
match request tokens, max_length -1 -> precondition   # stays
end
state -> free 7, queue [1]
)";
  const auto updated = traces::updated_cases("a.cases", text, contracts().kind_finder(), observe);
  ASSERT_TRUE(updated) << updated.error().text();
  EXPECT_EQ(*updated, std::string(kBlocks) + R"(case a   # an empty prompt
config num_blocks 8
for tokens 0 1
request request tokens, tokens [] -> keys []
match request tokens, max_length -1 -> precondition | documented: blocks [], length 0   # stays
end
state -> free 7, queue [1] | documented: free 7, queue [1 to 7]
)");
}

}  // namespace
}  // namespace kvo
