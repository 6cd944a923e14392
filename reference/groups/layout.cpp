#include "reference/groups/layout.hpp"

#include <algorithm>
#include <numeric>

#include <boost/pfr/ops_fields.hpp>

#include "reference/prefix/requests.hpp"

namespace kvo::groups {

using prefix::ceil_of;
using prefix::floor_of;
using prefix::misuse;

std::int64_t skipped(const Group& group, std::int64_t tokens) {
  switch (group.kind) {
    case GroupKind::kSlidingWindow:
    case GroupKind::kSlidingWindowMla:
      return std::max<std::int64_t>(0, tokens - group.window + 1 - group.retained);
    case GroupKind::kChunkedLocal:
      return tokens / group.chunk * group.chunk;
    case GroupKind::kMamba:
      return tokens - 1;
    case GroupKind::kFull:
    case GroupKind::kMla:
    case GroupKind::kRswa:
    case GroupKind::kRing:
      return 0;
  }
  return 0;
}

std::optional<std::int64_t> scheduler_block_of(std::span<const Group> groups) {
  std::int64_t block = 1;
  for (const Group& group : groups) {
    block = std::lcm(block, group.block_size);
    if (block > kMostTokens) return std::nullopt;
  }
  return block;
}

// GR-6
bool has_partial_hits(std::span<const Group> groups, std::int64_t unit) {
  const auto inside = [&](const Group& group) {
    return is_aligned_state(group) && group.block_size > unit;
  };
  const auto fits = [&](const Group& group) {
    return !is_cacheable(group) || is_full(group) || is_state(group) || group.block_size == unit;
  };
  return groups.size() > 1 && std::ranges::any_of(groups, inside) &&
         std::ranges::all_of(groups, fits);
}

// GR-44
std::int64_t position_of(std::int64_t tokens, std::int64_t block, bool drop,
                         std::int64_t lookahead) {
  const std::int64_t end = drop ? tokens : tokens - std::max<std::int64_t>(1, lookahead);
  return std::max<std::int64_t>(0, floor_of(end, block) * block - (drop ? block : 0));
}

Ids boundaries_of(std::int64_t prompt, std::int64_t block, bool drop) {
  if (!drop) return {prompt - 1};
  const auto dropped = [&](std::int64_t tokens) {
    return std::max<std::int64_t>(floor_of(tokens, block) * block - block, 0);
  };
  Ids both{dropped(prompt - 1), dropped(prompt)};
  both.erase(std::unique(both.begin(), both.end()), both.end());
  return both;
}

namespace {

// GR-9; GR-15 and chunks that are no whole blocks without the quirks.
Status servable(const Options& options, std::int64_t scheduler_block, const Layout& layout,
                QuirkSet<Quirk> quirks) {
  const auto refuse = [&](std::string what) {
    return fail(quirks.has(Quirk::kSetupAborts) ? Code::kPrecondition : Code::kNotSupported,
                std::move(what));
  };
  const std::vector<Group>& groups = options.groups;
  if (scheduler_block % options.hash_block != 0) return refuse("hash_block: not in every block");
  const auto chunked = [](const Group& group) { return group.kind == GroupKind::kChunkedLocal; };
  if (!quirks.has(Quirk::kOddChunks) && options.enable_caching)
    for (const Group& group : groups)
      if (chunked(group) && group.chunk % group.block_size != 0)
        return fail(Code::kNotSupported, "chunk: no whole blocks");
  if (!options.enable_caching) return {};
  for (const Group& group : groups)
    if (is_state(group) && !is_aligned_state(group)) return refuse("mode: none, with caching");
  if (groups.size() == 1) {
    if (options.hash_block != groups[0].block_size) return refuse("hash_block: not the block");
  } else {
    for (const Group& group : groups)
      if (is_cacheable(group) && group.block_size % options.hash_block != 0)
        return refuse("hash_block: does not divide block_size");
    if (std::ranges::none_of(groups, is_cacheable)) return refuse("groups: none can be shared");
  }
  if (quirks.has(Quirk::kSetupAborts)) return {};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!chunked(groups[i])) continue;
    if (layout.drops[i]) return refuse("eagle with chunks");
    if (groups[i].block_size != layout.alignment) return refuse("chunks beside other block sizes");
  }
  return {};
}

// GR-8
Status accepted(const Options& options, std::int64_t scheduler_block) {
  const auto drafts = [](const Group& group) { return group.draft; };
  if (options.enable_caching && options.prefill_lookahead > scheduler_block &&
      (options.eagle || std::ranges::any_of(options.groups, drafts)))
    return misuse("prefill_lookahead: more than the scheduler's block");
  if (!options.retention) return {};
  const auto sparse = [](const Group& group) { return is_window(group) || is_state(group); };
  if (std::ranges::none_of(options.groups, sparse))
    return *options.retention > 0 ? misuse("retention: no group is sparse") : Status();
  if (*options.retention < 0 || *options.retention % scheduler_block != 0)
    return misuse("retention: no multiple of the scheduler's block");
  return {};
}

// GR-5, GR-7
void form_sets(const Options& options, QuirkSet<Quirk> quirks, Layout& layout) {
  const std::vector<Group>& groups = options.groups;
  const auto same = [&](Group a, Group b) {
    a.draft = b.draft = false;
    return boost::pfr::eq_fields(a, b);
  };
  for (std::int64_t i = 0; i < std::ssize(groups); ++i) {
    const Group& group = groups[static_cast<std::size_t>(i)];
    // GR-17: alone it is looked up all the same.
    const bool alone = group.replay && groups.size() == 1 && quirks.has(Quirk::kLooksBeyondKeys);
    if (!is_cacheable(group) && !alone) continue;
    const auto set = std::ranges::find_if(layout.sets, [&](const LookupSet& one) {
      return same(groups[static_cast<std::size_t>(one.groups[0])], group);
    });
    (set == layout.sets.end() ? layout.sets.emplace_back() : *set).groups.push_back(i);
  }
  std::stable_partition(layout.sets.begin(), layout.sets.end(), [&](const LookupSet& set) {
    return is_full(groups[static_cast<std::size_t>(set.groups[0])]);
  });
  Ids& drops = layout.shown.drops;
  const bool any_draft = std::ranges::any_of(groups, &Group::draft);
  for (std::int64_t i = 0; options.eagle && i < std::ssize(groups); ++i)
    if (!any_draft || groups[static_cast<std::size_t>(i)].draft) drops.push_back(i);
  layout.drops.resize(groups.size());
  for (const std::int64_t i : drops) layout.drops[static_cast<std::size_t>(i)] = true;
  for (LookupSet& set : layout.sets) {
    for (const std::int64_t i : set.groups)
      set.drops = set.drops || layout.drops[static_cast<std::size_t>(i)];
    for (const std::int64_t i : set.groups)
      if (set.drops) layout.drops[static_cast<std::size_t>(i)] = true;
  }
}

// PX-56 with what a window retains
std::optional<std::int64_t> cap_of(const Group& group, const Options& options) {
  const auto reach = [&](std::int64_t tokens) {
    return ceil_of(std::min(tokens + options.max_in_flight, options.max_model_len),
                   group.block_size);
  };
  if (is_window(group)) return reach(group.window - 1 + group.retained) + 1;
  if (group.kind == GroupKind::kChunkedLocal) return reach(group.chunk);
  return std::nullopt;
}

}  // namespace

Result<Layout> layout_of(const Options& options, QuirkSet<Quirk> quirks) {
  const auto block = scheduler_block_of(options.groups);
  if (!block) return fail(Code::kNotSupported, "block_size: no common multiple");
  Layout layout{.scheduler_block = *block};
  layout.partial = options.enable_caching && has_partial_hits(options.groups, options.hash_block);
  layout.alignment = layout.partial ? options.hash_block : *block;
  form_sets(options, quirks, layout);
  if (const Status may = accepted(options, *block); !may) return may.error();
  if (const Status may = servable(options, *block, layout, quirks); !may) return may.error();
  SetupReturns& shown = layout.shown;
  shown.scheduler_block = layout.scheduler_block;
  shown.alignment = layout.alignment;
  shown.partial = layout.partial;
  const bool has_sets = options.enable_caching && options.groups.size() > 1;
  for (const LookupSet& set : layout.sets)
    if (has_sets) shown.lookup.push_back(set.groups);
  // GR-45
  shown.junction = options.junction && layout.partial && options.prefill_lookahead <= 1 &&
                   (!shown.drops.empty() || std::ranges::any_of(options.groups, &Group::draft));
  for (const Group& group : options.groups) shown.caps.emplace_back(cap_of(group, options));
  return layout;
}

}  // namespace kvo::groups
