// tools/commands/probe.cpp: `kvoracle probe model` and `kvoracle probe answers`.
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/usage.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/probe/answers.hpp"
#include "tools/probe/checkpoint.hpp"
#include "tools/reports/console.hpp"
#include "traces/io/text_source.hpp"

namespace kvo::tools {
namespace {

namespace files = std::filesystem;

// Below 8 a window would have no place for sinks.
constexpr std::size_t kLeastWindow = 8;

void declare_window(CLI::App& app, std::optional<std::size_t>& window) {
  app.add_option("--window", window, "of a sliding attention, in tokens; default: none")
      ->check(CLI::Range(kLeastWindow, probe::Shape::kPositions))
      ->type_name("TOKENS");
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
  declare_window(app, arguments->shape.window);
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
  declare_window(app, arguments->shape.window);
  return [arguments] { return run_probe_answers(*arguments); };
}

constexpr std::array kProbeCommands{
    Command{"model", "writes a model whose tokens show what its KV cache held",
            declare_probe_model},
    Command{"answers", "compares tokens that an engine generated with the right ones",
            declare_probe_answers},
};

}  // namespace

Run declare_probe(CLI::App& app, const Contracts& contracts) {
  return declare_group(app, kProbeCommands, contracts);
}

}  // namespace kvo::tools
