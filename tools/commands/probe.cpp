// tools/commands/probe.cpp: `kvoracle probe model`, `answers`, `check`, `plan` and `serve`.
#include "tools/commands/probe.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/probe/answers.hpp"
#include "tools/probe/check.hpp"
#include "tools/probe/checkpoint.hpp"
#include "tools/probe/probe_report.hpp"
#include "tools/probe/serve/server.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/json_file.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/reports/run_file.hpp"
#include "traces/io/text_source.hpp"

namespace kvo::tools {
namespace {

namespace files = std::filesystem;

// Below 8 a window would have no place for sinks.
constexpr std::size_t kLeastWindow = 8;

// Returns  the options.
std::array<CLI::Option*, 2> declare_window(CLI::App& app, probe::Shape& shape) {
  CLI::Option* const window =
      app.add_option("--window", shape.window, "of a sliding attention, in tokens; default: none")
          ->check(CLI::Range(kLeastWindow, probe::Shape::kPositions))
          ->type_name("TOKENS");
  CLI::Option* const past =
      app.add_flag("--past-window", shape.past_window,
                   "tokens look past the window, too, so that one that is too long shows")
          ->needs(window);
  return {window, past};
}

CLI::Option* declare_at_once(CLI::App& app, ProbeOptions& options) {
  constexpr std::size_t kMostAtOnce = 64;
  return app.add_option("--at-once", options.limits.at_once, "requests that are sent together")
      ->check(CLI::Range(std::size_t{1}, kMostAtOnce))
      ->type_name("N")
      ->capture_default_str();
}

// ---- model ----

struct ModelArguments {
  std::string directory;
  ModelFormat format = ModelFormat::kHf;
  std::optional<StorageType> dtype;
  probe::Shape shape;
};

CheckpointOptions checkpoint_options(const ModelArguments& arguments) {
  const bool gguf = arguments.format == ModelFormat::kGguf;
  const StorageType dtype = arguments.dtype.value_or(gguf ? StorageType::kF16 : StorageType::kBf16);
  if (gguf && dtype == StorageType::kBf16)
    throw UsageError("--dtype bf16: gguf has f32 and f16 here");
  if (gguf && arguments.shape.window)
    throw UsageError("--window: gguf has no window for this architecture");
  return {arguments.format, dtype, arguments.shape};
}

int run_probe_model(const ModelArguments& arguments) {
  const CheckpointOptions options = checkpoint_options(arguments);
  const std::string shown = printable(arguments.directory);
  std::error_code failure;
  if (files::exists(arguments.directory, failure) && !files::is_empty(arguments.directory, failure))
    throw UsageError(fmt::format("{}: is there and not empty", shown));
  files::create_directories(arguments.directory, failure);
  if (failure) throw FileError(fmt::format("{}: {}", shown, failure.message()));
  const std::uint64_t bytes = must(write_checkpoint(arguments.directory, options));
  print_out(
      fmt::format("{}: {}, {}, head_dim {}{}, texts of at most {} tokens, {}\n", shown,
                  options.format == ModelFormat::kHf ? "hf" : "gguf", word_of(options.dtype),
                  options.shape.head_dim,
                  options.shape.window ? fmt::format(", window {}", *options.shape.window) : "",
                  count_text(probe::Shape::kPositions), bytes_text(bytes)));
  return kExitConforms;
}

Run declare_probe_model(CLI::App& app, const Contracts& /*contracts*/) {
  const auto arguments = std::make_shared<ModelArguments>();
  app.add_option("directory", arguments->directory, "for the files; new or empty")
      ->type_name("DIR")
      ->required();
  add_word_option<ModelFormat>(
      app, "--format", {{"hf", ModelFormat::kHf}, {"gguf", ModelFormat::kGguf}},
      [arguments](ModelFormat format) { arguments->format = format; },
      "hf: config, tokenizer and safetensors; gguf: one file")
      ->default_str("hf");
  add_word_option<StorageType>(
      app, "--dtype",
      {{"f32", StorageType::kF32}, {"bf16", StorageType::kBf16}, {"f16", StorageType::kF16}},
      [arguments](StorageType dtype) { arguments->dtype = dtype; },
      "of the weights; default: bf16, for gguf f16");
  app.add_option("--head-dim", arguments->shape.head_dim, "dimensions of a head")
      ->check(CLI::IsMember(std::vector<std::size_t>{64, 128}))
      ->type_name("64|128")
      ->capture_default_str();
  declare_window(app, arguments->shape);
  return [arguments] { return run_probe_model(*arguments); };
}

// ---- answers ----

struct AnswersArguments {
  std::string file;
  probe::Shape shape;
};

int run_probe_answers(const AnswersArguments& arguments) {
  const probe::Tables tables(arguments.shape);
  auto source = must(traces::TextSource::open(arguments.file, kMostAnswerBytes));
  const std::string name = printable(source.name());
  const AnswerCounts counts = must(compare_answers(std::move(source), tables));
  if (counts.prompts == 0) throw FileError(fmt::format("{}: has no answers", name));
  if (!counts.first) {
    print_out(fmt::format("{}: {}, {}: all agree\n", name, count_text(counts.prompts, "prompt"),
                          count_text(counts.tokens, "token")));
    return kExitConforms;
  }
  const WrongToken& first = *counts.first;
  print_out(fmt::format("{}:{}: continuation[{}]: want {}, got {}; {} of {}, {} of {} agree\n",
                        name, first.line, first.index, first.want, first.got,
                        count_text(counts.right_prompts), count_text(counts.prompts, "prompt"),
                        count_text(counts.right_tokens), count_text(counts.tokens, "token")));
  return kExitDiffers;
}

Run declare_probe_answers(CLI::App& app, const Contracts& /*contracts*/) {
  const auto arguments = std::make_shared<AnswersArguments>();
  app.add_option("file", arguments->file,
                 "JSON Lines with prompt and continuation, plain or gzip; -: standard input")
      ->type_name("FILE")
      ->required();
  declare_window(app, arguments->shape);
  return [arguments] { return run_probe_answers(*arguments); };
}

// ---- an engine over a cache, of check and serve ----

struct ServedArguments {
  std::string cache;  // a subject, or a kind for its reference
  std::string fault = "none";
  std::size_t rows = 4096;
};

void declare_served(CLI::App& app, ServedArguments& arguments, const char* doc) {
  constexpr std::size_t kLeastRows = 256;
  constexpr std::size_t kMostRows = 65'536;
  std::vector<std::string> faults;
  for (const ServerFault& fault : server_faults()) faults.emplace_back(fault.name);
  app.add_option("--cache", arguments.cache, doc)->type_name("SUBJECT");
  app.add_option("--fault", arguments.fault, "of what is read in this cache")
      ->check(CLI::IsMember(faults).description(""))
      ->type_name("FAULT")
      ->capture_default_str();
  app.add_option("--rows", arguments.rows, "that this cache has space for")
      ->check(CLI::Range(kLeastRows, kMostRows))
      ->capture_default_str();
}

// Throws UsageError as ProbeServer does, and for a subject that there is not.
std::shared_ptr<ProbeServer> server_of(const ServedArguments& arguments, const Contracts& contracts,
                                       std::uint64_t seed, const probe::Shape& shape) {
  constexpr std::size_t kBlock = ServedCache::kBlock;
  const bool kind_only = arguments.cache.find('@') == std::string::npos;
  const Subject& cache =
      subject_named(contracts, arguments.cache + (kind_only ? "@reference" : ""));
  const auto fault = std::ranges::find(server_faults(), arguments.fault, &ServerFault::name);
  return std::make_shared<ProbeServer>(
      ServerOptions{&cache, &*fault, seed, (arguments.rows + kBlock - 1) / kBlock * kBlock, shape});
}

// ---- check ----

// "Name: value"; the key of a file goes into the header that OpenAI's interface has for it.
HttpHeaders headers_of(const ConnectionArguments& arguments) {
  HttpHeaders headers;
  for (const std::string& line : arguments.headers) {
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == line.npos || line.find_first_of("\r\n") != line.npos)
      throw UsageError(fmt::format("--header '{}': 'NAME: VALUE' is needed", printable(line)));
    const std::size_t begin = line.find_first_not_of(' ', colon + 1);
    headers.emplace_back(line.substr(0, colon), begin == line.npos ? "" : line.substr(begin));
  }
  if (arguments.key_file.empty()) return headers;
  auto source = must(traces::TextSource::open(arguments.key_file));
  const auto key = must(source.next_line());
  if (!key) throw FileError(fmt::format("{}: has no key", printable(arguments.key_file)));
  headers.emplace_back("Authorization", "Bearer " + std::string(*key));
  return headers;
}

std::vector<std::size_t> kinds_of(const std::vector<std::string>& words) {
  const std::vector<std::string> known = plan_words();
  std::vector<std::size_t> kinds;
  for (const std::string& word : words) {
    const auto found = std::ranges::find(known, word);
    if (found == known.end()) throw unknown_word("plan", word, known);
    kinds.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return kinds;
}

// What plans depend on.
struct PlanArguments {
  std::vector<std::string> kinds;
  std::string json;
  ProbeOptions options;
};

void declare_plans(CLI::App& app, std::vector<std::string>& kinds, ProbeOptions& options) {
  constexpr std::size_t kLeastLength = 64;
  constexpr std::size_t kMostTokens = 256;
  app.add_option("--requests", options.requests, "at least so many, in whole plans")
      ->check(positive())
      ->capture_default_str()
      ->group(kExtentGroup);
  app.add_option("--plans", kinds, "kinds of plans, with commas; none: all")
      ->delimiter(',')
      ->type_name("PLAN");
  app.add_option("--plan-number", options.plan_number, "only this plan, as reports number it")
      ->check(not_negative())
      ->type_name("N");
  app.add_option("--longest", options.limits.longest, "tokens of the longest prompt")
      ->check(CLI::Range(kLeastLength, probe::Shape::kPositions / 2))
      ->type_name("TOKENS")
      ->capture_default_str();
  app.add_option("--tokens", options.limits.tokens, "that each request generates")
      ->check(CLI::Range(std::size_t{1}, kMostTokens))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "the same seed gives the same texts")
      ->check(not_negative())
      ->capture_default_str();
}

// Throws UsageError.
void set_plans(const std::vector<std::string>& kinds, ProbeOptions& options) {
  if (!kinds.empty()) options.kinds = kinds_of(kinds);
  const auto window = options.shape.window;
  if (window && 2 * options.limits.tokens >= *window)
    throw UsageError(fmt::format("--window {}: answers have {} tokens, fewer than {} are needed",
                                 *window, options.limits.tokens, *window / 2));
}

struct CheckArguments : EngineArguments {
  ServedArguments served;
  std::vector<std::string> plans;
  std::string output;
  bool overwrite = false;
};

RunHeader header_of(const ProbeOptions& options) {
  return {.kvoracle = std::string(kVersion),
          .command = "probe check",
          .seed = options.seed,
          .subjects = {kProbedEngine},
          .options = {{"requests", options.requests},
                      {"plans", write_json(options.kinds)},
                      {"plan_number", write_json(options.plan_number)},
                      {"control", options.control},
                      {"longest", options.limits.longest},
                      {"tokens", options.limits.tokens},
                      {"at_once", options.limits.at_once},
                      {"window", write_json(options.shape.window)},
                      {"past_window", options.shape.past_window}}};
}

// Throws UsageError: neither an engine's URL nor a cache, and as server_of.
void choose_engine(CheckArguments& arguments, const Contracts& contracts) {
  ProbeOptions& options = arguments.options;
  if (arguments.served.cache.empty() && arguments.url.empty())
    throw UsageError("the URL of an engine, or --cache, is needed");
  if (arguments.served.cache.empty()) return;
  options.name = arguments.served.cache;
  options.transport = [server = server_of(arguments.served, contracts, options.seed,
                                          options.shape)](const HttpRequest& request) {
    return server->answer(request.path, request.body);
  };
}

int run_probe_check(CheckArguments& arguments, const CLI::App& app, const Contracts& contracts) {
  if (arguments.output == kStandardOutput)
    throw UsageError("--output -: a run file cannot be standard output");
  check_outputs(
      {{"--output", arguments.output}, {"--json", arguments.json}, {"--junit", arguments.junit}},
      {arguments.key_file});
  set_plans(arguments.plans, arguments.options);
  choose_engine(arguments, contracts);
  const ProbeOptions& options = engine_options(arguments);
  const std::string given = repeat_probe(app, options.seed, {"--plan-number"});
  const ProbeRepeat repeat{
      .run = options.plan_number ? fmt::format("{} --plan-number {}", given, *options.plan_number)
                                 : fmt::format("{} --requests {}", given, options.requests),
      .plan = given};
  std::optional<RunFile> file;
  if (!arguments.output.empty())
    file = must(RunFile::open(
        arguments.output, header_of(options),
        arguments.overwrite ? RunFile::Existing::kReplaced : RunFile::Existing::kRefused));
  std::vector<PlanResult> plans;
  const ProbeReport report = probe_engine(options, [&](const PlanResult& plan) {
    if (file) must(file->append(probe_case(plan, plans.size(), options.seed, repeat)));
    plans.push_back(plan);
  });
  if (file) must(file->finish());
  return end_of_probe(report, plans, repeat, arguments.json, arguments.junit);
}

Run declare_probe_check(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<CheckArguments>();
  ProbeOptions& options = arguments->options;
  auto* url = app.add_option("url", arguments->url,
                             "of an engine that serves the probe: http://HOST:PORT/v1")
                  ->type_name("URL");
  declare_served(app, arguments->served,
                 "in the place of URL: an engine over this cache, in this process");
  url->excludes("--cache");
  declare_plans(app, arguments->plans, options);
  app.add_flag("--control", options.control,
               "send each request without sharing, too: only what differs is a fault of memory");
  declare_engine(app, *arguments);
  add_output(app, "--output,-o", arguments->output,
             "run file: JSON Lines, appended plan by plan, for kvoracle gate");
  app.add_flag("--overwrite", arguments->overwrite, "replace a run file that is there")
      ->group(kRunningGroup);
  declare_reports(app, arguments->json, arguments->junit);
  return [arguments, &app, &contracts] { return run_probe_check(*arguments, app, contracts); };
}

// ---- plan ----

int run_probe_plan(PlanArguments& arguments) {
  check_outputs({{"--json", arguments.json}}, {});
  set_plans(arguments.kinds, arguments.options);
  const ProbeReport report = probe_plans(arguments.options);
  if (arguments.json != kStandardOutput) print_out(probe_plans_text(report));
  if (!arguments.json.empty())
    write_result(arguments.json, "probe_plan",
                 {{"requests", report.requests},
                  {"tokens", report.tokens},
                  {"telling", report.telling},
                  {"cells", report.cells},
                  {"cells_read", report.cells_read},
                  {"faults", write_json(report.faults)},
                  {"coverage", write_json(report.coverage)}});
  return report.telling == 0 ? kExitUsage : kExitConforms;
}

Run declare_probe_plan(CLI::App& app, const Contracts& /*contracts*/) {
  const auto arguments = std::make_shared<PlanArguments>();
  declare_plans(app, arguments->kinds, arguments->options);
  declare_at_once(app, arguments->options);
  declare_window(app, arguments->options.shape);
  add_output(app, "--json", arguments->json, "write the result as JSON; - for standard output");
  return [arguments] { return run_probe_plan(*arguments); };
}

// ---- serve ----

struct ServeArguments {
  ServedArguments served{.cache = "prefix.blocks"};
  std::uint16_t port = 0;
  std::uint64_t seed = 1;
  probe::Shape shape;
  bool lists_faults = false;
};

int list_faults() {
  Table table({{"fault"}, {"no."}, {"verdict"}, {.title = "what goes wrong", .wraps = true}});
  for (const ServerFault& fault : server_faults())
    table.row({std::string(fault.name), fault.number > 0 ? std::to_string(fault.number) : "",
               std::string(verdict_on(fault.harm)), std::string(fault.doc)});
  print_out(table.text(0, output_columns()));
  return kExitConforms;
}

Run declare_probe_serve(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<ServeArguments>();
  app.add_option("--port", arguments->port, "of the loopback interface; 0: any")
      ->capture_default_str();
  declare_served(app, arguments->served, "that its rows are stored in");
  declare_window(app, arguments->shape);
  app.add_option("--seed", arguments->seed, "of what a fault changes")
      ->check(not_negative())
      ->capture_default_str();
  app.add_flag("--list-faults", arguments->lists_faults, "print all faults instead");
  return [arguments, &contracts]() -> int {
    if (arguments->lists_faults) return list_faults();
    const auto server = server_of(arguments->served, contracts, arguments->seed, arguments->shape);
    serve_http(
        arguments->port,
        [](std::uint16_t port) {
          print_out(fmt::format("http://127.0.0.1:{}/v1\n", port));
          (void)std::fflush(stdout);
        },
        [&](const std::string& path, const std::string& body) {
          return server->answer(path, body);
        });
  };
}

constexpr std::array kProbeCommands{
    Command{"model", "writes a model whose tokens show what its KV cache held",
            declare_probe_model},
    Command{"answers", "compares tokens that an engine generated with the right ones",
            declare_probe_answers},
    Command{"check", "whether an engine that serves the probe keeps its rows right",
            declare_probe_check},
    Command{"plan", "shows which rows and faults the texts of check would reach",
            declare_probe_plan},
    Command{"serve", "an engine for tests, over a cache of a contract", declare_probe_serve},
};

}  // namespace

std::vector<CLI::Option*> declare_connection(CLI::App& app, ConnectionArguments& arguments) {
  return {
      app.add_option("--header", arguments.headers, "a further line of each request: 'NAME: VALUE'")
          ->type_name("LINE"),
      app.add_option("--api-key-file", arguments.key_file, "file with a key for the engine")
          ->type_name("FILE"),
      app.add_option("--ca-file", arguments.ca_file,
                     "certificates (PEM) that https trusts; default: the system's")
          ->type_name("FILE"),
      app.add_option("--timeout", arguments.timeout, "of a request, to the end of its answer")
          ->type_name("SECONDS")
          ->check(positive())
          ->capture_default_str()
          ->group(kRunningGroup)};
}

HttpOptions connection_of(const ConnectionArguments& arguments) {
  return {.endpoint = endpoint_of(arguments.url),
          .headers = headers_of(arguments),
          .timeout = std::chrono::duration<double>(arguments.timeout),
          .ca_file = arguments.ca_file};
}

std::vector<CLI::Option*> declare_engine(CLI::App& app, EngineArguments& arguments) {
  ProbeOptions& options = arguments.options;
  constexpr std::size_t kMostRetries = 100;
  std::vector<CLI::Option*> declared;
  const auto add = [&](const char* name, auto& value, const char* doc, const char* type) {
    declared.push_back(app.add_option(name, value, doc)->type_name(type));
    return declared.back();
  };
  declared.push_back(declare_at_once(app, options));
  add("--model", options.model, "name of the model at the engine", "NAME")->capture_default_str();
  for (CLI::Option* option : declare_window(app, options.shape)) declared.push_back(option);
  for (CLI::Option* option : declare_connection(app, arguments)) declared.push_back(option);
  declared.push_back(
      app.add_flag("--stream", options.stream, "let answers come token by token, as events"));
  add("--retries", options.retries, "of a request that a busy engine refuses (429, 503)", "N")
      ->check(CLI::Range(std::size_t{0}, kMostRetries))
      ->capture_default_str()
      ->group(kRunningGroup);
  add("--sent-at-most", options.most_sent,
      "requests in all, those that explain and shrink a wrong answer included; default: 20,000 "
      "and 4 times those of the run",
      "N")
      ->check(positive())
      ->group(kRunningGroup);
  return declared;
}

const ProbeOptions& engine_options(EngineArguments& arguments) {
  constexpr std::uint64_t kToShrink = 20'000;
  ProbeOptions& options = arguments.options;
  if (!options.transport) static_cast<HttpOptions&>(options) = connection_of(arguments);
  options.salt = fmt::format("alone {}", options.seed);
  constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  if (options.most_sent == kUnlimited) options.most_sent = 4 * options.requests + kToShrink;
  return options;
}

std::string repeat_probe(const CLI::App& app, std::uint64_t seed,
                         std::vector<std::string_view> without) {
  without.push_back("--header");  // may hold a key
  const std::string group = app.get_name() == "run" ? "" : "probe ";
  return fmt::format("{} {}{}{} --seed {}", program_name(), group, app.get_name(),
                     given_options(app, without), seed);
}

int end_of_probe(const ProbeReport& report, const std::vector<PlanResult>& plans,
                 const ProbeRepeat& repeat, const std::string& json, const std::string& junit) {
  if (json != kStandardOutput && junit != kStandardOutput)
    print_out(probe_report_text(report, repeat));
  if (!json.empty()) write_result(json, "probe", write_json(report).get_object());
  if (!junit.empty())
    write_junit(junit, program_name() + " probe check", probe_suites(report, plans, repeat));
  if (report.wrong_requests > 0) return kExitDiffers;
  return report.failed_requests > 0 || report.telling == 0 ? kExitUsage : kExitConforms;
}

Run declare_probe(CLI::App& app, const Contracts& contracts) {
  return declare_group(app, kProbeCommands, contracts);
}

}  // namespace kvo::tools
