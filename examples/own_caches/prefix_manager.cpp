// A block manager as engines have it: a table of keys, a plain list of free blocks, and the least
// recently used block goes first. Full attention, without draft heads.
#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "examples/own_caches/own_caches.hpp"
#include "reference/prefix/blocks.hpp"

namespace kvo::prefix {
namespace {

enum Fault {
  kNone,
  kHitIsNotPinned,
  kEvictedKeyStays,
  kAdapterIsNoPartOfTheKey,
  kPartialBlockIsHeld,
  kThirdBlockLeaks,
  kSharedBlockFreedForAll,
  kWholePromptIsHit,
  kLookupSkipsAGap,
  kResetWhileInUse,
  kAppendedTokensShareAKey,
};

struct Block {
  std::int64_t users = 0;
  std::optional<std::int64_t> key;
  std::list<std::int64_t>::iterator place;  // in the list of free blocks, if it is free
};

struct Request {
  Tokens tokens;
  std::string space;  // adapter and salt
  std::string salt;
  bool skips = false;
  std::vector<Key> keys;
  std::int64_t computed = 0;
  std::int64_t preemptions = 0;
  bool runs = false;
  Ids table;
  std::optional<std::int64_t> registered;
};

class Manager final : public BlockCache {
 public:
  Manager(const BlocksOptions& options, int fault)
      : options_(options), fault_(fault), blocks_(static_cast<std::size_t>(options.num_blocks)) {
    for (std::int64_t block = options.num_blocks - 1; block > 0; --block)
      at(block).place = free_.insert(free_.end(), block);
  }

  Result<std::span<const Key>> request(const MakeRequest& op) override {
    Request& request = requests_[op.request];
    request = {.tokens = op.tokens,
               .space = {},
               .salt = op.salt.value_or(""),
               .skips = op.skip_reading.value_or(false),
               .keys = {},
               .table = std::move(request.table),
               .registered = request.registered};
    if (op.lora && fault_ != kAdapterIsNoPartOfTheKey)
      request.space = *op.lora + '\0' + op.lora_path.value_or("") + "\1";
    add_keys(request, 0);
    return std::span<const Key>(request.keys);
  }
  Result<std::span<const Key>> append(std::int64_t number, TokensView tokens) override {
    Request* request = find(number);
    if (request == nullptr) return fail(Code::kOutOfRange, "request");
    const std::size_t before = request->keys.size();
    const auto added = std::ssize(request->tokens);
    request->tokens.insert(request->tokens.end(), tokens.begin(), tokens.end());
    add_keys(*request, added);
    return std::span<const Key>(request->keys).subspan(before);
  }
  Status set(const SetRequest& op) override {
    Request* request = find(op.request);
    if (request == nullptr) return fail(Code::kOutOfRange, "request");
    request->computed = op.computed.value_or(request->computed);
    request->preemptions = op.preemptions.value_or(request->preemptions);
    if (op.status) request->runs = *op.status == RequestStatus::kRunning;
    return {};
  }
  Result<BlocksHit> match(std::int64_t number, std::optional<std::int64_t> max_length) override {
    Request* request = find(number);
    if (request == nullptr) return fail(Code::kOutOfRange, "request");
    answer_.clear();
    if (!options_.enable_caching || request->skips) return BlocksHit{};
    const std::int64_t all = std::ssize(request->tokens) - (fault_ == kWholePromptIsHit ? 0 : 1);
    const std::int64_t most = max_length.value_or(all) / options_.block_size;
    for (std::int64_t i = 0; i < std::min(most, std::ssize(request->keys)); ++i) {
      const auto block = lookup(request->keys[static_cast<std::size_t>(i)]);
      if (!block && fault_ == kLookupSkipsAGap && i > 0) continue;
      if (!block) break;
      answer_.push_back(*block);
    }
    return BlocksHit{answer_, std::ssize(answer_) * options_.block_size};
  }
  Result<Allotted> allocate(const Allocate& op) override {
    Request* request = find(op.request);
    if (request == nullptr) return fail(Code::kOutOfRange, "request");
    const IdsView hits = hits_of(op);
    const std::int64_t loaded = op.external.value_or(0);
    const std::int64_t hit_tokens = op.hit_tokens.value_or(0);
    if (op.tokens == 0 && hit_tokens == 0 && loaded == 0) return fail(Code::kBadShape, "tokens");
    if (Status may = may_adopt(*request, hits, hit_tokens, loaded); !may) return may.error();
    const std::int64_t most = options_.max_model_len;
    const std::int64_t computed = request->computed + hit_tokens + loaded;
    const std::int64_t slots =
        std::min(std::min(computed, most) + op.tokens + op.lookahead.value_or(0), most);
    const std::int64_t whole = std::min<std::int64_t>(std::ssize(request->tokens), most);
    if (op.full_sequence.value_or(false) && !fits(*request, op, ceil(whole), 0))
      return fail(Code::kExhausted);
    if (!fits(*request, op, ceil(slots), op.reserved.value_or(0))) return fail(Code::kExhausted);
    answer_.clear();
    evicted_.clear();
    if (!request->registered && (!hits.empty() || loaded > 0)) {
      for (const std::int64_t block : hits)
        if (block != 0 && fault_ != kHitIsNotPinned) pin(block);
      request->table.assign(hits.begin(), hits.end());
      request->registered = std::ssize(hits);
      if (loaded > 0) {
        Ids unseen;
        hand_out(ceil(computed) - std::ssize(request->table), unseen);
        request->table.insert(request->table.end(), unseen.begin(), unseen.end());
      }
    }
    hand_out(ceil(slots) - std::ssize(request->table), answer_);
    request->table.insert(request->table.end(), answer_.begin(), answer_.end());
    if (!op.delay_caching.value_or(false))
      if (Status done = hold(*request, std::min(computed, most) + op.tokens); !done)
        return done.error();
    return Allotted{answer_, evicted_};
  }
  Status cache(std::int64_t number, std::int64_t tokens) override {
    Request* request = find(number);
    return request != nullptr ? hold(*request, tokens) : fail(Code::kOutOfRange, "request");
  }
  Status skip(std::int64_t number, std::int64_t /*computed*/) override {
    return find(number) != nullptr ? Status() : fail(Code::kOutOfRange, "request");
  }
  Status free(std::int64_t number) override {
    Request* request = find(number);
    if (request == nullptr) return {};
    Ids table = std::exchange(request->table, {});
    request->registered.reset();
    if (fault_ == kThirdBlockLeaks && table.size() > 3) table.erase(table.begin() + 2);
    std::ranges::reverse(table);
    return release(table);
  }
  Result<IdsView> pop(std::int64_t number) override {
    Request* request = find(number);
    answer_.clear();
    if (request == nullptr) return IdsView();
    answer_ = std::exchange(request->table, {});
    request->registered.reset();
    answer_.erase(answer_.begin(), std::ranges::find_if(answer_, [](auto b) { return b != 0; }));
    return IdsView(answer_);
  }
  Result<Allotted> take(std::int64_t count) override {
    if (count > free_blocks()) return fail(Code::kExhausted);
    answer_.clear();
    evicted_.clear();
    hand_out(count, answer_);
    return Allotted{answer_, evicted_};
  }
  Status touch(IdsView blocks) override {
    for (const std::int64_t block : blocks)
      if (block != 0) pin(block);
    return {};
  }
  Status release(IdsView blocks) override {
    std::map<std::int64_t, std::int64_t> times;
    for (const std::int64_t block : blocks)
      if (block != 0 && ++times[block] > at(block).users) return fail(Code::kBadPosition, "users");
    for (const std::int64_t block : blocks) {
      if (block == 0) continue;
      if (fault_ == kSharedBlockFreedForAll && at(block).users == 2) at(block).users = 1;
      if (--at(block).users > 0) continue;
      // Without a key it is of no use: it goes first.
      const bool last = at(block).key && options_.enable_caching;
      at(block).place = free_.insert(last ? free_.end() : free_.begin(), block);
    }
    return {};
  }
  Result<IdsView> evict(IdsView blocks) override {
    for (const std::int64_t block : blocks)
      if (block < 0 || block >= options_.num_blocks) return fail(Code::kPrecondition, "blocks");
    evicted_.clear();
    for (const std::int64_t block : blocks) drop_key(block);
    return IdsView(evicted_);
  }
  Result<bool> reset() override {
    if (free_blocks() < options_.num_blocks - 1 &&
        (fault_ != kResetWhileInUse || free_blocks() < options_.num_blocks - 3))
      return false;
    for (Block& block : blocks_) block.key.reset();
    held_.clear();
    tell({.kind = EventKind::kCleared});
    sums_.reset = true;
    return true;
  }
  [[nodiscard]] std::optional<std::int64_t> lookup(const Key& key) const override {
    const auto found = held_.find(static_cast<std::int64_t>(key.low));
    if (found == held_.end() || found->second.empty()) return std::nullopt;
    return found->second.back();
  }
  [[nodiscard]] IdsView table(std::int64_t number) const override {
    const auto found = requests_.find(number);
    return found != requests_.end() ? IdsView(found->second.table) : IdsView();
  }
  [[nodiscard]] std::int64_t cached_tokens(std::int64_t number) const override {
    std::int64_t depth = 0;
    for (const std::int64_t block : table(number))
      if (const auto key = at(block).key) depth = std::max(depth, depths_.at(*key));
    return depth * options_.block_size;
  }
  [[nodiscard]] std::int64_t free_blocks() const override { return std::ssize(free_); }
  Status record(std::int64_t number, std::int64_t hits) override {
    Request* request = find(number);
    if (request == nullptr) return fail(Code::kOutOfRange, "request");
    if (!options_.enable_caching || request->skips) return {};
    const bool again = request->preemptions > 0;
    (again ? sums_.preempted_requests : sums_.requests) += 1;
    (again ? sums_.preempted_queries : sums_.queries) += std::ssize(request->tokens);
    (again ? sums_.preempted_hits : sums_.hits) += hits;
    return {};
  }
  BlocksStatistics stats() override { return std::exchange(sums_, {}); }
  std::span<const Event> events() override {
    taken_ = std::exchange(events_, {});
    return taken_;
  }
  [[nodiscard]] BlocksState state() const override {
    BlocksState state{.queue = {free_.begin(), free_.end()}, .refs = {}, .keys = {}, .cached = {}};
    for (const Block& block : blocks_) {
      state.refs.push_back(block.users);
      state.keys.push_back(block.key ? std::optional(key_of(*block.key)) : std::nullopt);
    }
    for (const auto& [key, blocks] : held_)
      if (!blocks.empty()) state.cached.push_back({key_of(key), blocks});
    return state;
  }

 private:
  using Content = std::tuple<std::int64_t, Tokens, std::string>;

  static Key key_of(std::int64_t number) { return {0, static_cast<std::uint64_t>(number)}; }
  [[nodiscard]] Block& at(std::int64_t block) { return blocks_[static_cast<std::size_t>(block)]; }
  [[nodiscard]] const Block& at(std::int64_t block) const {
    return blocks_[static_cast<std::size_t>(block)];
  }
  [[nodiscard]] std::int64_t ceil(std::int64_t tokens) const {
    return (tokens + options_.block_size - 1) / options_.block_size;
  }
  [[nodiscard]] Request* find(std::int64_t number) {
    const auto found = requests_.find(number);
    return found != requests_.end() ? &found->second : nullptr;
  }
  void tell(Event event) {
    if (options_.events) events_.push_back(std::move(event));
  }
  void add_keys(Request& request, std::int64_t appended_from) {
    const std::int64_t size = options_.block_size;
    while (options_.enable_caching &&
           (std::ssize(request.keys) + 1) * size <= std::ssize(request.tokens)) {
      const std::int64_t block = std::ssize(request.keys);
      const std::int64_t parent =
          block > 0 ? static_cast<std::int64_t>(request.keys.back().low) : std::int64_t{-1};
      Tokens tokens(request.tokens.begin() + block * size,
                    request.tokens.begin() + (block + 1) * size);
      if (fault_ == kAppendedTokensShareAKey && appended_from > block * size) tokens.back() = 0;
      const auto number = std::ssize(numbers_);
      const std::string space = request.space + (block == 0 ? request.salt : "");
      const auto key =
          numbers_.try_emplace(Content(parent, std::move(tokens), space), number).first->second;
      depths_[key] = block + 1;
      request.keys.push_back(key_of(key));
    }
  }
  [[nodiscard]] Status may_adopt(const Request& request, IdsView hits, std::int64_t hit_tokens,
                                 std::int64_t loaded) const {
    const auto refused = [](const char* what) { return fail(Code::kBadPosition, what); };
    if (hit_tokens != std::ssize(hits) * options_.block_size) return refused("hit_tokens");
    if (!hits.empty() && (!options_.enable_caching || request.registered)) return refused("hits");
    if ((!hits.empty() || loaded > 0) && !request.registered && !request.table.empty())
      return refused("table");
    for (std::size_t i = 0; i < hits.size(); ++i) {
      if (hits[i] == 0) continue;
      const auto key = at(hits[i]).key;
      if (!key || i >= request.keys.size() || request.keys[i] != key_of(*key))
        return refused("stale hits");
    }
    return {};
  }
  [[nodiscard]] bool fits(const Request& request, const Allocate& op, std::int64_t blocks,
                          std::int64_t reserved) const {
    std::int64_t need = blocks - std::ssize(request.table);
    if (!request.registered) {
      need -= std::ssize(hits_of(op));
      need = std::max<std::int64_t>(need, 0);
      for (const std::int64_t block : hits_of(op))
        if (block != 0 && at(block).users == 0) ++need;
    }
    const bool enters = !request.runs && op.others_scheduled.value_or(true);
    const auto spared = static_cast<std::int64_t>(
        enters ? std::floor(options_.watermark * static_cast<double>(options_.num_blocks)) : 0);
    return std::max<std::int64_t>(need, 0) + spared <= free_blocks() - reserved;
  }
  void pin(std::int64_t block) {
    if (at(block).users++ == 0) free_.erase(at(block).place);
  }
  void hand_out(std::int64_t count, Ids& blocks) {
    for (; count > 0; --count) {
      const std::int64_t block = free_.front();
      free_.pop_front();
      if (fault_ != kEvictedKeyStays || at(block).users != 0 || count > 1) drop_key(block);
      at(block).users = 1;
      blocks.push_back(block);
    }
  }
  void drop_key(std::int64_t block) {
    const auto key = std::exchange(at(block).key, std::nullopt);
    if (!key) return;
    evicted_.push_back(block);
    Ids& others = held_[*key];
    std::erase(others, block);
    if (others.empty()) tell({.kind = EventKind::kRemoved, .keys = {key_of(*key)}});
  }
  // Keys for the blocks of the first tokens.
  [[nodiscard]] Status hold(Request& request, std::int64_t tokens) {
    const std::int64_t begin = request.registered.value_or(0);
    const std::int64_t known = std::min(tokens, std::ssize(request.tokens));
    const std::int64_t whole =
        fault_ == kPartialBlockIsHeld ? ceil(known) : known / options_.block_size;
    const std::int64_t end = std::min(whole, std::ssize(request.keys));
    if (end <= begin) return {};
    if (end > std::ssize(request.table)) return fail(Code::kBadPosition, "slots");
    request.registered = end;
    std::int64_t first = -1;
    const auto stored = [&](std::int64_t last) {
      if (first < 0) return;
      Event event{.kind = EventKind::kStored};
      event.keys.assign(request.keys.begin() + first, request.keys.begin() + last);
      if (first > 0) event.parent = request.keys[static_cast<std::size_t>(first) - 1];
      event.tokens.assign(request.tokens.begin() + first * options_.block_size,
                          request.tokens.begin() + last * options_.block_size);
      tell(std::move(event));
      first = -1;
    };
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t block = request.table[static_cast<std::size_t>(i)];
      if (block == 0 || at(block).key) {
        stored(i);
        continue;
      }
      if (first < 0) first = i;
      at(block).key = static_cast<std::int64_t>(request.keys[static_cast<std::size_t>(i)].low);
      held_[*at(block).key].push_back(block);
    }
    stored(end);
    return {};
  }

  BlocksOptions options_;
  int fault_;
  std::vector<Block> blocks_;
  std::list<std::int64_t> free_;  // the next to be handed out comes first
  std::map<std::int64_t, Request> requests_;
  std::map<Content, std::int64_t> numbers_;  // of keys
  std::map<std::int64_t, std::int64_t> depths_;
  std::map<std::int64_t, Ids> held_;  // by key
  BlocksStatistics sums_;
  std::vector<Event> events_;
  std::vector<Event> taken_;
  Ids answer_;
  Ids evicted_;
};

Subject make_own(std::string variant, int fault) {
  Subject made = make_blocks_subject(
      std::move(variant), "least recently used blocks",
      [fault](const BlocksOptions& options,
              QuirkSet<Quirk> /*quirks*/) -> Result<std::unique_ptr<BlockCache>> {
        if (options.attention != Attention::kFull || options.eagle || options.hash_lookahead != 0)
          return fail(Code::kNotSupported, "attention, eagle, hash_lookahead");
        return std::make_unique<Manager>(options, fault);
      });
  made.survives_failed_allocation = false;
  made.refuses = [](const Setup& setup) {
    const auto config = setup.config_as<BlocksConfig>();
    return config.attention != Attention::kFull || config.eagle || config.hash_lookahead != 0;
  };
  return made;
}

}  // namespace
}  // namespace kvo::prefix

namespace own {

Cache prefix_manager() {
  return {{"hit_is_not_pinned", "evicted_key_stays", "adapter_is_no_part_of_the_key",
           "partial_block_is_held", "third_block_leaks", "shared_block_freed_for_all",
           "whole_prompt_is_hit", "lookup_skips_a_gap", "reset_while_in_use",
           "appended_tokens_share_a_key"},
          kvo::prefix::make_own};
}

}  // namespace own
