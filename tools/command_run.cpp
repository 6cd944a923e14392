// tools/command_run.cpp: `kvoracle run`: a request trace replayed on caches, contents compared.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/run_case.hpp"
#include "tools/campaign_options.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/crash_guard.hpp"
#include "tools/not_negative.hpp"
#include "tools/quantities.hpp"
#include "tools/selection.hpp"
#include "tools/usage.hpp"
#include "tools/version.hpp"
#include "traces/formats.hpp"
#include "traces/lowering.hpp"
#include "traces/sample.hpp"

namespace kvo::tools {
namespace {

struct Arguments : CampaignArguments {
  std::string trace;  // empty: the embedded sample
  std::string format;
  std::vector<std::string> words;
  std::int64_t scale = 0;  // 0: chosen so that kMostTokens are replayed
  std::int64_t requests = 0;
  traces::SchedulePolicy schedule;
  traces::LoweringPolicy policy;
};

// Which cache kind and which requests a case is.
class Replay {
 public:
  Replay(const Arguments& arguments, std::vector<traces::Request> requests)
      : arguments_(arguments), requests_(std::move(requests)) {
    for (Lineup& lineup : select_subjects(arguments.words))
      if (traces::lowering_of(*lineup.kind) != nullptr) lineups_.push_back(std::move(lineup));
    if (lineups_.empty()) throw UsageError("no trace can be replayed on these subjects");
    for (const Lineup& lineup : lineups_) {
      const traces::LoweringInput all{
          .requests = requests_, .schedule = arguments.schedule, .policy = arguments.policy};
      scales_.push_back(arguments.scale > 0
                            ? arguments.scale
                            : traces::scale_of(*traces::lowering_of(*lineup.kind), all));
    }
  }

  [[nodiscard]] std::uint64_t cases() const { return windows() * lineups_.size(); }
  /// What lengths are divided by, for each cache kind that it concerns.
  [[nodiscard]] boost::json::object scales() const {
    boost::json::object by_kind;
    for (std::size_t i = 0; i < lineups_.size(); ++i)
      by_kind[lineups_[i].kind->name()] = scales_[i];
    return by_kind;
  }
  /// "lengths divided by 16", or "by 16 to 256" when kinds differ
  [[nodiscard]] std::string scales_text() const {
    const auto [least, most] = std::ranges::minmax_element(scales_);
    return *least == *most ? fmt::format("lengths divided by {}", *least)
                           : fmt::format("lengths divided by {} to {}", *least, *most);
  }
  [[nodiscard]] const std::vector<traces::Request>& requests() const { return requests_; }

  [[nodiscard]] CasePlan plan(std::uint64_t index) const {
    const Lineup& lineup = lineups_[index % lineups_.size()];
    const std::uint64_t window = index / lineups_.size();
    const traces::LoweringInput input = input_of(window, scales_[index % lineups_.size()]);
    const traces::Lowering* lowering = traces::lowering_of(*lineup.kind);
    CasePlan plan{
        .kind = lineup.kind,
        .name =
            fmt::format("requests{}-{}", first(window), first(window) + input.requests.size() - 1),
        .note = fmt::format("lowered from a trace, policy {}", arguments_.schedule.version),
        .repeat = fmt::format("kvoracle run {} --seed {}", arguments_.trace, arguments_.seed),
        .setup = lowering->setup(input),
        // A whole walk over every structure after each operation would dwarf the replay.
        .options = {.invariants_every = 4096},
        .subjects = lineup.subjects};
    plan.setup.profile = arguments_.profile;
    plan.ops = [input, lowering] { return lowering->lower(input); };
    return plan;
  }

  [[nodiscard]] RunHeader header() const {
    RunHeader header{.kvoracle = std::string(kVersion),
                     .command = "run",
                     .seed = arguments_.seed,
                     .profile = arguments_.profile,
                     .subjects = subject_names(lineups_),
                     .options = {}};
    header.options["trace"] = arguments_.trace.empty() ? "sample" : arguments_.trace;
    header.options["requests"] = requests_.size();
    header.options["schedule"] = write_json(arguments_.schedule);
    header.options["scales"] = scales();
    header.options["lowering"] = write_json(arguments_.policy);
    return header;
  }

 private:
  [[nodiscard]] std::uint64_t windows() const {
    const auto size = static_cast<std::uint64_t>(arguments_.policy.requests_per_case);
    return (requests_.size() + size - 1) / size;
  }
  [[nodiscard]] std::uint64_t first(std::uint64_t window) const {
    return window * static_cast<std::uint64_t>(arguments_.policy.requests_per_case);
  }
  [[nodiscard]] traces::LoweringInput input_of(std::uint64_t window, std::int64_t scale) const {
    const std::uint64_t begin = first(window);
    const std::uint64_t count = std::min(
        requests_.size() - begin, static_cast<std::uint64_t>(arguments_.policy.requests_per_case));
    traces::SchedulePolicy schedule = arguments_.schedule;
    schedule.scale = scale;
    return {.requests = std::span(requests_).subspan(begin, count),
            .schedule = schedule,
            .policy = arguments_.policy,
            .seed = arguments_.seed + window};
  }

  const Arguments& arguments_;
  std::vector<traces::Request> requests_;
  std::vector<Lineup> lineups_;
  std::vector<std::int64_t> scales_;  ///< of each lineup
};

std::vector<traces::Request> read_requests(const Arguments& arguments) {
  auto source =
      arguments.trace.empty()
          ? traces::TextSource::in_memory(std::string(traces::kSampleName), traces::sample_trace())
          : must(traces::TextSource::open(arguments.trace));
  const auto reader = must(traces::open_trace(std::move(source), arguments.format));
  std::vector<traces::Request> requests = must(traces::read_all(*reader));
  if (arguments.requests > 0)
    requests.resize(std::min(requests.size(), static_cast<std::size_t>(arguments.requests)));
  // Traces may hold rows out of order; the schedule wants arrivals in order.
  std::ranges::stable_sort(requests, {}, &traces::Request::arrival_us);
  if (requests.empty()) throw UsageError("the trace has no request to replay");
  return requests;
}

int run_trace(Arguments& arguments) {
  const Replay replay(arguments, read_requests(arguments));
  arguments.campaign.cases = replay.cases();
  arguments.campaign.shrink_attempts = 2'000;  // A case of a trace is long.
  const Watchdog watchdog{std::chrono::duration<double>(arguments.case_timeout)};
  const Summary summary =
      must(run_campaign(replay.header(), arguments.campaign,
                        [&](std::uint64_t index) { return replay.plan(index); }));
  if (arguments.report.json != "-")
    print_out(fmt::format("{}: {} requests, {}\n\n",
                          arguments.trace.empty() ? "embedded sample" : arguments.trace,
                          count_text(replay.requests().size()), replay.scales_text()));
  return report(summary, arguments.report,
                {{"trace", arguments.trace.empty() ? "sample" : arguments.trace},
                 {"requests", replay.requests().size()},
                 {"schedule", write_json(arguments.schedule)},
                 {"scales", replay.scales()},
                 {"lowering", write_json(arguments.policy)}});
}

void declare_policy(CLI::App& app, Arguments& arguments) {
  constexpr std::int64_t kMostSize = 1 << 20;
  const auto size = [&](const std::string& name, std::int64_t& value, const std::string& doc) {
    app.add_option(name, value, doc)
        ->check(CLI::Range(std::int64_t{1}, kMostSize))
        ->capture_default_str();
  };
  app.add_option("--scale", arguments.scale,
                 "lengths are divided by it; default: by length of trace and cache")
      ->check(positive());
  app.add_option("--requests", arguments.requests, "only the first so many")->check(positive());
  size("--slots", arguments.schedule.max_running, "sequences that run at a time");
  size("--chunk", arguments.schedule.chunk_tokens, "tokens of a prompt appended at a time");
  size("--read-every", arguments.schedule.read_every, "decode steps from one read to the next");
  app.add_option("--draft-every", arguments.schedule.draft_every,
                 "decode steps from one draft to the next; 0: no drafts")
      ->check(CLI::Range(std::int64_t{0}, kMostSize))
      ->capture_default_str();
  app.add_option("--cancel-every", arguments.schedule.cancel_every,
                 "requests of which one is cancelled amid its prompt; 0: none")
      ->check(CLI::Range(std::int64_t{0}, kMostSize))
      ->capture_default_str();
  size("--draft-tokens", arguments.schedule.draft_tokens, "tokens of a draft");
  size("--layers", arguments.policy.num_layers, "layers of a cache");
  size("--heads", arguments.policy.num_heads, "heads of a row");
  size("--head-dim", arguments.policy.head_dim, "elements of a head");
  size("--block-size", arguments.policy.block_size, "positions of a block");
  size("--pool-percent", arguments.policy.pool_percent, "size of the pool, of what all slots need");
  size("--requests-per-case", arguments.policy.requests_per_case, "requests of one case");
}

}  // namespace

Run declare_run(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("trace", arguments->trace, "request trace; none: the embedded sample");
  app.add_option("--format", arguments->format, "of the trace; default: by its content");
  app.add_option("--subject", arguments->words, "contracts, caches or subjects; none: all");
  app.add_flag("--timings,!--no-timings", arguments->report.timings,
               "a table of all operations (default)");
  arguments->report.timings = true;
  declare_policy(app, *arguments);
  declare_campaign(app, *arguments);
  return [arguments] { return run_trace(*arguments); };
}

}  // namespace kvo::tools
