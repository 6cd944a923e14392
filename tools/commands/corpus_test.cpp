// What check keeps from run to run, and how far check and mutants go.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/campaign_fixture.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

using Check = Campaign;

TEST_F(Check, ACorpusIsReplayedFirst) {
  const std::string mutant = "layered.vector@mutant:clear_keeps_rows";
  const auto check = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"check", mutant, "--corpus", "kept", "--json", "found.json"});
    const Finished finished = run(more);
    EXPECT_EQ(finished.status, kExitDiffers) << finished.out << finished.err;
    return json::parse(read("found.json")).at("corpus").as_object();
  };
  const auto number = [](const json::object& from, const char* member) {
    return from.at(member).to_number<std::uint64_t>();
  };
  const json::object first = check({"--cases", "120"});
  EXPECT_EQ(number(first, "replayed"), 0U);
  EXPECT_EQ(number(first, "next"), 120U);
  EXPECT_GT(number(first, "new_failures"), 0U);
  EXPECT_GT(number(first, "new_states"), 0U);
  EXPECT_EQ(number(first, "scripts"), number(first, "new_failures"));
  EXPECT_LE(number(first, "cases"), number(first, "new_states"));
  const auto logs = std::ranges::count_if(
      fs::directory_iterator(path("kept")),
      [](const fs::directory_entry& entry) { return entry.path().extension() == ".jsonl"; });
  EXPECT_EQ(static_cast<std::uint64_t>(logs), number(first, "scripts"));

  const json::object again = check({"--cases", "1"});
  EXPECT_EQ(number(again, "replayed"), number(first, "scripts") + number(first, "cases"));
  EXPECT_EQ(number(again, "new_failures"), 0U) << "a script shows it";
  EXPECT_EQ(number(again, "new_states"), 0U);
  EXPECT_EQ(again.at("scripts"), first.at("scripts"));
  const json::object on = check({"--cases", "10", "--continue"});
  EXPECT_EQ(number(on, "first"), 120U);
  EXPECT_EQ(number(on, "next"), 130U);
  EXPECT_EQ(number(check({"--cases", "1", "--continue", "--seed", "2"}), "first"), 0U)
      << "another campaign";
}

TEST_F(Check, ACorpusThatCannotBeReadIsRefusedOrLeftOut) {
  const std::vector<std::string> command{"check",   "layered", "--law",    "agrees_with_reference",
                                         "--cases", "8",       "--corpus", "kept"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return more;
  };
  expect_refused({"check", "--cases", "8", "--corpus", file("plain", "text")}, "is no folder");
  expect_refused({"check", "--cases", "8", "--continue"}, "--continue needs the folder");
  expect_refused(with({"--repros", "x"}), "leave --repros out");
  expect_refused(with({"--continue", "--case", "3"}), "name different cases");
  ASSERT_EQ(run(command).status, kExitConforms);
  const std::string state = read("kept/corpus.json");
  for (const auto& [damage, why] : std::vector<std::pair<std::string, std::string>>{
           {state.substr(0, state.size() / 2), "is not JSON, or damaged"},
           {"{}", "is not the file of a corpus"},
           {R"({"corpus":7})", "corpus: 7: this kvoracle reads version 1"},
           {R"({"corpus":1,"kvoracle":3})", "kvoracle: 3"}}) {
    (void)file("kept/corpus.json", damage);
    expect_refused(command, why);
    EXPECT_EQ(read("kept/corpus.json"), damage) << "stays as it was";
  }
  std::string older = state;
  older.replace(older.find("\"kvoracle\": \"") + 13, 1, "9");
  (void)file("kept/corpus.json", older);
  (void)file("kept/odd.jsonl", "{\"kvlog\":1,\"contract\":\"layered\"");
  const Finished warned = run(command);
  EXPECT_EQ(warned.status, kExitConforms) << warned.err;
  EXPECT_THAT(warned.err, HasSubstr("which may draw other cases"));
  EXPECT_THAT(warned.err, HasSubstr("kept/odd.jsonl:1"));
  EXPECT_THAT(warned.err, HasSubstr("is left out"));
}

TEST_F(Check, SaysWhichNumberOfCasesRepeatsARun) {
  const Finished timed = run({"check", "layered", "--time", "0.2"});
  EXPECT_THAT(timed.out, HasSubstr("\nseed 1; the same cases again: --cases "));
  EXPECT_THAT(run({"check", "layered", "--cases", "8"}).out, testing::EndsWith("\nseed 1\n"));
}

TEST_F(Campaign, MutantsAreTriedInBothProfiles) {
  const auto rows = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"mutants", "layered.vector@mutant:clone_drops_pending", "--json", "-"});
    return json::parse(run(more).out).at("mutants").as_array();
  };
  const json::array both = rows({"--cases", "1"});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].at("profile"), "original");
  EXPECT_EQ(both[1].at("profile"), "documented");
  for (const json::value& row : both)
    if (row.as_object().if_contains("law") == nullptr || row.at("law").is_null()) {
      EXPECT_EQ(row.at("cases"), 1) << "that it got away from";
      EXPECT_GT(row.at("operations").to_number<int>(), 0);
    }
  const json::array one = rows({"--profile", "documented", "--cases", "1"});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].at("profile"), "documented");
}

}  // namespace
}  // namespace kvo::tools
