// How operations of `provider.tracing` reach a cache.
#include <map>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/subject/inner.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/operated_provider.hpp"
#include "reference/provider/paged.hpp"
#include "reference/provider/shared_session.hpp"
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

struct TracingEntry {
  std::map<std::int64_t, Tensor> objects = {};  ///< as long as the tracer
  std::unique_ptr<Tracing> cache = nullptr;

  Tracing* operator->() const { return cache.get(); }
  const Tensor* object(std::int64_t id, const Tensor* rows) {
    return rows != nullptr ? &(objects[id] = *rows) : nullptr;
  }
};

class TracingSession final
    : public DispatchSession<TracingSession, TracingOps, SharedSession<Tracing, TracingEntry>> {
 public:
  TracingSession(MakeTracing make, MakeReal make_real, TracingConfig real, QuirkSet<Quirk> quirks,
                 QuirkSet<block_pool::Quirk> pool_quirks)
      : make_(std::move(make)),
        make_real_(std::move(make_real)),
        real_(real),
        quirks_(quirks),
        pool_quirks_(pool_quirks) {}

  using SharedSession::operator();
  Status operator()(const NewTracing& op) {
    return put(op, [&]() -> Result<TracingEntry> {
      TracingEntry made;
      std::vector<const Tensor*> frozen;
      for (const auto& shape : op.frozen_shapes) {  // their cells are never read
        Tensor& object = made.objects[std::ssize(frozen)];
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
      return made;
    });
  }
  Status operator()(const UpdateTraced& op) {
    const auto to = caches_.at(op.cache.value_or(0));
    if (!to) return to.error();
    auto rows = rows_of(op);
    if (!rows) return rows.error();
    rows->k = (*to)->object(op.k_id, rows->k);
    rows->v = (*to)->object(op.v_id, rows->v);
    return probe()([&] { return (*to)->cache->update(op.layer, *rows); });
  }

 private:
  MakeTracing make_;
  MakeReal make_real_;
  TracingConfig real_;
  QuirkSet<Quirk> quirks_;
  QuirkSet<block_pool::Quirk> pool_quirks_;
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
  return subject_of<Quirk>(
      tracing_kind(), variant, doc,
      [=](const Setup& setup, QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<Session>> {
        const auto of_pool =
            quirks_of<block_pool::Quirk>(setup, block_pool::kQuirkRows, kQuirkRows);
        if (!of_pool) return of_pool.error();
        return std::make_unique<TracingSession>(make, real(setup), setup.config_as<TracingConfig>(),
                                                quirks, *of_pool);
      },
      kQuirkRows, block_pool::kQuirkRows);
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
