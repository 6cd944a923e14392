// tools/commands/schema_test.cpp: what commands write for programs, against docs/schema.
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/schema.h>
#include <rapidjson/stringbuffer.h>

#include "tools/testing/command_test.hpp"
#include "tools/testing/probe_server.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::IsEmpty;
using testing::Not;

const json::object& schema() {
  static const json::value kSchema = [] {
    std::ifstream file(KVO_SOURCE_ROOT "/docs/schema/kvoracle.schema.json");
    return json::parse(file);
  }();
  return kSchema.get_object();
}

rapidjson::Document document(const std::string& text) {
  rapidjson::Document parsed;
  parsed.Parse(text.c_str(), text.size());
  EXPECT_FALSE(parsed.HasParseError()) << text;
  return parsed;
}

std::string text_of(const rapidjson::Pointer& pointer) {
  rapidjson::StringBuffer text;
  pointer.StringifyUriFragment(text);
  return {text.GetString(), text.GetSize()};
}

/// Where a text breaks a schema and which part of it, or nothing.
std::string complaint(const json::object& by, const std::string& text) {
  const rapidjson::Document rules = document(json::serialize(by));
  const rapidjson::SchemaDocument schema_document(rules);
  rapidjson::SchemaValidator validator(schema_document);
  if (document(text).Accept(validator)) return {};
  return text_of(validator.GetInvalidDocumentPointer()) + " breaks " +
         text_of(validator.GetInvalidSchemaPointer()) + ", " + validator.GetInvalidSchemaKeyword();
}

/// The schema's definition `name` with what it refers to.
json::object definition(const std::string& name) {
  json::object one = schema().at("definitions").at(name).as_object();
  one["definitions"] = schema().at("definitions");
  return one;
}

void expect_described(const std::string& name, const std::string& text) {
  EXPECT_EQ(complaint(definition(name), text), "") << name << "\n" << text.substr(0, 2'000);
  EXPECT_EQ(complaint(schema(), text), "") << "none or several of the definitions describe it";
}

class Schema : public CommandTest {
 protected:
  /// The result of a command.
  [[nodiscard]] std::string result(const std::string& line) const {
    const Finished done = run(line + " --json -");
    EXPECT_LE(done.status, kExitCrashed) << done.err;
    return done.out;
  }
  /// The same, described by the schema under its name.
  [[nodiscard]] json::object described(const std::string& name, const std::string& line) const {
    const std::string text = result(line);
    const json::object parsed = json::parse(text).as_object();
    EXPECT_EQ(parsed.at("format_version"), 2);
    EXPECT_EQ(parsed.at("result"), name.c_str());
    expect_described(name, text);
    return parsed;
  }
};

const std::string kMutant = "layered.vector@mutant:values_in_wrong_layer";

TEST_F(Schema, DescribesCampaigns) {
  const auto fine = described("check", "check layered --cases 40 --timings");
  EXPECT_THAT(fine.at("timings").as_array(), Not(IsEmpty()));
  const auto faulty = described("check", "check " + kMutant + " --cases 90");
  EXPECT_THAT(faulty.at("failures").as_array(), Not(IsEmpty()));
  EXPECT_TRUE(faulty.at("failures").at(0).at("result").as_object().contains("shrunk"));
  (void)described("run", "run --requests 10 --scale 128");
  const auto plain = described("run", "run --requests 10 --subject layered");
  EXPECT_THAT(plain.at("figures").as_array(), IsEmpty());
  const auto told = described("run", "run --requests 10 --subject snapshot.trie --no-timings");
  EXPECT_THAT(told.at("figures").as_array(), Not(IsEmpty()));
}

TEST_F(Schema, DescribesWhatLogsShow) {
  fs::copy_file(KVO_LOGS "/positional.jsonl.gz", folder_ / "log");
  const auto documented = described("conform", "conform log --profile documented");
  EXPECT_THAT(documented.at("quirks").as_array(), Not(IsEmpty()));
  (void)described("conform", "conform log --subject layered");
  fs::copy_file(KVO_LOGS "/prefix.jsonl.gz", folder_ / "prefixes");
  const auto why = described("why", "why prefixes");
  EXPECT_THAT(why.at("lookups").as_array(), Not(IsEmpty()));
  (void)file(
      "odd.jsonl",
      R"({"kvlog":1,"contract":"positional","cache":"swa","config":{"window":-1},"case":"odd"}
{"op":"close","args":{},"ret":{}}
)");
  const auto odd = described("conform", "conform odd.jsonl");
  EXPECT_THAT(odd.at("unsupported").as_array(), Not(IsEmpty()));
}

TEST_F(Schema, DescribesMutantsAndShrunkScripts) {
  const auto matrix = described("mutants", "mutants --contract layered --cases 3");
  EXPECT_THAT(matrix.at("mutants").as_array(), Not(IsEmpty()));
  ASSERT_EQ(run("check " + kMutant + " --cases 90 --repros repros").status, kExitDiffers);
  const std::string log =
      "repros/" + fs::directory_iterator(path("repros"))->path().filename().string();
  (void)described("learn", "learn layered.vector@optimized --cases 20 -o mine.conventions");
  (void)described("diff",
                  "diff provider.paged@reference provider.paged@reference --cases 20 "
                  "--other-profile documented");
  (void)described("diff", "diff");
  (void)described("shrink", "shrink " + log + " --subject " + kMutant + " -o small.jsonl");
  (void)described("judges", "mutants " + kMutant + " --judges --cases 60");
}

TEST_F(Schema, DescribesProbes) {
  static const auto server = server_with_fault("lost_prefix");  // its thread ends with the process
  std::promise<std::uint16_t> port;
  std::thread([&port] {
    serve_http(
        0, [&port](std::uint16_t at) { port.set_value(at); },
        [](const std::string& path, const std::string& body) {
          return server->answer(path, body);
        });
  }).detach();
  const auto probe =
      described("probe", "probe check http://127.0.0.1:" + std::to_string(port.get_future().get()) +
                             "/v1 --requests 30 --longest 100 --control -o run");
  EXPECT_THAT(probe.at("wrong").as_array(), Not(IsEmpty()));
  EXPECT_THAT(probe.at("shrunk").as_array(), Not(IsEmpty()));
  EXPECT_TRUE(probe.contains("control_wrong"));
  (void)described("probe_plan", "probe plan --requests 30 --longest 100");
  std::istringstream lines(read("run"));
  for (std::string line; std::getline(lines, line);)
    EXPECT_EQ(complaint(schema(), line), "") << line.substr(0, 2'000);
}

TEST_F(Schema, DescribesGates) {
  for (const char* name : {"a", "b"})
    (void)result("check layered --cases 80 --timings -o " + std::string(name));
  const auto same = described("gate", "gate a b --slower 9000");
  EXPECT_THAT(same.at("regressions").as_array(), IsEmpty());
  EXPECT_THAT(same.at("timings").as_array(), Not(IsEmpty()));
  (void)result("check " + kMutant + " --cases 8 --shrink-attempts 0 -o few");
  const auto worse = described("gate", "gate a few");
  EXPECT_THAT(worse.at("regressions").as_array(), Not(IsEmpty()));
}

TEST_F(Schema, DescribesBenches) {
  const auto bench = described("bench", "bench layered --quick --rounds 6");
  EXPECT_THAT(bench.at("rows").as_array(), Not(IsEmpty()));
}

TEST_F(Schema, DescribesListsAndTraces) {
  (void)described("list", "list");
  for (const char* contract : {"layered", "provider", "block_pool", "positional"})
    (void)described("list_contract", "list --contract " + std::string(contract));
  (void)described("trace_info", "trace info");
  (void)file("odd.jsonl", R"({"timestamp":0,"input_length":600,"output_length":5,"hash_ids":[1]})");
  const auto odd = described("trace_info", "trace info odd.jsonl");
  EXPECT_THAT(odd.at("findings").as_array(), Not(IsEmpty()));
}

TEST_F(Schema, DescribesTheLinesOfRunFiles) {
  const auto lines_of = [&](const std::string& words) {
    (void)run(words + " -o run --overwrite");
    std::istringstream text(read("run"));
    std::size_t lines = 0;
    bool repeated = false;
    for (std::string line; std::getline(text, line); ++lines) {
      expect_described(lines == 0 ? "run_file_header" : "run_file_case", line);
      repeated = repeated || line.find(R"("repeat":)") != std::string::npos;
    }
    EXPECT_GT(lines, 1U);
    return repeated;
  };
  EXPECT_TRUE(lines_of("check " + kMutant + " --cases 90"));
  EXPECT_FALSE(lines_of("run --requests 10 --subject layered"));
  EXPECT_FALSE(lines_of("run --requests 10 --subject snapshot"));
}

// A schema that allows everything would pass the tests above.
TEST_F(Schema, AllowsNothingElse) {
  const json::object list = json::parse(result("list")).as_object();
  const auto refused = [&](const char* what, auto change) {
    json::object changed = list;
    change(changed);
    EXPECT_NE(complaint(definition("list"), json::serialize(changed)), "") << what;
    EXPECT_NE(complaint(schema(), json::serialize(changed)), "") << what;
  };
  refused("a member too many", [](json::object& all) { all["more"] = 1; });
  refused("another version", [](json::object& all) { all["format_version"] = 3; });
  refused("no environment", [](json::object& all) { all.erase("environment"); });
  refused("a line too many",
          [](json::object& all) { all["environment"].as_object()["date"] = "2000-01-01"; });
  refused("a name that is none",
          [](json::object& all) { all["caches"].as_array()[0].as_object()["name"] = 1; });
}

TEST_F(Schema, ResultsSayWhatMadeThem) {
  const std::string words = "check layered --cases 8";
  const json::object one = json::parse(result(words)).as_object();
  EXPECT_EQ(one.at("command"),
            (json::array{"kvoracle", "check", "layered", "--cases", "8", "--json", "-"}));
  const json::object& environment = one.at("environment").as_object();
  EXPECT_EQ("kvoracle " + std::string(environment.at("kvoracle").as_string()) + "\n",
            run("--version").out);
  EXPECT_GT(environment.at("cores").as_int64(), 0);
  EXPECT_THAT(environment.at("compiler").as_string(), Not(IsEmpty()));
  EXPECT_EQ(result(words), result(words));
}

TEST_F(Schema, WordsThatAreNoTextGiveJsonAllTheSame) {
  const std::string text = result("trace info /dev/null\xe9");
  EXPECT_EQ(text, "") << "no such file";
  (void)file("trac\xe9", R"({"timestamp":0,"input_length":5,"output_length":5,"hash_ids":[1]})");
  const auto info = described("trace_info", "trace info trac\xe9");
  EXPECT_EQ(info.at("trace"), "trac<0xe9>");
  fs::copy_file(KVO_LOGS "/layered.jsonl.gz", folder_ / "log\xe9");
  const auto conformed = described("conform", "conform log\xe9 --subject " + kMutant);
  EXPECT_THAT(conformed.at("failures").as_array(), Not(IsEmpty()));
}

}  // namespace
}  // namespace kvo::tools
