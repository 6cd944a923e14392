// Slots of requests: what they need, adopt and get (GR-30 to GR-37, GR-40 to GR-44).
#include <algorithm>
#include <cmath>

#include "reference/groups/blocks_cache.hpp"

namespace kvo::groups {

using prefix::ceil_of;
using prefix::floor_of;
using prefix::misuse;

IdsView Manager::hits_of(const Allocate& asked, std::int64_t g) const {
  return asked.hit_blocks ? IdsView((*asked.hit_blocks)[static_cast<std::size_t>(g)]) : IdsView();
}

bool Manager::has_hits(const Allocate& asked) {
  return asked.hit_blocks &&
         std::ranges::any_of(*asked.hit_blocks, [](const Ids& blocks) { return !blocks.empty(); });
}

// Whether it is running (GR-34).
bool Manager::is_counted(std::int64_t row) const {
  for (std::int64_t g = 0; g < groups(); ++g)
    if (held(row, g).counted) return true;
  return false;
}

// GR-30
Result<Allotment> Manager::allocate(const Allocate& asked) {
  const std::int64_t row = requests_.find(asked.request);
  if (row < 0) return prefix::no_request(asked.request);
  const std::int64_t most = options_.max_model_len;
  const std::int64_t hit = asked.hit_tokens.value_or(0);
  Call call{.asked = asked, .external = asked.external.value_or(0)};
  if (asked.tokens == 0 && hit == 0 && call.external == 0) return misuse("tokens: 0, and no hits");
  call.local = requests_.progress(row).computed + hit;
  call.total = call.local + call.external;
  const std::int64_t within = std::min(call.total, most);
  call.main = within + asked.tokens;
  call.slots = std::min(call.main + asked.lookahead.value_or(0), most);
  if (parts_.skips_idle && is_idle(row, call))
    return Allotment{.blocks = Tables(options_.groups.size())};
  if (const Status may = may_adopt(row, call); !may) return may.error();
  call.adopts = !is_counted(row) && (call.external > 0 || has_hits(asked));

  if (asked.full_sequence.value_or(false)) {
    Call whole = call;
    whole.total = within;
    whole.main = whole.slots = std::min(std::ssize(requests_.text(row).tokens), most);
    whole.admission = true;
    if (!enough(row, whole, 0)) return fail(Code::kExhausted);
  }
  prefix::Transaction undertaking(*this);
  const std::int64_t settled =
      std::max<std::int64_t>(within - requests_.progress(row).in_flight, 0);
  Status done = release_unneeded(row, settled, requests_.text(row).prompt);
  if (!done) return done.error();
  for (std::int64_t g = 0; g < groups(); ++g)
    if (is_aligned_state(group(g)))
      if (const auto made = checkpoint_of(row, g, call); made || held(row, g).checkpoint)
        holding(row, g).checkpoint = made;
  if (!enough(row, call, asked.reserved.value_or(0))) {
    undertaking.commit();
    return fail(Code::kExhausted);
  }
  Allotment allotment{.blocks = Tables(options_.groups.size())};
  Ids& evicted = allotment.evicted;
  done = adopt(row, call);
  if (done) done = load(row, call, evicted);
  for (std::int64_t g = 0; done && g < groups(); ++g)
    done = add_blocks(row, g, call, allotment.blocks[static_cast<std::size_t>(g)], evicted);
  if (!done) return done.error();
  note_ends(row, call);
  if (!asked.delay_caching.value_or(false)) done = register_tokens(row, call.main, evicted);
  if (!done) return done.error();
  undertaking.commit();
  return allotment;
}

// Lengths of which there are states: the ends of chunks, what was loaded, and after each token of a
// step that has no more tokens than there are places for their states.
void Manager::note_ends(std::int64_t row, const Call& call) {
  if (quirks_.has(Quirk::kStateOfAnotherLength)) return;
  if (call.external > 0) note_end(row, call.total);
  std::int64_t places = 0;
  for (std::int64_t g = 0; g < groups(); ++g) {
    if (!is_aligned_state(group(g))) continue;
    if (const auto made = held(row, g).checkpoint) note_end(row, made->position);
    places = 1 + group(g).speculative;
  }
  const bool decodes = call.total >= requests_.text(row).prompt && call.asked.tokens <= places;
  for (std::int64_t end = decodes ? call.total + 1 : call.main; end <= call.main; ++end)
    note_end(row, end);
}

// Once, and only where a block of states ends: registering asks for these (GR-21).
void Manager::note_end(std::int64_t row, std::int64_t tokens) {
  const auto ends = [&](const Group& one) {
    return is_aligned_state(one) && tokens % one.block_size == 0;
  };
  if (std::ranges::any_of(options_.groups, ends) &&
      std::ranges::find(ends_[row], tokens) == ends_[row].end())
    ends_.push(row, tokens);
}

// What GR-34 refuses, and lists that do not fit the request.
Status Manager::may_adopt(std::int64_t row, const Call& call) const {
  const Allocate& asked = call.asked;
  if (asked.hit_blocks && asked.hit_blocks->size() != options_.groups.size())
    return misuse("hit_blocks: not one list a group");
  const std::int64_t last = std::max(call.main, call.total);
  const bool adopts = has_hits(asked);
  bool has_blocks = false;
  for (std::int64_t g = 0; g < groups(); ++g) {
    const IdsView hits = hits_of(asked, g);
    has_blocks = has_blocks || (group(g).kind != GroupKind::kRing && !table(row, g).empty());
    if (std::ssize(hits) > ceil_of(asked.hit_tokens.value_or(0), group(g).block_size))
      return misuse("hit_blocks: more than hit_tokens");
    if (floor_of(skipped(group(g), last), group(g).block_size) > kMostUnits)
      return misuse("tokens: too many blocks");
  }
  if (adopts && !options_.enable_caching) return misuse("hit_blocks: no caching");
  if (adopts && is_counted(row)) return misuse("hit_blocks: the request is running");
  if ((adopts || call.external > 0) && !is_counted(row) && has_blocks)
    return misuse("hit_blocks, external: the request has blocks");
  return quirks_.has(Quirk::kStaleHitsAdopted) ? Status() : carries_keys(row, call);
}

// Whether each hit block carries a key of its place, the last of a list one inside it, too.
Status Manager::carries_keys(std::int64_t row, const Call& call) const {
  const Text& text = requests_.text(row);
  for (std::int64_t g = 0; g < groups(); ++g) {
    const IdsView hits = hits_of(call.asked, g);
    const std::int64_t known = std::min(std::ssize(hits), std::ssize(text.keys) / units(g));
    const IdsView with_keys = hits.first(static_cast<std::size_t>(known));
    for (std::int64_t i = pool_.carriers(with_keys, entries(text, g, known)); i < std::ssize(hits);
         ++i) {
      const std::int64_t block = hits[static_cast<std::size_t>(i)];
      const bool last = i == std::ssize(hits) - 1;
      bool carries = block == 0;
      const std::int64_t whole = (i + 1) * units(g) - 1;
      for (std::int64_t unit = whole; !carries && unit >= (last ? i * units(g) : whole); --unit) {
        if (unit < std::ssize(text.keys)) carries = pool_.carries(block, entry(text, unit, g));
      }
      if (!carries)
        return misuse("hit_blocks: block " + std::to_string(block) + " does not carry the key");
    }
  }
  return {};
}

// ---- Need (GR-33, GR-41) ----

bool Manager::enough(std::int64_t row, const Call& call, std::int64_t reserved) const {
  std::int64_t all = 0;
  for (std::int64_t g = 0; g < groups(); ++g) all += need(row, g, call);
  const bool enters = requests_.progress(row).status != RequestStatus::kRunning &&
                      call.asked.others_scheduled.value_or(true);
  const auto left_free = static_cast<std::int64_t>(
      enters ? std::floor(options_.watermark * static_cast<double>(options_.num_blocks)) : 0);
  return all + left_free <= pool_.free() - reserved;
}

// Hits from that one on that are free: adopting takes them out of the queue.
std::int64_t Manager::free_hits(IdsView hits, std::int64_t from) const {
  return pool_.unused(
      hits.subspan(static_cast<std::size_t>(std::clamp<std::int64_t>(from, 0, std::ssize(hits)))));
}

std::int64_t Manager::need(std::int64_t row, std::int64_t g, const Call& call) const {
  const Group& one = group(g);
  const Holding& own = held(row, g);
  const IdsView hits = hits_of(call.asked, g);
  const std::int64_t length = std::ssize(table(row, g));
  if (one.kind == GroupKind::kRing) return length == 0 ? 1 : 0;
  if (is_state(one) && !hits.empty()) {  // GR-47
    const auto key = pool_.key(hits.back());
    if (key && registered_.contains(*key)) return options_.num_blocks + 1;
  }
  if (is_aligned_state(one)) return need_of_states(row, g, call);
  std::int64_t blocks = ceil_of(call.slots, one.block_size) + one.speculative;
  if (call.admission)
    blocks =
        std::min(blocks, layout_.shown.caps[static_cast<std::size_t>(g)].value.value_or(blocks));
  if (own.counted) return std::max<std::int64_t>(blocks - length, 0);
  const std::int64_t before = floor_of(skipped(one, call.total), one.block_size);
  const std::int64_t copy = !hits.empty() && call.local % one.block_size != 0 ? 1 : 0;
  return std::max<std::int64_t>(blocks - std::max(before, std::ssize(hits) + length), 0) +
         free_hits(hits, before - length) + copy;
}

// GR-41
std::int64_t Manager::need_of_states(std::int64_t row, std::int64_t g, const Call& call) const {
  const Group& one = group(g);
  const Holding& own = held(row, g);
  const IdsView hits = hits_of(call.asked, g);
  const bool shared = own.tail || (!hits.empty() && call.local % one.block_size != 0);
  const std::int64_t extra = (shared ? 1 : 0) + (checkpoint_of(row, g, call) ? 1 : 0);
  std::int64_t blocks = ceil_of(call.main, one.block_size) + one.speculative - std::ssize(hits) -
                        std::ssize(table(row, g));
  if (shared) blocks = std::max<std::int64_t>(blocks, 0) + 1;
  if (blocks > 0) blocks = std::min(blocks, 1 + extra + (own.placed ? 0 : one.speculative));
  const bool loads = call.external > 0 && call.asked.tokens > 0;
  if (loads && !quirks_.has(Quirk::kLoadedStateUncounted)) ++blocks;
  blocks += free_hits(hits, 0);
  return quirks_.has(Quirk::kNegativeNeed) ? blocks : std::max<std::int64_t>(blocks, 0);
}

// GR-44
std::optional<Manager::Checkpoint> Manager::checkpoint_of(std::int64_t row, std::int64_t g,
                                                          const Call& call) const {
  const Group& one = group(g);
  const auto made = checkpoint_in(
      row, one, call.total, call.main,
      position_of(call.main, layout_.alignment, options_.eagle, options_.hash_lookahead),
      one.block_size);
  if (!made) return std::nullopt;
  const std::int64_t length = std::ssize(table(row, g));
  const bool spare = held(row, g).placed && made->index >= length - one.speculative;
  const bool empty =
      made->index >= length || table(row, g)[static_cast<std::size_t>(made->index)] == 0 || spare;
  return empty ? made : std::nullopt;
}

// Of a chunk [start, end), as far as the table does not matter.
std::optional<Manager::Checkpoint> Manager::checkpoint_in(std::int64_t row, const Group& states,
                                                          std::int64_t start, std::int64_t end,
                                                          std::int64_t position,
                                                          std::int64_t block) const {
  const Text& text = requests_.text(row);
  const std::int64_t unit = options_.hash_block;
  if (states.checkpoints <= 0 || states.checkpoint_alignment <= 0) return std::nullopt;
  const std::int64_t least =
      options_.retention == 0 ? std::max(text.prompt, std::ssize(text.tokens) - 1) : 0;
  const std::int64_t index = ceil_of(end, block) - 2;
  if (end < least || start % unit != 0 || start + unit > position || position >= end)
    return std::nullopt;
  if ((position - start) % states.checkpoint_alignment != 0) return std::nullopt;
  if (index <= floor_of(start - 1, block)) return std::nullopt;
  return Checkpoint{.position = position, .index = index};
}

// GR-48
Result<std::int64_t> Manager::split(const Split& op) const {
  const std::int64_t row = requests_.find(op.request);
  if (row < 0) return prefix::no_request(op.request);
  const Text& text = requests_.text(row);
  const std::int64_t unit = options_.hash_block;
  std::int64_t block = options_.split_block.value_or(layout_.scheduler_block);
  for (const Group& one : options_.groups)
    if (is_state(one) && !quirks_.has(Quirk::kStateOfAnotherLength) && block % one.block_size != 0)
      block = one.block_size;
  const auto position = [&](std::int64_t tokens, std::int64_t of) {
    return position_of(tokens, of, options_.eagle, options_.hash_lookahead);
  };
  const std::int64_t start =
      requests_.progress(row).computed + op.hit_tokens.value_or(0) + op.external.value_or(0);
  std::int64_t end = start + op.tokens;
  const std::int64_t known = std::max(text.prompt, std::ssize(text.tokens) - 1);
  if (start >= known) return op.tokens;
  const auto states = std::ranges::find_if(options_.groups, is_state);
  const bool internal =
      end >= known && states != options_.groups.end() &&
      std::ranges::all_of(options_.groups,
                          [](const Group& one) { return !is_state(one) || one.checkpoints > 0; }) &&
      checkpoint_in(row, *states, start, end,
                    position(known, layout_.partial ? unit : layout_.scheduler_block), block);
  const std::int64_t last = internal ? 0 : position(std::ssize(text.tokens), block);
  if (end < known) {
    const std::int64_t whole = floor_of(end, block) * block;
    if (whole > start || block <= options_.max_scheduled) end = whole;
  }
  Ids stops;
  if (start % block != 0 && !internal) stops.push_back(ceil_of(start, block) * block);
  stops.push_back(last);
  const std::int64_t tail = position(text.prompt, unit);
  if (layout_.partial && !internal && last < tail && tail < text.prompt) stops.push_back(tail);
  if (const auto boundary = requests_.progress(row).boundary;
      boundary && start < *boundary && *boundary < end)
    stops.push_back(layout_.shown.junction && *boundary <= text.prompt
                        ? *boundary
                        : start + floor_of(*boundary - start, block) * block);
  for (const std::int64_t stop : stops)
    if (start < stop && stop < end) end = stop;
  return std::max<std::int64_t>(end - start, 0);
}

// ---- Releasing (GR-31, GR-32, GR-40) ----

Status Manager::release_unneeded(std::int64_t row, std::int64_t tokens,
                                 std::optional<std::int64_t> prompt) {
  for (std::int64_t g = 0; g < groups(); ++g) {
    Status done = is_aligned_state(group(g)) ? retire_states(row, g, tokens)
                                             : release_of(row, g, tokens, prompt);
    if (!done) return done;
  }
  return {};
}

Status Manager::release_of(std::int64_t row, std::int64_t g, std::int64_t tokens,
                           std::optional<std::int64_t> prompt) {
  const Group& one = group(g);
  std::int64_t first = 0;
  std::int64_t end = floor_of(skipped(one, tokens), one.block_size);
  if (one.kind == GroupKind::kRswa) {
    if (!prompt) return {};
    first = ceil_of(*prompt, one.block_size);
    end = floor_of(std::max(*prompt, tokens - one.window), one.block_size);
  }
  if (end <= first) return {};
  Ids released;
  for (std::int64_t i = std::min(end, std::ssize(table(row, g))) - 1; i >= first; --i) {
    const std::int64_t block = leave_entry(row, g, i);
    if (block == 0) break;
    released.push_back(block);
  }
  return pool_.release(released);
}

std::int64_t Manager::leave_entry(std::int64_t row, std::int64_t g, std::int64_t i) {
  const std::int64_t block = table(row, g)[static_cast<std::size_t>(i)];
  if (block != 0) tables_.set(at(row, g), i, 0);
  return block;
}

Status Manager::retire_states(std::int64_t row, std::int64_t g, std::int64_t tokens) {
  const std::int64_t size = group(g).block_size;
  const Holding& own = held(row, g);
  if (skipped(group(g), tokens) > 0) {
    const std::int64_t end =
        std::min(floor_of(skipped(group(g), tokens), size), std::ssize(table(row, g)));
    Ids released;
    for (std::int64_t i = end - 1; i >= own.retired; --i)
      if (const std::int64_t block = leave_entry(row, g, i); block != 0) released.push_back(block);
    if (Status done = pool_.release(released); !done) return done;
    if (own.retired != end) holding(row, g).retired = end;
  }
  if (!own.last || *own.last < 0 || *own.last >= ceil_of(tokens, size) - 1 ||
      *own.last >= std::ssize(table(row, g)))
    return {};
  const std::int64_t block = leave_entry(row, g, *own.last);
  return pool_.release({&block, 1});
}

// ---- Adopting (GR-34, GR-35) ----

Status Manager::adopt(std::int64_t row, const Call& call) {
  if (!call.adopts) return {};
  for (std::int64_t g = 0; g < groups(); ++g) {
    if (group(g).kind == GroupKind::kRing) continue;
    const std::int64_t size = group(g).block_size;
    const IdsView hits = hits_of(call.asked, g);
    Holding& own = holding(row, g);
    const std::int64_t before =
        std::max<std::int64_t>(floor_of(skipped(group(g), call.total), size), 0);
    tables_.fill(at(row, g), before, 0);
    if (before < std::ssize(hits)) {
      const IdsView adopted = hits.subspan(static_cast<std::size_t>(before));
      pool_.pin(adopted);
      tables_.append(at(row, g), adopted);
    }
    own.counted = std::ssize(table(row, g));
    if (std::ssize(hits) <= before || call.local % size == 0) continue;
    own.tail = own.counted = floor_of(call.local, size);
    if (*own.tail >= std::ssize(table(row, g))) return misuse("hit_blocks: fewer than hit_tokens");
  }
  return {};
}

// Blocks for tokens that are loaded from elsewhere.
Status Manager::load(std::int64_t row, const Call& call, Ids& evicted) {
  if (call.external <= 0 || !call.adopts) return {};
  const auto& loaded = call.asked.loaded_groups;
  for (std::int64_t g = 0; g < groups(); ++g) {
    const Group& one = group(g);
    const std::int64_t needed = call.total - std::max<std::int64_t>(skipped(one, call.total), 0);
    if (std::min(needed, call.external) <= 0) continue;
    const bool is_loaded = loaded && std::ranges::find(*loaded, g) != loaded->end();
    const std::int64_t length =
        one.kind == GroupKind::kRing ? 1 : ceil_of(call.total, one.block_size);
    Ids blocks;
    if (Status done = extend(row, g, length, blocks, evicted, !is_loaded); !done) return done;
  }
  return {};
}

// Errors  kPrecondition: the pool ends, or its front is in use.
Status Manager::hand_out(std::int64_t count, Ids& blocks, Ids& evicted) {
  if (count > pool_.free()) return misuse("the pool has fewer blocks");
  return pool_.hand_out(count, blocks, evicted);
}

// The table gets so many blocks, if it has fewer; they join `blocks`.
Status Manager::extend(std::int64_t row, std::int64_t g, std::int64_t length, Ids& blocks,
                       Ids& evicted, bool is_fresh) {
  const std::int64_t missing = length - std::ssize(table(row, g));
  if (missing <= 0) return {};
  Ids handed_out;
  if (Status done = hand_out(missing, handed_out, evicted); !done) return done;
  tables_.append(at(row, g), handed_out);
  blocks.insert(blocks.end(), handed_out.begin(), handed_out.end());
  if (is_fresh && !is_state(group(g)) && group(g).kind != GroupKind::kRing)
    note_fresh(g, handed_out);
  return {};
}

// ---- New blocks (GR-36, GR-37, GR-42, GR-43) ----

// GR-37: a shared tail is copied before the request writes after its end.
void Manager::copy_tail(std::int64_t row, std::int64_t g, std::int64_t block) {
  Holding& own = holding(row, g);
  const std::int64_t index = *std::exchange(own.tail, std::nullopt);
  const std::int64_t tail = table(row, g)[static_cast<std::size_t>(index)];
  tables_.set(at(row, g), index, block);
  copies_.append(g, Ids{tail, block});
  pool_.pin({&block, 1});
  if (!is_state(group(g))) note_fresh(g, {&block, 1});
}

Status Manager::add_blocks(std::int64_t row, std::int64_t g, const Call& call, Ids& blocks,
                           Ids& evicted) {
  const Group& one = group(g);
  if (is_aligned_state(one)) return add_states(row, g, call, blocks, evicted);
  if (held(row, g).tail) {
    if (Status done = hand_out(1, blocks, evicted); !done) return done;
    copy_tail(row, g, blocks.front());
  }
  const std::int64_t length =
      one.kind == GroupKind::kRing ? 1 : ceil_of(call.slots, one.block_size) + one.speculative;
  return extend(row, g, length, blocks, evicted, true);
}

// GR-42
Status Manager::add_states(std::int64_t row, std::int64_t g, const Call& call, Ids& blocks,
                           Ids& evicted) {
  const Group& one = group(g);
  const Ids& table = this->table(row, g);
  const bool was_placed = held(row, g).placed;
  if (!was_placed) holding(row, g).placed = true;
  const std::int64_t before = std::ssize(table);
  const std::int64_t running = ceil_of(call.main, one.block_size) - 1;
  const std::int64_t length = running + 1 + one.speculative;
  if (length <= before && !held(row, g).tail && !held(row, g).checkpoint) return {};
  Holding& own = holding(row, g);
  if (was_placed)
    own.last = before - 1 - one.speculative;
  else if (before > 0)
    own.last = before - 1;
  const std::int64_t first = running - (own.checkpoint ? 1 : 0);  // entry with a block of this step
  tables_.fill(at(row, g), first, 0);
  for (std::int64_t i = std::max<std::int64_t>(before - one.speculative, 0);
       was_placed && i < std::min(before, first); ++i) {
    const std::int64_t block = leave_entry(row, g, i);
    if (pool_.refs(block) != 1 || pool_.key(block))
      return misuse("block " + std::to_string(block) + " is no spare one");
    tables_.push(at(row, g), block);
  }
  const std::int64_t missing = std::max<std::int64_t>(length - std::ssize(table), 0);
  const std::int64_t most = 1 + (own.checkpoint ? 1 : 0) + (was_placed ? 0 : one.speculative);
  if (missing > most) return misuse("tokens: more states than a chunk has");
  Ids handed_out;
  const std::int64_t copies = own.tail ? 1 : 0;
  if (Status done = hand_out(missing + copies, handed_out, evicted); !done) return done;
  tables_.append(at(row, g), IdsView(handed_out).subspan(static_cast<std::size_t>(copies)));
  if (copies > 0 && was_placed)
    if (Status done = leave_own_tail(row, g, handed_out.front()); !done) return done;
  if (copies > 0 && !was_placed) {
    copy_tail(row, g, handed_out.front());
    blocks.push_back(handed_out.front());
  }
  blocks.insert(blocks.end(), table.begin() + before, table.end());
  return {};
}

// GR-43: the state at the end of its prompt moves to another block, with its keys, and the request
// goes on in its own.
Status Manager::leave_own_tail(std::int64_t row, std::int64_t g, std::int64_t block) {
  Holding& own = holding(row, g);
  const auto index = static_cast<std::size_t>(*std::exchange(own.tail, std::nullopt));
  const std::int64_t tail = table(row, g)[index];
  if (tail == 0) return misuse("tokens: the state at the end of the prompt has left the table");
  if (pool_.key(tail)) {
    pool_.move_keys(tail, block);
    registered_.insert(*pool_.key(block));
  }
  copies_.append(g, Ids{tail, block});
  pool_.pin({&tail, 1});
  if (const auto tokens = std::exchange(own.prompt_tail, std::nullopt))
    offloads_.push(0, {.request = row, .group = g, .block = block, .tokens = *tokens});
  return {};
}

// GR-50
void Manager::note_fresh(std::int64_t g, IdsView blocks) {
  if (std::ranges::none_of(options_.groups, is_state)) return;
  fresh_.append(g, blocks);
}

}  // namespace kvo::groups
