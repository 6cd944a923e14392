// tools/commands/why.cpp: `kvoracle why`: for which reasons prompts were not reused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/campaign/conform.hpp"
#include "properties/replay/replay.hpp"
#include "reference/contract/describe/json.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/trace_requests.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"
#include "traces/log/cases.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::tools {
namespace {

struct WhyArguments : TraceArguments {
  std::optional<std::int64_t> request;
  std::string only_case;
  std::vector<std::string> words;
  std::uint64_t seed = 1;
  std::optional<Profile> profile;
  replay::ReplayOptions replay;
  std::string json;
};

/// The lookups of a case, whose requests are numbered from `first` on.
struct Explained {
  std::string kind;
  std::string name;
  std::vector<Lookup> lookups = {};
};

std::unique_ptr<Oracle> history_of(const Contracts& contracts, const CacheKind& kind,
                                   const Setup& setup) {
  const MakeOracle make = contracts.oracle_of(kind);
  std::unique_ptr<Oracle> history = make != nullptr ? make(kind, setup) : nullptr;
  if (history != nullptr && !history->keep_lookups()) history.reset();
  return history;
}

std::vector<Lookup> lookups_of(const Oracle& history) {
  return {history.lookups().begin(), history.lookups().end()};
}

// ---- Operation logs ----

/// Whether a file is an operation log, by its name or its first line.
bool is_log(const std::string& path) {
  if (path.empty() || path == kStandardOutput) return false;
  if (traces::holds_rule_cases(path)) return true;
  auto source = must(traces::TextSource::open(path));
  const auto line = must(source.next_line());
  return line && line->find("\"kvlog\"") != std::string_view::npos;
}

/// What was recorded explains itself; what was not is asked of the reference.
std::optional<Explained> explained_log_case(const Contracts& contracts, const traces::Case& one,
                                            const std::optional<Profile>& profile) {
  const CacheKind& kind = *one.header.kind;
  const Setup setup = setup_of(one.header, profile);
  const auto session = contracts.reference_of(kind).open(setup);
  const auto history = session ? history_of(contracts, kind, setup) : nullptr;
  if (history == nullptr) return std::nullopt;
  const bool recorded =
      !one.header.stated && std::ranges::all_of(one.steps, [](const traces::Step& step) {
        return step.recorded.has_value();
      });
  Probe probe;
  for (const traces::Step& step : one.steps)
    (void)history->check(step.op, recorded ? *step.recorded : (*session)->apply(step.op, probe));
  return Explained{kind.name(), one.header.name, lookups_of(*history)};
}

std::vector<Explained> explained_log(const Contracts& contracts, const WhyArguments& arguments) {
  auto log = must(traces::LogReader::open(arguments.trace, contracts.kind_finder()));
  std::vector<Explained> all;
  std::size_t cases = 0;
  while (const auto one = must(log.next_whole_case(arguments.only_case))) {
    ++cases;
    if (auto explained = explained_log_case(contracts, *one, arguments.profile))
      all.push_back(std::move(*explained));
  }
  if (cases == 0)
    throw UsageError(arguments.only_case.empty()
                         ? fmt::format("{}: there is no case", printable(arguments.trace))
                         : fmt::format("{}: there is no case '{}'", printable(arguments.trace),
                                       printable(arguments.only_case)));
  if (all.empty())
    throw UsageError(fmt::format("{}: no cache of this log shares prefixes of prompts",
                                 printable(arguments.trace)));
  return all;
}

// ---- Request traces ----

std::vector<Explained> explained_trace(const Contracts& contracts, const WhyArguments& arguments) {
  check_trace_name(contracts, arguments.trace);
  for (const std::string& word : arguments.words)
    if (word.find('@') != std::string::npos)
      throw UsageError(fmt::format(
          "--subject {}: traces are explained on references alone: name a contract or a cache",
          printable(word)));
  replay::ReplayOptions options = arguments.replay;
  options.seed = arguments.seed;
  options.profile = arguments.profile.value_or(Profile::kOriginal);
  options.varied = replay::varying_members();
  const auto words = arguments.words.empty() ? std::vector<std::string>{"prefix"} : arguments.words;
  const replay::Replay replay(contracts, read_requests(arguments),
                              select_subjects(contracts, words), std::move(options));
  if (arguments.request && *arguments.request >= std::ssize(replay.requests()))
    throw UsageError(fmt::format("--request {}: there are {} requests, from 0", *arguments.request,
                                 replay.requests().size()));
  if (replay.kinds().empty()) throw UsageError("no trace can be replayed on these caches");
  if (arguments.json != kStandardOutput)
    print_out(fmt::format("{}: {}, {}\n\n", printable(trace_name(arguments)),
                          count_text(replay.requests().size(), "request"), scales_text(replay)));
  std::vector<Explained> all;
  for (std::uint64_t index = 0; index < replay.cases(); ++index) {
    const auto [first, count] = replay.requests_of(index);
    const auto asked = static_cast<std::uint64_t>(arguments.request.value_or(0));
    if (arguments.request && (asked < first || asked >= first + count)) continue;
    const CasePlan plan = replay.plan(index);
    const auto history = history_of(contracts, *plan.kind, plan.setup);
    if (history == nullptr) continue;
    const auto session = plan.baseline->open(plan.setup).value();
    const auto ops = plan.ops();
    Probe probe;
    Labels unused;
    while (const auto op = ops->next()) {
      const Observation seen = session->apply(*op, probe);
      (void)history->check(*op, seen);
      ops->observe(*op, seen, unused);
    }
    all.push_back({plan.kind->name(), plan.name, lookups_of(*history)});
    for (Lookup& lookup : all.back().lookups) {
      const auto shift = static_cast<std::int64_t>(first);
      lookup.request += shift;
      for (MissedTokens& missed : lookup.missed)
        if (missed.request) *missed.request += shift;
    }
  }
  if (all.empty())
    throw UsageError("no cache that was named shares prefixes of prompts; prefix does");
  return all;
}

// ---- Reports ----

std::string share_text(std::int64_t part, std::int64_t whole) {
  constexpr double kPercent = 100;
  return whole == 0 ? ""
                    : fmt::format("{:.1f}%", kPercent * static_cast<double>(part) /
                                                 static_cast<double>(whole));
}

std::string count_of(std::int64_t count) {
  return count_text(static_cast<std::uint64_t>(count));
}

void print_lookup(const Explained& one, const Lookup& lookup) {
  print_out(fmt::format("{}, {}: request {}, op {}{}: {} tokens, {} reused, {} not\n", one.kind,
                        printable(one.name), lookup.request, lookup.operation,
                        lookup.cache.empty() ? "" : ", " + lookup.cache, count_of(lookup.tokens),
                        count_of(lookup.reused), count_of(lookup.tokens - lookup.reused)));
  Table table({numbers("tokens"), column("from"), column("to"), column("why")});
  for (const MissedTokens& missed : lookup.missed)
    table.row({count_of(missed.end - missed.begin), std::to_string(missed.begin),
               std::to_string(missed.end - 1), missed.text()});
  print_out(table.text(2, output_columns()) + (lookup.missed.empty() ? "" : "\n"));
}

/// What all lookups of a cache missed, by reason.
struct Totals {
  std::string kind;
  std::int64_t lookups = 0;
  std::int64_t tokens = 0;
  std::int64_t reused = 0;
  std::vector<std::pair<std::string, std::int64_t>> missed = {};
};
BOOST_DESCRIBE_STRUCT(Totals, (), (kind, lookups, tokens, reused, missed))

std::vector<Totals> totals_of(const std::vector<Explained>& all) {
  std::vector<Totals> totals;
  for (const Explained& one : all) {
    auto found = std::ranges::find(totals, one.kind, &Totals::kind);
    if (found == totals.end()) found = totals.insert(totals.end(), {.kind = one.kind});
    found->lookups += std::ssize(one.lookups);
    for (const Lookup& lookup : one.lookups) {
      found->tokens += lookup.tokens;
      found->reused += lookup.reused;
      for (const MissedTokens& missed : lookup.missed) {
        const std::string words(words_of(missed.why));
        auto sum =
            std::ranges::find(found->missed, words, [](const auto& row) { return row.first; });
        if (sum == found->missed.end()) sum = found->missed.insert(sum, {words, 0});
        sum->second += missed.end - missed.begin;
      }
    }
  }
  for (Totals& one : totals)
    std::ranges::stable_sort(one.missed, std::greater(),
                             [](const auto& row) { return row.second; });
  return totals;
}

void print_totals(const std::vector<Totals>& totals) {
  for (const Totals& one : totals) {
    const std::string share = share_text(one.reused, one.tokens);
    print_out(fmt::format("{}: {}, {} tokens, {} reused{}\n", one.kind,
                          count_text(static_cast<std::uint64_t>(one.lookups), "lookup"),
                          count_of(one.tokens), count_of(one.reused),
                          share.empty() ? "" : " (" + share + ")"));
    Table table({numbers("tokens"), numbers("share"), column("why not reused")});
    for (const auto& [words, tokens] : one.missed)
      table.row({count_of(tokens), share_text(tokens, one.tokens - one.reused), words});
    print_out(table.text(2, output_columns()) + "\n");
  }
}

boost::json::object json_of(const std::vector<Explained>& all, const std::vector<Totals>& totals) {
  boost::json::array lookups;
  for (const Explained& one : all)
    for (const Lookup& lookup : one.lookups) {
      boost::json::object row = write_json(lookup).as_object();
      std::size_t at = 0;
      for (boost::json::value& missed : row["missed"].as_array())
        missed.as_object()["text"] = lookup.missed[at++].text();
      row["kind"] = one.kind;
      row["case"] = one.name;
      lookups.push_back(std::move(row));
    }
  boost::json::array sums;
  for (const Totals& one : totals) {
    boost::json::object missed;
    for (const auto& [words, tokens] : one.missed) missed[words] = tokens;
    sums.push_back({{"kind", one.kind},
                    {"lookups", one.lookups},
                    {"tokens", one.tokens},
                    {"reused", one.reused},
                    {"missed", std::move(missed)}});
  }
  return {{"totals", std::move(sums)}, {"lookups", std::move(lookups)}};
}

int run_why(const Contracts& contracts, const WhyArguments& arguments) {
  check_reports(arguments.json, "", {arguments.trace});
  const bool log = is_log(arguments.trace);
  if (!log && !arguments.only_case.empty())
    throw UsageError("--case: a trace has no cases with names");
  const bool of_traces =
      !arguments.words.empty() || arguments.replay.scale != 0 || arguments.replay.requests != 0;
  if (log && of_traces)
    throw UsageError(
        "--subject, --scale, --requests: are of traces; a log has caches and requests of its own");
  std::vector<Explained> all =
      log ? explained_log(contracts, arguments) : explained_trace(contracts, arguments);
  if (arguments.request) {
    for (Explained& one : all)
      std::erase_if(one.lookups,
                    [&](const Lookup& lookup) { return lookup.request != *arguments.request; });
    std::erase_if(all, [](const Explained& one) { return one.lookups.empty(); });
    if (all.empty())
      throw UsageError(
          fmt::format("--request {}: no lookup of it was followed", *arguments.request));
  }
  const std::vector<Totals> totals = totals_of(all);
  if (!arguments.json.empty()) write_result(arguments.json, "why", json_of(all, totals));
  if (arguments.json == kStandardOutput) return kExitConforms;
  if (!arguments.request) {
    print_totals(totals);
    return kExitConforms;
  }
  for (const Explained& one : all)
    for (const Lookup& lookup : one.lookups) print_lookup(one, lookup);
  return kExitConforms;
}

}  // namespace

Run declare_why(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<WhyArguments>();
  declare_trace_file(app, *arguments,
                     "request trace, or operation log of a cache that shares prefixes; none: the "
                     "embedded sample");
  app.add_option("--request", arguments->request,
                 "this request, token by token: its number in the log, or in the trace by arrival, "
                 "from 0; none: the totals of all")
      ->check(not_negative());
  app.add_option("--case", arguments->only_case, "of a log: only the case of this name")
      ->type_name("NAME");
  app.add_option("--subject", arguments->words, "of a trace: on these caches [prefix]")
      ->type_name("SUBJECT");
  app.add_option("--scale", arguments->replay.scale,
                 "of a trace: lengths are divided by it, as by `run`")
      ->check(positive());
  app.add_option("--requests", arguments->replay.requests,
                 "of a trace: only the first so many to arrive")
      ->check(positive());
  app.add_option("--seed", arguments->seed, "of a trace: the same seed gives the cases of `run`")
      ->capture_default_str();
  declare_profile(app, arguments->profile, "that of the log, else original");
  app.add_option("--json", arguments->json, "write all lookups as JSON; - for standard output")
      ->type_name("FILE");
  return [&contracts, arguments] { return run_why(contracts, *arguments); };
}

}  // namespace kvo::tools
