// How operations of `provider.contiguous` reach a cache.
#include <array>
#include <map>
#include <memory>
#include <utility>

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

// A result keeps the rows that it was returned with.
class CopiedResults final : public Relation {
 public:
  [[nodiscard]] Observation settled(const Op& op, const Observation& want,
                                    Observation got) override {
    if (want.error) return got;
    if (op.as<Get>() != nullptr) {
      const auto& found = want.as<Found>();
      if (found.handle) returned_[*found.handle] = {.k = found.k, .v = found.v};
    } else if (const auto* again = op.as<Reread>(); again != nullptr && !got.error) {
      const auto kept = returned_.find(again->handle);
      if (kept != returned_.end() && !first_difference(kept->second, got.as<Again>())) return want;
    }
    return got;
  }

 private:
  std::map<std::int64_t, Again> returned_;
};

// After a reset any batch and dim are allowed, where the rules hold on to those of before.
class ForgottenShapes final : public Relation {
 public:
  [[nodiscard]] Observation settled(const Op& op, const Observation& want,
                                    Observation got) override {
    if (op.as<Reset>() != nullptr && !want.error) any_reset_ = true;
    return got;
  }
  [[nodiscard]] bool ends(const Op& op, const Observation& want,
                          const Observation& got) const override {
    return any_reset_ && op.as<Update>() != nullptr && want.failed_with(Code::kBadShape) &&
           !got.error;
  }

 private:
  bool any_reset_ = false;
};

constexpr std::array<ConventionInfo, 2> kContiguousConventions{
    {{.name = "copies",
      .rules = "ZF-14",
      .sentence =
          "returns copies: a result keeps the rows that it was returned with, and `poke` is "
          "not drawn",
      .relation = [](const CacheKind& /*kind*/, const Setup& /*setup*/)
          -> std::unique_ptr<Relation> { return std::make_unique<CopiedResults>(); },
      .outside = [](const Op& op) { return op.as<Poke>() != nullptr; }},
     {.name = "reset_forgets_shapes",
      .rules = "ZF-16",
      .sentence = "accepts another batch or dim after a reset: the case ends there",
      .relation = [](const CacheKind& /*kind*/, const Setup& /*setup*/)
          -> std::unique_ptr<Relation> { return std::make_unique<ForgottenShapes>(); }}}};

}  // namespace

const CacheKind& contiguous_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kContiguousQuirks);
  static const CacheKind kKind{
      .contract = "provider",
      .cache = "contiguous",
      .doc = "one buffer a layer, made by its first update (zerfoo KVCache)",
      .operations = op_kinds(ContiguousOps()),
      .config = &type_of<ContiguousConfig>(),
      .quirks = kRows,
      .conventions = kContiguousConventions};
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
