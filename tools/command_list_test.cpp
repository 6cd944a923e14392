// tools/command_list_test.cpp: `kvoracle list`.
#include <filesystem>
#include <string>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(List, ShowsWhatThereIs) {
  const Finished done = run_kvoracle({"list"});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out, StartsWith("caches\n  layered.vector"));
  for (const char* word : {"\nsubjects\n  layered.vector@reference", "\nmutants\n", "\nlaws\n",
                           "agrees_with_reference", "\ntrace formats\n  mooncake "})
    EXPECT_THAT(done.out, HasSubstr(word));
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
  EXPECT_THAT(done.err, StartsWith("kvoracle: unknown contract 'layred'; did you mean 'layered'? "
                                   "There are: layered"));
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
