// How operations of `provider.contiguous` reach a cache.
#include "reference/provider/contiguous.hpp"
#include "reference/provider/shared_session.hpp"

namespace kvo::provider {
namespace {

class ContiguousSession final
    : public DispatchSession<ContiguousSession, ContiguousOps, SharedSession<Contiguous>> {
 public:
  ContiguousSession(MakeContiguous make, const StorageFormat& storage, QuirkSet<Quirk> quirks)
      : make_(std::move(make)), quirks_(quirks) {
    storage_ = storage;
  }

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    Observation seen = DispatchSession::apply(op, probe);
    // A storage type that a cache lacks is no fault of it.
    seen.unsupported |= op.as<NewContiguous>() != nullptr && seen.failed_with(Code::kNotSupported);
    return seen;
  }
  using SharedSession::operator();
  Status operator()(const NewContiguous& op) {
    const ContiguousOptions options{op.num_layers, op.max_seq_len, storage_};
    return put(op, [&] { return probe()([&] { return make_(options, quirks_); }); });
  }

 private:
  MakeContiguous make_;
  QuirkSet<Quirk> quirks_;
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
  return subject_of<Quirk>(
      contiguous_kind(), std::move(variant), std::move(doc),
      [make = std::move(make)](const Setup& setup, QuirkSet<Quirk> quirks) {
        const auto config = setup.config_as<ContiguousConfig>();
        return std::make_unique<ContiguousSession>(make, config.rows.format(), quirks);
      },
      kQuirkRows);
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_SHARED_OPERATIONS, KVO_CONTIGUOUS_OPERATIONS)
}  // namespace kvo
