#include "reference/events/llmd.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "reference/contract/values/mark.hpp"

namespace kvo::events {
namespace {

std::string tier_name(const std::optional<std::string>& medium) {
  std::string name = medium.value_or("gpu");
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

double weight_of(const std::string& tier) {
  constexpr double kHost = 0.8;
  return tier == "cpu" ? kHost : 1.0;
}

}  // namespace

LlmdFollower::LlmdFollower(const Config& config, QuirkSet<Quirk> quirks)
    : config_(config), quirks_(quirks) {}

Engine LlmdFollower::pod_of(const Engine& engine) const {
  return {engine.worker, config_.identity == Identity::kEndpoint ? engine.rank : 0};
}

Status LlmdFollower::apply(const Engine& engine, const Event& event) {
  if (config_.adapter == Dialect::kSglang && config_.wire == Wire::kMap) return {};
  const Entry entry{pod_of(engine), tier_name(event.medium), event.group};
  if (event.kind == EventKind::kCleared) {
    take_out(entry.pod, true);
    return {};
  }
  const bool known_kind = groups_.takes(entry.pod, event);
  const bool has_kind = !event.group || groups_.is_known(entry.pod, *event.group);
  if (!known_kind || !has_kind) return {};
  if (event.kind == EventKind::kStored)
    stored(event, entry);
  else
    removed(event, entry);
  return {};
}

void LlmdFollower::stored(const Event& event, const Entry& entry) {
  PrefixId prefix = kStart;
  if (event.parent) {
    const auto parent = keys_.find(*event.parent);
    if (parent == keys_.end() || parent->second.empty()) return;
    prefix = parent->second.back();
  }
  const auto size = static_cast<std::size_t>(config_.block_size);
  if (event.group &&
      event.tokens.size() != event.keys.size() * static_cast<std::size_t>(
                                                     event.block_size.value_or(config_.block_size)))
    return;
  for (const Key key : event.keys) ++counts_[{entry, key}];
  if (event.tokens.empty()) {
    for (const Key key : event.keys)
      if (const auto known = keys_.find(key); known != keys_.end())
        for (const PrefixId block : known->second) add(block, entry);
    return;
  }
  // The adapter's name is in the place of the model's, before the first block (EV-72).
  Space space;
  if (!event.parent) space.lora = event.lora.value_or("");
  std::vector<PrefixId> blocks;
  for (std::size_t at = 0; at + size <= event.tokens.size(); at += size) {
    Space own = blocks.empty() ? space : Space();
    if (config_.extra_keys) {
      if (event.lora) own.salt = "extra " + *event.lora;
      if (!event.parent && blocks.empty() && event.salt) own.salt += "salt " + *event.salt;
    }
    prefix =
        contents_.prefix(prefix, contents_.content(std::span(event.tokens).subspan(at, size), own));
    blocks.push_back(prefix);
  }
  if (blocks.empty()) return;
  std::map<Key, std::vector<PrefixId>> mapped;
  const std::size_t longer = std::max(blocks.size(), event.keys.size());
  for (std::size_t i = 0; i < longer && !event.keys.empty(); ++i) {
    auto& of_key = mapped[event.keys[i * event.keys.size() / longer]];
    const PrefixId block = blocks[i * blocks.size() / longer];
    if (std::ranges::find(of_key, block) == of_key.end()) of_key.push_back(block);
  }
  for (auto& [key, of_key] : mapped) keys_[key] = std::move(of_key);
  for (const PrefixId block : blocks) add(block, entry);
}

void LlmdFollower::add(PrefixId block, const Entry& entry) {
  Block* known = touch(block);
  if (known == nullptr) {
    if (std::ssize(blocks_) >= config_.size) {
      KVO_MARK_IN(Profile::kOriginal, "events.llmd", "a block too many");
      blocks_.erase(ages_.front());
      ages_.pop_front();
    }
    ages_.push_back(block);
    known = &blocks_[block];
    known->age = std::prev(ages_.end());
  }
  std::erase(known->entries, entry);
  known->entries.push_back(entry);
  if (std::ssize(known->entries) > config_.pods_per_key) {
    KVO_MARK_IN(Profile::kOriginal, "events.llmd", "an entry too many");
    known->entries.erase(known->entries.begin());
  }
}

void LlmdFollower::removed(const Event& event, const Entry& entry) {
  for (const Key key : event.keys) {
    if (const auto count = counts_.find({entry, key}); count != counts_.end()) {
      if (--count->second > 0) continue;
      counts_.erase(count);
    }
    const auto known = keys_.find(key);
    if (known == keys_.end()) continue;
    for (const PrefixId id : known->second) {
      Block* const block = touch(id);
      if (block == nullptr) continue;
      std::erase(block->entries, entry);
      if (!block->entries.empty()) continue;
      ages_.erase(block->age);
      blocks_.erase(id);
    }
  }
}

// Takes a pod out of all blocks. The map of keys stays (EV-74).
void LlmdFollower::take_out(const Engine& pod, bool counts) {
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    auto& [id, block] = *at;
    std::erase_if(block.entries, [&](const Entry& entry) { return entry.pod == pod; });
    if (!block.entries.empty()) {
      ++at;
      continue;
    }
    ages_.erase(block.age);
    at = blocks_.erase(at);
  }
  if (counts)
    std::erase_if(counts_, [&](const auto& count) { return count.first.first.pod == pod; });
}

// A worker without a rank is its first endpoint (EV-71).
bool LlmdFollower::is_named(const Engine& pod, std::int64_t worker,
                            std::optional<std::int64_t> rank) const {
  return pod == pod_of({worker, rank.value_or(0)});
}

void LlmdFollower::leave(std::int64_t worker, std::optional<std::int64_t> rank) {
  std::set<Engine> pods;
  for (const auto& [id, block] : blocks_)
    for (const Entry& entry : block.entries) pods.insert(entry.pod);
  for (const auto& [count, number] : counts_) pods.insert(count.first.pod);
  for (const Engine& pod : pods)
    if (is_named(pod, worker, rank)) take_out(pod, !quirks_.has(Quirk::kLeaveKeepsCounts));
}

void LlmdFollower::resubscribe(std::int64_t worker, std::optional<std::int64_t> rank) {
  leave(worker, rank);
  std::erase_if(counts_,
                [&](const auto& count) { return is_named(count.first.first.pod, worker, rank); });
  groups_.forget(worker, rank);
}

// Any access makes a block the most recently used one.
LlmdFollower::Block* LlmdFollower::touch(PrefixId block) {
  const auto known = blocks_.find(block);
  if (known == blocks_.end()) return nullptr;
  ages_.splice(ages_.end(), ages_, known->second.age);
  return &known->second;
}

Matches LlmdFollower::query(const Prompt& prompt) {
  const auto size = static_cast<std::size_t>(config_.block_size);
  struct Score {
    std::int64_t blocks = 0;
    double weight = 0;
  };
  std::map<Engine, Score> scores;
  PrefixId prefix = kStart;
  std::int64_t depth = 0;
  for (std::size_t at = 0; at + size <= prompt.tokens.size(); at += size, ++depth) {
    const Space space{depth == 0 ? prompt.lora : "", ""};
    prefix = contents_.prefix(prefix,
                              contents_.content(std::span(prompt.tokens).subspan(at, size), space));
    const Block* const block = touch(prefix);
    if (block == nullptr) continue;
    std::map<Engine, double> here;
    for (const Entry& entry : block->entries)
      here[entry.pod] = std::max(here[entry.pod], weight_of(entry.tier));
    for (const auto& [pod, weight] : here) {
      Score& score = scores[pod];
      if (score.blocks != depth) continue;
      ++score.blocks;
      score.weight += weight;
    }
  }
  Matches matches;
  for (const auto& [pod, score] : scores) {
    if (score.blocks == 0) continue;
    Match match{.worker = pod.worker, .blocks = score.blocks};
    if (config_.identity == Identity::kEndpoint) match.rank = pod.rank;
    if (score.weight != static_cast<double>(score.blocks)) match.score = score.weight;
    matches.push_back(match);
  }
  return matches;
}

}  // namespace kvo::events
