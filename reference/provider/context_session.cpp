// How operations of `provider.context` reach the helpers.
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/provider/context.hpp"

namespace kvo::provider {
namespace {

// A cache that is only stored and found again.
template <class Kind>
class Inert : public Kind {
 public:
  Status update(std::int64_t /*layer*/, const Rows& /*rows*/) override { return unused(); }
  Result<std::optional<KvPair>> get(std::int64_t /*layer*/) override { return std::nullopt; }
  [[nodiscard]] std::int64_t seq_len() const override { return 0; }
  Status reset() override { return unused(); }
  Status truncate(std::int64_t /*n*/) override { return unused(); }

 private:
  static Error unused() { return fail(Code::kNotSupported); }
};

class InertKv final : public Inert<Contiguous> {
 public:
  [[nodiscard]] std::int64_t num_layers() const override { return 0; }
};

class ContextSession final : public DispatchSession<ContextSession, ContextOps> {
 public:
  ContextSession(MakeContext make, QuirkSet<Quirk> quirks)
      : make_(std::move(make)), quirks_(quirks), current_(make_(quirks)) {}

  Status operator()(const Background& /*op*/) {
    current_ = probe()([&] { return make_(quirks_); });
    return {};
  }
  Status operator()(const WithCache& op) {
    current_ = probe()([&] { return current_->with_cache(provider(op.kind)); });
    return {};
  }
  Status operator()(const WithKvCache& op) {
    if (op.kind == Stored::kPaged) return fail(Code::kPrecondition, "no contiguous cache");
    const auto cache = op.kind == Stored::kKv ? kv_ : nullptr;
    current_ = probe()([&] { return current_->with_kv_cache(cache); });
    return {};
  }
  Status operator()(const WithCacheNested& op) {
    current_ = probe()(
        [&] { return current_->with_cache(provider(op.outer))->with_cache(provider(op.inner)); });
    return {};
  }
  Result<GetCache::Returns> operator()(const GetCache& /*op*/) {
    const auto seen = probe()([&] { return current_->get_cache(DType::kF32); });
    if (!seen.found) return GetCache::Returns{};
    if (!seen.cache) return GetCache::Returns{true, FoundKind::kTypedNilKv};
    return GetCache::Returns{true, seen.cache == kv_ ? FoundKind::kKv : FoundKind::kPaged};
  }
  Result<GetCacheOtherType::Returns> operator()(const GetCacheOtherType& /*op*/) {
    return GetCacheOtherType::Returns{
        probe()([&] { return current_->get_cache(DType::kF16).found; })};
  }
  Result<GetKvCache::Returns> operator()(const GetKvCache& /*op*/) {
    const auto seen = probe()([&] { return current_->get_kv_cache(); });
    return GetKvCache::Returns{seen.found, seen.cache == nullptr};
  }

 private:
  [[nodiscard]] std::shared_ptr<Provider> provider(Stored kind) const {
    switch (kind) {
      case Stored::kKv:
        return kv_;
      case Stored::kPaged:
        return paged_;
      case Stored::kNil:
        break;
    }
    return nullptr;
  }

  MakeContext make_;
  QuirkSet<Quirk> quirks_;
  std::shared_ptr<Contiguous> kv_ = std::make_shared<InertKv>();
  std::shared_ptr<Provider> paged_ = std::make_shared<Inert<Provider>>();
  std::shared_ptr<const Context> current_;
};

}  // namespace

const CacheKind& context_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kContextQuirks);
  static const CacheKind kKind{
      .contract = "provider",
      .cache = "context",
      .doc = "a provider carried by a context (zerfoo WithCache, GetCache)",
      .operations = op_kinds(ContextOps()),
      .quirks = kRows};
  return kKind;
}

Subject make_context_subject(std::string variant, std::string doc, MakeContext make) {
  return subject_of<Quirk>(
      context_kind(), std::move(variant), std::move(doc),
      [make = std::move(make)](const Setup& /*setup*/, QuirkSet<Quirk> quirks) {
        return std::make_unique<ContextSession>(make, quirks);
      },
      kQuirkRows);
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_CONTEXT_OPERATIONS)
}  // namespace kvo
