// How operations of `provider.tracing` reach a cache.
#include <map>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/inner.hpp"
#include "reference/provider/contiguous_operations.hpp"
#include "reference/provider/operated_provider.hpp"
#include "reference/provider/paged_operations.hpp"
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

/// A session of the subject inside, with the probe that its caches are called through. The tracer's
/// own probe is around it, and counts its time.
struct RealSession {
  Probe probe = {};
  ProbeSlot slot = {};
  std::optional<Inner> session = std::nullopt;
};

Result<std::unique_ptr<Provider>> opened_real(const Subject& cache, const Setup& setup,
                                              const TracingConfig& config) {
  const HarnessWork opening;
  const auto real = std::make_shared<RealSession>();
  real->slot.set(real->probe);
  auto session = Inner::open(cache, setup, real->slot);
  if (!session) return session.error();
  real->session.emplace(std::move(*session));
  Status made;
  if (config.real == Real::kKv) {
    made = status_of((*real->session)(NewContiguous{
        .num_layers = config.num_layers, .max_seq_len = config.max_seq_len.value_or(0)}));
  } else {
    const block_pool::New sizes = config.pool.value_or(block_pool::New{});
    made = status_of((*real->session)(NewPool{.num_layers = sizes.num_layers,
                                              .block_size = sizes.block_size,
                                              .head_dim = sizes.head_dim,
                                              .max_memory_mb = sizes.max_memory_mb}));
    if (made) made = status_of((*real->session)(NewPaged{.num_layers = config.num_layers}));
  }
  if (!made) return made.error();
  return std::unique_ptr<Provider>(std::make_unique<OperatedProvider>(
      std::shared_ptr<Inner>(real, &*real->session), false, true));
}

/// Real providers of `cache` where a config asks for its kind, else those of `make_real`.
MakeReal real_inside(const Subject& cache, const Setup& setup, const MakeReal& make_real) {
  return [=](const TracingConfig& config, QuirkSet<Quirk> quirks,
             QuirkSet<block_pool::Quirk> pool_quirks) {
    const CacheKind* wanted = config.real == Real::kKv      ? &contiguous_kind()
                              : config.real == Real::kPaged ? &paged_kind()
                                                            : nullptr;
    return cache.kind == wanted ? opened_real(cache, setup, config)
                                : make_real(config, quirks, pool_quirks);
  };
}

/// A subject whose real providers are those that `real` gives for a setup.
Subject tracing_over(const std::string& variant, const std::string& doc, const MakeTracing& make,
                     const std::function<MakeReal(const Setup&)>& real) {
  return {.kind = &tracing_kind(),
          .variant = variant,
          .doc = doc,
          .open = [=](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto of_pool =
                quirks_of<block_pool::Quirk>(setup, block_pool::kQuirkRows, kQuirkRows);
            if (!of_pool) return of_pool.error();
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows, block_pool::kQuirkRows);
            if (!quirks) return quirks.error();
            return std::make_unique<TracingSession>(
                make, real(setup), setup.config_as<TracingConfig>(), *quirks, *of_pool);
          }};
}

}  // namespace

const CacheKind& tracing_kind() {
  static constexpr auto kRows = joined(rows_of(kQuirkRows, kTracingQuirks), block_pool::kQuirkRows);
  static const CacheKind kKind{
      .contract = "provider",
      .cache = "tracing",
      .doc = "writes down what goes to another provider (zerfoo TracingCacheProvider)",
      .operations = op_kinds(TracingOps()),
      .config = &type_of<TracingConfig>(),
      .quirks = kRows,
      .inner = {"provider.contiguous", "provider.paged"}};
  return kKind;
}

Subject make_tracing_subject(std::string variant, std::string doc, MakeTracing make,
                             MakeReal make_real) {
  Subject subject =
      tracing_over(variant, doc, make, [make_real](const Setup&) { return make_real; });
  subject.over = [=](const Subject& cache) {
    return tracing_over(variant, doc, make,
                        [=](const Setup& setup) { return real_inside(cache, setup, make_real); });
  };
  return subject;
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_TRACING_OPERATIONS)
}  // namespace kvo
