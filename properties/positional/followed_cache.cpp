#include "properties/positional/followed_cache.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "reference/contract/values/check.hpp"
#include "reference/positional/operations.hpp"
#include "reference/positional/wrapper_cache.hpp"

namespace kvo::positional {

FollowedCache::FollowedCache(const CacheKind& kind, const Setup& setup, bool notes)
    : notes_(notes) {
  for (const CacheConfig& config : members_of(kind, setup))
    members_.push_back(member_options(config));
  evicted_.resize(members_.size());
  const auto make = [&](const CacheOptions& arguments) {
    auto made = reference_of(kind)(arguments);
    if (made) cache_ = made->get();
    return made;
  };
  auto opened = make_subject(kind, "followed", "of a random script", make).open(setup);
  KVO_CHECK(opened.has_value());
  session_ = std::move(*opened);
}

const CausalCache* FollowedCache::causal(std::size_t member) const {
  const auto* wrapper = dynamic_cast<const WrapperCache*>(cache_);
  return wrapper != nullptr ? std::get_if<CausalCache>(&wrapper->members()[member])
                            : dynamic_cast<const CausalCache*>(cache_);
}

const CausalCache* FollowedCache::first_causal() const {
  for (std::size_t member = 0; member < members_.size(); ++member)
    if (const CausalCache* found = causal(member)) return found;
  return nullptr;
}

const FollowedCache::Cells& FollowedCache::first_cells() const {
  static const Cells kNone;
  const CausalCache* first = first_causal();
  return first != nullptr ? first->cells() : kNone;
}

// ---- A pass ----

PassEffects FollowedCache::follow(const StartForward& pass, bool full) {
  if (!notes_) {
    (void)session_->apply(Op::of(pass), probe_);
    return {};
  }
  PassEffects effects{.unwound = full && members_.size() > 1 && first_has_room(pass)};
  std::vector<Cells> before(members_.size());
  for (std::size_t member = 0; member < members_.size(); ++member)
    if (const CausalCache* cache = causal(member)) before[member] = cache->cells();
  const Observation seen = session_->apply(Op::of(pass), probe_);
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (seen.error || pass.reserve || causal(member) == nullptr) continue;
    note_evictions(member, before[member], effects);
    note_tokens(member, pass, effects);
  }
  return effects;
}

bool FollowedCache::first_has_room(const StartForward& pass) const {
  WrapperCache::Member first = dynamic_cast<const WrapperCache&>(*cache_).members().front();
  const Batch batch{.positions = pass.positions, .sequences = pass.seqs, .reserve = pass.reserve};
  return std::visit([&](auto& cache) { return cache.do_start_forward(batch).has_value(); }, first);
}

void FollowedCache::note_evictions(std::size_t member, const Cells& before, PassEffects& effects) {
  const Cells& after = causal(member)->cells();
  std::set<std::size_t>& evicted = evicted_[member];
  for (std::size_t cell = 0; cell < after.size(); ++cell) {
    // A pass moves no token: another position is another token's.
    const bool taken =
        !after[cell].owners.empty() &&
        (before[cell].owners.empty() || before[cell].position != after[cell].position);
    if (!before[cell].owners.empty() && (taken || after[cell].owners.empty())) {
      evicted.insert(cell);
      effects.window_exceeded = true;  // what memory gives up lies before every window
    }
    if (taken && evicted.erase(cell) > 0) effects.cells_reused = true;
    if (taken) effects.cells = std::max(effects.cells, static_cast<std::int64_t>(cell) + 1);
    if (members_[member].window <= 0) continue;
    for (const std::int64_t owner : before[cell].owners)
      if (taken || !after[cell].owners.contains(owner))
        effects.evicted = std::max(effects.evicted, ++lost_[owner][member]);
  }
}

void FollowedCache::note_tokens(std::size_t member, const StartForward& pass,
                                PassEffects& effects) const {
  const CausalCache& cache = *causal(member);
  const std::int32_t window = members_[member].window;
  const std::int32_t chunk = members_[member].chunk;
  const CausalCache::CellRange range = cache.visible();
  bool low_wanted = false;
  bool high_wanted = false;
  for (std::size_t i = 0; i < pass.positions.size(); ++i) {
    const std::int32_t own = pass.positions[i];
    for (std::size_t c = 0; c < cache.cells().size(); ++c) {
      const CausalCache::Cell& cell = cache.cells()[c];
      if (!cell.owners.contains(pass.seqs[i])) continue;
      if (window > 0 && cell.position < own - window) effects.window_exceeded = true;
      if (chunk > 0 && cell.position < own - own % chunk) effects.chunk_crossed = true;
      low_wanted |= static_cast<std::int64_t>(c) == range.low;
      high_wanted |= static_cast<std::int64_t>(c) == range.high;
    }
  }
  // The first and the last cell of a range that is not rounded belong to the batch's sequences.
  if (!low_wanted || !high_wanted) effects.range_rounded = true;
}

// ---- Questions ----

std::int64_t FollowedCache::pool() const {
  std::int64_t most = 0;
  for (std::size_t member = 0; member < members_.size(); ++member)
    if (const CausalCache* cache = causal(member))
      most = std::max(most, std::ssize(cache->cells()));
  return most;
}

std::int64_t FollowedCache::free() const {
  return std::ranges::count_if(first_cells(),
                               [](const CausalCache::Cell& cell) { return cell.owners.empty(); });
}

std::vector<std::int32_t> FollowedCache::positions(std::int64_t sequence) const {
  std::vector<std::int32_t> positions;
  for (const CausalCache::Cell& cell : first_cells())
    if (cell.owners.contains(sequence)) positions.push_back(cell.position);
  std::ranges::sort(positions);
  return positions;
}

std::int32_t FollowedCache::unshared_from(std::int64_t sequence) const {
  std::int32_t from = 0;
  std::int32_t last = -1;
  for (const CausalCache::Cell& cell : first_cells()) {
    if (!cell.owners.contains(sequence)) continue;
    last = std::max(last, cell.position);
    if (cell.owners.size() > 1) from = std::max(from, cell.position + 1);
  }
  return last >= 0 && from > last ? kMaxPosition : from;
}

bool FollowedCache::keeps_between(const Remove& remove) const {
  bool moved = false;
  bool kept = false;  // behind a moved one
  for (const CausalCache::Cell& cell : first_cells()) {
    if (!cell.owners.contains(remove.seq)) continue;
    if (cell.position >= remove.end && kept) return true;
    moved = moved || cell.position >= remove.end;
    kept = kept || (moved && cell.position < remove.begin);
  }
  return false;
}

bool FollowedCache::share(std::int64_t one, std::int64_t other) const {
  for (std::size_t member = 0; one != other && member < members_.size(); ++member) {
    const CausalCache* cache = causal(member);
    if (cache != nullptr && std::ranges::any_of(cache->cells(), [&](const CausalCache::Cell& cell) {
          return cell.owners.contains(one) && cell.owners.contains(other);
        }))
      return true;
  }
  return false;
}

}  // namespace kvo::positional
