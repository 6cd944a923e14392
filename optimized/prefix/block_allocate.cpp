// Blocks on their way: handed out, adopted, registered, released.
#include <algorithm>

#include "optimized/memory/growth.hpp"
#include "optimized/prefix/block_cache.hpp"

namespace kvo::optimized {

using prefix::Allotment;
using prefix::Allotted;
using prefix::EventKind;
using prefix::Key;
using prefix::Numbers;
using prefix::NumbersView;
using prefix::Quirk;
using prefix::TokensView;

namespace {

Error refused(const char* why) {
  return fail(Code::kPrecondition, why);
}
Error released_too_often() {
  return refused("blocks: one is released more often than its count");
}
// Without words: making it must not fail, for blocks may have been let go.
Error none_left() {
  return fail(Code::kExhausted);
}

}  // namespace

void PrefixBlockCache::tell_removed(Id content) noexcept {
  if (!options_.events) return;
  if (index_.first(content) != kNone && !quirks_.has(Quirk::kRemovedWhileHeld)) return;
  events_.begin(EventKind::kRemoved);
  events_.add_key(index_[content].name);
}

void PrefixBlockCache::set_key(Block block, Id content) noexcept {
  ContentIndex::Content& held = index_[content];
  carried_[block] = content;
  neighbours_[block] = {.earlier = held.last, .later = kNone};
  (held.last == kNone ? index_.first(content) : neighbours_[held.last].later) = block;
  held.last = block;
  ++held.users;
}

void PrefixBlockCache::drop_key(Block block) noexcept {
  const Id content = std::exchange(carried_[block], kNone);
  const auto [earlier, later] = neighbours_[block];
  (earlier == kNone ? index_.first(content) : neighbours_[earlier].later) = later;
  (later == kNone ? index_[content].last : neighbours_[later].earlier) = earlier;
  tell_removed(content);
  index_.leave(content);
}

void PrefixBlockCache::put_back(Block block, Block& front) noexcept {
  if (!queue_.unpin(block)) return;
  if (options_.enable_caching && carried_[block] != kNone) {
    queue_.put_last(block);
    return;
  }
  queue_.put_behind(block, front);
  front = block;
}

// Adds the front of the queue to a list that has room.
void PrefixBlockCache::hand_out(Numbers& to) noexcept {
  const Block block = queue_.front();
  const Block next = queue_.behind(block);
  queue_.prefetch(next);
  if (carried_[block] != kNone) {
    drop_key(block);
    evicted_.push_back(block);
  }
  queue_.pin(block);
  to.push_back(block);
}

bool PrefixBlockCache::front_is_wrong(std::int64_t count) const {
  if (queue_.wrong() == 0) return false;
  Block block = queue_.front();
  for (; count > 0 && block != 0; --count, block = queue_.behind(block))
    if (queue_.users(block) != 0) return true;
  return false;
}

Status PrefixBlockCache::check_hits(const Request& request, const Allotment& what) const {
  const NumbersView hits = what.hit_blocks;
  if (what.hit_tokens != std::ssize(hits) * options_.block_size)
    return refused("hit_tokens: not those of hit_blocks");
  if (!hits.empty() && (!options_.enable_caching || request.tracked))
    return refused("hit_blocks: not without caching, and not when running");
  if ((!hits.empty() || what.external > 0) && !request.tracked && !request.table.empty())
    return refused("hit_blocks, external: the request has blocks");
  if (quirks_.has(Quirk::kStaleHitsAdopted)) return {};
  for (std::size_t i = 0; i < hits.size(); ++i)
    if (hits[i] != 0 && (i >= request.keys.size() ||
                         carried_[static_cast<std::size_t>(hits[i])] != request.keys[i]))
      return refused("hit_blocks: one does not carry the request's key");
  return {};
}

// PX-26
std::int64_t PrefixBlockCache::needed(const Request& request, const Allotment& what,
                                      std::int64_t wanted, std::int64_t computed) const {
  const auto held = std::ssize(request.table);
  if (request.tracked) return std::max(wanted - held, std::int64_t{0});
  const std::int64_t skipped = rules_.skipped_blocks(computed);
  std::int64_t free_hits = 0;
  for (std::int64_t i = skipped; i < std::ssize(what.hit_blocks); ++i) {
    const auto block = static_cast<Block>(what.hit_blocks[static_cast<std::size_t>(i)]);
    if (block != 0 && queue_.users(block) == 0) ++free_hits;
  }
  const std::int64_t there = std::max(skipped, std::ssize(what.hit_blocks) + held);
  return std::max(wanted - there, std::int64_t{0}) + free_hits;
}

PrefixBlockCache::Plan PrefixBlockCache::plan(const Request& request, const Allotment& what) const {
  const std::int64_t most = options_.max_model_len;
  Plan made;
  made.computed = request.computed + what.hit_tokens + what.external;
  made.within = std::min(made.computed, most);
  made.wanted = rules_.covering(std::min(made.within + what.tokens + what.lookahead, most));
  made.adopts = !request.tracked && (!what.hit_blocks.empty() || what.external > 0);
  made.adopted = std::ssize(request.table);
  if (made.adopts) {
    made.skipped = rules_.skipped_blocks(made.computed);
    made.adopted = std::max(made.skipped, std::ssize(what.hit_blocks));
  }
  made.loaded = made.adopted;
  if (made.adopts && what.external > 0 && made.computed > rules_.skipped(made.computed))
    made.loaded = std::max(made.adopted, rules_.covering(made.computed));
  made.length = std::max(made.loaded, made.wanted);
  if (!what.delay_caching)
    made.keyed =
        std::min(rules_.whole(std::min(made.within + what.tokens, std::ssize(request.tokens))),
                 std::ssize(request.keys));
  made.asked = needed(request, what, made.wanted, made.computed);
  return made;
}

bool PrefixBlockCache::fits_whole(const Request& request, const Allotment& what, const Plan& plan,
                                  std::int64_t spared) const {
  const std::int64_t whole = std::min(std::ssize(request.tokens), options_.max_model_len);
  const std::int64_t blocks = rules_.admitted(rules_.covering(whole));
  return needed(request, what, blocks, plan.within) + spared <= queue_.free();
}

// Only what the pool may be able to give decides on memory.
void PrefixBlockCache::make_room_for(Request& request, const Plan& plan) {
  const std::int64_t fresh = plan.length - plan.adopted;
  const std::int64_t held = std::ssize(request.table);
  evicted_.clear();
  if (plan.skipped > prefix::kMostUnits) return;
  const bool hopeless = fresh > queue_.free() + held;
  make_room(request.table,
            static_cast<std::size_t>((hopeless ? plan.adopted : plan.length) - held));
  if (hopeless) return;
  make_room(evicted_, static_cast<std::size_t>(fresh));
  if (plan.keyed <= plan.length)
    reserve_events(request, plan.keyed, static_cast<std::size_t>(fresh));
}

// Whether what is planned cannot be done, behind adoption.
std::optional<Code> PrefixBlockCache::refusal(const Request& request, const Plan& plan) const {
  if (plan.skipped > prefix::kMostUnits) return Code::kPrecondition;
  const std::int64_t loaded = plan.loaded - plan.adopted;
  if (loaded > queue_.free()) return Code::kExhausted;
  if (front_is_wrong(loaded)) return Code::kPrecondition;
  const std::int64_t fresh = plan.length - plan.adopted;
  if (fresh > queue_.free()) return Code::kExhausted;
  if (front_is_wrong(fresh)) return Code::kPrecondition;
  if (plan.keyed > request.registered && plan.keyed > plan.length) return Code::kPrecondition;
  return std::nullopt;
}

Result<Allotted> PrefixBlockCache::allocate(std::int64_t number, const Allotment& what) {
  Request* const request = find(number);
  if (request == nullptr) return refused("request: it was never made");
  if (what.tokens == 0 && what.hit_tokens == 0 && what.external == 0)
    return refused("tokens: there are none");
  if (const Status good = check_hits(*request, what); !good) return good.error();
  const Plan planned = plan(*request, what);
  const bool enters = request->status != prefix::RequestStatus::kRunning && what.others_scheduled;
  const std::int64_t spared = enters ? rules_.watermark() : 0;
  if (what.full_sequence && !fits_whole(*request, what, planned, spared)) return none_left();
  make_room_for(*request, planned);
  const std::int64_t behind = std::max(planned.within - request->in_flight, std::int64_t{0});
  if (const Status good = check_letting_go(*request, behind); !good) return good.error();
  // Where the pool may turn out to be unable to do what was planned, which no sound caller sees.
  std::optional<std::pair<FreeQueue, Numbers>> saved;
  if (queue_.wrong() > 0 || releases_below_zero(*request, behind) ||
      planned.length - planned.adopted > planned.asked || planned.keyed > planned.length ||
      planned.skipped > prefix::kMostUnits)
    saved.emplace(queue_, request->table);
  const std::int64_t asked = let_go(*request, behind)
                                 ? needed(*request, what, planned.wanted, planned.computed)
                                 : planned.asked;
  if (asked + spared > queue_.free() - what.reserved) return none_left();
  if (planned.skipped <= prefix::kMostUnits) adopt(*request, what.hit_blocks, planned.skipped);
  if (const auto code = saved ? refusal(*request, planned) : std::nullopt) {
    queue_ = std::move(saved->first);
    request->table.swap(saved->second);
    return fail(*code, "the pool cannot do what is asked");
  }
  return carry_out(*request, planned);
}

Allotted PrefixBlockCache::carry_out(Request& request, const Plan& planned) noexcept {
  if (planned.adopts) {
    request.tracked = true;
    request.registered = std::ssize(request.table);
  }
  while (std::ssize(request.table) < planned.loaded) hand_out(request.table);
  const auto held = request.table.size();
  while (std::ssize(request.table) < planned.length) hand_out(request.table);
  register_blocks(request, planned.keyed);
  return {NumbersView(request.table).subspan(held), evicted_};
}

void PrefixBlockCache::adopt(Request& request, NumbersView hits, std::int64_t skipped) noexcept {
  if (skipped > 0) request.table.insert(request.table.end(), static_cast<std::size_t>(skipped), 0);
  if (skipped >= std::ssize(hits)) return;
  const NumbersView adopted = hits.subspan(static_cast<std::size_t>(skipped));
  queue_.pin_all(adopted);
  request.table.insert(request.table.end(), adopted.begin(), adopted.end());
}

// For so many blocks that lose a key, and those that get one.
void PrefixBlockCache::reserve_events(const Request& request, std::int64_t upto, std::size_t lost) {
  if (!options_.events) return;
  const auto got = static_cast<std::size_t>(std::max(upto - request.registered, std::int64_t{0}));
  events_.reserve(lost + got + 1, lost + got, got * static_cast<std::size_t>(options_.block_size));
}

// PX-30, PX-31
void PrefixBlockCache::register_blocks(Request& request, std::int64_t upto) noexcept {
  if (!options_.enable_caching || upto <= request.registered) return;
  request.tracked = true;
  const bool all = rules_.keeps_all();
  const auto size = static_cast<std::size_t>(options_.block_size);
  const auto key = [&](std::int64_t i) -> const Key& {
    return index_[request.keys[static_cast<std::size_t>(i)]].name;
  };
  const auto parent = [&](std::int64_t i) {
    return i == 0 ? std::nullopt : std::optional<Key>(key(i - 1));
  };
  const bool spans = options_.events && quirks_.has(Quirk::kStoredSpan);
  bool running = false;
  if (spans) events_.begin(EventKind::kStored, parent(request.registered));
  for (std::int64_t i = request.registered; i < upto; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto block = static_cast<Block>(request.table[at]);
    const bool keyed = block != 0 && carried_[block] == kNone &&
                       (all || rules_.keeps_key(i, request.prompt, request.boundary));
    if (keyed) set_key(block, request.keys[at]);
    if (options_.events && keyed) {
      if (!spans && !running) events_.begin(EventKind::kStored, parent(i));
      events_.add_key(key(i));
    }
    running = keyed;
    if (spans || (options_.events && keyed))
      events_.add_tokens({request.tokens.data() + at * size, size});
  }
  request.registered = upto;
}

Status PrefixBlockCache::cache(std::int64_t number, std::int64_t tokens) {
  Request* const request = find(number);
  if (request == nullptr) return refused("request: it was never made");
  const std::int64_t upto = std::min(rules_.whole(tokens), std::ssize(request->keys));
  if (upto > request->registered && upto > std::ssize(request->table))
    return refused("tokens: more than blocks are for");
  reserve_events(*request, upto, 0);
  register_blocks(*request, upto);
  return {};
}

// PX-51
bool PrefixBlockCache::let_go(Request& request, std::int64_t tokens) noexcept {
  Block front = 0;
  bool any = false;
  for (std::int64_t i = std::min(rules_.skipped_blocks(tokens), std::ssize(request.table)) - 1;
       i >= 0; --i) {
    std::int64_t& block = request.table[static_cast<std::size_t>(i)];
    if (block == 0) break;
    put_back(static_cast<Block>(std::exchange(block, 0)), front);
    any = true;
  }
  return any;
}

// Tables hold a user of each block, until somebody releases one by hand.
bool PrefixBlockCache::goes_below_zero(NumbersView blocks) noexcept {
  if (!released_by_hand_) return false;
  // Counted down and up again: no list says how often a block was met.
  std::size_t met = 0;
  while (met < blocks.size() && queue_.count_down(static_cast<Block>(blocks[met]))) ++met;
  for (const std::int64_t block : blocks.first(met)) queue_.count_up(static_cast<Block>(block));
  return met < blocks.size();
}

bool PrefixBlockCache::releases_below_zero(const Request& request, std::int64_t tokens) noexcept {
  const std::int64_t end = std::min(rules_.skipped_blocks(tokens), std::ssize(request.table));
  if (end <= 0 || !released_by_hand_) return false;
  std::int64_t first = end;
  while (first > 0 && request.table[static_cast<std::size_t>(first - 1)] != 0) --first;
  return goes_below_zero(
      NumbersView(request.table)
          .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first)));
}

Status PrefixBlockCache::check_release(NumbersView blocks) {
  if (!quirks_.has(Quirk::kCountsBelowZero) && goes_below_zero(blocks)) return released_too_often();
  return {};
}

Status PrefixBlockCache::check_letting_go(const Request& request, std::int64_t tokens) {
  if (!quirks_.has(Quirk::kCountsBelowZero) && releases_below_zero(request, tokens))
    return released_too_often();
  return {};
}

Status PrefixBlockCache::skip(std::int64_t number, std::int64_t computed) {
  Request* const request = find(number);
  if (request == nullptr) return refused("request: it was never made");
  if (Status good = check_letting_go(*request, computed); !good) return good;
  let_go(*request, computed);
  return {};
}

Status PrefixBlockCache::free(std::int64_t number) {
  Request* const request = find(number);
  if (request == nullptr) return {};
  if (Status good = check_release(request->table); !good) return good;
  queue_.release_from_the_end(request->table, [&](Block block) {
    return options_.enable_caching && carried_[block] != kNone;
  });
  request->table.clear();
  request->tracked = false;
  request->registered = 0;
  return {};
}

Result<NumbersView> PrefixBlockCache::pop(std::int64_t number) {
  Request* const request = find(number);
  if (request == nullptr) return NumbersView();
  std::swap(shown_, request->table);
  request->table.clear();
  request->tracked = false;
  request->registered = 0;
  const auto first = std::ranges::find_if(shown_, [](std::int64_t block) { return block != 0; });
  return NumbersView(shown_).subspan(static_cast<std::size_t>(first - shown_.begin()));
}

Result<Allotted> PrefixBlockCache::take(std::int64_t count) {
  if (count > queue_.free()) return none_left();
  if (front_is_wrong(count)) return refused("a free block has a count other than 0");
  const auto room = static_cast<std::size_t>(count);
  shown_.clear();
  evicted_.clear();
  make_room(shown_, room);
  make_room(evicted_, room);
  if (options_.events) events_.reserve(room, room, 0);
  for (; count > 0; --count) hand_out(shown_);
  return Allotted{shown_, evicted_};
}

Status PrefixBlockCache::touch(NumbersView blocks) {
  for (const std::int64_t block : blocks) queue_.pin(static_cast<Block>(block));
  return {};
}

Status PrefixBlockCache::release(NumbersView blocks) {
  released_by_hand_ = true;
  if (Status good = check_release(blocks); !good) return good;
  Block front = 0;
  for (const std::int64_t block : blocks) put_back(static_cast<Block>(block), front);
  return {};
}

Result<NumbersView> PrefixBlockCache::evict(NumbersView blocks) {
  const bool any = quirks_.has(Quirk::kEvictTakesAnyNumber);
  const std::int64_t count = options_.num_blocks;
  for (const std::int64_t block : blocks)
    if (block >= count || block < (any ? -count : 0))
      return fail(any ? Code::kPrecondition : Code::kOutOfRange, "blocks: there is no such block");
  evicted_.clear();
  make_room(evicted_, blocks.size());
  if (options_.events) events_.reserve(blocks.size(), blocks.size(), 0);
  for (const std::int64_t number : blocks) {
    const std::int64_t block = number < 0 ? number + count : number;
    if (carried_[static_cast<std::size_t>(block)] == kNone) continue;
    drop_key(static_cast<Block>(block));
    evicted_.push_back(block);
  }
  return NumbersView(evicted_);
}

Result<bool> PrefixBlockCache::reset() {
  if (queue_.free() < options_.num_blocks - 1) return false;
  if (options_.events) events_.reserve(1, 0, 0);
  for (Id& carried : carried_) {
    if (carried == kNone) continue;
    index_.first(carried) = index_[carried].last = kNone;
    index_.leave(std::exchange(carried, kNone));
  }
  if (options_.events) events_.begin(EventKind::kCleared);
  statistics_.reset = true;
  return true;
}

std::optional<std::int64_t> PrefixBlockCache::lookup(const Key& key) const {
  const Id content = index_.find(key);
  if (content == kNone || index_.first(content) == kNone) return std::nullopt;
  return index_.first(content);
}

}  // namespace kvo::optimized
