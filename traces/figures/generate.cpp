#include "traces/figures/generate.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "reference/contract/values/random.hpp"

namespace kvo::traces {

namespace {

constexpr std::int64_t kMicrosecondsPerMillisecond = 1000;
constexpr double kMicrosecondsPerSecond = 1e6;
constexpr std::size_t kOpenConversations = 64;
constexpr std::int64_t kMaxMean = std::int64_t{1} << 20;
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 20;
constexpr std::int64_t kMaxSystemBlocks = std::int64_t{1} << 24;

struct Conversation {
  std::int64_t tokens = 0;              // all that was said so far
  std::vector<std::uint64_t> full_ids;  // of blocks that a next prompt will hold again
};

class Generator {
 public:
  explicit Generator(const GenerateOptions& options)
      : options_(options),
        random_(options.seed),
        mean_gap_us_(
            static_cast<std::int64_t>(kMicrosecondsPerSecond / options.requests_per_second)) {
    for (std::int64_t i = 0; i < options.system_prompts; ++i) {
      Conversation prompt;
      prompt.tokens = std::min(draw_system_length(), options.max_input_tokens);
      extend(prompt, prompt.tokens);
      system_prompts_.push_back(std::move(prompt));
    }
  }

  Request next() {
    now_us_ += random_.exponential(mean_gap_us_);
    const std::size_t index = choose_conversation();
    Conversation& conversation = open_[index];

    const std::int64_t room = options_.max_input_tokens - conversation.tokens;
    const std::int64_t fresh = draw_length(options_.mean_turn_tokens);
    Request request;
    request.arrival_us = now_us_ - now_us_ % kMicrosecondsPerMillisecond;
    request.input_tokens = conversation.tokens + std::min(fresh, room);
    request.output_tokens = draw_length(options_.mean_output_tokens);
    request.line = ++line_;

    extend(conversation, request.input_tokens);
    request.block_ids = conversation.full_ids;
    // A partial block gets an id of its own: in the next turn it will hold more tokens.
    if (request.input_tokens % options_.block_size != 0) request.block_ids.push_back(next_id_++);

    conversation.tokens = request.input_tokens + request.output_tokens;
    if (conversation.tokens >= options_.max_input_tokens) close(index);
    return request;
  }

 private:
  /// Many short ones and few long ones, at least 1, `mean` on average.
  std::int64_t draw_length(std::int64_t mean) {
    const bool is_long = random_.chance(25);
    const std::int64_t tokens = random_.exponential(is_long ? mean * 5 / 2 : mean / 2);
    return std::max<std::int64_t>(tokens, 1);
  }

  /// Mostly near its mean: a service writes these with care.
  std::int64_t draw_system_length() {
    const std::int64_t spread = options_.mean_system_tokens / 4;
    return options_.mean_system_tokens - spread + random_.exponential(spread);
  }

  /// Gives ids to all full blocks among the first `tokens` tokens.
  void extend(Conversation& conversation, std::int64_t tokens) {
    const auto blocks = static_cast<std::size_t>(tokens / options_.block_size);
    while (conversation.full_ids.size() < blocks) conversation.full_ids.push_back(next_id_++);
  }

  std::size_t choose_conversation() {
    const bool continued = random_.chance(static_cast<std::uint64_t>(options_.continued_percent));
    if (continued && !open_.empty()) return random_.below(open_.size());
    if (open_.size() == kOpenConversations) close(random_.below(open_.size()));
    open_.push_back(begin_conversation());
    return open_.size() - 1;
  }

  Conversation begin_conversation() {
    if (system_prompts_.empty()) return {};
    // The smaller of two draws: the first prompts are the popular ones.
    const auto count = system_prompts_.size();
    const auto first = random_.below(count);
    Conversation begun = system_prompts_[std::min(first, random_.below(count))];
    if (begun.tokens >= options_.max_input_tokens) return {};
    return begun;
  }

  void close(std::size_t index) {
    std::swap(open_[index], open_.back());
    open_.pop_back();
  }

  GenerateOptions options_;
  Random random_;
  std::int64_t mean_gap_us_;
  std::int64_t now_us_ = 0;
  std::uint64_t line_ = 0;
  std::uint64_t next_id_ = 0;
  std::vector<Conversation> system_prompts_;
  std::vector<Conversation> open_;
};

}  // namespace

TraceResult<void> check(const GenerateOptions& options) {
  struct Range {
    std::string_view field;
    std::int64_t value;
    std::int64_t min;
    std::int64_t max;
  };
  for (const auto& [field, value, min, max] : {
           Range{"requests", options.requests, 0, 100'000'000},
           Range{"mean_turn_tokens", options.mean_turn_tokens, 1, kMaxMean},
           Range{"mean_output_tokens", options.mean_output_tokens, 1, kMaxMean},
           Range{"continued_percent", options.continued_percent, 0, 100},
           Range{"system_prompts", options.system_prompts, 0, std::int64_t{1} << 20},
           Range{"mean_system_tokens", options.mean_system_tokens, 1, kMaxMean},
           Range{"max_input_tokens", options.max_input_tokens, 1, std::int64_t{1} << 24},
           Range{"block_size", options.block_size, 1, std::int64_t{1} << 20},
       }) {
    if (value >= min && value <= max) continue;
    return error_at({}, field, std::to_string(value), fmt::format("not {} to {}", min, max));
  }
  const double rate = options.requests_per_second;
  // Written so that NaN fails.
  if (!(rate >= 0.001 && rate <= 1e6)) {
    return error_at({}, "requests_per_second", fmt::format("{}", rate), "not 0.001 to 1000000");
  }
  // A longer line could not be read back.
  if (options.max_input_tokens / options.block_size > kMaxBlocks) {
    return error_at(
        {}, "max_input_tokens", std::to_string(options.max_input_tokens),
        fmt::format("more than {} blocks of --block-size {}", kMaxBlocks, options.block_size));
  }
  if (options.system_prompts * options.mean_system_tokens / options.block_size > kMaxSystemBlocks) {
    return error_at({}, "system_prompts", std::to_string(options.system_prompts),
                    fmt::format("more than {} blocks in all, of --mean-system-tokens {}",
                                kMaxSystemBlocks, options.mean_system_tokens));
  }
  return {};
}

TraceResult<void> generate_each(const GenerateOptions& options,
                                const std::function<TraceResult<void>(const Request&)>& take) {
  if (const auto checked = check(options); !checked) return checked.error();
  Generator generator(options);
  for (std::int64_t i = 0; i < options.requests; ++i)
    if (auto taken = take(generator.next()); !taken) return taken;
  return {};
}

TraceResult<std::vector<Request>> generate(const GenerateOptions& options) {
  std::vector<Request> requests;
  const auto made = generate_each(options, [&](const Request& request) -> TraceResult<void> {
    requests.push_back(request);
    return {};
  });
  if (!made) return made.error();
  return requests;
}

}  // namespace kvo::traces
