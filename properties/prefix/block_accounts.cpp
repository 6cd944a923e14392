#include "properties/prefix/block_accounts.hpp"

#include <algorithm>

namespace kvo::prefix {
namespace {

using Words = BlockAccounts::Words;

std::string block_text(std::int64_t block) {
  return "block " + std::to_string(block);
}

}  // namespace

std::int64_t BlockAccounts::users(std::int64_t block) const {
  const auto known = blocks_.find(block);
  return known != blocks_.end() ? known->second.users : 0;
}

void BlockAccounts::pin(std::int64_t block) {
  if (block == 0) return;
  if (blocks_[block].users++ == 0) ++pinned_;
}

void BlockAccounts::unpin(std::int64_t block) {
  if (block == 0) return;
  if (block == kUnseen)
    --unseen_;
  else if (--blocks_[block].users == 0)
    --pinned_;
}

void BlockAccounts::found(std::int64_t block) {
  --unseen_;
  rows(block).clear();
  pin(block);
}

Words BlockAccounts::hand_out(const Ids& blocks, std::int64_t unseen, const Ids& evicted) {
  const std::set<std::int64_t> shown(blocks.begin(), blocks.end());
  const std::set<std::int64_t> told(evicted.begin(), evicted.end());
  if (shown.size() != blocks.size()) return "a block is handed out twice at once";
  if (told.size() != evicted.size()) return "a block is evicted twice at once";
  std::set<std::int64_t> all = told;
  all.insert(shown.begin(), shown.end());
  if (std::ssize(all) > std::ssize(blocks) + unseen)
    return "a block is evicted that was not handed out";
  if (std::ssize(blocks) + unseen > most_free()) return "more blocks are handed out than are free";
  for (const std::int64_t block : all) {
    if (block < 1 || block >= count_) return "there is no " + block_text(block) + " to hand out";
    if (users(block) != 0) return block_text(block) + " is handed out, and somebody uses it";
    if (auto words = take_key(block, told.contains(block))) return words;
    rows(block).clear();
  }
  for (const std::int64_t block : blocks) pin(block);
  unseen_ += unseen;
  return std::nullopt;
}

void BlockAccounts::forget_key(Block& block, std::int64_t number) {
  if (!block.key) return;
  if (block.doubtful) --doubtful_;
  const auto carrying = carriers_.find(*block.key);
  carrying->second.erase(number);
  if (carrying->second.empty()) {
    carriers_.erase(carrying);
    if (watch_) watch_(*block.key, false);
  }
  block.key.reset();
  block.doubtful = false;
}

bool BlockAccounts::set_key(std::int64_t block, std::int64_t key, bool doubtful) {
  if (block == 0) return true;
  if (block == kUnseen) {
    unseen_keys_.insert(key);
    return true;
  }
  Block& there = blocks_[block];
  if (there.key) return !there.doubtful || *there.key == key;
  there.key = key;
  there.doubtful = doubtful;
  if (doubtful) ++doubtful_;
  std::set<std::int64_t>& carriers = carriers_[key];
  if (carriers.empty() && watch_) watch_(key, true);
  carriers.insert(block);
  return true;
}

Words BlockAccounts::take_key(std::int64_t block, bool told) {
  Block& there = blocks_[block];
  if (there.key && !there.doubtful && !told) return block_text(block) + " loses its key unsaid";
  if (!there.key && told && unseen_keys_.empty()) return block_text(block) + " had no key to lose";
  forget_key(there, block);
  return std::nullopt;
}

void BlockAccounts::take_all_keys() {
  for (auto& [number, block] : blocks_) {
    block.key.reset();
    block.doubtful = false;
  }
  if (watch_)
    for (const auto& [key, carriers] : carriers_) watch_(key, false);
  carriers_.clear();
  unseen_keys_.clear();
  doubtful_ = 0;
}

bool BlockAccounts::may_carry(std::int64_t block, std::int64_t key) {
  Block& there = blocks_[block];
  if (there.key) {
    if (*there.key != key) return false;
    if (there.doubtful) --doubtful_;
    there.doubtful = false;
    return true;
  }
  if (!unseen_keys_.contains(key)) return false;
  there.rows.clear();
  return set_key(block, key, false);
}

std::optional<std::int64_t> BlockAccounts::key(std::int64_t block) const {
  const auto known = blocks_.find(block);
  if (known == blocks_.end() || known->second.doubtful) return std::nullopt;
  return known->second.key;
}

bool BlockAccounts::carried(std::int64_t key) const {
  const auto carrying = carriers_.find(key);
  return carrying != carriers_.end() &&
         std::ranges::any_of(carrying->second,
                             [&](std::int64_t block) { return this->key(block).has_value(); });
}

bool BlockAccounts::perhaps_carried(std::int64_t key) const {
  return carriers_.contains(key) || unseen_keys_.contains(key);
}

std::unordered_map<std::int64_t, std::int64_t> BlockAccounts::carriers() const {
  std::unordered_map<std::int64_t, std::int64_t> counts;
  for (const auto& [key, blocks] : carriers_) counts[key] = std::ssize(blocks);
  return counts;
}

Words BlockAccounts::compare_key(std::int64_t block, const Nullable<std::int64_t>& shown) {
  if (shown.has_value()) {
    if (may_carry(block, *shown)) return std::nullopt;
    return block_text(block) + " carries key " + std::to_string(*shown) + " that it was not given";
  }
  if (key(block)) return block_text(block) + " has lost its key unsaid";
  if (const auto known = blocks_.find(block); known != blocks_.end())
    forget_key(known->second, block);
  return std::nullopt;
}

Words BlockAccounts::compare(const ShowBlocks::Returns& shown) {
  std::int64_t unseen = 0;
  for (std::int64_t block = 1; block < count_; ++block) {
    const auto at = static_cast<std::size_t>(block);
    const std::int64_t more = shown.refs[at] - users(block);
    if (more < 0 || more > unseen_)
      return block_text(block) + " has " + std::to_string(shown.refs[at]) + " users, not " +
             std::to_string(users(block));
    unseen += more;
    if (auto words = compare_key(block, shown.keys[at])) return words;
  }
  if (unseen != unseen_)
    return std::to_string(unseen_) + " blocks were handed out unseen, " + std::to_string(unseen) +
           " are in use";
  unseen_keys_.clear();
  return std::nullopt;
}

Words wrong_pool(const ShowBlocks::Returns& shown, std::int64_t count) {
  if (std::ssize(shown.refs) != count || std::ssize(shown.keys) != count)
    return "not all blocks are shown";
  if (shown.refs[0] != 0 || shown.keys[0].has_value()) return "the null block is not null";
  std::vector<bool> queued(static_cast<std::size_t>(count));
  for (const std::int64_t block : shown.queue) {
    if (block < 1 || block >= count) return block_text(block) + " is queued";
    if (queued[static_cast<std::size_t>(block)]) return block_text(block) + " is queued twice";
    queued[static_cast<std::size_t>(block)] = true;
  }
  if (std::ssize(shown.queue) != shown.free)
    return std::to_string(shown.free) + " blocks are free, " + std::to_string(shown.queue.size()) +
           " are queued";
  std::int64_t keys = 0;
  for (std::int64_t block = 1; block < count; ++block) {
    const auto at = static_cast<std::size_t>(block);
    if (queued[at] != (shown.refs[at] <= 0))
      return block_text(block) + (queued[at] ? " is free and in use" : " is neither free nor used");
    if (shown.keys[at].has_value()) ++keys;
  }
  for (const ShownHolders& holders : shown.cached) {
    keys -= std::ssize(holders.blocks);
    for (const std::int64_t block : holders.blocks)
      if (block < 1 || block >= count ||
          shown.keys[static_cast<std::size_t>(block)] != Nullable<std::int64_t>(holders.key))
        return block_text(block) + " is found under a key that it does not carry";
  }
  if (keys != 0) return "blocks with a key and the index are not the same";
  return std::nullopt;
}

}  // namespace kvo::prefix
