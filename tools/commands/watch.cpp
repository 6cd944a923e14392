// tools/commands/watch.cpp: `kvoracle watch`: the events of running engines, followed and judged.
#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/runner/verdict.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/events/operations.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/probe.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/watch/watcher.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {
namespace {

struct WatchArguments {
  std::vector<std::string> endpoints;
  std::vector<std::string> replays;
  std::int64_t ranks = 1;
  std::optional<std::int64_t> block_size;
  std::int64_t batches = 0;
  double seconds = 60;
  std::string record;
  std::string key_file;
  std::string follower;
  ConnectionArguments probe;
  std::string model;
  std::string json;
};

// "tcp://host:5557" -> "tcp://host:5559" for rank 2 (EV-3): each rank has a port of its own.
std::string of_rank(const std::string& endpoint, std::int64_t rank) {
  constexpr std::int64_t kMostPort = 65535;
  if (!endpoint.starts_with("tcp://") && rank == 0) return endpoint;
  const std::size_t colon = endpoint.rfind(':');
  std::int64_t port = 0;
  const char* const end = endpoint.data() + endpoint.size();
  const auto read = std::from_chars(endpoint.data() + colon + 1, end, port);
  if (read.ptr != end || read.ec != std::errc() || port < 1 || port + rank > kMostPort)
    throw UsageError(fmt::format(
        "'{}' does not end with a port{}, at most {}: tcp://127.0.0.1:5557", printable(endpoint),
        rank > 0 ? fmt::format(" for rank {}", rank) : "", kMostPort));
  return fmt::format("{}{}", endpoint.substr(0, colon + 1), port + rank);
}

std::string key_of(const std::string& file) {
  if (file.empty()) {
    std::random_device random;
    std::string key;
    for (int i = 0; i < 32; ++i) key += static_cast<char>(random());
    return key;
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || text.str().empty())
    throw UsageError(fmt::format("--key-file: {}: cannot be read, or is empty", printable(file)));
  return text.str();
}

std::string engine_text(const events::Engine& engine, const std::vector<std::string>& endpoints) {
  return fmt::format("{}{}", printable(endpoints.at(static_cast<std::size_t>(engine.worker))),
                     engine.rank > 0 ? fmt::format(", rank {}", engine.rank) : "");
}

std::string finding_text(const StreamFinding& finding) {
  return fmt::format("{}{}", finding.law.empty() ? "" : fmt::format("EV-15 {}: ", finding.law),
                     finding.what);
}

void print(const Watched& seen, const std::vector<std::string>& endpoints) {
  Table engines({column("engine"), numbers("batches"), column("numbers"), numbers("events"),
                 column("wire"), numbers("keys held"), numbers("more than one copy")});
  for (const auto& [engine, held] : seen.engines)
    engines.row({engine_text(engine, endpoints),
                 count_text(static_cast<std::uint64_t>(held.batches)),
                 fmt::format("{} to {}", held.first, held.last),
                 count_text(static_cast<std::uint64_t>(held.events)), held.maps ? "maps" : "arrays",
                 count_text(held.keys), count_text(held.more_copies)});
  print_out(engines.text(0, output_columns()));
  print_out(fmt::format(
      "\nblock size {}; topics: {}\n",
      seen.block_size ? std::to_string(*seen.block_size) : "not known",
      seen.topics.empty() ? "none" : fmt::format("'{}'", fmt::join(seen.topics, "', '"))));
  if (seen.findings.empty()) return print_out("nothing that contradicts itself\n");
  Table table({numbers("times"), column("found"), column("batch"), column("first", 1)});
  for (const StreamFinding& finding : seen.findings)
    table.row({count_text(static_cast<std::uint64_t>(finding.count)), finding_text(finding),
               finding.batch < 0 ? "" : std::to_string(finding.batch),
               printable(finding.first, 200)});
  print_out("\n" + table.text(0, output_columns()));
}

boost::json::object json_of(const Watched& seen, const std::vector<std::string>& endpoints,
                            const std::optional<Verdict>& verdict) {
  boost::json::array engines;
  for (const auto& [engine, held] : seen.engines)
    engines.push_back(
        {{"endpoint", printable(endpoints.at(static_cast<std::size_t>(engine.worker)))},
         {"worker", engine.worker},
         {"rank", engine.rank},
         {"batches", held.batches},
         {"first", held.first},
         {"last", held.last},
         {"events", held.events},
         {"maps", held.maps},
         {"keys", held.keys},
         {"more_copies", held.more_copies}});
  boost::json::object out{
      {"messages", seen.messages},
      {"block_size", seen.block_size ? boost::json::value(*seen.block_size) : nullptr},
      {"topics", write_json(std::vector<std::string>(seen.topics.begin(), seen.topics.end()))},
      {"engines", std::move(engines)},
      {"findings", write_json(seen.findings)}};
  if (verdict) out["follower"] = write_json(*verdict);
  return out;
}

int run_watch(const Contracts& contracts, const WatchArguments& arguments) {
  check_outputs({{"--record", arguments.record}, {"--json", arguments.json}}, {});
  catch_interruption();
  WatchOptions options{
      .block_size = arguments.block_size,
      .batches = arguments.batches,
      .time = std::chrono::milliseconds(static_cast<std::int64_t>(arguments.seconds * 1000))};
  for (const std::string& endpoint : arguments.endpoints)
    for (std::int64_t rank = 0; rank < arguments.ranks; ++rank)
      options.endpoints.push_back(of_rank(endpoint, rank));
  for (const std::string& endpoint : arguments.replays)
    for (std::int64_t rank = 0; rank < arguments.ranks; ++rank)
      options.replays.push_back(of_rank(endpoint, rank));
  if (options.replays.size() > options.endpoints.size())
    throw UsageError("--replay: there are more of them than endpoints");
  const Subject* follower = nullptr;
  if (!arguments.follower.empty()) {
    follower = &subject_named(contracts, arguments.follower);
    if (follower->kind != &events::kind_of(events::Form::kDynamo))
      throw UsageError(fmt::format("--follower: {} follows no stream; caches of {} do",
                                   follower->name(),
                                   events::kind_of(events::Form::kDynamo).name()));
  }
  std::unique_ptr<StreamLog> log;
  if (!arguments.record.empty() || follower != nullptr)
    log = std::make_unique<StreamLog>(contracts, key_of(arguments.key_file),
                                      !arguments.replays.empty());
  std::optional<Prober> prober;
  if (!arguments.probe.url.empty())
    options.prober = &prober.emplace(connection_of(arguments.probe), arguments.model);
  Watched seen;
  try {
    seen = watch(options, log.get(), interrupted, [&](const StreamFinding& finding) {
      print_note(fmt::format(
          "{}, batch {}: {}{}",
          printable(options.endpoints.at(static_cast<std::size_t>(finding.worker))), finding.batch,
          finding_text(finding), finding.first.empty() ? "" : fmt::format(": {}", finding.first)));
    });
  } catch (const ZeroMqError& error) {
    throw UsageError(printable(error.what()));
  }
  if (!arguments.record.empty()) {
    write_text_file(arguments.record, log->text());
    if (log->left_out() > 0)
      print_error(fmt::format("{}: {} beyond {} are left out", printable(arguments.record),
                              count_text(static_cast<std::uint64_t>(log->left_out()), "event"),
                              StreamLog::kMostEvents));
  }
  std::optional<Verdict> verdict;
  if (follower != nullptr && seen.messages > 0) verdict = log->judged(*follower);
  if (!arguments.json.empty())
    write_result(arguments.json, "watch", json_of(seen, options.endpoints, verdict));
  if (seen.messages == 0) {
    print_error(fmt::format(
        "no message came from {}: nothing is published there, or the engine changed nothing. vLLM "
        "publishes with --kv-events-config, SGLang too",
        printable(fmt::format("{}", fmt::join(options.endpoints, ", ")))));
    return kExitUsage;
  }
  if (arguments.json != kStandardOutput) {
    print(seen, options.endpoints);
    if (verdict) print_out(fmt::format("{}: {}\n", follower->name(), printable(verdict->text())));
  }
  const bool faults =
      std::ranges::any_of(seen.findings, &StreamFinding::fault) || (verdict && verdict->failed());
  return faults ? kExitDiffers : kExitConforms;
}

}  // namespace

Run declare_watch(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<WatchArguments>();
  app.add_option("endpoints", arguments->endpoints,
                 "where engines publish their KV-cache events, as tcp://127.0.0.1:5557")
      ->type_name("ENDPOINT")
      ->required();
  app.add_option("--replay", arguments->replays,
                 "where the same engines answer requests for earlier batches")
      ->type_name("ENDPOINT");
  app.add_option("--ranks", arguments->ranks,
                 "ranks of each engine, on ports that follow each other")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--block-size", arguments->block_size, "that the router expects")
      ->check(positive());
  app.add_option("--time", arguments->seconds, "how long; 0: until it is interrupted")
      ->check(not_negative())
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--batches", arguments->batches, "end after so many messages")->check(positive());
  app.add_option("--record", arguments->record,
                 "write the stream as an operation log, with keyed hashes in the place of tokens")
      ->type_name("FILE");
  app.add_option("--key-file", arguments->key_file, "key of the hashes; none: a random one")
      ->type_name("FILE");
  app.add_option(
         "--follower", arguments->follower,
         "a cache of kind events.dynamo that gets the stream, too, and is compared at its end")
      ->type_name("SUBJECT");
  CLI::Option* const probe =
      app.add_option("--probe", arguments->probe.url,
                     "send what the first engine announced to it, and compare what it reuses")
          ->type_name("URL");
  app.add_option("--model", arguments->model, "name of the model there")
      ->type_name("NAME")
      ->needs(probe);
  for (CLI::Option* option : declare_connection(app, arguments->probe)) option->needs(probe);
  app.add_option("--json", arguments->json, "write what was seen as JSON; - for standard output")
      ->type_name("FILE");
  return [&contracts, arguments] { return run_watch(contracts, *arguments); };
}

}  // namespace kvo::tools
