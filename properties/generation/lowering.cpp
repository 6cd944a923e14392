// Requests of a trace as prompts.
//
// Policy   each request is one call, in order of arrival: its prompt has as many tokens as the
//          request's, its text at most as many as the answer. Blocks of a trace that have one id
//          are the same tokens, so that prompts share prefixes as those of the trace do.
#include <algorithm>
#include <string>
#include <utility>

#include "properties/contract_parts.hpp"
#include "reference/contract/values/random.hpp"
#include "reference/generation/operations.hpp"
#include "reference/generation/speculative_operations.hpp"

namespace kvo::generation {
namespace {

using replay::LoweringInput;

constexpr std::int64_t kVocab = 64;
constexpr std::int64_t kDim = 8;
constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kBlock = 16;

ModelConfig model_of(const LoweringInput& input, std::int64_t salt) {
  return {.kind = ModelKind::kAttention,
          .layers = input.policy.num_layers,
          .dim = kDim,
          .vocab = kVocab,
          .salt = salt,
          .heads = kHeads};
}

GeneratorSizes sizes_of(const LoweringInput& input) {
  return {.num_layers = input.policy.num_layers,
          .max_seq_len = input.longest_sequence() + 1,
          .eos = kVocab,
          .vocab_size = kVocab};
}

TokenizerConfig tokenizer() {
  constexpr char kFirst = '!';
  TokenizerConfig made{.kind = TokenizerKind::kIds, .pieces = {}};
  for (std::int64_t token = 0; token < kVocab; ++token)
    made.pieces.emplace_back(1, static_cast<char>(kFirst + token));
  return made;
}

/// The tokens of a prompt as text.
std::string prompt_of(const traces::Request& request, std::size_t number, std::int64_t tokens) {
  const std::int64_t length = std::max<std::int64_t>(tokens, 1);
  const std::int64_t blocks = std::ssize(request.block_ids);
  const std::int64_t block = blocks > 0 ? (length + blocks - 1) / blocks : length;
  std::string prompt;
  for (std::int64_t begin = 0; begin < length; begin += block) {
    const std::uint64_t name =
        blocks > 0 ? request.block_ids[static_cast<std::size_t>(begin / block)] : number;
    traces::Random random(name);
    for (std::int64_t i = begin; i < std::min(begin + block, length); ++i)
      prompt += (prompt.empty() ? "" : " ") +
                std::to_string(random.below(static_cast<std::uint64_t>(kVocab)));
  }
  return prompt;
}

template <class Call>
class PromptOps final : public OpStream {
 public:
  explicit PromptOps(const LoweringInput& input) : input_(input) {}

  [[nodiscard]] std::optional<Op> next() override {
    if (!std::exchange(begun_, true)) return Op::of(New{});
    if (at_ == input_.requests.size()) return std::nullopt;
    const traces::Request& request = input_.requests[at_];
    SamplingConfig sampling{.temperature = 0};
    sampling.max_new_tokens = std::max<std::int64_t>(input_.answer(request), 1);
    std::string prompt = prompt_of(request, at_++, input_.prompt(request));
    return Op::of(Call{std::move(prompt), std::move(sampling)});
  }
  void observe(const Op& /*op*/, const Observation& /*seen*/, Labels& /*labels*/) override {}

 private:
  LoweringInput input_;
  bool begun_ = false;
  std::size_t at_ = 0;
};

GeneratorConfig text_config(const LoweringInput& input) {
  GeneratorConfig config;
  config.generator = sizes_of(input);
  config.model = model_of(input, 1);
  config.tokenizer = tokenizer();
  // As servers do: prompts in chunks, and a slot that retains the common prefix of prompts.
  config.prefill = {.chunk = std::max<std::int64_t>(
                        replay::scaled(input.schedule.chunk_tokens, input.schedule.scale), 1),
                    .keep_prefix = true};
  return config;
}

/// The pool holds all requests, for the original never frees their blocks.
GeneratorConfig paged_config(const LoweringInput& input) {
  GeneratorConfig config = text_config(input);
  std::int64_t blocks = 1;
  for (const traces::Request& request : input.requests) blocks += input.whole(request) / kBlock + 2;
  const std::int64_t bytes = blocks * 2 * input.policy.num_layers * kBlock * kDim * 4;
  config.prefill.reset();
  config.paged = {kDim, bytes / (std::int64_t{1} << 20U) + 1};
  return config;
}

/// The draft is another model, which is right now and then.
SpeculativeConfig speculative_config(const LoweringInput& input) {
  SpeculativeConfig config;
  config.target = {sizes_of(input), model_of(input, 1)};
  config.draft = {sizes_of(input), model_of(input, 2)};
  config.draft_len = input.schedule.draft_tokens;
  config.tokenizer = tokenizer();
  // The original feeds its caches more than the text.
  for (GeneratorSizes* sizes : {&config.target.generator, &config.draft.generator})
    sizes->max_seq_len = 2 * sizes->max_seq_len + config.draft_len;
  return config;
}

/// Attention reads every row for every token.
double prompt_cost(const LoweringInput& input) {
  constexpr double kMostReads = 2e6;  // of one nested cache, of which there are many
  double reads = 0;
  for (const traces::Request& request : input.requests) {
    const auto whole = static_cast<double>(input.whole(request));
    reads += whole * whole / 2;
  }
  return reads / kMostReads;
}

}  // namespace

std::vector<replay::Lowering> lowerings() {
  using replay::lower_by;
  using replay::setup_by;
  return {{&contiguous_kind(), setup_by<text_config>, lower_by<PromptOps<Generate>>, prompt_cost},
          {&paged_kind(), setup_by<paged_config>, lower_by<PromptOps<Generate>>, prompt_cost},
          {&speculative_kind(), setup_by<speculative_config>,
           lower_by<PromptOps<SpeculativeGenerate>>, prompt_cost}};
}

}  // namespace kvo::generation
