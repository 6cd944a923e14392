// Requests, the pool by hand, and figures (GR-30, GR-38, GR-39, GR-49, GR-50).
#include "reference/groups/blocks_cache.hpp"

#include <algorithm>

#include "reference/prefix/block_pool.hpp"
#include "reference/prefix/requests.hpp"

namespace kvo::groups {

using prefix::ceil_of;
using prefix::misuse;

namespace {

// The quirks of the pool, which it shares with contract `prefix`.
QuirkSet<prefix::Quirk> quirks_of_pool(QuirkSet<Quirk> quirks) {
  QuirkSet<prefix::Quirk> all;
  if (quirks.has(Quirk::kCountsBelowZero)) all.add(prefix::Quirk::kCountsBelowZero);
  if (quirks.has(Quirk::kRemovedWhileHeld)) all.add(prefix::Quirk::kRemovedWhileHeld);
  if (quirks.has(Quirk::kEvictTakesAnyNumber)) all.add(prefix::Quirk::kEvictTakesAnyNumber);
  return all;
}

Parts reference_parts(const Options& options, QuirkSet<prefix::Quirk> quirks) {
  return {.requests = std::make_unique<prefix::Requests>(options.hash_block, options.hash_lookahead,
                                                         options.enable_caching),
          .pool = std::make_unique<prefix::BlockPool>(options.num_blocks, options.enable_caching,
                                                      options.events, quirks,
                                                      std::ssize(options.groups))};
}

}  // namespace

Result<std::unique_ptr<BlockCache>> make_blocks_over(const Options& options, QuirkSet<Quirk> quirks,
                                                     const MakeParts& make) {
  auto layout = layout_of(options, quirks);
  if (!layout) return layout.error();
  return std::make_unique<Manager>(options, *std::move(layout), quirks,
                                   make(options, quirks_of_pool(quirks)));
}

Result<std::unique_ptr<BlockCache>> Manager::make(const Options& options, QuirkSet<Quirk> quirks) {
  return make_blocks_over(options, quirks, reference_parts);
}

Manager::Manager(const Options& options, Layout layout, QuirkSet<Quirk> quirks, Parts parts)
    : options_(options),
      layout_(std::move(layout)),
      quirks_(quirks),
      parts_(std::move(parts)),
      requests_(*parts_.requests),
      pool_(*parts_.pool) {
  for (const Group& one : options_.groups) units_.push_back(one.block_size / options_.hash_block);
  copies_.grow(groups());
  fresh_.grow(groups());
  offloads_.grow(1);
  commit();
}

void Manager::commit() noexcept {
  pool_.commit();
  requests_.commit();
  holdings_.commit();
  for (auto* lists : {&tables_, &keyed_, &ends_, &copies_, &fresh_}) lists->commit();
  vetoes_.commit();
  offloads_.commit();
  registered_.commit();
}

void Manager::roll_back() noexcept {
  pool_.roll_back();
  requests_.roll_back();
  holdings_.roll_back();
  for (auto* lists : {&tables_, &keyed_, &ends_, &copies_, &fresh_}) lists->roll_back();
  vetoes_.roll_back();
  offloads_.roll_back();
  registered_.roll_back();
}

Result<std::span<const Key>> Manager::request(const MakeRequest& op) {
  prefix::Transaction undertaking(*this);
  Text text = prefix::RequestTable::text_of(op);
  text.report = op.report.has_value();
  const std::int64_t row = requests_.make(op.request, std::move(text));
  const std::int64_t rows = std::ssize(requests_.rows());
  holdings_.grow(rows * groups());
  tables_.grow(rows * groups());
  keyed_.grow(rows * groups());
  ends_.grow(rows);
  vetoes_.grow(rows);
  keys_ = requests_.text(row).keys;
  undertaking.commit();
  return std::span<const Key>(keys_);
}

Result<std::span<const Key>> Manager::append(std::int64_t request, TokensView tokens) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return prefix::no_request(request);
  prefix::Transaction undertaking(requests_);
  const Text& text = requests_.text(row);
  const std::ptrdiff_t before = std::ssize(text.keys);
  requests_.append(row, tokens);
  keys_.assign(text.keys.begin() + before, text.keys.end());
  undertaking.commit();
  return std::span<const Key>(keys_);
}

Status Manager::set(const prefix::SetRequest& op) {
  const std::int64_t row = requests_.find(op.request);
  if (row < 0) return prefix::no_request(op.request);
  prefix::Transaction undertaking(requests_);
  requests_.set(row, op);
  undertaking.commit();
  return {};
}

Status Manager::skip(std::int64_t request, std::int64_t computed,
                     std::optional<std::int64_t> prompt) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return prefix::no_request(request);
  return prefix::transact(*this, [&] { return release_unneeded(row, computed, prompt); });
}

// ---- The end of a request (GR-39) ----

// Profile documented: what the request has not computed loses the keys that the request set.
void Manager::release_keys(std::int64_t row) {
  if (quirks_.has(Quirk::kKeysBeforeRows)) return;
  for (std::int64_t g = 0; g < groups(); ++g) {
    const Ids& keyed = keyed_[at(row, g)];
    for (std::size_t i = 0; i < keyed.size(); i += 2) {
      const std::int64_t end = requests_.depth(keyed[i + 1] / groups()) * options_.hash_block;
      if (end > requests_.progress(row).computed && pool_.carries(keyed[i], keyed[i + 1]))
        (void)pool_.take_key(keyed[i]);
    }
  }
}

void Manager::forget(std::int64_t row) {
  for (std::int64_t g = 0; g < groups(); ++g) {
    holding(row, g) = {};
    tables_.replace(at(row, g), {});
    keyed_.replace(at(row, g), {});
  }
  ends_.replace(row, {});
  vetoes_.change(row) = 0;
  const auto is_its = [&](const Offload& one) { return one.request == row; };
  std::vector<Offload> others = offloads_[0];
  if (std::erase_if(others, is_its) > 0) offloads_.replace(0, std::move(others));
}

Status Manager::free(std::int64_t request) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return {};
  prefix::Transaction undertaking(*this);
  release_keys(row);
  for (std::int64_t g = 0; g < groups(); ++g) {
    const Ids& blocks = table(row, g);
    if (Status done = pool_.release(Ids(blocks.rbegin(), blocks.rend())); !done) return done;
  }
  forget(row);
  undertaking.commit();
  return {};
}

Result<Ids> Manager::pop(std::int64_t request) {
  Ids blocks;
  const std::int64_t row = requests_.find(request);
  if (row < 0) return blocks;
  prefix::Transaction undertaking(*this);
  release_keys(row);
  for (std::int64_t i = 0; i < groups(); ++i) {
    const std::int64_t g = quirks_.has(Quirk::kPopMixesGroups) ? i : groups() - 1 - i;
    const Ids& own = table(row, g);
    blocks.insert(blocks.end(), std::ranges::find_if(own, [](auto block) { return block != 0; }),
                  own.end());
  }
  forget(row);
  undertaking.commit();
  return blocks;
}

// ---- What the caller takes (GR-38, GR-47, GR-49, GR-50) ----

void Manager::step() {
  registered_.clear();
}

CopiesReturns Manager::copies() {
  prefix::Transaction undertaking(*this);
  CopiesReturns returns;
  for (std::int64_t g = 0; g < groups(); ++g) {
    const Ids& copies = copies_.replace(g, {});
    returns.retained.insert(returns.retained.end(), copies.begin(), copies.end());
    for (std::size_t i = 0; i < copies.size(); i += 2)
      returns.copies.push_back({copies[i], copies[i + 1]});
  }
  undertaking.commit();
  return returns;
}

OffloadsReturns Manager::offloads() {
  prefix::Transaction undertaking(*this);
  std::vector<Offload> noted = offloads_.replace(0, {});
  std::ranges::stable_sort(noted, {}, &Offload::group);
  const auto first_of_request = [&](const Offload& one) {
    return std::ranges::find(noted, one.request, &Offload::request) - noted.begin();
  };
  OffloadsReturns returns{.offloads = noted};
  std::ranges::stable_sort(returns.offloads, {}, first_of_request);
  for (Offload& one : returns.offloads)
    one.request = std::ranges::find(requests_.rows(), *one.request, [](const auto& row) {
                    return row.second;
                  })->first;
  undertaking.commit();
  return returns;
}

Result<OffloadsReturns> Manager::finalize(std::int64_t request) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return prefix::no_request(request);
  prefix::Transaction undertaking(*this);
  OffloadsReturns returns;
  const Progress& progress = requests_.progress(row);
  for (std::int64_t g = 0; g < groups(); ++g) {
    const auto tokens = std::exchange(holding(row, g).prompt_tail, std::nullopt);
    if (!tokens || progress.in_flight != 0 || progress.computed != *tokens) continue;
    const auto index = static_cast<std::size_t>(*tokens / group(g).block_size);
    returns.offloads.push_back({.group = g, .block = table(row, g)[index], .tokens = *tokens});
  }
  undertaking.commit();
  return returns;
}

Ids Manager::fresh() {
  prefix::Transaction undertaking(*this);
  Ids all;
  for (std::int64_t g = 0; g < groups(); ++g) {
    const Ids& blocks = fresh_.replace(g, {});
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  undertaking.commit();
  return all;
}

Status Manager::zero(std::int64_t request, std::int64_t start) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return prefix::no_request(request);
  if (std::ranges::none_of(options_.groups, is_state)) return {};
  prefix::Transaction undertaking(*this);
  for (std::int64_t g = 0; g < groups(); ++g) {
    if (is_state(group(g)) || group(g).kind == GroupKind::kRing) continue;
    if (start % group(g).block_size != 0) return misuse("start: inside a block");
    const IdsView blocks = table(row, g);
    const auto first = static_cast<std::size_t>(start / group(g).block_size);
    note_fresh(g, blocks.subspan(std::min(first, blocks.size())));
  }
  undertaking.commit();
  return {};
}

Tables Manager::clip(std::int64_t request, std::int64_t computed) const {
  Tables tables = table(request);
  for (std::int64_t g = 0; g < std::ssize(tables); ++g) {
    Ids& blocks = tables[static_cast<std::size_t>(g)];
    const auto most = static_cast<std::size_t>(ceil_of(computed, group(g).block_size));
    if (!is_state(group(g))) blocks.resize(std::min(blocks.size(), most));
  }
  return tables;
}

// ---- The pool by hand ----

Result<prefix::AllottedBlocks> Manager::take(std::int64_t count) {
  if (count > pool_.free()) return fail(Code::kExhausted);
  prefix::AllottedBlocks taken;
  const Status done =
      prefix::transact(*this, [&] { return pool_.hand_out(count, taken.blocks, taken.evicted); });
  if (!done) return done.error();
  return taken;
}

Status Manager::touch(IdsView blocks) {
  prefix::Transaction undertaking(*this);
  pool_.pin(blocks);
  undertaking.commit();
  return {};
}

Status Manager::release(IdsView blocks) {
  return prefix::transact(*this, [&] { return pool_.release(blocks); });
}

Result<Ids> Manager::evict(IdsView blocks) {
  Ids evicted;
  const Status done = prefix::transact(*this, [&] { return pool_.evict(blocks, evicted); });
  if (!done) return done.error();
  return evicted;
}

Result<bool> Manager::reset() {
  if (pool_.free() < pool_.count() - 1) return false;
  prefix::Transaction undertaking(*this);
  pool_.take_all_keys();
  undertaking.commit();
  requests_.note_reset();
  return true;
}

// ---- Figures ----

Tables Manager::table(std::int64_t request) const {
  Tables tables(options_.groups.size());
  if (const std::int64_t row = requests_.find(request); row >= 0)
    for (std::int64_t g = 0; g < groups(); ++g) tables[static_cast<std::size_t>(g)] = table(row, g);
  return tables;
}

// GR-21
std::int64_t Manager::cached_tokens(std::int64_t request) const {
  std::optional<std::int64_t> least;
  const std::int64_t row = requests_.find(request);
  for (std::int64_t g = 0; row >= 0 && g < groups(); ++g) {
    if (!is_cacheable(group(g))) continue;
    std::int64_t most = 0;
    for (const std::int64_t block : table(row, g)) most = std::max(most, end_of(block).value_or(0));
    least = std::min(least.value_or(most), most);
  }
  return least.value_or(0);
}

Status Manager::record(std::int64_t request, std::int64_t hits) {
  const std::int64_t row = requests_.find(request);
  if (row < 0) return prefix::no_request(request);
  requests_.record(row, hits);
  vetoed_ += vetoes_[row];
  return {};
}

Statistics Manager::stats() {
  const BlocksStatistics sums = requests_.stats();
  Statistics shown{.requests = sums.requests,
                   .queries = sums.queries,
                   .hits = sums.hits,
                   .preempted_requests = sums.preempted_requests,
                   .preempted_queries = sums.preempted_queries,
                   .preempted_hits = sums.preempted_hits,
                   .reset = sums.reset};
  if (!quirks_.has(Quirk::kVetoesUncounted)) shown.vetoed = std::exchange(vetoed_, 0);
  return shown;
}

BlocksState Manager::state() const {
  BlocksState state{.queue = pool_.queue()};
  const auto key_of = [&](std::int64_t entry) {
    return GroupKey{.key = prefix::key_of(entry / groups()), .group = entry % groups()};
  };
  for (std::int64_t i = 0; i < pool_.count(); ++i) {
    state.refs.push_back(pool_.refs(i));
    state.ends.push_back(end_of(i));
    std::vector<GroupKey>& keys = state.keys.emplace_back();
    for (const std::int64_t entry : pool_.keys_of(i)) keys.push_back(key_of(entry));
  }
  for (auto& [entry, blocks] : pool_.cached())
    state.cached.push_back({.key = key_of(entry), .blocks = std::move(blocks)});
  return state;
}

}  // namespace kvo::groups
