// tools/commands/run.cpp: `kvoracle run`: a request trace replayed on caches, contents compared.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/crc.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/replay/replay.hpp"
#include "reference/contract/describe/json.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/card.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/conventions.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/probe.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/trace_requests.hpp"
#include "tools/commands/usage.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/probe/trace_plans.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"

namespace kvo::tools {
namespace {

struct RunArguments : CampaignArguments, TraceArguments {
  std::vector<std::string> words;
  bool generate = false;
  std::vector<std::pair<const CLI::Option*, std::string>> pins;  // the member that each one pins
  std::optional<std::uint64_t> only_case;
  replay::ReplayOptions replay;
  EngineArguments engine;
  std::size_t longest = TraceLimits().longest;
};

// Every append makes tensors of the size of a token; in a pool each slot needs a block at least.
void check_size(const replay::Policies& policies) {
  constexpr double kMiB = 1U << 20U;
  constexpr double kMostOfAToken = 64 * kMiB;
  constexpr double kMostOfAPool = 4096 * kMiB;
  constexpr double kPercent = 100;
  const auto& [schedule, sizes] = policies;
  const double token = 2.0 * sizeof(float) * static_cast<double>(sizes.num_layers) *
                       static_cast<double>(sizes.num_heads) * static_cast<double>(sizes.head_dim);
  const double pool = token * static_cast<double>(sizes.block_size) *
                      static_cast<double>(schedule.max_running) *
                      static_cast<double>(sizes.pool_percent) / kPercent;
  if (token > kMostOfAToken)
    throw UsageError(fmt::format(
        "--layers {} --heads {} --head-dim {}: a token takes {:.4g} MiB, more than {}",
        sizes.num_layers, sizes.num_heads, sizes.head_dim, token / kMiB, kMostOfAToken / kMiB));
  if (pool > kMostOfAPool)
    throw UsageError(
        fmt::format("--slots {} --block-size {} --pool-percent {}: a pool takes {:.4g} "
                    "MiB with a block a slot, more than {}",
                    schedule.max_running, sizes.block_size, sizes.pool_percent, pool / kMiB,
                    kMostOfAPool / kMiB));
}

// With --generate a name is that of the cache inside of a subject.
std::vector<Comparison> comparisons_of(const Contracts& contracts, const RunArguments& arguments) {
  std::vector<Comparison> chosen = arguments.generate ? select_inside(contracts, arguments.words)
                                                      : select_subjects(contracts, arguments.words);
  apply_conventions(contracts, arguments.conventions, chosen);
  return chosen;
}

replay::Replay replay_of(const Contracts& contracts, const RunArguments& arguments) {
  check_trace_name(contracts, arguments.trace);
  replay::ReplayOptions options = arguments.replay;
  options.seed = arguments.seed;
  options.profile = arguments.profile;
  options.varied = replay::varying_members();
  options.keep_lookups = arguments.report.figures;
  for (const auto& [option, member] : arguments.pins)
    if (option->count() > 0) options.varied.erase(member);
  replay::Replay replay(contracts, read_requests(arguments), comparisons_of(contracts, arguments),
                        std::move(options));
  if (replay.kinds().empty()) throw UsageError("no trace can be replayed on these subjects");
  for (std::uint64_t index = 0; index < replay.cases(); ++index) check_size(replay.policies(index));
  return replay;
}

// Told in run files, so that none is resumed with another trace of the same name.
std::uint32_t checksum(const std::vector<traces::Request>& requests) {
  boost::crc_32_type sum;
  const auto add = [&](auto number) { sum.process_bytes(&number, sizeof number); };
  for (const traces::Request& request : requests) {
    add(request.arrival_us);
    add(request.input_tokens);
    add(request.output_tokens);
    for (const std::uint64_t id : request.block_ids) add(id);
  }
  return sum.checksum();
}

// What the cases were made from, for run files and summaries.
boost::json::object provenance(const RunArguments& arguments, const replay::Replay& replay) {
  boost::json::object scales;
  for (const replay::ReplayedKind& kind : replay.kinds())
    scales[kind.lowering->full_name()] = kind.scale;
  return {{"trace", trace_name(arguments)},
          {"requests", replay.requests().size()},
          {"requests_crc32", checksum(replay.requests())},
          {"schedule", write_json(replay.options().schedule)},
          {"scales", scales},
          {"lowering", write_json(replay.options().lowering)},
          {"varied", write_json(std::vector<std::string>(replay.options().varied.begin(),
                                                         replay.options().varied.end()))}};
}

RunHeader header_of(const RunArguments& arguments, const replay::Replay& replay) {
  std::vector<Comparison> comparisons;
  for (const replay::ReplayedKind& kind : replay.kinds())
    if (comparisons.empty() || comparisons.back().kind != kind.comparison.kind)
      comparisons.push_back(kind.comparison);
  RunHeader header{.kvoracle = std::string(kVersion),
                   .command = "run",
                   .seed = arguments.seed,
                   .profile = arguments.profile,
                   .subjects = subject_names(comparisons),
                   .options = provenance(arguments, replay)};
  add_conventions(header.options, comparisons);
  if (arguments.schedules > 1) header.options["schedules"] = arguments.schedules;
  return header;
}

// What was not replayed and why, and where the details are.
std::vector<std::string> notes_of(const Contracts& contracts, const RunArguments& arguments,
                                  const replay::Replay& replay) {
  std::vector<std::string> names;
  for (const Comparison& comparison : comparisons_of(contracts, arguments)) {
    const bool replayed = std::ranges::any_of(
        replay.kinds(), [&](const auto& kind) { return kind.comparison.kind == comparison.kind; });
    if (!replayed) names.push_back(comparison.kind->name());
  }
  std::vector<std::string> notes;
  if (!names.empty())
    notes.push_back(fmt::format("not replayed: {} (requests say nothing about {})",
                                fmt::join(names, ", "), names.size() == 1 ? "it" : "them"));
  if (arguments.words.empty() && !arguments.generate)
    notes.push_back(fmt::format("replayed only if named by --subject: '*@cuda', '*@cuda-sim'{}",
                                contracts.mutants().empty() ? "" : ", mutants"));
  notes.emplace_back("details: --timings, --subjects, --figures, --json FILE");
  return notes;
}

int run_trace(const Contracts& contracts, RunArguments& arguments, const CLI::App& app) {
  check_files(arguments, {arguments.trace});
  catch_interruption();
  arguments.campaign.timings = arguments.report.timings;
  if (const auto missing = missing_card(comparisons_of(contracts, arguments)); !missing.empty())
    print_error(missing);
  const replay::Replay replay = replay_of(contracts, arguments);
  arguments.campaign.cases = replay.cases();
  arguments.report.profile = arguments.profile;
  arguments.report.result = "run";
  arguments.report.convention_files = arguments.conventions;
  arguments.report.conventions = shown_conventions(comparisons_of(contracts, arguments));
  arguments.report.notes = notes_of(contracts, arguments, replay);
  std::uint64_t offset = 0;
  if (arguments.only_case) {
    offset = *arguments.only_case;
    if (offset >= replay.cases())
      throw UsageError(fmt::format("--case {}: there are {} cases", offset, replay.cases()));
    arguments.campaign.cases = 1;
  }
  arguments.campaign.first_failure = first_failure_text(contracts, arguments.report);
  const Campaign campaign =
      run_campaign(header_of(arguments, replay), arguments.campaign, [&](std::uint64_t index) {
        CasePlan plan = replay.plan(index + offset);
        plan.schedules = arguments.schedules;
        plan.repeat = repeat_command(app, arguments.seed, index + offset);
        return plan;
      });
  if (arguments.report.text())
    print_out(
        fmt::format("{}: {}, {}\n\n",
                    printable(arguments.trace.empty() ? "embedded sample" : trace_name(arguments)),
                    count_text(replay.requests().size(), "request"), scales_text(replay)));
  return end_of_campaign(
      campaign, arguments.campaign.output,
      report(contracts, campaign.summary, arguments.report, provenance(arguments, replay)));
}

const std::map<std::string, replay::ElementType>& element_types() {
  static const std::map<std::string, replay::ElementType> kTypes{
      {"f32", replay::ElementType::kF32},
      {"f16", replay::ElementType::kF16},
      {"bf16", replay::ElementType::kBf16}};
  return kTypes;
}

// ---- The same requests, sent to an engine that serves the probe ----

constexpr const char* kEngineGroup = "An engine that serves the probe (with --endpoint)";
constexpr std::array kAlsoOfEngines{"trace",  "--format", "--requests", "--scale",
                                    "--seed", "--strict", "--json",     "--junit"};

// Throws UsageError for an option that chooses or measures caches.
void check_options_of_engines(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && option->get_group() != kEngineGroup &&
        std::ranges::find(kAlsoOfEngines, name) == kAlsoOfEngines.end())
      throw UsageError(name + ": has no meaning with --endpoint");
  }
}

int run_engine(RunArguments& arguments, const CLI::App& app) {
  check_options_of_engines(app);
  check_reports(arguments.report.json, arguments.report.junit, {arguments.trace});
  ProbeOptions& options = arguments.engine.options;
  options.seed = arguments.seed;
  std::vector<traces::Request> requests = read_requests(arguments);
  std::ranges::stable_sort(requests, {}, &traces::Request::arrival_us);
  if (arguments.replay.requests > 0)
    requests.resize(std::min(requests.size(), static_cast<std::size_t>(arguments.replay.requests)));
  options.requests = requests.size();
  (void)engine_options(arguments.engine);
  const probe::Tables tables(options.shape);
  TraceLimits limits{.scale = arguments.replay.scale,
                     .longest = arguments.longest,
                     .at_once = options.limits.at_once};
  if (options.shape.window) limits.tokens = std::min(limits.tokens, *options.shape.window / 2 - 1);
  TracePlans plans(tables, std::move(requests), limits, arguments.seed);
  std::vector<PlanResult> done;
  const ProbeReport report =
      probe_engine(options, plans, [&](const PlanResult& plan) { done.push_back(plan); });
  if (arguments.report.text())
    print_out(
        fmt::format("{}: {}, lengths divided by {}\n",
                    printable(arguments.trace.empty() ? "embedded sample" : trace_name(arguments)),
                    count_text(options.requests, "request"), plans.scale()));
  return end_of_probe(report, done, {.run = repeat_probe(app, arguments.seed)},
                      arguments.report.json, arguments.report.junit);
}

void declare_engine_of_run(CLI::App& app, RunArguments& arguments) {
  CLI::Option* const endpoint =
      app.add_option("--endpoint", arguments.engine.url,
                     "send the requests to this engine, which serves the probe, and compare tokens")
          ->type_name("URL");
  std::vector<CLI::Option*> others = declare_engine(app, arguments.engine);
  others.push_back(
      app.add_option("--longest", arguments.longest, "tokens of the longest prompt that is sent")
          ->check(CLI::Range(std::size_t{64}, probe::Shape::kPositions - TraceLimits().tokens))
          ->type_name("TOKENS")
          ->capture_default_str());
  endpoint->group(kEngineGroup);
  for (CLI::Option* option : others) option->group(kEngineGroup)->needs(endpoint);
}

constexpr const char* kByCase = "by case";

// Without the option each case has a value of its own.
void pin(RunArguments& arguments, CLI::Option* option, const char* member) {
  arguments.pins.emplace_back(option->default_str(kByCase), member);
}

void declare_schedule(CLI::App& app, RunArguments& arguments) {
  replay::ReplayOptions& replay = arguments.replay;
  const auto add = [&](const char* name, std::int64_t& value, std::int64_t least, const char* doc,
                       std::int64_t most = 1 << 20) {
    return app.add_option(name, value, doc)
        ->check(CLI::Range(least, most))
        ->capture_default_str()
        ->group("Schedule of the requests");
  };
  pin(arguments,
      add("--slots", replay.schedule.max_running, 1, "sequences that run at a time", 1 << 14),
      "max_running");
  pin(arguments,
      add("--chunk", replay.schedule.chunk_tokens, 1, "tokens of a prompt appended at a time"),
      "chunk_tokens");
  pin(arguments,
      add("--burst", replay.schedule.burst, 1,
          "requests that arrive together; 1: each when the trace says"),
      "burst");
  add("--read-every", replay.schedule.read_every, 1, "decode steps from one read to the next");
  add("--draft-tokens", replay.schedule.draft_tokens, 1, "tokens of a draft", 1 << 10);
  add("--draft-every", replay.schedule.draft_every, 0,
      "decode steps from one draft to the next; 0: no drafts");
  add("--cancel-every", replay.schedule.cancel_every, 0,
      "requests of which one is cancelled amid its prompt; 0: none");
}

void declare_sizes(CLI::App& app, RunArguments& arguments) {
  replay::LoweringPolicy& lowering = arguments.replay.lowering;
  constexpr const char* kGroup = "Size of the caches";
  const auto add = [&](const char* name, std::int64_t& value, const char* doc, std::int64_t most) {
    return app.add_option(name, value, doc)
        ->check(CLI::Range(std::int64_t{1}, most))
        ->capture_default_str()
        ->group(kGroup);
  };
  pin(arguments, add("--layers", lowering.num_layers, "layers of a cache", 1 << 10), "num_layers");
  pin(arguments, add("--heads", lowering.num_heads, "heads of a row", 1 << 16), "num_heads");
  pin(arguments, add("--head-dim", lowering.head_dim, "elements of a head", 1 << 16), "head_dim");
  pin(arguments, add("--block-size", lowering.block_size, "positions of a block", 1 << 16),
      "block_size");
  pin(arguments,
      add("--pool-percent", lowering.pool_percent, "size of the pool, of what all slots need",
          1000),
      "pool_percent");
  std::map<std::string, replay::ElementType> masks = element_types();
  masks.erase("bf16");
  const auto set_storage = [&](replay::ElementType type) { lowering.storage = type; };
  const auto set_mask = [&](replay::ElementType type) { lowering.mask = type; };
  pin(arguments,
      add_word_option<replay::ElementType>(app, "--storage", element_types(), set_storage,
                                           "of rows, where a cache has a choice: f32, f16, bf16")
          ->group(kGroup),
      "storage");
  pin(arguments,
      add_word_option<replay::ElementType>(app, "--mask", masks, set_mask,
                                           "of masks, where a cache has a choice: f32, f16")
          ->group(kGroup),
      "mask");
  add("--requests-per-case", lowering.requests_per_case, "requests of one case", 1 << 20);
}

}  // namespace

Run declare_run(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<RunArguments>();
  declare_trace_file(app, *arguments,
                     "request trace, plain or gzip; -: standard input; none: the embedded sample");
  app.add_option("--subject", arguments->words, "contracts, caches or subjects; none: all")
      ->type_name("SUBJECT");
  app.add_flag("--generate", arguments->generate,
               "generate the texts of the requests over the chosen caches, and compare the texts");
  app.add_option("--scale", arguments->replay.scale,
                 "lengths are divided by it; default: by length of trace and cache")
      ->check(positive());
  app.add_option("--requests", arguments->replay.requests, "only the first so many to arrive")
      ->check(positive());
  declare_schedule(app, *arguments);
  declare_sizes(app, *arguments);
  app.add_option("--case", arguments->only_case, "only the case of this index")
      ->check(not_negative())
      ->group(kExtentGroup);
  app.add_flag("--strict", arguments->strict, "refuse a trace that `trace info` finds errors in")
      ->group(kRunningGroup);
  app.add_flag_callback(
         "--timings", [arguments] { arguments->report.timings_table = true; },
         "print a table of all operations")
      ->group(kRunningGroup);
  app.add_flag_callback(
         "--no-timings", [arguments] { arguments->report.timings = false; }, "measure no times")
      ->group(kRunningGroup);
  app.add_flag("--figures", arguments->report.figures,
               "print figures: prompt tokens hit, preemptions, and the like")
      ->group(kRunningGroup);
  app.add_flag("--subjects", arguments->report.subjects, "print a table of all subjects")
      ->group(kRunningGroup);
  arguments->report.timings = true;
  arguments->report.brief = true;
  arguments->report.figures = false;
  declare_campaign(app, *arguments);
  declare_engine_of_run(app, *arguments);
  return [&contracts, &app, arguments] {
    return arguments->engine.url.empty() ? run_trace(contracts, *arguments, app)
                                         : run_engine(*arguments, app);
  };
}

}  // namespace kvo::tools
