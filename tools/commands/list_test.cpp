// tools/commands/list_test.cpp: `kvoracle list`.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  boost::split(lines, text, boost::is_any_of("\n"));
  lines.pop_back();
  return lines;
}

TEST(List, FitsAScreen) {
  const Finished done = run_kvoracle({"list"});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out,
              StartsWith("contract    subjects  laws  mutants  states  caches\nlayered "));
  for (const char* word : {"blocks, radix\n", "mooncake ", "cuda-sim ", "kvoracle list CONTRACT",
                           "caches, subjects, mutants, laws, states", "kvoracle explain NAME"})
    EXPECT_THAT(done.out, HasSubstr(word));
  EXPECT_LE(lines_of(done.out).size(), 40U);
  for (const std::string& line : lines_of(done.out)) EXPECT_LE(line.size(), 80U) << line;
}

TEST(List, ShowsEachList) {
  const json::object all = json::parse(run_kvoracle({"list", "--json", "-"}).out).as_object();
  for (const auto& [list, first] :
       std::map<std::string, std::string>{{"caches", "layered.vector "},
                                          {"subjects", "layered.vector@reference "},
                                          {"mutants", "layered.vector@mutant:"},
                                          {"laws", "agrees_with_reference "},
                                          {"states", "layered.vector  "},
                                          {"trace_formats", "mooncake "},
                                          {"devices", "cuda-sim "}}) {
    const Finished done = run_kvoracle({"list", list});
    EXPECT_EQ(done.status, kExitConforms);
    EXPECT_THAT(done.out, StartsWith(first));
    EXPECT_EQ(lines_of(done.out).size(), all.at(list).as_array().size()) << list;
  }
}

TEST(List, ShowsAListOfOneContractOrCache) {
  const Finished mutants = run_kvoracle({"list", "mutants", "provider"});
  EXPECT_THAT(mutants.out, StartsWith("provider."));
  for (const std::string& line : lines_of(mutants.out)) EXPECT_THAT(line, StartsWith("provider."));
  EXPECT_EQ(run_kvoracle({"list", "provider", "mutants"}).out, mutants.out);
  const Finished paged = run_kvoracle({"list", "states", "provider.paged"});
  for (const std::string& line : lines_of(paged.out))
    EXPECT_THAT(line, StartsWith("provider.paged "));
  EXPECT_THAT(run_kvoracle({"list", "laws", "sampling"}).out,
              testing::AllOf(HasSubstr("order_of_vocabulary"), Not(HasSubstr("fork_then_write"))));
}

TEST(List, TakesOneListAndOneContract) {
  const Finished two = run_kvoracle({"list", "laws", "mutants"});
  EXPECT_EQ(two.status, kExitUsage);
  EXPECT_THAT(two.err, HasSubstr("'laws' and 'mutants': one list, one contract or cache"));
  EXPECT_THAT(run_kvoracle({"list", "mutant"}).err, HasSubstr("did you mean 'mutants'?"));
}

TEST(List, ShowsTheOperationsOfAContract) {
  const Finished done = run_kvoracle({"list", "--contract", "layered"});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out, StartsWith("layered.vector  "));
  EXPECT_THAT(done.out, HasSubstr("\n  append(cache, layer, k, v)\n    Adds the K and V"));
  EXPECT_THAT(done.out, HasSubstr("in  layer  integer  layer, counted from 0\n"));
  EXPECT_THAT(done.out, HasSubstr("out  k      tensor [element]  keys\n"));
  EXPECT_THAT(done.out, HasSubstr("boolean, optional"));
  EXPECT_EQ(run_kvoracle({"list", "-c", "layered.vector"}).out, done.out);
  EXPECT_EQ(run_kvoracle({"list", "layered"}).out, done.out);
}

TEST(List, ShowsTheQuirksOfAContractThatNamesThem) {
  const Finished done = run_kvoracle({"list", "--contract", "positional"});
  EXPECT_THAT(done.out, HasSubstr("OK-54  copy_onto_itself_empties"));
  EXPECT_THAT(done.out, HasSubstr("a prefix copied onto its own sequence empties that"));
  EXPECT_THAT(run_kvoracle({"list", "--contract", "provider.context"}).out,
              Not(HasSubstr("full_pins")));
  EXPECT_THAT(run_kvoracle({"list", "--contract", "provider"}).out, HasSubstr("full_pins"));
}

TEST(List, KnowsNoOtherContract) {
  const Finished done = run_kvoracle({"list", "--contract", "layred"});
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err,
              StartsWith("kvoracle: unknown contract 'layred'; did you mean 'layered'?\n"));
  EXPECT_THAT(run_kvoracle({"list", "--contract", "xyz"}).err,
              HasSubstr("unknown contract 'xyz'. There are: layered, block_pool"));
}

TEST(List, WritesJson) {
  const Finished done = run_kvoracle({"list", "--json", "-"});
  EXPECT_EQ(done.status, kExitConforms);
  const json::object all = json::parse(done.out).as_object();
  EXPECT_EQ(all.at("caches").at(0).at("name"), "layered.vector");
  EXPECT_EQ(all.at("trace_formats").at(0).at("name"), "mooncake");
  EXPECT_EQ(run_kvoracle({"list", "--json", "-"}).out, done.out);
}

TEST(List, WritesTheOperationsAsJson) {
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / "kvoracle_list_test.json").string();
  const Finished done = run_kvoracle({"list", "-c", "layered.vector", "--json", path});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out, StartsWith("layered.vector"));
  const Finished shown = run_program({"/bin/cat", path});
  const json::value all = json::parse(shown.out);
  const json::value& make = all.at("caches").at(0).at("operations").at(0);
  EXPECT_EQ(make.at("name"), "new");
  EXPECT_EQ(make.at("arguments").at(0).at("unit"), "layers");
  EXPECT_EQ(make.at("arguments").at(0).at("optional"), false);
  std::filesystem::remove(path);
}

TEST(List, CannotWriteWhereThereIsNoFolder) {
  const Finished done = run_kvoracle({"list", "--json", "/no/such/folder/list.json"});
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_THAT(done.err, HasSubstr("/no/such/folder/list.json: "));
  EXPECT_THAT(done.err, Not(HasSubstr("--help")));
}

}  // namespace
}  // namespace kvo::tools
