#include "tools/watch/stream_log.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "properties/campaign/conform.hpp"
#include "reference/events/operations.hpp"

namespace kvo::tools {
namespace {

// Two numbers of 32 bits.
std::array<std::int64_t, StreamLog::kHashTokens> hash_of(const std::string& key,
                                                         std::span<const std::int64_t> tokens) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  const auto bytes = std::as_bytes(tokens);
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),  // NOLINT: bytes
       digest.data(), nullptr);
  std::array<std::int64_t, StreamLog::kHashTokens> words{};
  for (std::size_t i = 0; i < words.size() * 4; ++i)
    words.at(i / 4) = words.at(i / 4) * 256 + digest.at(i);
  return words;
}

}  // namespace

StreamLog::StreamLog(const Contracts& contracts, std::string key, bool replay)
    : key_(std::move(key)) {
  const CacheKind& kind = events::kind_of(events::Form::kDynamo);
  log_.header = {.kind = &kind,
                 .system = "watched engine",
                 .version = KVO_VERSION,
                 .name = "watched",
                 .profile = Profile::kDocumented,
                 .config = Record::of(events::Config{.block_size = kHashTokens, .replay = replay})};
  session_ = contracts.reference_of(kind).open(setup_of(log_.header, std::nullopt)).value();
}

void StreamLog::add(Op op) {
  Probe probe;
  Observation seen = session_->apply(op, probe);
  log_.steps.push_back({.op = std::move(op), .recorded = std::move(seen)});
}

events::Event StreamLog::hashed(const events::Event& event, std::int64_t block_size) const {
  events::Event out = event;
  if (event.kind != events::EventKind::kStored) return out;
  const std::int64_t size = event.block_size.value_or(block_size);
  const bool odd = size != block_size;
  out.block_size = odd ? kHashTokens + 1 : kHashTokens;
  out.tokens.clear();
  if (event.salt) {
    const std::vector<std::int64_t> letters(event.salt->begin(), event.salt->end());
    out.salt = fmt::format("{}", fmt::join(hash_of(key_, letters), "-"));
  }
  for (std::int64_t at = 0; at < std::ssize(event.tokens); at += size) {
    const std::int64_t rest = std::min(size, std::ssize(event.tokens) - at);
    const auto words =
        hash_of(key_, std::span(event.tokens)
                          .subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(rest)));
    out.tokens.insert(out.tokens.end(), words.begin(), words.end());
    if (odd) out.tokens.push_back(0);
    if (rest < size) out.tokens.pop_back();  // what does not fit the keys does not fit there
  }
  return out;
}

void StreamLog::restart(const events::Engine& engine) {
  numbers_.erase(engine);
  add(Op::of(events::Restart{.worker = engine.worker, .rank = engine.rank}));
}

void StreamLog::batch(const events::Engine& engine, std::int64_t number, const events::Batch& batch,
                      std::int64_t block_size, bool delivered) {
  if (events_ + std::ssize(batch) > kMostEvents) {
    left_out_ += std::ssize(batch);
    return;
  }
  events_ += std::ssize(batch);
  const auto [known, is_new] = numbers_.try_emplace(engine, Numbers{.base = number});
  Numbers& numbers = known->second;
  const std::int64_t seq = number - numbers.base;
  const auto publish = [&](events::Batch published) {
    add(Op::of(events::Publish{
        .worker = engine.worker, .rank = engine.rank, .events = std::move(published)}));
    ++numbers.next;
  };
  if (seq < 0) return;  // an answer about batches from before the log
  constexpr std::int64_t kMostLost = 10'000;
  if (seq - numbers.next > kMostLost) {
    restart(engine);
    return this->batch(engine, number, batch, block_size, delivered);
  }
  while (numbers.next < seq) publish({});
  if (numbers.next == seq) {
    events::Batch out;
    for (const events::Event& event : batch) out.push_back(hashed(event, block_size));
    sequences_.note(out, kHashTokens);
    publish(std::move(out));
  }
  if (!delivered) return;
  add(Op::of(events::Deliver{.worker = engine.worker, .rank = engine.rank, .seq = seq}));
  ask_about(batch);
}

// Of what was stored the whole sequence, of what was removed the one that ended with its first
// block.
void StreamLog::ask_about(const events::Batch& batch) {
  std::int64_t queries = 0;
  for (const events::Event& event : batch) {
    if (event.keys.empty() || queries == kMostQueries) continue;
    auto whole = sequences_.up_to(event.kind == events::EventKind::kStored ? event.keys.back()
                                                                           : event.keys.front());
    if (!whole || asked_ + std::ssize(whole->tokens) > kMostAsked) continue;
    asked_ += std::ssize(whole->tokens);
    ++queries;
    add(Op::of(events::Query{
        .tokens = std::move(whole->tokens), .lora = whole->lora, .salt = whole->salt}));
  }
}

Verdict StreamLog::judged(const Subject& follower) const {
  return run_recorded(log_, follower, setup_of(log_.header, std::nullopt));
}

std::string StreamLog::text() const {
  return fmt::format("{}\n", fmt::join(traces::lines_of(log_), "\n"));
}

}  // namespace kvo::tools
