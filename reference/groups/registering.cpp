// Which blocks get keys (GR-20 to GR-27, GR-46).
#include <algorithm>

#include "reference/groups/blocks_cache.hpp"

namespace kvo::groups {

using prefix::floor_of;
using prefix::misuse;

// The tokens that the main key of a block stands for.
std::optional<std::int64_t> Manager::end_of(std::int64_t block) const {
  const auto key = pool_.key(block);
  if (!key) return std::nullopt;
  return requests_.depth(*key / groups()) * options_.hash_block;
}

Status Manager::cache(std::int64_t request, std::int64_t tokens) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return prefix::no_request(request);
  Ids evicted;
  return prefix::transact(*this, [&] { return register_tokens(row, tokens, evicted); });
}

Status Manager::register_tokens(std::int64_t row, std::int64_t tokens, Ids& evicted) {
  if (!options_.enable_caching) return {};
  const std::int64_t most = std::min(tokens, std::ssize(requests_.text(row).tokens));
  for (std::int64_t g = 0; g < groups(); ++g) {
    if (!is_cacheable(group(g))) continue;
    const std::int64_t reach = reach_of(g, most);
    const std::int64_t before = held(row, g).counted.value_or(0);
    if (Status done = register_blocks(row, g, reach); !done) return done;
    const std::int64_t counted = held(row, g).counted.value_or(0);
    if (is_full(group(g))) register_tail(row, g, reach);
    if (!is_aligned_state(group(g))) continue;
    register_state(row, g, reach, evicted);
    for (std::int64_t i = before; i < counted; ++i) {  // those that have a key now (GR-46)
      const std::int64_t block = table(row, g)[static_cast<std::size_t>(i)];
      if (block == 0 || !pool_.key(block)) continue;
      registered_.insert(*pool_.key(block));
      offloads_.push(0, {.request = row, .group = g, .block = block, .tokens = *end_of(block)});
    }
  }
  return {};
}

// GR-20
std::int64_t Manager::reach_of(std::int64_t g, std::int64_t tokens) const {
  const auto whole = [&](std::int64_t all) {
    return layout_.partial ? all : floor_of(all, layout_.scheduler_block) * layout_.scheduler_block;
  };
  const std::int64_t fed =
      std::max<std::int64_t>(0, tokens - std::max<std::int64_t>(0, options_.prefill_lookahead - 1));
  if (groups() == 1) return fed;
  if (!layout_.drops[static_cast<std::size_t>(g)] || whole(tokens) == 0) return whole(tokens);
  return std::min(fed, whole(fed) + group(g).block_size);
}

// GR-21, GR-24
Status Manager::register_blocks(std::int64_t row, std::int64_t g, std::int64_t tokens) {
  const Text& text = requests_.text(row);
  const std::int64_t size = group(g).block_size;
  const std::int64_t first = held(row, g).counted.value_or(0);
  const std::int64_t end = std::min(floor_of(tokens, size), std::ssize(text.keys) / units(g));
  if (end <= first) return {};
  if (end > std::ssize(table(row, g))) return misuse("tokens: more than there are slots");
  holding(row, g).counted = end;
  Ids keyed;  // places in the table
  for (std::int64_t i = first; i < end; ++i) {
    const std::int64_t block = table(row, g)[static_cast<std::size_t>(i)];
    if (block == 0 || !is_wanted(row, g, i)) continue;
    if (is_aligned_state(group(g)) && !quirks_.has(Quirk::kStateOfAnotherLength) &&
        std::ranges::find(ends_[row], (i + 1) * size) == ends_[row].end())
      continue;
    if (const auto before = end_of(block); before && *before >= (i + 1) * size)
      return misuse("tokens: block " + std::to_string(block) + " has a key for more");
    (void)pool_.take_key(block);
    set_key(row, g, block, (i + 1) * units(g) - 1);
    keyed.push_back(i);
  }
  if (quirks_.has(Quirk::kStoredSpan))
    tell_stored(text, g, first, keyed, end);
  else
    tell_runs(text, g, keyed);
  return {};
}

// GR-22: the tokens up to which a prompt is to be hit again.
Ids Manager::boundaries(std::int64_t row, std::int64_t g) const {
  const std::int64_t prompt = requests_.text(row).prompt;
  const bool drops = layout_.drops[static_cast<std::size_t>(g)];
  const bool any = std::ranges::find(layout_.drops, true) != layout_.drops.end();
  Ids all = boundaries_of(prompt, layout_.scheduler_block, any);
  if (is_window(group(g)) && !quirks_.has(Quirk::kRetainsOneRun))
    for (std::size_t i = all.size(); i > 0; --i) all.push_back(all[i - 1] - layout_.alignment);
  if (const auto boundary = requests_.progress(row).boundary; boundary.value_or(0) > 0) {
    all.push_back(*boundary);
    if (drops) all.push_back(*boundary - group(g).block_size);
  }
  return all;
}

// GR-22, GR-23
bool Manager::is_wanted(std::int64_t row, std::int64_t g, std::int64_t block,
                        bool by_boundaries) const {
  const Group& one = group(g);
  const std::int64_t size = one.block_size;
  const std::int64_t alignment = layout_.alignment;
  const std::optional<std::int64_t>& retention = options_.retention;
  const std::int64_t early = is_window(one) && layout_.drops[static_cast<std::size_t>(g)] ? 1 : 0;
  const std::int64_t run =  // blocks that a hit needs
      is_window(one) ? prefix::ceil_of(one.window - 1, size) + early : 1;
  if (!is_window(one) && !(is_state(one) && retention)) return true;
  const std::int64_t segment = retention.value_or(alignment) / size;
  if (segment > 0) {
    if (run >= segment) return true;
    if (block >= early && (block - early) % segment >= segment - run) return true;
  }
  if (!retention || !by_boundaries) return false;
  return std::ranges::any_of(boundaries(row, g), [&](std::int64_t tokens) {
    const std::int64_t last = floor_of(floor_of(tokens, alignment) * alignment, size) - 1 + early;
    return block <= last && block > last - run;
  });
}

// The block gets the key of a unit, beside those that it has.
void Manager::set_key(std::int64_t row, std::int64_t g, std::int64_t block, std::int64_t unit) {
  const std::int64_t key = entry(requests_.text(row), unit, g);
  pool_.set_key(block, key);
  if (quirks_.has(Quirk::kKeysBeforeRows)) return;  // GR-39
  const std::int64_t keyed[] = {block, key};
  keyed_.append(at(row, g), keyed);
}

// GR-25
void Manager::register_tail(std::int64_t row, std::int64_t g, std::int64_t tokens) {
  const std::int64_t unit = options_.hash_block;
  const std::int64_t size = group(g).block_size;
  if (size == unit || (!layout_.partial && !quirks_.has(Quirk::kTailsUnused))) return;
  const Text& text = requests_.text(row);
  const std::int64_t most = text.prompt - (layout_.drops[static_cast<std::size_t>(g)] ? 0 : 1);
  const std::int64_t units = std::min(floor_of(most, unit), std::ssize(text.keys));
  const std::int64_t end = units * unit;
  const Ids& blocks = table(row, g);
  if (end <= 0 || end > tokens || end % size == 0 || end / size >= std::ssize(blocks)) return;
  const std::int64_t block = blocks[static_cast<std::size_t>(end / size)];
  if (block == 0) return;
  if (pool_.carries(block, entry(text, units - 1, g))) return;
  if (const auto before = end_of(block); before && *before < end) (void)pool_.take_key(block);
  set_key(row, g, block, units - 1);
  tell_unit(text, g, units - 1);
}

// GR-46
void Manager::register_state(std::int64_t row, std::int64_t g, std::int64_t tokens, Ids& evicted) {
  if (const auto made = held(row, g).checkpoint) {
    register_checkpoint(row, g, *made, evicted);
    return;
  }
  const Text& text = requests_.text(row);
  const Progress& progress = requests_.progress(row);
  const std::int64_t unit = options_.hash_block;
  if (tokens <= 0 || tokens % unit != 0 || tokens / unit > std::ssize(text.keys)) return;
  const bool at_end =
      tokens == position_of(text.prompt, unit, options_.eagle, options_.hash_lookahead);
  const bool at_junction = layout_.shown.junction && progress.boundary == tokens &&
                           progress.computed < tokens && tokens <= text.prompt;
  if (!at_end && !at_junction) return;
  const std::int64_t size = group(g).block_size;
  const std::int64_t index = prefix::ceil_of(tokens, size) - 1;
  if (index >= std::ssize(table(row, g))) return;
  const std::int64_t block = table(row, g)[static_cast<std::size_t>(index)];
  if (block == 0 || end_of(block) == tokens) return;
  if (end_of(block).value_or(0) < tokens) (void)pool_.take_key(block);
  set_key(row, g, block, tokens / unit - 1);
  registered_.insert(*pool_.key(block));
  tell_unit(text, g, tokens / unit - 1);
  if (tokens % size == 0) return;
  Holding& own = holding(row, g);
  own.tail = index;
  own.prompt_tail = tokens;
  own.counted = index;
}

void Manager::register_checkpoint(std::int64_t row, std::int64_t g, const Checkpoint& made,
                                  Ids& evicted) {
  const Text& text = requests_.text(row);
  if (made.index >= std::ssize(table(row, g))) return;
  const std::int64_t block = table(row, g)[static_cast<std::size_t>(made.index)];
  if (block == 0) return;
  const std::int64_t size = group(g).block_size;
  const bool at_end = made.position == position_of(text.prompt, layout_.alignment, options_.eagle,
                                                   options_.hash_lookahead);
  const bool wanted =
      made.position % size == 0 && is_wanted(row, g, made.position / size - 1, false);
  if (!at_end && !wanted && requests_.progress(row).boundary != made.position) {
    if (pool_.take_key(block)) evicted.push_back(block);
    return;
  }
  const std::int64_t unit = made.position / options_.hash_block - 1;
  if (unit >= std::ssize(text.keys)) return;
  if (end_of(block) == made.position) return;
  (void)pool_.take_key(block);
  set_key(row, g, block, unit);
  registered_.insert(*pool_.key(block));
  tell_unit(text, g, unit);
}

// ---- Events (GR-27) ----

// Of the blocks [first, end), of which `blocks` got keys.
void Manager::tell_stored(const Text& text, std::int64_t g, std::int64_t first,
                          std::span<const std::int64_t> blocks, std::int64_t end) {
  if (!options_.events) return;
  const std::int64_t size = group(g).block_size;
  const auto begin = text.tokens.begin();
  const auto key = [&](std::int64_t i) {  // of block i
    return text.keys[static_cast<std::size_t>((i + 1) * units(g) - 1)];
  };
  Event event{.kind = EventKind::kStored,
              .keys = {},
              .parent = std::nullopt,
              .tokens = {begin + first * size, begin + end * size},
              .group = g,
              .unit = size};
  if (first > 0) event.parent = key(first - 1);
  for (const std::int64_t i : blocks) event.keys.push_back(key(i));
  pool_.tell(std::move(event));
}

// One event for each run of neighbours among the blocks.
void Manager::tell_runs(const Text& text, std::int64_t g, std::span<const std::int64_t> blocks) {
  for (std::size_t i = 0, run = 0; i < blocks.size(); i = run) {
    while (run < blocks.size() && blocks[run] - blocks[i] == static_cast<std::int64_t>(run - i))
      ++run;
    tell_stored(text, g, blocks[i], blocks.subspan(i, run - i), blocks[run - 1] + 1);
  }
}

void Manager::tell_unit(const Text& text, std::int64_t g, std::int64_t unit) {
  if (!options_.events) return;
  const auto begin = text.tokens.begin() + unit * options_.hash_block;
  Event event{.kind = EventKind::kStored,
              .keys = {text.keys[static_cast<std::size_t>(unit)]},
              .parent = std::nullopt,
              .tokens = {begin, begin + options_.hash_block},
              .group = g,
              .unit = options_.hash_block};
  if (unit > 0) event.parent = text.keys[static_cast<std::size_t>(unit - 1)];
  pool_.tell(std::move(event));
}

}  // namespace kvo::groups
