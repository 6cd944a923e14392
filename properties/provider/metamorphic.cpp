// The metamorphic laws of contract `provider`.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/paged.hpp"
#include "reference/provider/tensor.hpp"
#include "reference/provider/tracing_operations.hpp"

namespace kvo::provider {
namespace {

// The cache that an operation names; an absent one is 0.
std::int64_t cache_of(const Op& op) {
  return integer_of(op, "cache").value_or(0);
}

Tensor filled(const Shape& shape, float value) {
  Tensor tensor = make_tensor(shape);
  std::ranges::fill(tensor.floats(), value);
  return tensor;
}

// ---- prefill_in_chunks ----

bool lies_in_tensor_cache(const Drawn& drawn) {
  return &drawn.kind == &tensor_kind() ||
         (&drawn.kind == &tracing_kind() &&
          drawn.setup.config_as<TracingConfig>().real == Real::kTensor);
}

bool injects(const Op& op) {
  const auto* made = op.as<NewTensor>();
  return op.as<InjectTensor>() != nullptr || (made != nullptr && made->malloc_fail.has_value());
}

// Adds the two halves of an update, if it can be cut.
template <class T>
bool cut_update(const Drawn& drawn, std::size_t at, Variation& variation) {
  const T* op = drawn.script[at].as<T>();
  if (op == nullptr || !drawn.succeeded(at) || !op->k.has_value() || !op->v.has_value())
    return false;
  const Shape& shape = op->k->shape;
  if (shape.size() != 3 || op->v->shape != shape || op->k->elements() == 0) return false;
  // ZF-60: the original lays updates one after the other, which is right only for batch 1.
  const bool tensor = lies_in_tensor_cache(drawn);
  if (tensor && drawn.setup.profile == Profile::kOriginal && shape[0] != 1) return false;
  // ZF-57, ZF-58: an update of one position is a decode step there and moves other counters.
  const std::int64_t least = tensor ? 2 : 1;
  const std::int64_t size = shape[1];
  if (size < 2 * least) return false;
  const std::int64_t cut = least - 1 + cut_of(at, size - 2 * least + 2);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    T half = *op;
    half.k = axis_range(*op->k, 1, begin, end);
    half.v = axis_range(*op->v, 1, begin, end);
    return Op::of(std::move(half));
  };
  variation.insert(part(0, cut));
  variation.pair(at, part(cut, size));
  return true;
}

Variation prefill_in_chunks(const Drawn& drawn) {
  Variation variation;
  bool any = false;
  bool failures = false;  // two updates launch and allocate more often than one
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    failures = failures || injects(op);
    const bool cut = !failures && (cut_update<Update>(drawn, at, variation) ||
                                   cut_update<UpdateTensor>(drawn, at, variation) ||
                                   cut_update<UpdateTraced>(drawn, at, variation));
    any = any || cut;
    if (cut) continue;
    if (op.as<Trace>() != nullptr)
      variation.insert(op);  // it names every update
    else
      variation.pair(at, op);
  }
  return any ? variation : Variation();
}

const MetamorphicLaw& chunks() {
  static const MetamorphicLaw kLaw(
      "prefill_in_chunks", "rows that are given in two parts show the same as given at once",
      kLongScript,
      {.how = "rows appended in two parts",
       .applies =
           [](const CacheKind& kind) {
             return &kind == &contiguous_kind() || &kind == &paged_kind() ||
                    &kind == &tensor_kind() || &kind == &tracing_kind();
           },
       .transformation = prefill_in_chunks});
  return kLaw;
}

// ---- placement_does_not_show ----

// A number of a cache that no operation names.
std::int64_t unused_cache(const Script& script) {
  std::set<std::int64_t> used;
  for (const Op& op : script) used.insert(cache_of(op));
  std::int64_t number = 4095;
  while (used.contains(number)) --number;
  return number;
}

// A cache of its own takes a few blocks and gives them back: the next ones come in another order.
void mix_blocks(const NewPool& pool, std::int64_t blocks, std::int64_t cache,
                Variation& variation) {
  constexpr std::int64_t kMostCells = 1 << 16;
  if (pool.num_layers < 1 || pool.block_size < 1 || pool.head_dim < 1 || blocks < 2 ||
      pool.block_size > kMostCells || pool.head_dim > kMostCells ||
      pool.block_size * pool.head_dim > kMostCells)
    return;
  const Tensor rows =
      filled({1, std::min<std::int64_t>(blocks, 3) * pool.block_size, pool.head_dim}, -9);
  variation.insert(Op::of(NewPaged{.cache = cache, .num_layers = pool.num_layers}));
  variation.insert(Op::of(Update{.cache = cache, .layer = 0, .k = rows, .v = rows}));
  variation.insert(Op::of(Free{.cache = cache}));
}

// How many blocks, not which.
Observation without_block_numbers(const Observation& seen) {
  if (!seen.returns) return seen;
  Table::Returns table = seen.as<Table::Returns>();
  for (Nullable<std::int64_t>& block : table.blocks)
    if (block.has_value()) block = std::int64_t{0};
  return {.error = seen.error, .returns = Record::of(std::move(table))};
}

Variation other_blocks(const Drawn& drawn) {
  Variation variation;
  const std::int64_t dummy = unused_cache(drawn.script);
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    // It names a block by its number: here that is somebody else's.
    if (op.as<block_pool::FreeBlock>() != nullptr && drawn.succeeded(at)) break;
    if (op.as<block_pool::ReadBlock>() != nullptr)
      variation.insert(op);
    else if (op.as<block_pool::Alloc>() != nullptr)
      variation.pair(at, op, error_only);
    else if (op.as<Table>() != nullptr)
      variation.pair(at, op, without_block_numbers);
    else
      variation.pair(at, op);
    const auto* pool = op.as<NewPool>();
    if (pool == nullptr || !drawn.succeeded(at)) continue;
    const std::size_t before = variation.script.size();
    mix_blocks(*pool, drawn.seen[at].as<NewPool::Returns>().cap, dummy, variation);
    any = any || variation.script.size() > before;
  }
  return any ? variation : Variation();
}

const MetamorphicLaw& placement() {
  static const MetamorphicLaw kLaw(
      "placement_does_not_show", "which blocks or cells hold the rows does not show", kLongScript,
      {.how = "blocks taken in another order",
       .applies = [](const CacheKind& kind) { return &kind == &paged_kind(); },
       .transformation = other_blocks});
  return kLaw;
}

// ---- order_of_independent_sequences ----

Observation without_handle(const Observation& seen) {
  const auto* get = seen.returns.get_if<Found>();
  if (get == nullptr) return seen;
  Found found = *get;
  found.handle.reset();
  return {.error = seen.error, .returns = Record::of(std::move(found))};
}

Variation cache_by_cache(const Drawn& drawn) {
  return owner_by_owner(drawn, {.of = [](const Op& op) { return std::optional(cache_of(op)); },
                                .handle =
                                    [](const Observation& seen) {
                                      const auto* found = seen.returns.get_if<Found>();
                                      return found != nullptr ? found->handle : std::nullopt;
                                    },
                                .without_handle = without_handle});
}

const MetamorphicLaw& order() {
  static const MetamorphicLaw kLaw(
      "order_of_independent_sequences",
      "what is done to one cache or sequence does not depend on when others are used, or on names",
      kLongScript,
      {.how = "one cache after the other",
       .applies = [](const CacheKind& kind) { return &kind == &contiguous_kind(); },
       .transformation = cache_by_cache});
  return kLaw;
}

// ---- a_b_a ----

// How many positions the layers of a cache hold, by the operations that succeeded.
class Lengths {
 public:
  explicit Lengths(const Drawn& drawn)
      : least_(drawn.setup.profile == Profile::kOriginal && &drawn.kind == &contiguous_kind()
                   ? std::numeric_limits<std::int64_t>::min()  // ZF-17: they may become negative
                   : 0) {}

  void follow(const Op& op) {
    Layers& layers = layers_[cache_of(op)];
    if (const auto* update = op.as<Update>()) {
      layers[update->layer] += update->k->shape[1];
    } else if (const auto* truncate = op.as<Truncate>()) {
      for (auto& [layer, length] : layers) length = std::min(length, std::max(truncate->n, least_));
    } else if (op.as<Reset>() != nullptr || op.as<Free>() != nullptr ||
               op.as<NewContiguous>() != nullptr || op.as<NewPaged>() != nullptr) {
      layers.clear();
    }
  }
  // The length of a cache's longest layer.
  [[nodiscard]] std::int64_t longest(std::int64_t cache) {
    std::int64_t most = 0;
    for (const auto& [layer, length] : layers_[cache]) most = std::max(most, length);
    return most;
  }
  // The length of a layer that none of its cache exceeds; else 0.
  [[nodiscard]] std::int64_t of_longest(std::int64_t cache, std::int64_t layer) {
    const std::int64_t length = layers_[cache][layer];
    return length == longest(cache) ? length : 0;
  }

 private:
  using Layers = std::map<std::int64_t, std::int64_t>;
  std::int64_t least_;
  std::map<std::int64_t, Layers> layers_;
};

// Rows behind the last one of a layer, taken back: but only where no layer is longer, because a
// truncation cuts all of them.
bool append_and_cut(const Drawn& drawn, std::size_t at, Lengths& lengths, Variation& variation) {
  constexpr std::int64_t kMostCells = 4096;
  const auto* get = drawn.script[at].as<Get>();
  if (get == nullptr || !drawn.seen[at].returns) return false;
  const std::int64_t length = lengths.of_longest(get->cache.value_or(0), get->layer);
  const auto& shown = drawn.seen[at].as<Found>();
  if (length <= 0 || !shown.k || shown.k->elements() == 0 || shown.k->elements() > kMostCells)
    return false;
  const Shape& shape = shown.k->shape;
  const Tensor rows = filled({shape[0], 1 + static_cast<std::int64_t>(at % 3), shape[2]}, -9);
  variation.insert(Op::of(Update{.cache = get->cache, .layer = get->layer, .k = rows, .v = rows}));
  variation.insert(Op::of(Truncate{.cache = get->cache, .n = length}));
  return true;
}

Variation appended_and_cut(const Drawn& drawn) {
  Variation variation;
  Lengths lengths(drawn);
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    // What a dry pool gave stays with the cache (ZF-30), and would be given back here.
    if (drawn.seen[at].failed_with(Code::kExhausted)) break;
    // It names a block by its number.
    if (op.as<block_pool::FreeBlock>() != nullptr && drawn.succeeded(at)) break;
    // ZF-40: the original takes blocks into the table that the cache had given back.
    const auto* truncate = op.as<Truncate>();
    if (truncate != nullptr && &drawn.kind == &paged_kind() &&
        truncate->n > lengths.longest(cache_of(op)))
      break;
    any = append_and_cut(drawn, at, lengths, variation) || any;
    // Earlier results may show cells behind the last row (ZF-14); blocks have numbers.
    if (op.as<Reread>() != nullptr || op.as<Table>() != nullptr ||
        op.as<block_pool::ReadBlock>() != nullptr || op.as<block_pool::Alloc>() != nullptr)
      variation.insert(op);
    else
      variation.pair(at, op);
    if (drawn.succeeded(at)) lengths.follow(op);
  }
  return any ? variation : Variation();
}

const MetamorphicLaw& back_again() {
  static const MetamorphicLaw kLaw(
      "a_b_a", "what is added and taken back again leaves no trace", kLongScript,
      {.how = "with an append and a rollback inserted",
       .applies =
           [](const CacheKind& kind) {
             return &kind == &contiguous_kind() || &kind == &paged_kind();
           },
       .transformation = appended_and_cut});
  return kLaw;
}

}  // namespace

std::vector<const Law*> laws() {
  return {&chunks(), &placement(), &order(), &back_again()};
}

}  // namespace kvo::provider
