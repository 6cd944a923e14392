#include "reference/events/llmd.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

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
    : config_(config), blocks_(config.size), keys_(config.size), quirks_(quirks) {}

Engine LlmdFollower::pod_of(const Engine& engine) const {
  return {engine.worker, config_.identity == Identity::kEndpoint ? engine.rank : 0};
}

Status LlmdFollower::apply(const Engine& engine, const Event& announced) {
  Event event = announced;
  if (config_.adapter == Dialect::kSglang) {
    if (config_.wire == Wire::kMap) return {};
    event.group.reset();  // its events have none (EV-76)
    event.spec.reset();
  }
  const Entry entry{pod_of(engine), tier_name(event.medium), event.group};
  if (event.kind == EventKind::kCleared) {
    take_out(entry.pod, true);
    return {};
  }
  if (!takes(entry.pod, event)) return {};
  if (event.kind == EventKind::kStored)
    stored(event, entry);
  else
    removed(event, entry);
  return {};
}

Delivered LlmdFollower::deliver(const Engine& engine, std::int64_t seq, const Batch& batch,
                                const Replay& replay) {
  if (!llmd_asks(config_)) return Follower::deliver(engine, seq, batch, replay);
  const auto [known, is_first] = streams_.try_emplace(engine);
  Stream& stream = known->second;
  Delivered done;
  const auto take = [&](std::int64_t number, const Batch& events) {
    for (const Event& event : events) static_cast<void>(apply(engine, event).has_value());
    stream.last = number;
  };
  const auto restart = [&](bool asks) {
    take_out(pod_of(engine), true);
    stream.last.reset();
    stream.asks = asks;
  };
  // Whether all batches from a number on were replayed, if there are any.
  const auto ask = [&](std::int64_t from) {
    const Replayed answer = replay(from);
    if (config_.replay) {
      done.asked = from;
      done.replayed.emplace();
    }
    if (!config_.replay || (answer.batches.empty() ? from > 0 : answer.first > from)) {
      KVO_MARK_IN(Profile::kOriginal, "events.llmd", "a replay fails");
      restart(false);
      return false;
    }
    for (const Batch* const one : answer.batches) {
      done.replayed->push_back(from);
      take(from++, *one);
    }
    return true;
  };
  if (is_first && !config_.replay) restart(false);
  if (std::exchange(stream.joins_late, false)) static_cast<void>(ask(0));
  const bool is_new_life = stream.live && seq < *stream.live;
  if (is_new_life) {
    restart(true);
    static_cast<void>(ask(0));
  }
  if (stream.live == seq) return done;
  stream.live = seq;
  const std::int64_t next = stream.last ? *stream.last + 1 : 0;
  if (seq > next && !(stream.asks && !is_new_life && ask(next))) return done;
  if (stream.last && seq != *stream.last + 1) return done;
  take(seq, batch);
  done.applied = true;
  return done;
}

// Whether the group of an event is a main one; events without a group always count (EV-76).
bool LlmdFollower::takes(const Engine& pod, const Event& event) {
  if (!event.group) return true;
  const bool is_of_main = groups_.takes(pod, event);
  return is_of_main && groups_.is_known(pod, *event.group);
}

void LlmdFollower::stored(const Event& event, const Entry& entry) {
  const auto size = static_cast<std::size_t>(config_.block_size);
  if (event.group && !event.tokens.empty() &&
      event.tokens.size() != event.keys.size() * static_cast<std::size_t>(
                                                     event.block_size.value_or(config_.block_size)))
    return;
  PrefixId prefix = kStart;
  if (event.parent) {
    const auto* const parent = keys_.touch(*event.parent);
    if (parent == nullptr) return;
    prefix = parent->back();
  }
  if (event.tokens.empty()) return stored_without_tokens(event, entry);
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
  name(event, blocks);
  for (const PrefixId block : blocks) add(block, entry);
  count(event, entry);
}

// The tier is added to the last block of each key (EV-72).
void LlmdFollower::stored_without_tokens(const Event& event, const Entry& entry) {
  std::vector<PrefixId> blocks;
  for (const Key key : event.keys) {
    const auto* const known = keys_.touch(key);
    if (known != nullptr && std::ranges::find(blocks, known->back()) == blocks.end())
      blocks.push_back(known->back());
  }
  if (blocks.empty()) return;
  for (const PrefixId block : blocks) add(block, entry);
  count(event, entry);
}

// Each key stands for its part of the blocks, in the ratio of the lengths (EV-8).
void LlmdFollower::name(const Event& event, const std::vector<PrefixId>& blocks) {
  std::vector<Key> order;
  std::map<Key, std::vector<PrefixId>> mapped;
  const std::size_t longer = std::max(blocks.size(), event.keys.size());
  for (std::size_t i = 0; i < longer && !event.keys.empty(); ++i) {
    const Key key = event.keys[i * event.keys.size() / longer];
    if (!mapped.contains(key)) order.push_back(key);
    mapped[key].push_back(blocks[i * blocks.size() / longer]);
  }
  for (const Key key : order) *keys_.make(key).first = std::move(mapped[key]);
}

void LlmdFollower::count(const Event& event, const Entry& entry) {
  for (const Key key : event.keys) ++counts_[{entry, key}];
}

void LlmdFollower::add(PrefixId block, const Entry& entry) {
  const auto [entries, is_over] = blocks_.make(block);
  if (is_over) {
    KVO_MARK_IN(Profile::kOriginal, "events.llmd", "a block too many");
  }
  std::erase(*entries, entry);
  entries->push_back(entry);
  if (std::ssize(*entries) > config_.pods_per_key) {
    KVO_MARK_IN(Profile::kOriginal, "events.llmd", "an entry too many");
    entries->erase(entries->begin());
  }
}

void LlmdFollower::removed(const Event& event, const Entry& entry) {
  for (const Key key : event.keys) {
    if (const auto count = counts_.find({entry, key}); count != counts_.end()) {
      if (--count->second > 0) continue;
      counts_.erase(count);
    }
    const auto* const known = keys_.touch(key);
    if (known == nullptr) continue;
    for (const PrefixId block : *known)
      take_out(block, [&](const Entry& one) { return one == entry; });
    // The key is forgotten when no pod has its blocks (EV-72).
    const bool is_held = std::ranges::any_of(
        *known, [&](PrefixId block) { return blocks_.touch(block) != nullptr; });
    if (!is_held) keys_.erase(key);
  }
}

// Takes entries out of a block. A block without entries goes.
template <class Of>
void LlmdFollower::take_out(PrefixId block, const Of& of) {
  Entries* const entries = blocks_.touch(block);
  if (entries == nullptr) return;
  std::erase_if(*entries, of);
  if (entries->empty()) blocks_.erase(block);
}

// Takes a pod out of all blocks, which are used thereby. The map of keys stays (EV-74).
void LlmdFollower::take_out(const Engine& pod, bool counts) {
  const auto is_of_pod = [&](const Entry& entry) { return entry.pod == pod; };
  for (const PrefixId block : blocks_.keys())
    if (std::ranges::any_of(blocks_.at(block), is_of_pod)) take_out(block, is_of_pod);
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
  for (const PrefixId block : blocks_.keys())
    for (const Entry& entry : blocks_.at(block)) pods.insert(entry.pod);
  for (const auto& [count, number] : counts_) pods.insert(count.first.pod);
  for (const Engine& pod : pods)
    if (is_named(pod, worker, rank)) take_out(pod, !quirks_.has(Quirk::kLeaveKeepsCounts));
  for (auto& [engine, stream] : streams_)
    if (is_named(pod_of(engine), worker, rank)) stream = {.joins_late = true};
}

void LlmdFollower::resubscribe(std::int64_t worker, std::optional<std::int64_t> rank) {
  leave(worker, rank);
  std::erase_if(counts_,
                [&](const auto& count) { return is_named(count.first.first.pod, worker, rank); });
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
    const Entries* const entries = blocks_.touch(prefix);
    if (entries == nullptr) continue;
    std::map<Engine, double> here;
    for (const Entry& entry : *entries)
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
