#include "tools/probe/fault_server.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/probe/engine.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using probe::Rows;
using probe::Token;

constexpr std::size_t kBlock = 16;
constexpr std::size_t kMostStored = 64;
constexpr std::size_t kMostTokens = 4096;

constexpr std::array<std::string_view, 8> kFaults{
    "none",       "stale_tail",    "lost_prefix", "foreign_block",
    "moved_rows", "rows_off_by_1", "rounding",    "sampling",
};

HttpAnswer refused(std::string_view why) {
  return {400, json::serialize(json::object{{"error", why}}), ""};
}

// Ids as they are, a text after the token that begins it.
std::optional<ProbeTokens> prompt_of(const json::value& prompt) {
  if (prompt.is_string()) {
    auto tokens = tokens_of_text(prompt.get_string());
    if (tokens) tokens->insert(tokens->begin(), probe::kBegin);
    return tokens;
  }
  const auto ids = json::try_value_to<ProbeTokens>(prompt);
  if (!ids || ids->empty() || ids->size() > probe::Shape::kPositions) return std::nullopt;
  const bool known =
      std::ranges::all_of(*ids, [](Token token) { return token < probe::Shape::kVocabulary; });
  return known ? std::optional(*ids) : std::nullopt;
}

json::array choices(const ProbeTokens& tokens, const json::value& end) {
  return {json::object{{"index", 0}, {"text", probe_text(tokens)}, {"finish_reason", end}}};
}

std::string event(std::string_view data) {
  return fmt::format("data: {}\n\n", data);
}

}  // namespace

std::vector<std::string_view> server_faults() {
  return {kFaults.begin(), kFaults.end()};
}

FaultServer::FaultServer(std::string_view fault, std::uint64_t seed, const probe::Shape& shape)
    : fault_(fault), seed_(seed), tables_(shape) {}

Rows FaultServer::begin_of(const ProbeTokens& prompt, bool shares) const {
  Rows rows(tables_);
  const Stored* best = nullptr;
  std::size_t most = 0;
  for (const Stored& stored : stored_)
    if (const std::size_t common = common_prefix(prompt, stored.tokens); common > most) {
      most = common;
      best = &stored;
    }
  if (!shares || best == nullptr) return rows;
  std::size_t reused = std::min(most, prompt.size() - 1) / kBlock * kBlock;
  if (has("moved_rows") && most + kBlock < prompt.size()) {
    const auto rest = std::span(prompt).subspan(most);
    const auto wanted = rest.first(kBlock);
    const auto found = std::search(best->tokens.begin() + static_cast<std::ptrdiff_t>(most),
                                   best->tokens.end(), wanted.begin(), wanted.end());
    if (found != best->tokens.end()) {
      const auto at = static_cast<std::size_t>(found - best->tokens.begin());
      const auto same = common_prefix(rest, std::span(best->tokens).subspan(at));
      rows = best->rows;
      rows.crop(at + std::min(same, rest.size() - 1));
      rows.shift_out(most, at);
      return rows;
    }
  }
  if (has("stale_tail"))
    reused = std::min({reused + kBlock, prompt.size() - 1, best->tokens.size()});
  rows = best->rows;
  rows.crop(reused);
  if (reused > 1 && has("lost_prefix")) rows.evict(1, reused);
  if (reused > 1 && has("rows_off_by_1")) {
    rows.shift_out(1, 2);  // the prompt goes on one position too early
  }
  if (has("foreign_block") && reused >= 2 * kBlock) {
    const auto other = std::ranges::find_if(stored_, [&](const Stored& stored) {
      return &stored != best && stored.rows.size() >= 2 * kBlock;
    });
    if (other != stored_.end())
      for (std::size_t position = kBlock; position < 2 * kBlock; ++position)
        rows.overwrite(position, other->rows, position);
  }
  return rows;
}

HttpAnswer FaultServer::answer(const std::string& path, const std::string& body) {
  if (!path.ends_with("/completions")) return {404, R"({"error":"no such path"})", ""};
  boost::system::error_code failed;
  const json::value parsed = parse_json(body, failed);
  if (failed || !parsed.is_object()) return refused("no JSON object");
  const json::object& request = parsed.get_object();
  const json::value* given = request.if_contains("prompt");
  auto prompt = given != nullptr ? prompt_of(*given) : std::nullopt;
  if (!prompt) return refused("prompt: tokens or a text of the probe are needed");
  const json::value* asked = request.if_contains("max_tokens");
  const auto count = asked != nullptr ? json::try_value_to<std::size_t>(*asked) : std::size_t{16};
  if (!count || *count > kMostTokens) return refused("max_tokens: 0 to 4096 are allowed");
  const json::value* share = request.if_contains("cache_prompt");
  const bool shares = share == nullptr || !share->is_bool() || share->get_bool();

  const std::lock_guard lock(mutex_);
  Rows rows = begin_of(*prompt, shares);
  const std::size_t done = rows.size() + (has("rows_off_by_1") && rows.size() > 0 ? 1 : 0);
  rows.extend(std::span(*prompt).subspan(done));
  ProbeTokens tokens = rows.generate(*count);
  ++answered_;
  const std::uint64_t drawn = probe::mix({seed_, prompt->size(), prompt->back()});
  if (has("rounding") && drawn % 16 == 0 && !tokens.empty()) tokens.back() ^= 1U;
  if (has("sampling") && !tokens.empty()) tokens.back() ^= static_cast<Token>(answered_ % 2);
  if (shares) {
    ProbeTokens all = *prompt;
    all.insert(all.end(), tokens.begin(), tokens.end());
    stored_.push_back({std::move(all), std::move(rows)});
    if (stored_.size() > kMostStored) stored_.erase(stored_.begin());
  }
  const json::object usage{{"prompt_tokens", prompt->size()}};
  const json::value* stream = request.if_contains("stream");
  if (stream == nullptr || *stream != true)
    return {200,
            json::serialize(json::object{{"choices", choices(tokens, "length")}, {"usage", usage}}),
            ""};
  std::string events;
  for (const Token token : tokens)
    events += event(json::serialize(json::object{{"choices", choices({token}, nullptr)}}));
  events += event(json::serialize(json::object{{"choices", json::array()}, {"usage", usage}}));
  return {200, events + event("[DONE]"), "", "text/event-stream"};
}

}  // namespace kvo::tools
