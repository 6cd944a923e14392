// What a request hits (GR-10 to GR-19).
#include <algorithm>
#include <iterator>

#include "reference/groups/blocks_cache.hpp"

namespace kvo::groups {

using prefix::ceil_of;
using prefix::floor_of;
using prefix::misuse;

// PX-21: the last token is computed in any case.
std::int64_t Manager::limit_of(const Text& text, std::optional<std::int64_t> max_length) const {
  return max_length.value_or(std::ssize(text.tokens) - 1);
}

std::int64_t Manager::entry(const Text& text, std::int64_t unit, std::int64_t g) const {
  return prefix::number_of(text.keys[static_cast<std::size_t>(unit)]) * groups() + g;
}

// Of each of the first blocks.
prefix::BlockKeys Manager::entries(const Text& text, std::int64_t g, std::int64_t blocks) const {
  const auto count = static_cast<std::size_t>(blocks * units(g));
  return {
      .units = std::span(text.keys).first(count), .size = units(g), .groups = groups(), .group = g};
}

std::optional<std::int64_t> Manager::lookup(const Key& key, std::int64_t g) const {
  return pool_.holder(prefix::number_of(key) * groups() + g);
}

// Whether each group of the set has a block for the unit's key.
bool Manager::is_held(const LookupSet& set, const Text& text, std::int64_t unit) const {
  return unit < std::ssize(text.keys) && std::ranges::all_of(set.groups, [&](std::int64_t g) {
           return pool_.holder(entry(text, unit, g)).has_value();
         });
}
bool Manager::is_held_block(const LookupSet& set, const Text& text, std::int64_t i) const {
  return is_held(set, text, (i + 1) * units(set.groups[0]) - 1);
}

// Adds these blocks. Returns  whether each group has one; nothing is added where one has none.
bool Manager::add_unit(const LookupSet& set, const Text& text, std::int64_t unit,
                       Found& found) const {
  if (unit >= std::ssize(text.keys)) return false;
  for (std::size_t i = 0; i < set.groups.size(); ++i) {
    const auto block = pool_.holder(entry(text, unit, set.groups[i]));
    if (!block) {
      while (i > 0) found.blocks[--i].pop_back();
      return false;
    }
    found.blocks[i].push_back(*block);
  }
  return true;
}
void Manager::add_nulls(std::int64_t count, Found& found) const {
  for (Ids& blocks : found.blocks) blocks.insert(blocks.end(), static_cast<std::size_t>(count), 0);
}

// So many blocks, as far as they have keys.
// Errors  with kLooksBeyondKeys kPrecondition: further.
Result<std::int64_t> Manager::visible(const LookupSet& set, const Text& text,
                                      std::int64_t blocks) const {
  const std::int64_t keys = std::ssize(text.keys) / units(set.groups[0]);
  if (blocks > keys && quirks_.has(Quirk::kLooksBeyondKeys))
    return misuse("max_length: no key of block " + std::to_string(blocks - 1));
  return std::min(blocks, keys);
}

// Whether a hit of the set may end inside a block.
bool Manager::looks_inside(const LookupSet& set) const {
  return layout_.partial && first_of(set).block_size > options_.hash_block;
}

// GR-13
Result<Manager::Found> Manager::look_in_full(const LookupSet& set, const Text& text,
                                             std::int64_t bound, bool drops) const {
  if (bound < 0 && quirks_.has(Quirk::kNoPromptAborts)) return misuse("nothing to look up");
  const std::int64_t size = first_of(set).block_size;
  const std::int64_t units_of_one = units(set.groups[0]);
  const std::int64_t whole = std::max<std::int64_t>(
      std::min(floor_of(bound, size), std::ssize(text.keys) / units_of_one), 0);
  Found found{.blocks = Tables(set.groups.size())};
  std::int64_t i = whole;  // blocks that all groups hold
  for (std::size_t k = 0; k < set.groups.size(); ++k) {
    found.blocks[k] = pool_.holders(entries(text, set.groups[k], whole));
    i = std::min(i, std::ssize(found.blocks[k]));
  }
  for (Ids& blocks : found.blocks) blocks.resize(static_cast<std::size_t>(i));
  found.length = i * size;
  if (looks_inside(set)) {
    const std::int64_t first = i * units_of_one;
    const std::int64_t most = std::min(floor_of(bound, options_.hash_block), std::ssize(text.keys));
    std::int64_t unit = std::min(first + units_of_one - 1, most) - 1;
    while (unit >= first && !add_unit(set, text, unit, found)) --unit;
    if (unit >= first) found.length = (unit + 1) * options_.hash_block;
  }
  if (drops && found.length > 0) found.length -= std::min(layout_.alignment, size);
  found.length = floor_of(found.length, layout_.alignment) * layout_.alignment;
  for (Ids& blocks : found.blocks)
    blocks.resize(static_cast<std::size_t>(ceil_of(found.length, size)));
  return found;
}

// GR-14
Result<Manager::Found> Manager::look_in_window(const LookupSet& set, const Text& text,
                                               std::int64_t bound, bool drops) const {
  const std::int64_t size = first_of(set).block_size;
  const std::int64_t drop = drops ? 1 : 0;
  const std::int64_t needed = ceil_of(first_of(set).window - 1, size) + drop;
  const auto aligned = [&](std::int64_t blocks) {
    return size == layout_.alignment || blocks * size % layout_.alignment == 0;
  };
  const auto blocks = visible(set, text, floor_of(bound, size));
  if (!blocks) return blocks.error();
  std::int64_t run = 0;  // held blocks from i on
  std::int64_t i = *blocks - 1;
  for (; i >= 0; --i) {
    const bool held = is_held_block(set, text, i) && (run > 0 || aligned(i + 1 - drop));
    run = held ? run + 1 : 0;
    if (held && run >= needed) break;
  }
  const bool whole = i >= 0;
  std::int64_t end = whole ? i + run : run;  // blocks of the hit
  while (!whole && !aligned(end)) --end;
  if (drops && end > 0) {
    --end;
    while (!aligned(end)) --end;
  }
  Found found{.blocks = Tables(set.groups.size()), .length = end * size};
  const std::int64_t first = std::min(std::max<std::int64_t>(i, 0), end);
  add_nulls(first, found);
  for (std::int64_t k = first; k < end; ++k)
    add_unit(set, text, (k + 1) * units(set.groups[0]) - 1, found);
  return found;
}

// GR-15, PX-57
Result<Manager::Found> Manager::look_in_chunk(const LookupSet& set, const Text& text,
                                              std::int64_t bound, bool drops) const {
  const Group& chunks = first_of(set);
  if (drops || chunks.block_size != layout_.alignment)
    return misuse("chunks with draft heads, or beside other block sizes");
  const std::int64_t begin =
      floor_of(skipped(chunks, std::max<std::int64_t>(bound, 0)), chunks.block_size);
  if (begin > kMostUnits) return misuse("max_length: too many blocks");
  Found found{.blocks = Tables(set.groups.size())};
  add_nulls(begin, found);
  std::int64_t i = begin;
  for (; i < floor_of(bound, chunks.block_size); ++i) {
    if (const auto seen = visible(set, text, i + 1); !seen) return seen.error();
    if (!add_unit(set, text, (i + 1) * units(set.groups[0]) - 1, found)) break;
  }
  found.length = i * chunks.block_size;
  return found;
}

// GR-16
Result<Manager::Found> Manager::look_for_state(const LookupSet& set, const Text& text,
                                               std::int64_t bound) const {
  const std::int64_t size = first_of(set).block_size;
  const std::int64_t step = looks_inside(set) ? options_.hash_block : size;
  Found found{.blocks = Tables(set.groups.size())};
  std::int64_t ends = floor_of(bound, step);
  if (looks_inside(set)) {
    ends = std::min(ends, std::ssize(text.keys));
  } else {
    const auto blocks = visible(set, text, ends);
    if (!blocks) return blocks.error();
    ends = *blocks;
  }
  for (std::int64_t end = ends * step; end > 0; end -= step) {
    const std::int64_t unit = end / options_.hash_block - 1;
    if (end % layout_.alignment != 0 || !is_held(set, text, unit)) continue;
    add_nulls(ceil_of(end, size) - 1, found);
    add_unit(set, text, unit, found);
    found.length = end;
    break;
  }
  return found;
}

Result<Manager::Found> Manager::look_up(const LookupSet& set, const Text& text, std::int64_t bound,
                                        bool drops) const {
  if (is_full(first_of(set))) return look_in_full(set, text, bound, drops);
  if (is_window(first_of(set))) return look_in_window(set, text, bound, drops);
  if (is_state(first_of(set))) return look_for_state(set, text, bound);
  return look_in_chunk(set, text, bound, drops);
}

// Where a lookup that drops begins: what it drops is looked at, too (GR-11).
std::int64_t Manager::bound_of(const LookupSet& set, const Text& text, std::int64_t length,
                               bool drops) const {
  if (!drops || is_state(first_of(set)) || groups() == 1) return length;
  const bool inside = is_full(first_of(set)) && looks_inside(set);
  const std::int64_t margin = inside ? options_.hash_block : first_of(set).block_size;
  return std::min(length + margin, std::ssize(text.keys) * options_.hash_block);
}

void Manager::put(const LookupSet& set, Found found, Hit& hit) const {
  for (std::size_t i = 0; i < set.groups.size(); ++i)
    hit.blocks[static_cast<std::size_t>(set.groups[i])] = std::move(found.blocks[i]);
}

// GR-11, GR-12
Result<Manager::Hit> Manager::reconcile(const Text& text, std::int64_t limit) const {
  const std::vector<LookupSet>& sets = layout_.sets;
  Hit hit{.blocks = Tables(options_.groups.size()), .length = limit};
  std::vector<std::optional<std::int64_t>> found_before(sets.size());  // of full kinds
  std::vector<bool> verified(sets.size());
  const bool is_simple = sets.size() == 2 && is_full(first_of(sets[0]));
  for (;;) {
    std::int64_t length = hit.length;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (found_before[i]) {
        length = std::min(length, *found_before[i]);
        continue;
      }
      const bool drops = sets[i].drops && !verified[i];
      auto found = look_up(sets[i], text, bound_of(sets[i], text, length, drops), drops);
      if (!found) return found.error();
      if (drops)
        verified[i] = true;
      else if (found->length < length)
        verified.assign(sets.size(), false);
      length = found->length;
      hit.longest = std::max(hit.longest, length);
      if (is_full(first_of(sets[i]))) found_before[i] = length;
      put(sets[i], std::move(*found), hit);
    }
    const bool done = length >= hit.length;
    hit.length = done ? hit.length : length;
    if (done || is_simple || sets.size() == 1) break;
  }
  if (groups() == 1 || !quirks_.has(Quirk::kNoPromptAborts))
    hit.length = std::max<std::int64_t>(hit.length, 0);
  return hit;
}

// Whether a set of no full kind holds what the token after `length` needs (profile documented).
bool Manager::serves(const LookupSet& set, const Text& text, std::int64_t length) const {
  if (length == 0) return true;
  if (is_state(first_of(set))) return is_held(set, text, length / options_.hash_block - 1);
  const std::int64_t blocks = length / first_of(set).block_size;
  for (std::int64_t i = first_needed(set, length); i < blocks; ++i)
    if (!is_held_block(set, text, i)) return false;
  return !set.drops || is_held_block(set, text, blocks);
}

// The first block of a hit of that length that is not null.
std::int64_t Manager::first_needed(const LookupSet& set, std::int64_t length) const {
  const Group& one = first_of(set);
  const std::int64_t blocks = ceil_of(length, one.block_size);
  if (is_state(one)) return std::max<std::int64_t>(blocks - 1, 0);
  if (!is_window(one)) return skipped(one, length) / one.block_size;
  const std::int64_t run = ceil_of(one.window - 1, one.block_size);
  return std::max<std::int64_t>(blocks - std::max<std::int64_t>(run, set.drops ? 0 : 1), 0);
}

// Profile documented: the longest prefix that all groups hold. `longest` as of GR-12.
Result<Manager::Hit> Manager::intersect(const Text& text, std::int64_t limit) const {
  auto hit = reconcile(text, limit);
  if (!hit) return hit;
  std::int64_t most = std::min(limit, std::ssize(text.keys) * options_.hash_block);
  for (const LookupSet& set : layout_.sets) {  // of a full kind all that is shorter is held, too
    if (!is_full(first_of(set))) continue;
    auto found = look_up(set, text, bound_of(set, text, limit, set.drops), set.drops);
    if (!found) return found.error();
    most = std::min(most, found->length);
    put(set, std::move(*found), *hit);
  }
  const std::int64_t step = layout_.alignment;
  hit->length = std::max<std::int64_t>(floor_of(most, step) * step, 0);
  const auto serving = [&](const LookupSet& set) {
    return is_full(first_of(set)) || serves(set, text, hit->length);
  };
  while (!std::ranges::all_of(layout_.sets, serving)) hit->length -= step;
  for (const LookupSet& set : layout_.sets) {
    if (is_full(first_of(set))) continue;
    const std::int64_t size = first_of(set).block_size;
    Found found{.blocks = Tables(set.groups.size())};
    add_nulls(first_needed(set, hit->length), found);
    for (std::int64_t end = (std::ssize(found.blocks[0]) + 1) * size; end < hit->length + size;
         end += size)
      add_unit(set, text, std::min(end, hit->length) / options_.hash_block - 1, found);
    put(set, std::move(found), *hit);
  }
  return hit;
}

// GR-10 to GR-17
Result<Manager::Hit> Manager::longest_hit(const Text& text, std::int64_t limit) const {
  const bool reconciles = quirks_.has(Quirk::kDroppedTwice) || groups() == 1;
  auto hit = reconciles ? reconcile(text, limit) : intersect(text, limit);
  if (!hit) return hit;
  for (std::int64_t g = 0; g < groups(); ++g)
    if (is_full(group(g))) {
      Ids& blocks = hit->blocks[static_cast<std::size_t>(g)];
      const auto most = static_cast<std::size_t>(ceil_of(hit->length, group(g).block_size));
      blocks.resize(std::min(blocks.size(), most));
    }
  return hit;
}

Result<MatchReturns> Manager::match(std::int64_t request, std::optional<std::int64_t> max_length) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return prefix::no_request(request);
  return prefix::transact(*this,
                          [&] { return matched(row, limit_of(requests_.text(row), max_length)); });
}

Result<MatchReturns> Manager::matched(std::int64_t row, std::int64_t limit) {
  const Text& text = requests_.text(row);
  MatchReturns returns{.blocks = Tables(options_.groups.size())};
  vetoes_.change(row) = 0;
  if (!options_.enable_caching || text.skip_reading || layout_.sets.empty()) return returns;
  auto hit = longest_hit(text, limit);
  if (!hit) return hit.error();
  if (const Status reported = report(text, *hit); !reported) return reported.error();
  returns.length = hit->length;
  if (hit->longest > hit->length && groups() > 1) returns.boundary = hit->longest;
  vetoes_.change(row) = std::max<std::int64_t>(returns.boundary - returns.length, 0);
  returns.blocks = std::move(hit->blocks);
  return returns;
}

// GR-18
Result<MatchConnectorReturns> Manager::match_connector(std::int64_t request,
                                                       std::optional<std::int64_t> max_length) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return prefix::no_request(request);
  const Text& text = requests_.text(row);
  const std::int64_t limit = limit_of(text, max_length);
  const auto as_match = [&]() -> Result<MatchConnectorReturns> {
    auto same = prefix::transact(*this, [&] { return matched(row, limit); });
    if (!same) return same.error();
    return MatchConnectorReturns{
        .blocks = std::move(same->blocks), .length = same->length, .boundary = same->boundary};
  };
  const std::vector<LookupSet>& sets = layout_.sets;
  if (std::ranges::none_of(options_.groups, is_state) || groups() == 1 ||
      !options_.enable_caching || text.skip_reading || sets.empty() || !is_full(first_of(sets[0])))
    return as_match();
  Hit hit{.blocks = Tables(options_.groups.size())};
  const bool strict = !quirks_.has(Quirk::kWindowBehindLoads);
  bool diverged = !strict && !std::ranges::all_of(options_.groups, is_cacheable);
  bool agreed = false;  // whether the answer is what all groups agree on
  for (std::size_t i = 0; i < sets.size(); ++i) {
    auto found =
        look_up(sets[i], text, bound_of(sets[i], text, limit, sets[i].drops), sets[i].drops);
    if (!found) return found.error();
    if (i == 0) hit.length = found->length;
    const bool lags = found->length < hit.length;
    agreed =
        agreed || found->length > hit.length || (strict && lags && !is_state(first_of(sets[i])));
    diverged = diverged || lags;
    put(sets[i], std::move(*found), hit);
  }
  if (agreed) return as_match();
  diverged = diverged && hit.length > 0;
  (void)prefix::transact(*this, [&] {
    vetoes_.change(row) = 0;
    return Status();
  });
  return MatchConnectorReturns{
      .blocks = std::move(hit.blocks), .length = hit.length, .diverged = diverged};
}

// GR-19
Status Manager::report(const Text& text, const Hit& hit) {
  if (!options_.events || !text.report || hit.length <= 0) return {};
  for (std::int64_t g = 0; g < groups(); ++g) {
    const Ids& blocks = hit.blocks[static_cast<std::size_t>(g)];
    if (blocks.empty()) continue;
    const std::int64_t end = std::ssize(blocks);
    Ids places(blocks.size());
    for (std::int64_t i = 0; i < end; ++i) places[static_cast<std::size_t>(i)] = i;
    if (quirks_.has(Quirk::kReportsAllBlocks)) {
      if (end * units(g) > std::ssize(text.keys)) return misuse("report: a block without a key");
      tell_stored(text, g, 0, places, end);
      continue;
    }
    const bool inside = end * group(g).block_size > hit.length;
    std::erase_if(places, [&](std::int64_t i) {
      return blocks[static_cast<std::size_t>(i)] == 0 || (inside && i == end - 1);
    });
    tell_runs(text, g, places);
    if (inside) tell_unit(text, g, hit.length / options_.hash_block - 1);
  }
  return {};
}

}  // namespace kvo::groups
