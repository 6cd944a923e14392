// run, check, mutants, shrink and conform as a user calls them, mistakes included.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
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

using RunCommand = Campaign;
using Check = Campaign;
using Conform = Campaign;
using Shrink = Campaign;

TEST_F(RunCommand, ReplaysTheEmbeddedSampleWithoutMismatch) {
  const Finished finished = run({"run", "--requests", "40", "--scale", "128", "--subjects"});
  EXPECT_EQ(finished.status, kExitConforms) << finished.err;
  for (const char* subject :
       {"layered.vector@optimized", "provider.contiguous@optimized", "provider.paged@optimized",
        "positional.causal@optimized", "positional.wrapper@optimized"})
    EXPECT_THAT(finished.out, HasSubstr(subject));
  EXPECT_THAT(finished.out, HasSubstr("PASS: "));
  EXPECT_THAT(finished.out, HasSubstr(" no difference\n"));
}

TEST_F(RunCommand, TextsAreGeneratedOverTheChosenCaches) {
  const Finished finished = run({"run", "--generate", "--requests", "6", "--scale", "128",
                                 "--subject", "*@optimized", "--no-timings", "--subjects"});
  EXPECT_EQ(finished.status, kExitConforms) << finished.err;
  for (const char* inner : {"provider.contiguous", "snapshot.kv", "positional.causal",
                            "layered.vector", "views.paged", "snapshot.rotating"})
    EXPECT_THAT(finished.out,
                HasSubstr(std::string("generation.contiguous@reference/") + inner + "@optimized"));
  EXPECT_THAT(finished.out, HasSubstr("generation.paged@reference/provider.paged@optimized"));
  EXPECT_THAT(finished.out, HasSubstr(" no difference\n"));
  expect_refused({"run", "--generate", "--subject", "block_pool"},
                 "no text can be generated over 'block_pool'");
}

TEST_F(RunCommand, AWrongTextIsFollowedIntoTheCache) {
  const Finished finished =
      run({"run", "--requests", "6", "--scale", "128", "--subject",
           "generation.contiguous@reference/provider.contiguous@mutant:first_masked"});
  EXPECT_EQ(finished.status, kExitDiffers) << finished.out << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(", with the reference token "));
  EXPECT_THAT(finished.out, HasSubstr("the cache inside parts from provider.contiguous@reference"));
}

TEST_F(RunCommand, ACacheIsNoTrace) {
  expect_refused({"run", "prefix.radix"},
                 "there is no trace 'prefix.radix'; caches are chosen by --subject prefix.radix");
}

TEST_F(RunCommand, WhatDoesNotFitIsRefusedByName) {
  expect_refused({"run", "--layers", "1024", "--heads", "65536", "--head-dim", "65536"},
                 "--layers 1024 --heads 65536 --head-dim 65536: a token takes");
  expect_refused({"run", "--slots", "16384", "--block-size", "65536", "--pool-percent", "1000"},
                 "--slots 16384 --block-size 65536 --pool-percent 1000: a pool takes");
  for (const char* size :
       {"--layers", "--heads", "--head-dim", "--block-size", "--pool-percent", "--slots"})
    expect_refused({"run", size, "1048576"}, std::string(size) + ": Value 1048576 not in range");
  const std::string row = R"({"timestamp":0,"output_length":1,"hash_ids":[1],"input_length":)";
  expect_refused({"run", file("huge", row + "9}\n" + row + "1099511627776}\n")},
                 "huge: request 2: 1099511627776 tokens: at most 268435456");
#ifndef __SANITIZE_ADDRESS__
  const Finished starved = run_program({"/bin/sh", "-c", "ulimit -v 100000; exec \"$0\" \"$@\"",
                                        kvoracle_path(), "run", "--requests", "10", "--scale", "50",
                                        "--layers", "2", "--heads", "20000", "--head-dim", "16"},
                                       {.folder = folder_.string()});
  EXPECT_EQ(starved.status, kExitUsage) << starved.out << starved.err;
  EXPECT_THAT(starved.err, HasSubstr("memory"));
  EXPECT_EQ(std::ranges::count(starved.err, '\n'), 1) << starved.err;
#endif
}

TEST_F(RunCommand, RunFilesDoNotDependOnTheNumberOfThreads) {
  for (const char* jobs : {"1", "4"})
    ASSERT_EQ(run({"run", "--requests", "40", "--requests-per-case", "16", "--scale", "128", "-j",
                   jobs, "-o", std::string("run") + jobs})
                  .status,
              kExitConforms);
  EXPECT_EQ(cases_of("run1"), cases_of("run4"));
  EXPECT_GT(cases_of("run1").size(), 20U);
}

// Equal runs have equal bytes, whatever the number of processes.
TEST_F(Campaign, ResultsDoNotDependOnTheNumberOfWorkers) {
  const std::string log = std::string(KVO_LOGS) + "/layered.jsonl.gz";
  const std::vector<std::vector<std::string>> commands{
      {"check", "layered", "layered.vector@mutant:clone_drops_pending", "--cases", "16"},
      {"run", "--requests", "20", "--requests-per-case", "8", "--scale", "128", "--no-timings"},
      {"conform", log},
      {"conform", log, "--profile", "documented"},
      {"mutants", "layered.vector@mutant:c*"}};
  for (const auto& command : commands) {
    std::vector<std::string> written;
    for (const std::string jobs : {"1", "4"}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--jobs", jobs, "--json", "-"});
      json::value result = json::parse(run(words).out);
      result.get_object().erase("command");
      written.push_back(json::serialize(result));
    }
    EXPECT_EQ(written[0], written[1]) << command[0];
    EXPECT_GT(written[0].size(), 100U);
  }
}

// A worker that somebody kills has lost nothing: its case runs again. Killed then, too, it would
// count as dead.
TEST_F(Check, KilledWorkersDoNotChangeTheResult) {
  const std::string command = kvoracle_path() + " check layered --cases 300 --jobs 2 --json - > ";
  ASSERT_EQ(run_program({"/bin/sh", "-c", command + path("whole")}, {}).status, 0);
  const std::string killing =
      command + path("killed") + " & p=$!; c=; " +
      "while [ -z \"$c\" ] && kill -0 $p; do read -r c _ < /proc/$p/task/$p/children; done; "
      "kill -9 $c; killed=$?; wait $p && exit $killed";
  const Finished killed = run_program({"/bin/sh", "-c", killing}, {});
  ASSERT_EQ(killed.status, 0) << killed.err;
  EXPECT_EQ(read("killed"), read("whole"));
}

TEST_F(Check, AResumedRunEqualsOneThatWasNotKilled) {
  const std::vector<std::string> command{"check", "layered", "--cases", "60"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return run(more);
  };
  ASSERT_EQ(with({"-o", "whole"}).status, kExitConforms);
  const std::string whole = read("whole");
  for (const std::size_t cut : {whole.size() / 2, whole.size() - 1, whole.size()}) {
    (void)file("cut", whole.substr(0, cut));
    const Finished finished = with({"-o", "cut", "--resume"});
    EXPECT_EQ(finished.status, kExitConforms) << finished.err;
    EXPECT_EQ(cases_of("cut"), cases_of("whole")) << "cut at " << cut;
    EXPECT_THAT(finished.out, HasSubstr("60 cases"));
  }
}

TEST_F(Check, AnotherRunIsNotResumed) {
  ASSERT_EQ(run({"check", "layered", "--cases", "40", "-o", "file"}).status, kExitConforms);
  const std::string before = read("file");
  expect_refused({"check", "layered", "--cases", "9", "--seed", "2", "-o", "file", "--resume"},
                 "is not the header of this run");
  EXPECT_EQ(read("file"), before);
}

TEST_F(Check, AFailureTellsWhereTheElementsComeFrom) {
  const Finished failed = run({"check", "provider.paged@mutant:runs_start_over", "--cases", "40"});
  EXPECT_EQ(failed.status, kExitDiffers);
  EXPECT_THAT(failed.out,
              testing::ContainsRegex("op ., get: .*elements differ\\)\n"
                                     "    2 is k\\[batch 0, position 1, dim 0\\] of op . "
                                     "update\n    1 is k\\[batch 0"));
  EXPECT_THAT(failed.out, testing::ContainsRegex("\n  >  op . +.\"op\":\"get\""));
  EXPECT_THAT(failed.out, HasSubstr("rules of the operation: ZF-13, "));
}

TEST_F(Check, ARunFileThatCannotBeAppendedToIsNotResumed) {
  const auto resume = [](const std::string& name) -> std::vector<std::string> {
    return {"check", "layered", "--cases", "40", "-o", name, "--resume"};
  };
  (void)file("packed", "\x1f\x8b...");
  expect_refused(resume("packed"), "is not the header of this run, unpacked");
  EXPECT_EQ(read("packed"), "\x1f\x8b...");

  ASSERT_EQ(run({"check", "layered", "--cases", "2", "-o", "file"}).status, kExitConforms);
  std::string lines = read("file");
  const std::string marker = R"("bucket":)";
  lines.insert(lines.find(marker) + marker.size(), "99999");
  (void)file("file", lines);
  expect_refused(resume("file"), "file:2: histogram: 99999");
  EXPECT_EQ(read("file"), lines);
}

TEST_F(Check, AFaultyCacheFailsWithACommandThatRepeatsIt) {
  const std::string mutant = "layered.vector@mutant:clear_keeps_rows";
  const Finished failed = run({"check", mutant, "--cases", "90", "--repros", "repros"});
  EXPECT_EQ(failed.status, kExitDiffers) << failed.out;
  const std::string marker = "repeat with: kvoracle ";
  const std::size_t at = failed.out.find(marker);
  ASSERT_NE(at, std::string::npos) << failed.out;
  std::istringstream line(
      failed.out.substr(at + marker.size(), failed.out.find('\n', at) - at - marker.size()));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  const Finished repeated = run(words);
  EXPECT_EQ(repeated.status, kExitDiffers) << repeated.out;
  EXPECT_THAT(repeated.out, HasSubstr("1 mismatch\n"));

  const Finished shrunk = run({"shrink", words.at(1), "--subject", mutant, "-o", "small.jsonl"});
  EXPECT_EQ(shrunk.status, kExitDiffers) << shrunk.err;
  EXPECT_EQ(run({"conform", "small.jsonl", "--subject", mutant}).status, kExitDiffers);
  EXPECT_EQ(run({"conform", "small.jsonl"}).status, kExitConforms) << "the reference is right";
}

TEST_F(Check, ACaseThatASubjectDoesNotSupportSaysWhy) {
  const auto log = [&](const std::string& name, const std::string& config) {
    return file(name, R"({"kvlog":1,"contract":"positional","cache":"swa","config":)" + config +
                          R"(,"case":"odd"})"
                          "\n"
                          R"({"op":"close","args":{},"ret":{}})"
                          "\n");
  };
  const Finished finished = run({"conform", log("odd.jsonl", R"({"window":-1})")});
  EXPECT_EQ(finished.status, kExitUsage) << "nothing was compared";
  EXPECT_THAT(finished.out, HasSubstr("positional.swa@reference does not support case"));
  EXPECT_THAT(finished.out, HasSubstr("window, memory: below 0"));
  EXPECT_THAT(finished.err, HasSubstr("nothing was compared"));
  expect_refused({"conform", log("bad.jsonl", R"({"shift":{"kind":"fly"}})")},
                 "config.shift.kind: \"fly\": is none of add, rope, fail");
}

TEST_F(Check, TheSameSeedGivesTheSameJson) {
  const std::vector<std::string> command{"check", "layered", "--cases", "40", "--json", "-"};
  const auto labels = [&] { return json::parse(run(command).out).at("labels"); };
  EXPECT_EQ(labels(), labels());
}

// What a run file holds already counts.
TEST_F(Check, FiguresOfTheCasesAreAddedUp) {
  const auto figure = [&](std::vector<std::string> command, const std::string& name) {
    command.insert(command.end(),
                   {"--subject", "snapshot.trie", "--requests-per-case", "2", "--json", "-"});
    const json::value all = json::parse(run(command).out);
    for (const json::value& one : all.at("figures").as_array())
      if (one.at("figure").as_string() == name) return one;
    return json::value();
  };
  const std::vector<std::string> command{"run", "--requests", "70"};
  const json::value all = figure(command, "kv: tokens restored");
  EXPECT_EQ(all.at("kind"), "snapshot.trie");
  EXPECT_EQ(all.at("of"), "kv: prompt tokens");
  EXPECT_GT(all.at("share").as_double(), 0);
  EXPECT_EQ(figure(command, "kv: sessions").at("value"), 70) << "of three cases";
  const std::string whole = (folder_ / "run.jsonl").string();
  (void)figure({"run", "--requests", "70", "-o", whole}, "");
  EXPECT_EQ(figure({"run", "--requests", "70", "-o", whole, "--resume", "--jobs", "2"},
                   "kv: tokens restored"),
            all);
  EXPECT_THAT(run({"run", "--requests", "10", "--subject", "snapshot.trie", "--figures"}).out,
              HasSubstr("kv: tokens restored at best"));
}

TEST_F(Check, SaysWhatEachLawRestsOn) {
  const Finished finished = run({"check", "layered", "--cases", "60", "--json", "all.json"});
  EXPECT_EQ(finished.status, kExitConforms) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("failures injected"));
  const json::value all = json::parse(read("all.json"));
  const json::array& laws = all.at("laws").as_array();
  ASSERT_EQ(laws.size(), 4U);
  for (const json::value& law : laws) {
    EXPECT_THAT(finished.out, HasSubstr("\n" + std::string(law.at("law").as_string()) + " "));
    EXPECT_EQ(law.at("vacuous"), false) << law;
    EXPECT_EQ(law.at("cases"), 15) << law;
  }
  EXPECT_EQ(laws[1].at("law"), "failed_allocation_changes_nothing");
  for (const char* count : {"failures", "retried", "deferred", "skipped"})
    EXPECT_GT(laws[1].at("evidence").at(count).to_number<int>(), 0) << count;
}

TEST_F(Check, ALawThatJudgedNothingIsNotGreen) {
  // Some scripts have one cache only: then there is no order to change.
  for (int index = 0; index < 40; ++index) {
    const Finished finished = run({"check", "layered", "--law", "order_of_independent_sequences",
                                   "--case", std::to_string(index)});
    if (finished.status == kExitConforms) continue;
    EXPECT_EQ(finished.status, kExitUsage) << finished.out;
    EXPECT_THAT(finished.out, HasSubstr("vacuous"));
    EXPECT_THAT(finished.err, HasSubstr("nothing was compared or judged"));
    return;
  }
  FAIL() << "each of these scripts has several caches";
}

TEST_F(Check, AFailureOfALawIsRepeatedWithTheLaw) {
  const Finished failed =
      run({"check", "layered.vector@mutant:append_not_atomic", "--law",
           "failed_allocation_changes_nothing", "--cases", "60", "--repros", "repros"});
  EXPECT_EQ(failed.status, kExitDiffers) << failed.out;
  EXPECT_THAT(failed.out, HasSubstr(" --law failed_allocation_changes_nothing\n"));
}

TEST_F(Conform, WithoutEvidenceIsNotGreen) {
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.status, kExitUsage) << finished.out;
    EXPECT_THAT(finished.err, HasSubstr("nothing was compared"));
  };
  refused({"conform", file("empty.jsonl", "")});
  refused({"conform", std::string(KVO_LOGS) + "/layered.jsonl.gz", "--subject", "positional"});
}

TEST_F(Check, NamesWhatItDoesNotKnow) {
  expect_refused({"check", "layred"}, "did you mean 'layered'");
  expect_refused({"check", "layered", "--law", "gravity"}, "unknown law 'gravity'");
  expect_refused({"check", "--cases", "0"}, "--cases");
  expect_refused({"check", "--jobs", "-3"}, "--jobs");
  expect_refused({"check", "--profile", "imagined"}, "--profile");
}

TEST_F(Check, AnOutputThatCannotBeWrittenIsRefused) {
  expect_refused({"check", "layered", "--cases", "3", "-o", "no/such/folder/file"},
                 "no/such/folder/file: No such file or directory");
  expect_refused({"check", "layered", "--cases", "3", "-o", "/dev/full"},
                 "/dev/full: No space left on device");
  expect_refused({"check", "layered", "--cases", "3", "--json", "/dev/full"},
                 "No space left on device");
}

TEST_F(Conform, CasesOfOtherKindsAreToldApart) {
  const Finished finished =
      run({"conform", std::string(KVO_LOGS) + "/provider.jsonl.gz", "--subject", "provider.paged"});
  EXPECT_EQ(finished.status, kExitConforms);
  EXPECT_THAT(finished.out, HasSubstr("\n146 cases, 33 with a chosen subject, 694 operations, 0 "));
}

// Reference and subject agree, the recording does not: an excerpt of it shows that.
TEST_F(Shrink, MakesAnExcerptOfARecordingThatSubjectAndReferenceDifferFrom) {
  (void)file("foreign.jsonl",
             R"({"kvlog":1,"contract":"layered","cache":"vector","config":{},"case":"of another"}
{"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":0}}
{"op":"clear","args":{"cache":0}}
{"op":"advance","args":{"cache":0}}
{"op":"len","args":{"cache":0},"ret":{"len":2}}
)");
  const Finished conformed = run({"conform", "foreign.jsonl"});
  EXPECT_EQ(conformed.status, kExitDiffers);
  EXPECT_THAT(conformed.out, HasSubstr("reference and subject agree: two to one against the "));
  EXPECT_THAT(conformed.out, HasSubstr("repeat with: kvoracle shrink foreign.jsonl --case "
                                       "'of another' --subject layered.vector@optimized\n"));
  const Finished shrunk = run({"shrink", "foreign.jsonl", "--case", "of another", "--subject",
                               "layered.vector@optimized", "-o", "small.jsonl"});
  EXPECT_EQ(shrunk.status, kExitDiffers);
  EXPECT_THAT(shrunk.err, HasSubstr("3 of 4 operations are enough: op 2 len: len: want 2, got 1; "
                                    "reference and subject agree, the recording differs"));
  EXPECT_EQ(run({"conform", "small.jsonl"}).status, kExitDiffers);
}

TEST_F(Shrink, LeavesAScriptOfRunAsItIs) {
  const std::string mutant = "layered.vector@mutant:values_in_wrong_layer";
  ASSERT_EQ(run({"run", "--requests", "40", "--scale", "128", "--subject", mutant, "--repros", "r"})
                .status,
            kExitDiffers);
  const std::string log =
      "r/layered.vector_mutant_values_in_wrong_layer-requests0-39-agreement.jsonl";
  EXPECT_EQ(run({"shrink", log, "--subject", mutant, "-o", "again"}).status, kExitDiffers);
  const std::string first = read(log);
  const std::string again = read("again");
  EXPECT_EQ(again.substr(again.find('\n')), first.substr(first.find('\n')));
}

TEST_F(Shrink, SaysWhenThereIsNothingToShrink) {
  const std::string log =
      file("log", R"({"kvlog":1,"contract":"layered","cache":"vector","config":{},"case":"fine"}
{"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},"ret":{"cache":0}}
)");
  const Finished finished = run({"shrink", log, "--subject", "layered.vector@optimized"});
  EXPECT_EQ(finished.status, kExitConforms);
  EXPECT_THAT(finished.err, HasSubstr("nothing to shrink"));
  expect_refused({"shrink", log, "--subject", "layered.vector@fast"}, "unknown subject");
  expect_refused({"shrink", log, "--subject", "layered.vector@optimized", "--case", "other"},
                 "case: other: no such case");
}

constexpr std::string_view kHeader =
    R"({"kvlog":1,"contract":"layered","cache":"vector","config":{"build":"debug"},"case":"a"})"
    "\n";

TEST_F(Conform, RefusesWhatIsNoLog) {
  expect_refused({"conform", "missing.jsonl"},
                 "missing.jsonl: cannot open: No such file or directory");
  expect_refused({"conform", "."}, "directory");
  expect_refused({"conform", file("x", "{\"kvlog\":1,\"contract\":\"nonsense\",\"cache\":\"y\"}")},
                 "x:1: contract: nonsense.y: is no known contract and cache");
  expect_refused({"conform", file("x", std::string(kHeader) + "{\"op\":\"fly\",\"args\":{}}")},
                 "x:2: op: fly: is no operation of layered.vector");
  expect_refused({"conform", file("x", std::string(kHeader) + "{\"op\":\"len\",\"ar")}, "x:2: ");
  expect_refused({"conform", file("x", std::string(kHeader) +
                                           R"({"op":"append","args":{"cache":0,"layer":0,)"
                                           R"("k":{"shape":[1000000,1000000,1000],"data":[]},)"
                                           R"("v":{"shape":[0],"data":[]}},"ret":{}})")},
                 "args.k.shape: [1000000,1000000,1000]: does not fit 0 elements");
}

TEST_F(Conform, RefusesAMemberThatIsThereTwice) {
  const std::string header =
      R"({"kvlog":1,"contract":"layered","cache":"vector","config":{},"case":"a"})";
  const std::string step = R"({"op":"new","args":{"num_layers":1,"num_kv_heads":1,"head_dim":1},)";
  const std::string rets = R"("ret":{"cache":5},"ret":{"cache":0}})";
  expect_refused({"conform", file("a.jsonl", header + "\n" + step + rets)},
                 "a.jsonl:2: member 'ret' is there twice");
  expect_refused({"conform", file("b.jsonl", R"({"kvlog":1,"kvlog":1})")},
                 "b.jsonl:1: member 'kvlog' is there twice");
}

TEST_F(Conform, RefusesDamagedGzip) {
  std::ostringstream packed;
  packed << std::ifstream(std::string(KVO_LOGS) + "/layered.jsonl.gz", std::ios::binary).rdbuf();
  const std::string bytes = packed.str();
  expect_refused({"conform", file("cut.gz", bytes.substr(0, bytes.size() / 2))}, "cut.gz");
  std::string garbled = bytes;
  for (std::size_t i = bytes.size() / 3; i < bytes.size() / 3 + 40; ++i) garbled[i] ^= 0x55;
  expect_refused({"conform", file("garbled.gz", garbled)}, "garbled.gz");
}

TEST_F(Conform, ACacheTooLargeForTheMachineIsNoCrash) {
  const std::string log =
      file("log", std::string(kHeader) +
                      R"({"op":"with_capacity","args":{"num_layers":2,"num_kv_heads":1000000,)"
                      R"("head_dim":1000,"max_seq_len":1000},"ret":{"cache":0}})"
                      "\n");
  const Finished finished = run({"conform", log});
  EXPECT_EQ(finished.status, kExitUsage) << finished.out;
  EXPECT_EQ(finished.err,
            "kvoracle: layered.vector@reference asks for more memory than a case may have "
            "(--case-memory) in " +
                log + ": a\n");
  for (const char* subject : {"layered.vector@reference", "layered.vector@optimized"})
    EXPECT_THAT(finished.out, HasSubstr(subject + std::string(" was out of memory in case ") + log +
                                        ": a\n  op 0 with_capacity: "));
}

TEST_F(Conform, WhatALogSaysSteersNoTerminalAndFillsNoScreen) {
  const auto log = [&](const std::string& name, const std::string& line) {
    return file(name,
                R"({"kvlog":1,"contract":"layered","cache":"vector","case":"\u001b[2J\nFAILED x"})"
                "\n" +
                    line + "\n");
  };
  const Finished failed =
      run({"conform", log("log", R"({"op":"new","args":{"num_layers":1,"num_kv_heads":1,)"
                                 R"("head_dim":1},"ret":{"cache":7}})")});
  EXPECT_EQ(failed.status, kExitDiffers) << failed.err;
  EXPECT_THAT(failed.out, HasSubstr("\\x1b[2J\\x0aFAILED x"));
  EXPECT_THAT(failed.out, Not(HasSubstr("\x1b")));

  const std::string member =
      R"({"op":"len","args":{"cache":0,"\u001b)" + std::string(5'000'000, 'z');
  const Finished refused = run({"conform", log("\x1b[2J", member + R"(":1}})")});
  EXPECT_EQ(refused.status, kExitUsage);
  EXPECT_THAT(refused.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(refused.err, HasSubstr("\\x1b[2J:2: args."));
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1);
  EXPECT_LT(refused.err.size(), 2'100U);
}

TEST_F(RunCommand, RefusesWhatIsNoTrace) {
  const auto mooncake = [&](const std::string& line) { return file("t.jsonl", line + "\n"); };
  const std::string rest = R"("output_length":1,"hash_ids":[1]})";
  expect_refused({"run", mooncake(R"({"timestamp":0,"input_length":-5,)" + rest)},
                 "t.jsonl:1: input_length: -5");
  expect_refused({"run", mooncake(R"({"timestamp":0,"input_length":1e300,)" + rest)},
                 "t.jsonl:1: input_length");
  expect_refused({"run", mooncake(R"({"timestamp":0,"input_length":NaN,)" + rest)}, "t.jsonl:1: ");
  expect_refused({"run", mooncake(R"({"timestamp":0,"input_length":99999999999999,)" + rest)},
                 "t.jsonl:1: input_length: 99999999999999");
  expect_refused({"run", file("t.csv",
                              "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                              "2023-11-16 18:17:03.9799600,nan,5\n")},
                 "t.csv:2: ContextTokens: nan");
  expect_refused({"run", file("t.txt", "hello\n")}, "t.txt");
  expect_refused({"run", file("empty", "")}, "empty");
  expect_refused({"run", "--slots", "0"}, "--slots");
}

}  // namespace
}  // namespace kvo::tools
