#include "tools/probe/serve/server.hpp"

#include <algorithm>
#include <exception>
#include <span>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/commands/usage.hpp"
#include "tools/probe/engine.hpp"
#include "tools/probe/serve/reader.hpp"

namespace kvo::tools {

namespace json = boost::json;
using probe::Token;

namespace {

HttpAnswer refused_with(unsigned status, std::string_view why) {
  return {status, json::serialize(json::object{{"error", why}}), ""};
}

json::array choices_of(const ProbeTokens& tokens, const json::value& end) {
  return {json::object{{"index", 0}, {"text", probe_text(tokens)}, {"finish_reason", end}}};
}

// As one JSON, or as one event for each token.
HttpAnswer completion_of(std::size_t prompt, const ProbeTokens& tokens, bool stream) {
  const json::object usage{{"prompt_tokens", prompt}};
  if (!stream)
    return {
        200,
        json::serialize(json::object{{"choices", choices_of(tokens, "length")}, {"usage", usage}}),
        ""};
  std::string events;
  const auto add = [&](std::string_view data) { events += fmt::format("data: {}\n\n", data); };
  for (const Token token : tokens)
    add(json::serialize(json::object{{"choices", choices_of({token}, nullptr)}}));
  add(json::serialize(json::object{{"choices", json::array()}, {"usage", usage}}));
  add("[DONE]");
  return {200, events, "", "text/event-stream"};
}

// Ids as they are, a text after the token that begins it.
std::optional<ProbeTokens> prompt_of(const json::value& prompt) {
  if (prompt.is_string()) {
    auto tokens = tokens_of_text(prompt.get_string());
    if (tokens) tokens->insert(tokens->begin(), probe::kBegin);
    return tokens;
  }
  auto ids = json::try_value_to<ProbeTokens>(prompt);
  if (!ids || ids->empty() || ids->size() > probe::Shape::kPositions) return std::nullopt;
  const bool known =
      std::ranges::all_of(*ids, [](Token token) { return token < probe::Shape::kVocabulary; });
  return known ? std::optional(*std::move(ids)) : std::nullopt;
}

std::unique_ptr<ServedCache> opened(const ServerOptions& options) {
  std::vector<std::string> names;
  for (const ServedKind& kind : served_kinds()) {
    names.emplace_back(kind.name);
    if (kind.name != options.cache->kind->name()) continue;
    auto cache = kind.open(*options.cache, {.rows = static_cast<std::int64_t>(options.rows),
                                            .window = options.shape.window});
    if (!cache) throw UsageError(options.cache->name() + ": " + cache.error().text());
    return *std::move(cache);
  }
  throw UsageError(fmt::format("{}: caches that can be served are: {}", options.cache->name(),
                               fmt::join(names, ", ")));
}

}  // namespace

// ---- Turns ----

void Turns::enter(std::size_t space) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return space <= space_ && running_ < ServedCache::kSequences; });
  space_ -= space;
  ++running_;
  wait(lock);
}

void Turns::yield() {
  std::unique_lock lock(mutex_);
  done();
  wait(lock);
}

void Turns::leave(std::size_t space) {
  const std::lock_guard lock(mutex_);
  space_ += space;
  --running_;
  done();
}

void Turns::wait(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t mine = next_++;
  changed_.wait(lock, [&] { return mine == now_; });
}

void Turns::done() {
  ++now_;
  changed_.notify_all();
}

// ---- One request ----

struct ProbeServer::Asked {
  ProbeTokens prompt;
  std::size_t count = 16;
  RowSharing sharing;

  [[nodiscard]] std::size_t space() const {
    constexpr auto kBlock = static_cast<std::size_t>(ServedCache::kBlock);
    return (prompt.size() + ServedCache::kPadding + count) / kBlock * kBlock + kBlock;
  }
};

/// The passes of one sequence.
class ProbeServer::Generation {
 public:
  Generation(ProbeServer& server, const Begun& begun, Damage damage)
      : server_(server), begun_(begun), damage_(std::move(damage)), at_(begun.reused) {}

  /// Stores the rows of tokens after all earlier ones. They read the rows before them.
  Status pass(std::span<const Token> tokens) {
    ServedCache& cache = *server_.cache_;
    if (Status done = cache.start(begun_.sequence, tokens, at_); !done) return done;
    std::vector<probe::PerHead<probe::Read>> reads(tokens.size());
    std::vector<HeadCells> rows(tokens.size());
    for (std::size_t layer = 0; layer < probe::Shape::kLayers; ++layer) {
      for (std::size_t i = 0; i < tokens.size(); ++i)
        rows[i] = row_of(tokens[i], at_ + i, layer, reads[i]);
      if (Status done = cache.put(layer, rows); !done) return done;
      auto seen = cache.get(layer);
      if (!seen) return seen.error();
      if (seen->sees.size() != tokens.size() * seen->rows.size())
        return fail(Code::kOther, "the cache shows other tokens than those of the pass");
      remember(layer, *seen);
      do_damage(layer, *seen);
      reads = read_rows(server_.tables_, tokens, at_, *seen, damage_.far_end_hidden);
    }
    at_ += tokens.size();
    next_ = probe::token_after(server_.tables_[tokens.back()], reads.back());
    return cache.finish();
  }
  /// The same in several passes, between which others have their turns.
  Status passes(std::span<const Token> tokens) {
    constexpr std::size_t kMostOfPass = 128;
    while (!tokens.empty()) {
      const std::size_t count = std::min(tokens.size(), kMostOfPass);
      if (Status done = pass(tokens.first(count)); !done) return done;
      tokens = tokens.subspan(count);
      server_.turns_.yield();
    }
    return {};
  }
  /// The padding is removed: what follows is at lower positions.
  void close_gap() {
    at_ -= begun_.padding;
    begun_.padding = 0;
  }
  /// The token that follows the last one.
  [[nodiscard]] Token next() const { return next_; }
  /// The rows that its tokens see, by position in the text.
  [[nodiscard]] std::vector<ServedRow> rows() && { return std::move(rows_); }

 private:
  [[nodiscard]] HeadCells row_of(Token token, std::size_t position, std::size_t layer,
                                 const probe::PerHead<probe::Read>& reads) const {
    const probe::Meaning& meaning = server_.tables_[token];
    const auto values = probe::values_of(meaning, layer, reads);
    HeadCells row;
    for (std::size_t head = 0; head < row.size(); ++head)
      row[head] = {static_cast<std::int32_t>(position),
                   probe::is_sink(token) ? kSinkKey : meaning.sign[layer][head], values[head]};
    return row;
  }
  // What the tokens of a pass see, where a fault may need it later.
  void remember(std::size_t layer, const SeenRows& seen) {
    if (server_.options_.fault->harm == Harm::kNone || seen.rows.empty()) return;
    const auto padding = static_cast<std::int32_t>(begun_.padding);
    rows_.resize(at_ + seen.sees.size() / seen.rows.size());
    for (std::size_t i = 0; i < seen.sees.size(); ++i)
      for (std::size_t head = 0; head < probe::Shape::kHeads; ++head) {
        ServedCell cell = seen.rows[i % seen.rows.size()][head];
        if (seen.sees[i] == 0 || cell.key == 0) continue;
        if (cell.position > 0) cell.position -= padding;
        if (cell.position >= 0 && static_cast<std::size_t>(cell.position) < rows_.size())
          rows_[static_cast<std::size_t>(cell.position)][layer][head] = cell;
      }
  }
  void do_damage(std::size_t layer, SeenRows& seen) const {
    if (damage_.rows.empty()) return;
    for (HeadCells& row : seen.rows)
      for (std::size_t head = 0; head < row.size(); ++head)
        if (const auto position = static_cast<std::size_t>(row[head].position);
            position < damage_.rows.size() && damage_.rows[position])
          row[head] = (*damage_.rows[position])[layer][head];
  }

  ProbeServer& server_;
  Begun begun_;
  Damage damage_;
  std::size_t at_;  // position of the next token
  Token next_ = 0;
  std::vector<ServedRow> rows_;  // where a fault may need them
};

// ---- The server ----

ProbeServer::ProbeServer(const ServerOptions& options)
    : options_(options), tables_(options.shape), cache_(opened(options)), turns_(options.rows) {
  if (options_.fault == nullptr) options_.fault = server_faults().data();
}

Damage ProbeServer::damage_for(const ProbeTokens& prompt, std::size_t reused) const {
  if (reused < ServedCache::kLeastReused) return {};
  const ServedText* source = nullptr;
  const ServedText* other = nullptr;
  std::size_t most = 0;
  for (const ServedText& text : texts_) {
    const std::size_t common = common_prefix(prompt, text.tokens);
    if (common < ServedCache::kLeastReused)
      other = &text;
    else if (common > most && text.rows.size() >= reused)
      source = &text;
    most = std::max(most, common);
  }
  if (source == nullptr || most < reused) return {};
  return damage_of(*options_.fault, {&tables_, prompt, reused, source, other, options_.seed});
}

Result<ProbeTokens> ProbeServer::generate(const Asked& asked) {
  auto begun = cache_->begin(asked.prompt, asked.sharing);
  if (!begun) return begun.error();
  ProbeTokens text = asked.prompt;
  const auto run = [&]() -> Result<ProbeTokens> {
    Generation generation(*this, *begun, damage_for(text, begun->reused));
    ProbeTokens padded(text.begin() + static_cast<std::ptrdiff_t>(begun->reused), text.end());
    padded.insert(padded.begin() + (begun->padding > 0 ? 1 : 0), begun->padding, Token{0});
    if (Status done = generation.passes(padded); !done) return done.error();
    const bool shares = asked.sharing.shares;
    if (Status done = cache_->prompt_read(*begun, shares ? text : ProbeTokens()); !done)
      return done.error();
    generation.close_gap();
    ProbeTokens answer;
    while (answer.size() < asked.count) {
      answer.push_back(generation.next());
      if (answer.size() == asked.count) break;
      if (Status done = generation.passes({&answer.back(), 1}); !done) return done.error();
      text.push_back(answer.back());
    }
    if (shares && options_.fault->harm != Harm::kNone) {
      constexpr std::size_t kMostTexts = 64;
      texts_.push_back({text, std::move(generation).rows()});
      texts_.back().rows.resize(text.size());
      if (texts_.size() > kMostTexts) texts_.pop_front();
    }
    return answer;
  };
  Result<ProbeTokens> answer = fail(Code::kThrew);
  try {
    answer = run();
  } catch (const std::exception& thrown) {
    answer = fail(Code::kThrew, thrown.what());
  }
  cache_->end(begun->sequence, answer && asked.sharing.shares ? text : ProbeTokens());
  return answer;
}

HttpAnswer ProbeServer::answer(const std::string& path, const std::string& body) {
  if (!path.ends_with("/completions")) return refused_with(404, "no such path");
  boost::system::error_code failed;
  const json::value parsed = parse_json(body, failed);
  if (failed || !parsed.is_object()) return refused_with(400, "no JSON object");
  const json::object& request = parsed.get_object();
  const json::value* given = request.if_contains("prompt");
  auto prompt = given != nullptr ? prompt_of(*given) : std::nullopt;
  if (!prompt) return refused_with(400, "prompt: tokens or a text of the probe are needed");
  Asked asked{.prompt = *std::move(prompt)};
  if (const json::value* wanted = request.if_contains("max_tokens")) {
    const auto count = json::try_value_to<std::size_t>(*wanted);
    if (!count || *count > options_.rows)
      return refused_with(400, fmt::format("max_tokens: 0 to {} are allowed", options_.rows));
    asked.count = *count;
  }
  if (const json::value* share = request.if_contains("cache_prompt"); share && share->is_bool())
    asked.sharing.shares = share->get_bool();
  if (const json::value* salt = request.if_contains("cache_salt"); salt && salt->is_string())
    asked.sharing.salt = salt->get_string();
  if (asked.space() > options_.rows)
    return refused_with(400, fmt::format("prompt: {} rows are needed, the cache has {}",
                                         asked.space(), options_.rows));

  turns_.enter(asked.space());
  Result<ProbeTokens> answer = generate(asked);
  ++answered_;
  const bool odd = answered_ % 2 != 0;
  turns_.leave(asked.space());
  if (!answer) return refused_with(500, "cache: " + answer.error().text());
  ProbeTokens& tokens = *answer;
  const std::uint64_t drawn = probe::mix({options_.seed, asked.prompt.size(), asked.prompt.back()});
  const bool wrong = options_.fault->harm == Harm::kArithmetic
                         ? drawn % 16 == 0
                         : options_.fault->harm == Harm::kSampling && odd;
  if (wrong && !tokens.empty()) tokens.back() ^= 1U;
  const json::value* stream = request.if_contains("stream");
  return completion_of(asked.prompt.size(), tokens, stream != nullptr && *stream == true);
}

}  // namespace kvo::tools
