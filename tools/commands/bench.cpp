// tools/commands/bench.cpp: `kvoracle bench [SUBJECT..]`: how fast caches are, beside their
// reference and memcpy.
#include "tools/benchmarks/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/json.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/card.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/conventions.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/brief_report.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/workers/isolated.hpp"

namespace kvo::tools {
namespace {

struct BenchArguments {
  std::vector<std::string> words;
  Profile profile = Profile::kDocumented;
  std::uint64_t rounds = 20;
  bool quick = false;
  bool all = false;
  bool cold = false;
  std::vector<std::string> conventions;
  std::string output;
  bool overwrite = false;
  std::string json;
};

// Nanoseconds between two readings of the clock.
double clock_cost() {
  std::vector<double> costs(1'001);
  for (double& cost : costs) {
    const auto begin = std::chrono::steady_clock::now();
    const auto end = std::chrono::steady_clock::now();
    cost = std::chrono::duration<double, std::nano>(end - begin).count();
  }
  return median(costs);
}

// What reads the clock to a quarter of itself says nothing.
bool is_too_short(const BenchRow& row, double clock) {
  constexpr double kLeast = 4;
  return row.median_nanoseconds < kLeast * clock;
}

// Rows that are shown where they lie.
bool is_view(const BenchRow& row) {
  return row.to_memcpy && row.to_memcpy->median < kViewOverMemcpy;
}

std::string middle_text(const std::optional<Ratios::Middle>& middle) {
  return middle ? interval_text(middle->median, middle->low, middle->high) : "-";
}

std::string limit_text(const BenchRow& row, const std::optional<Ratios::Middle>& limit,
                       bool too_short) {
  if (row.payload_bytes == 0 || is_view(row) || !limit) return "";
  return too_short ? "too short to tell" : middle_text(limit);
}

std::string table_of(const std::vector<BenchRow>& rows, double clock,
                     const BenchArguments& arguments) {
  Table table({column("load"), column("subject"), column("operation, bytes"), numbers("calls", 5),
               numbers("median"), numbers("worst", 4), numbers("rate", 3),
               numbers("allocations a call", 7), numbers("/ memcpy", 2), numbers("/ memset", 6),
               numbers("/ reference"), numbers("second pass / first", 1)});
  for (const BenchRow& row : rows) {
    if (!arguments.all && row.payload_bytes == 0) continue;
    if (row.cold != arguments.cold) continue;
    const bool too_short = is_too_short(row, clock);
    const bool view = is_view(row);
    const auto bytes = static_cast<double>(row.payload_bytes);
    table.row({row.load, row.subject, row.op, count_text(row.calls),
               duration_text(row.median_nanoseconds), duration_text(row.worst_nanoseconds),
               row.payload_bytes == 0 ? ""
               : view                 ? "view"
                                      : throughput_text(bytes, row.median_nanoseconds),
               fmt::format("{:.3g}",
                           static_cast<double>(row.allocations) / static_cast<double>(row.calls)),
               limit_text(row, row.to_memcpy, too_short), limit_text(row, row.to_memset, too_short),
               too_short ? "too short to tell" : middle_text(row.to_reference),
               middle_text(row.noise)});
  }
  return table.text(0, output_columns());
}

// What is slower than in the reference, beyond noise; no text if nothing is.
std::string slower_rows_text(const std::vector<BenchRow>& rows, double clock, bool cold) {
  std::vector<SlowerOperation> slower;
  for (const BenchRow& row : rows)
    if (row.cold == cold && is_beside_reference(row.subject) && !is_too_short(row, clock) &&
        row.to_reference && row.to_reference->low.value_or(0) > 1)
      slower.push_back({row.subject, fmt::format("{} ({})", row.op, row.load),
                        static_cast<float>(row.to_reference->median)});
  std::ranges::sort(slower, std::greater(), &SlowerOperation::ratio);
  const std::string text = slower_text(slower);
  return text.empty() ? "" : "\n" + wrapped(text, output_columns(), 2) + "\n";
}

boost::json::value json_of(const std::optional<Ratios::Middle>& middle) {
  if (!middle) return nullptr;
  return {{"median", middle->median},
          {"low", write_json(middle->low)},
          {"high", write_json(middle->high)}};
}

boost::json::object json_of(const BenchRow& row, double clock) {
  return {{"load", row.load},
          {"subject", row.subject},
          {"op", row.op},
          {"cold", row.cold},
          {"calls", row.calls},
          {"payload_bytes", row.payload_bytes},
          {"allocations", row.allocations},
          {"median_nanoseconds", row.median_nanoseconds},
          {"worst_nanoseconds", row.worst_nanoseconds},
          {"to_reference", json_of(row.to_reference)},
          {"to_memcpy", json_of(row.to_memcpy)},
          {"to_memset", json_of(row.to_memset)},
          {"noise", json_of(row.noise)},
          {"too_short", is_too_short(row, clock)},
          {"view", is_view(row)}};
}

// What a load is timed on: caches that have no other one inside, on this machine's processor.
std::vector<Comparison> comparisons_of(const Contracts& contracts,
                                       const BenchArguments& arguments) {
  std::vector<Comparison> all = select_subjects(contracts, arguments.words);
  apply_conventions(contracts, arguments.conventions, all);
  for (Comparison& comparison : all)
    std::erase_if(comparison.subjects,
                  [](const Subject* subject) { return subject->inside || subject->on_request; });
  std::erase_if(all, [](const Comparison& one) { return one.subjects.empty(); });
  return all;
}

std::vector<Bench> benches_of(const Contracts& contracts, const BenchArguments& arguments) {
  std::vector<Bench> benches;
  const std::string no_card = missing_card(select_subjects(contracts, arguments.words));
  for (const BenchLoad& load : bench_loads(arguments.quick))
    for (const Comparison& comparison : comparisons_of(contracts, arguments)) {
      Bench bench(contracts, comparison, load, arguments.profile);
      if (bench.possible()) benches.push_back(std::move(bench));
    }
  if (!benches.empty() && !no_card.empty()) print_error(no_card);
  if (benches.empty())
    throw UsageError(
        no_card.empty()
            ? "nothing to time: a load needs a cache that requests can be replayed on, without "
              "another one inside, and in this machine's memory"
            : no_card);
  return benches;
}

RunHeader header_of(const Contracts& contracts, const BenchArguments& arguments) {
  RunHeader header{.kvoracle = std::string(kVersion),
                   .command = "bench",
                   .seed = 1,
                   .profile = arguments.profile,
                   .subjects = {},
                   .options = {{"quick", arguments.quick},
                               {"rounds", arguments.rounds},
                               {"words", write_json(arguments.words)}}};
  add_conventions(header.options, comparisons_of(contracts, arguments));
  return header;
}

// Why the times of a load say nothing; no text where all subjects carry it out as they should.
std::string fault_of(Bench& bench) {
  for (const SubjectResult& subject : bench.verified().subjects)
    if (subject.verdict.outcome != Outcome::kAgrees)
      return subject.subject + ": " + subject.verdict.text();
  return {};
}

/// What a bench comes to.
struct BenchResult {
  std::string fault = {};
  std::vector<CaseResult> rounds = {};
  std::vector<BenchRow> rows = {};
};
BOOST_DESCRIBE_STRUCT(BenchResult, (), (fault, rounds, rows))

// In a process of its own, so that what a subject does is said of that subject.
BenchResult result_of(Bench& bench, std::uint64_t first, std::uint64_t rounds, int& status) {
  const auto made = in_process<BenchResult>({.memory_bytes = 0}, [&] {
    BenchResult result{.fault = fault_of(bench)};
    for (std::uint64_t round = 0; round < rounds && result.fault.empty(); ++round)
      result.rounds.push_back(bench.round(first + round));
    if (result.fault.empty()) result.rows = bench.rows();
    return result;
  });
  if (const auto* result = std::get_if<BenchResult>(&made)) {
    if (!result->fault.empty()) status = std::max<int>(status, kExitDiffers);
    return *result;
  }
  const auto& death = std::get<Death>(made);
  const CasePlan plan = bench.plan();
  const Subject* subject = blamed(death, plan);
  if (subject == nullptr) throw std::runtime_error("a process " + death.how);
  status = kExitCrashed;
  return {.fault = subject->name() + ": " + verdict_of(death, *subject).text()};
}

int run_bench(const Contracts& contracts, const BenchArguments& arguments) {
  if (arguments.output == kStandardOutput)
    throw UsageError("--output -: a run file cannot be standard output");
  check_outputs({{"--output", arguments.output}, {"--json", arguments.json}}, {});
  std::vector<Bench> benches = benches_of(contracts, arguments);
  std::optional<RunFile> file;
  if (!arguments.output.empty())
    file = must(RunFile::open(
        arguments.output, header_of(contracts, arguments),
        arguments.overwrite ? RunFile::Existing::kReplaced : RunFile::Existing::kRefused));
  catch_interruption();
  const double clock = clock_cost();
  Progress progress("rounds", benches.size() * arguments.rounds);
  std::vector<BenchRow> rows;
  int status = kExitConforms;
  std::uint64_t index = 0;
  for (Bench& bench : benches) {
    if (interrupted()) break;
    const BenchResult result = result_of(bench, index, arguments.rounds, status);
    index += result.rounds.size();
    progress.advance(result.rounds.size());
    if (!result.fault.empty()) {
      progress.clear();
      print_error(result.fault + ": its times say nothing, and are left out");
    }
    for (const CaseResult& round : result.rounds)
      if (file) must(file->append(round));
    rows.insert(rows.end(), result.rows.begin(), result.rows.end());
  }
  progress.clear();
  if (!arguments.json.empty()) {
    boost::json::array all;
    for (const BenchRow& row : rows) all.push_back(json_of(row, clock));
    write_result(arguments.json, "bench",
                 {{"rounds", arguments.rounds}, {"clock_nanoseconds", clock}, {"rows", all}});
  }
  if (arguments.json != kStandardOutput)
    print_out(table_of(rows, clock, arguments) + slower_rows_text(rows, clock, arguments.cold));
  if (file) must(file->finish());
  return interrupted() ? kExitInterrupted : status;
}

}  // namespace

Run declare_bench(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<BenchArguments>();
  app.add_option("subjects", arguments->words,
                 "contracts, caches or subjects; none: all that have no other cache inside")
      ->type_name("SUBJECT");
  declare_profile(app, arguments->profile);
  declare_conventions(app, arguments->conventions);
  app.add_flag("--quick", arguments->quick, "two loads, in less than a minute")
      ->group(kExtentGroup);
  app.add_option("--rounds", arguments->rounds, "passes over all subjects, in alternating order")
      ->check(positive())
      ->capture_default_str()
      ->group(kExtentGroup);
  app.add_flag("--all", arguments->all, "show operations that move no rows, too")
      ->group(kRunningGroup);
  app.add_flag("--cold", arguments->cold,
               "show the first time that a session carries out the load, not the second")
      ->group(kRunningGroup);
  add_output(app, "-o,--output", arguments->output, "run file to write, for gate");
  app.add_flag("--overwrite", arguments->overwrite, "replace the run file")->group(kRunningGroup);
  add_output(app, "--json", arguments->json, "write the result as JSON; - for standard output");
  return [&contracts, arguments] { return run_bench(contracts, *arguments); };
}

}  // namespace kvo::tools
