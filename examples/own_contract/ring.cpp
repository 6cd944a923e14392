// The session, which carries operations to a ring, and the reference: a list of tokens. Its marks
// are states that random cases must reach, or they have proved little.
#include "ring.hpp"

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/contract/values/mark.hpp"

namespace ring {
namespace {

class ListRing final : public Ring {
 public:
  ListRing(std::size_t capacity, Quirks quirks) : capacity_(capacity), quirks_(quirks) {}

  kvo::Status push(std::span<const float> tokens, WhenFull when_full) override {
    const bool fits = tokens_.size() + tokens.size() <= capacity_;
    if (!fits && when_full == WhenFull::kRefuse) {  // RING-2
      KVO_MARK("ring.tokens", "refused");
      return kvo::fail(kvo::Code::kFull);
    }
    if (!fits && !tokens_.empty()) KVO_MARK("ring.tokens", "wrapped");
    if (tokens.size() > capacity_) KVO_MARK("ring.tokens", "long push");
    std::vector<float> all = tokens_;  // takes its place when nothing can fail any more
    all.insert(all.end(), tokens.begin(), tokens.end());
    if (tokens.size() > capacity_ && quirks_.has(Quirk::kLongPushEmpties)) all.clear();  // RING-3
    if (all.size() > capacity_)  // RING-2, RING-3
      all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(capacity_));
    tokens_ = std::move(all);
    return {};
  }
  std::vector<float> window() const override { return tokens_; }
  void clear() override {  // RING-4
    if (tokens_.size() == capacity_) KVO_MARK("ring.tokens", "full ring cleared");
    tokens_.clear();
  }

 private:
  std::size_t capacity_;
  Quirks quirks_;
  std::vector<float> tokens_;
};

class RingSession final : public kvo::DispatchSession<RingSession, Ops> {
 public:
  explicit RingSession(std::unique_ptr<Ring> ring) : ring_(std::move(ring)) {}

  /// The ring of the operations that have no overload.
  template <class T>
  kvo::Result<Ring*> cache_of(const T& /*op*/) const {
    return ring_.get();
  }
  kvo::Status operator()(const Push& op) {
    if (op.tokens.dtype != kvo::DType::kF32 || op.tokens.shape.size() != 1)
      return kvo::fail(kvo::Code::kBadShape, "tokens");
    return probe()([&] { return ring_->push(op.tokens.floats(), op.when_full); });
  }
  kvo::Result<Held> operator()(const Window& /*op*/) {
    const std::vector<float> tokens = probe()([&] { return ring_->window(); });
    return Held{kvo::tensor_of({static_cast<std::int64_t>(tokens.size())}, tokens)};
  }

 private:
  std::unique_ptr<Ring> ring_;
};

}  // namespace

const kvo::CacheKind& tokens_kind() {
  static const kvo::CacheKind kKind{.contract = "ring",
                                    .cache = "tokens",
                                    .doc = "the last tokens of a sequence",
                                    .operations = kvo::op_kinds(Ops()),
                                    .config = &kvo::type_of<Config>(),
                                    .quirks = kQuirkRows};
  return kKind;
}

kvo::Subject make_subject(std::string variant, std::string doc, MakeRing make) {
  const auto open = [make](const kvo::Setup& setup) -> kvo::Result<std::unique_ptr<kvo::Session>> {
    const auto quirks = kvo::quirks_of<Quirk>(setup, kQuirkRows);
    if (!quirks) return quirks.error();
    const std::size_t capacity = setup.config_as<Config>().capacity;
    if (capacity == 0) return kvo::fail(kvo::Code::kNotSupported, "capacity 0");
    return std::make_unique<RingSession>(make(capacity, *quirks));
  };
  return {&tokens_kind(), std::move(variant), std::move(doc), open};
}

std::vector<kvo::Subject> references() {
  return {make_subject("reference", "a list", make_ring<ListRing>)};
}

}  // namespace ring
