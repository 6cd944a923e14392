#include "reference/dynamic/layer_cache.hpp"

namespace kvo::dynamic {
namespace {

Error not_in_a_pair() {
  return fail(Code::kNotSupported, "a pair of caches does not have it");
}

}  // namespace

// ---- ListsCache ----

template <class Change>
auto ListsCache::carry_out(Quirk leaves, Change change) {
  std::vector<Layers> draft = lists_;
  Writes writes;
  auto done = change(draft, writes);
  const bool refused = !done && (done.error().code == Code::kPrecondition || !quirks_.has(leaves));
  if (!refused) {
    lists_.swap(draft);
    writes.carry_out();
  }
  return done;
}

template <class Change>
Status ListsCache::carry_out_on_each(Change change) {
  return carry_out(Quirk::kLayersTorn, [&](std::vector<Layers>& lists, Writes&) -> Status {
    for (Layers& list : lists)
      if (Status done = change(list); !done) return done;
    return {};
  });
}

Result<KeysValues> ListsCache::update(std::optional<Side> side, std::int64_t layer, const Tensor* k,
                                      const Tensor* v) {
  const auto list = list_of(side);
  if (!list) return list.error();
  return carry_out(Quirk::kRefusedUpdateChanges, [&](std::vector<Layers>& lists, Writes& writes) {
    return lists[*list].update(layer, k, v, writes);
  });
}

Result<std::shared_ptr<const std::int64_t>> ListsCache::length(std::int64_t layer) const {
  const auto counted = lists_.front().counted(layer);
  if (!counted) return counted.error();
  if (*counted == nullptr) return std::make_shared<const std::int64_t>(0);
  return (*counted)->shown_length();
}

Result<MaskSizes> ListsCache::get_mask_sizes(std::int64_t query_length, std::int64_t layer) const {
  const auto counted = lists_.front().counted(layer);
  if (!counted) return counted.error();
  return *counted == nullptr ? MaskSizes{query_length, 0} : (*counted)->mask_sizes(query_length);
}

Result<LayerState> ListsCache::state(std::optional<Side> side, std::int64_t layer) const {
  const auto list = list_of(side);
  if (!list) return list.error();
  const auto found = lists_[*list].at(layer);
  if (!found) return found.error();
  return (*found)->state();
}

Status ListsCache::crop(std::int64_t tokens_to_remove) {
  return carry_out_on_each([&](Layers& list) { return list.crop(tokens_to_remove); });
}

Status ListsCache::reorder_cache(std::span<const std::int64_t> beam_idx) {
  return carry_out_on_each([&](Layers& list) { return list.reorder(beam_idx); });
}

Status ListsCache::batch_repeat_interleave(std::int64_t repeats) {
  if (Status taken = takes_changes(); !taken) return taken;
  return carry_out_on_each([&](Layers& list) { return list.repeat(repeats); });
}

Status ListsCache::batch_select_indices(std::span<const std::int64_t> indices) {
  if (Status taken = takes_changes(); !taken) return taken;
  return carry_out_on_each([&](Layers& list) { return list.select(indices); });
}

void ListsCache::reset() {
  static_cast<void>(
      carry_out(Quirk::kLayersTorn, [](std::vector<Layers>& lists, Writes& writes) -> Status {
        for (Layers& list : lists) list.reset(writes);
        return {};
      }));
}

void ListsCache::activate_past_recording() {
  for (Layers& list : lists_) list.record_past();
}

Status ListsCache::early_initialization(std::int64_t batch_size, std::int64_t num_heads,
                                        std::int64_t head_dim) {
  return carry_out_on_each(
      [&](Layers& list) { return list.initialize(batch_size, num_heads, head_dim); });
}

// ---- LayerCache ----

Result<std::size_t> LayerCache::list_of(std::optional<Side> side) const {
  if (side) return fail(Code::kPrecondition, "side: the cache is no pair");
  return 0;
}

Status LayerCache::moved(std::int64_t layer) const {
  const auto index = lists_.front().index_of(layer);
  return index ? Status() : index.error();
}

Result<Rows> LayerCache::update_conv_state(std::int64_t layer, const Tensor& state,
                                           std::optional<std::int64_t> conv_kernel_size) {
  const auto index = lists_.front().linear_at(layer);
  if (!index) return index.error();
  return carry_out(Quirk::kRefusedUpdateChanges, [&](std::vector<Layers>& lists, Writes&) {
    return lists.front().linear(*index).update_conv(state, conv_kernel_size);
  });
}

Result<Rows> LayerCache::get_conv_state(std::int64_t layer) const {
  const auto index = lists_.front().linear_at(layer);
  if (!index) return index.error();
  return lists_.front().linear(*index).conv();
}

Result<Rows> LayerCache::update_recurrent_state(std::int64_t layer, const Tensor& state) {
  const auto index = lists_.front().linear_at(layer);
  if (!index) return index.error();
  return carry_out(Quirk::kRefusedUpdateChanges, [&](std::vector<Layers>& lists, Writes&) {
    return lists.front().linear(*index).update_recurrent(state);
  });
}

Result<Rows> LayerCache::get_recurrent_state(std::int64_t layer) const {
  const auto index = lists_.front().linear_at(layer);
  if (!index) return index.error();
  return lists_.front().linear(*index).recurrent();
}

// ---- PairCache ----

PairCache::PairCache(const CacheOptions& options)
    : ListsCache({Layers(options.self, options.quirks), Layers(*options.cross, options.quirks)},
                 options.quirks),
      dynamic_(options.self.storing == Storing::kDynamic &&
               options.cross->storing == Storing::kDynamic),
      cross_layers_(static_cast<std::size_t>(lists_.back().count())) {}

Result<std::size_t> PairCache::list_of(std::optional<Side> side) const {
  if (!side) return not_in_a_pair();
  return *side == Side::kSelf ? 0 : 1;
}

Status PairCache::takes_changes() const {
  return dynamic_ ? Status() : fail(Code::kNotSupported, "only for a pair of dynamic caches");
}

Result<Properties> PairCache::props() const {
  if (quirks_.has(Quirk::kPairLacksMethods)) return not_in_a_pair();
  return lists_.front().properties();
}

Status PairCache::crop(std::int64_t tokens_to_remove) {
  if (Status taken = takes_changes(); !taken) return taken;
  return carry_out(Quirk::kLayersTorn, [&](std::vector<Layers>& lists, Writes&) {
    return lists.front().crop(tokens_to_remove);
  });
}

void PairCache::activate_past_recording() {
  lists_.front().record_past();
}

Status PairCache::early_initialization(std::int64_t batch_size, std::int64_t num_heads,
                                       std::int64_t head_dim) {
  if (quirks_.has(Quirk::kPairLacksMethods)) return not_in_a_pair();
  return ListsCache::early_initialization(batch_size, num_heads, head_dim);
}

std::unique_ptr<Cache> make_layer_cache(const CacheOptions& options) {
  if (options.cross) return std::make_unique<PairCache>(options);
  return std::make_unique<LayerCache>(options);
}

}  // namespace kvo::dynamic
