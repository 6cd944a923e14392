#include "tools/watch/prober.hpp"

#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

// usage.prompt_tokens_details.cached_tokens
std::optional<std::int64_t> cached_tokens(const std::string& body) {
  boost::system::error_code failed;
  const json::value answer = parse_json(body, failed);
  if (failed) return std::nullopt;
  const auto at = answer.find_pointer("/usage/prompt_tokens_details/cached_tokens", failed);
  if (at == nullptr) return std::nullopt;
  const auto count = json::try_value_to<std::int64_t>(*at);
  return count ? std::optional(*count) : std::nullopt;
}

}  // namespace

void Prober::note(const events::Batch& batch, std::int64_t block_size) {
  sequences_.note(batch, block_size);
  for (const events::Event& event : batch)
    if (event.kind == events::EventKind::kStored && !event.keys.empty()) last_ = event.keys.back();
}

std::optional<Prober::Answer> Prober::ask() {
  if (!last_) return std::nullopt;
  auto whole = sequences_.up_to(*std::exchange(last_, std::nullopt));
  if (!whole || whole->lora || whole->salt) return std::nullopt;
  Answer answer{.asked = *std::move(whole)};
  json::array prompt(answer.asked.tokens.begin(), answer.asked.tokens.end());
  prompt.push_back(answer.asked.tokens.back());
  json::object body{{"prompt", std::move(prompt)}, {"max_tokens", 1}, {"temperature", 0}};
  if (!model_.empty()) body["model"] = model_;
  const HttpAnswer said = transport_({.path = path_, .body = json::serialize(body)});
  constexpr unsigned kGood = 200;
  const auto reused = cached_tokens(said.body);
  if (!said.failure.empty())
    answer.failure = printable(said.failure, 200);
  else if (said.status != kGood)
    answer.failure = fmt::format("status {}: {}", said.status, printable(said.body, 100));
  else if (!reused)
    answer.failure = "the answer has no usage.prompt_tokens_details.cached_tokens";
  else
    answer.reused = *reused;
  return answer;
}

}  // namespace kvo::tools
