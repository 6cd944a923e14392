// How operations of `provider.tracing` reach a cache.
#include <map>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/provider/tracing_operations.hpp"

namespace kvo::provider {

namespace json = boost::json;

json::value SlotShape::to_json() const {
  return json::array{slot, json::array(shape.begin(), shape.end())};
}

bool SlotShape::from_json(const json::value& in) {
  const json::array* pair = in.if_array();
  JsonFault fault;
  return pair != nullptr && pair->size() == 2 && read_json((*pair)[0], slot, fault) &&
         read_json((*pair)[1], shape, fault);
}

namespace {

class TracingSession final : public DispatchSession<TracingSession, TracingOps, SharedOps> {
 public:
  TracingSession(MakeTracing make, MakeReal make_real, TracingConfig real, QuirkSet<Quirk> quirks,
                 QuirkSet<block_pool::Quirk> pool_quirks)
      : make_(std::move(make)),
        make_real_(std::move(make_real)),
        real_(std::move(real)),
        quirks_(quirks),
        pool_quirks_(pool_quirks) {}

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return caches_.broken_invariant();
  }

  using SharedOps::operator();
  Status operator()(const NewTracing& op) {
    const std::int64_t number = op.cache.value_or(0);
    if (!caches_.may_have(number)) return no_cache(op.cache);
    Made made;
    std::vector<const Tensor*> frozen;
    for (const auto& shape : op.frozen_shapes) {  // nobody looks at their cells
      Tensor& object = made.objects[static_cast<std::int64_t>(frozen.size())];
      object.shape.assign(shape.begin(), shape.end());
      frozen.push_back(&object);
    }
    auto cache = probe()([&]() -> Result<std::unique_ptr<Tracing>> {
      auto real = make_real_(real_, quirks_, pool_quirks_);
      if (!real) return real.error();
      return make_(std::move(*real), frozen);
    });
    if (!cache) return cache.error();
    made.cache = std::move(*cache);
    caches_.put(number, std::move(made));
    return {};
  }
  Status operator()(const UpdateTraced& op) {
    Made* made = caches_.find(op.cache.value_or(0));
    if (made == nullptr) return no_cache(op.cache);
    for (const Nullable<Tensor>* rows : {&op.k, &op.v})
      if (rows->has_value() && (*rows)->dtype != DType::kF32)
        return fail(Code::kPrecondition, "rows are f32");
    const Rows rows{.k = made->object(op.k_id, op.k), .v = made->object(op.v_id, op.v)};
    return probe()([&] { return made->cache->update(op.layer, rows); });
  }
  Result<TraceLog> operator()(const Trace& op) {
    const Made* made = caches_.find(op.cache.value_or(0));
    if (made == nullptr) return no_cache(op.cache);
    return probe()([&] { return made->cache->trace(); });
  }

 private:
  struct Made {
    std::map<std::int64_t, Tensor> objects = {};  ///< kept alive as long as the tracer
    std::unique_ptr<Tracing> cache = nullptr;

    Tracing* operator->() const { return cache.get(); }

    const Tensor* object(std::int64_t id, const Nullable<Tensor>& rows) {
      return rows.has_value() ? &(objects[id] = *rows) : nullptr;
    }
  };

  using SharedOps::find;
  Provider* find(std::int64_t cache) override {
    const Made* found = caches_.find(cache);
    return found != nullptr ? found->cache.get() : nullptr;
  }

  MakeTracing make_;
  MakeReal make_real_;
  TracingConfig real_;
  QuirkSet<Quirk> quirks_;
  QuirkSet<block_pool::Quirk> pool_quirks_;
  NumberedCaches<Made> caches_;
};

}  // namespace

const CacheKind& tracing_kind() {
  static constexpr auto kRows = joined(rows_of(kQuirkRows, kTracingQuirks), block_pool::kQuirkRows);
  static const CacheKind kKind{
      .contract = "provider",
      .cache = "tracing",
      .doc = "writes down what goes to another provider (zerfoo TracingCacheProvider)",
      .operations = op_kinds(TracingOps()),
      .config = &type_of<TracingConfig>(),
      .quirks = kRows};
  return kKind;
}

Subject make_tracing_subject(std::string variant, std::string doc, MakeTracing make,
                             MakeReal make_real) {
  return {.kind = &tracing_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make), make_real = std::move(make_real)](
                      const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto of_pool =
                quirks_of<block_pool::Quirk>(setup, block_pool::kQuirkRows, kQuirkRows);
            if (!of_pool) return of_pool.error();
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows, block_pool::kQuirkRows);
            if (!quirks) return quirks.error();
            return std::make_unique<TracingSession>(
                make, make_real, setup.config_as<TracingConfig>(), *quirks, *of_pool);
          }};
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_TRACING_OPERATIONS)
}  // namespace kvo
