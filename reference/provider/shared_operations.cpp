// The operations that several caches of the contract share.
#include "reference/contract/subject/dispatch.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

Error SharedOps::no_cache(const std::optional<std::int64_t>& cache) {
  return fail(Code::kPrecondition, "no cache " + std::to_string(cache.value_or(0)));
}

Found SharedOps::show(const std::optional<KvPair>& pair, bool keep) {
  if (!pair) return {};
  Found found{.found = true, .k = materialize(pair->k), .v = materialize(pair->v)};
  if (keep) {
    found.handle = static_cast<std::int64_t>(kept_.size());
    kept_.push_back(*pair);
  }
  return found;
}

Status SharedOps::operator()(const Update& op) {
  Provider* cache = find(op.cache);
  if (cache == nullptr) return no_cache(op.cache);
  for (const Nullable<Tensor>* rows : {&op.k, &op.v})
    if (rows->has_value() && (*rows)->dtype != DType::kF32)
      return fail(Code::kPrecondition, "rows are f32");
  const Rows rows{.k = op.k.has_value() ? &*op.k : nullptr,
                  .v = op.v.has_value() ? &*op.v : nullptr};
  return probe()([&] { return cache->update(op.layer, rows); });
}

Result<Found> SharedOps::operator()(const Get& op) {
  Provider* cache = find(op.cache);
  if (cache == nullptr) return no_cache(op.cache);
  const auto pair = probe()([&] { return cache->get(op.layer); });
  if (!pair) return pair.error();
  return show(*pair, op.keep.value_or(true));
}

Result<Again> SharedOps::operator()(const Reread& op) {
  if (op.handle < 0 || op.handle >= static_cast<std::int64_t>(kept_.size()))
    return fail(Code::kPrecondition, "no handle " + std::to_string(op.handle));
  const KvPair& pair = kept_[static_cast<std::size_t>(op.handle)];
  if (pair.k.dangling() || pair.v.dangling()) return Again{.dangling = true};
  return Again{.k = materialize(pair.k), .v = materialize(pair.v)};
}

Status SharedOps::operator()(const Poke& op) {
  if (op.handle < 0 || op.handle >= static_cast<std::int64_t>(kept_.size()))
    return fail(Code::kPrecondition, "no handle " + std::to_string(op.handle));
  if (op.side != "k" && op.side != "v") return fail(Code::kPrecondition, "side " + op.side);
  const KvPair& pair = kept_[static_cast<std::size_t>(op.handle)];
  const TensorView& view = op.side == "k" ? pair.k : pair.v;
  if (op.index < 0 || op.index >= element_count(view.shape).value_or(0))
    return fail(Code::kPrecondition, "index " + std::to_string(op.index));
  if (view.dangling()) return fail(Code::kPrecondition, "the result is dangling");
  if (in_groups(storage_.type)) return fail(Code::kPrecondition, "rows are codes");
  view.storage->write(view.offset + op.index, op.value);
  return {};
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_SHARED_OPERATIONS)
}  // namespace kvo
