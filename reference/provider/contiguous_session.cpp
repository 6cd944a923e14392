// How operations of `provider.contiguous` reach a cache.
#include "reference/contract/subject/dispatch.hpp"
#include "reference/provider/contiguous_operations.hpp"

namespace kvo::provider {
namespace {

class ContiguousSession final
    : public DispatchSession<ContiguousSession, ContiguousOps, SharedOps> {
 public:
  ContiguousSession(MakeContiguous make, const StorageFormat& storage, QuirkSet<Quirk> quirks)
      : make_(std::move(make)), quirks_(quirks) {
    set_storage(storage);
  }

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    Observation seen = DispatchSession::apply(op, probe);
    // A storage type that a cache lacks is no fault of it.
    seen.unsupported |= op.as<NewContiguous>() != nullptr && seen.failed_with(Code::kNotSupported);
    return seen;
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return caches_.broken_invariant();
  }

  using SharedOps::operator();
  Status operator()(const NewContiguous& op) {
    const std::int64_t number = op.cache.value_or(0);
    if (!caches_.may_have(number)) return no_cache(op.cache);
    auto made = probe()([&] { return make_({op.num_layers, op.max_seq_len, storage()}, quirks_); });
    if (!made) return made.error();
    caches_.put(number, std::move(*made));
    return {};
  }
  Result<Number> operator()(const NumLayers& op) {
    const auto* cache = caches_.find(op.cache.value_or(0));
    if (cache == nullptr) return no_cache(op.cache);
    return Number{probe()([&] { return (*cache)->num_layers(); })};
  }

 private:
  using SharedOps::find;
  Provider* find(std::int64_t cache) override {
    const auto* found = caches_.find(cache);
    return found != nullptr ? found->get() : nullptr;
  }

  MakeContiguous make_;
  QuirkSet<Quirk> quirks_;
  NumberedCaches<std::unique_ptr<Contiguous>> caches_;
};

}  // namespace

const CacheKind& contiguous_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kContiguousQuirks);
  static const CacheKind kKind{
      .contract = "provider",
      .cache = "contiguous",
      .doc = "one buffer a layer, made by its first update (zerfoo KVCache)",
      .operations = op_kinds(ContiguousOps()),
      .config = &type_of<ContiguousConfig>(),
      .quirks = kRows};
  return kKind;
}

Subject make_contiguous_subject(std::string variant, std::string doc, MakeContiguous make) {
  return {.kind = &contiguous_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            const auto config = setup.config_as<ContiguousConfig>();
            return std::make_unique<ContiguousSession>(make, config.rows.format(), *quirks);
          }};
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_CONTIGUOUS_OPERATIONS)
}  // namespace kvo
