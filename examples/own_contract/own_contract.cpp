// A contract of one's own, and every command of kvoracle for it: a ring of the last tokens of a
// sequence, for a model with a window.
//
// Rules   RING-1  A ring holds `capacity` tokens at most; the config of a case says how many.
//         RING-2  A push that does not fit evicts the oldest tokens, or is refused with kFull.
//         RING-3  A push longer than the ring leaves its last tokens.
//         RING-4  After clear the ring is as if new.
#include <kvoracle/properties/replay/engine.hpp>
#include <kvoracle/reference/contract/subject/dispatch.hpp>
#include <kvoracle/reference/contract/subject/named_quirks.hpp>
#include <kvoracle/reference/contract/values/mark.hpp>
#include <kvoracle/reference/contract/values/tags.hpp>
#include <kvoracle/tools/kvo_main.hpp>

namespace ring {

KVO_QUIRKS(Quirk, (kLongPushEmpties, "RING-3", "a push longer than the ring empties it"))
using Quirks = kvo::QuirkSet<Quirk>;

enum class WhenFull : std::uint8_t { kEvict, kRefuse };
BOOST_DESCRIBE_ENUM(WhenFull, kEvict, kRefuse)

// Tokens, the oldest first.
struct Tokens {
  using Value = kvo::Tensor;
  static constexpr std::array<std::string_view, 1> kAxes{"token"};
  static constexpr kvo::Domain kDomain{.meaning = "tokens, the oldest first", .axes = kAxes};
};
KVO_RECORD(Config, (std::uint16_t, capacity, "tokens that the ring holds at most", 4))
KVO_RECORD(Held, (Tokens, tokens))
KVO_OPERATION(Push, push, "Adds tokens after those of the window (RING-2, RING-3).", kvo::Nothing,
              (Tokens, tokens), (WhenFull, when_full, "evict the oldest, or refuse"))
KVO_OPERATION(Window, window, "Reads all tokens (RING-1).", Held)
KVO_OPERATION(Clear, clear, "Drops all tokens (RING-4).", kvo::Nothing)
using Ops = boost::mp11::mp_list<Push, Window, Clear>;

const kvo::CacheKind& tokens_kind() {
  static const kvo::CacheKind kKind{.contract = "ring",
                                    .cache = "tokens",
                                    .doc = "the last tokens of a sequence",
                                    .operations = kvo::op_kinds(Ops()),
                                    .config = &kvo::type_of<Config>(),
                                    .quirks = kQuirkRows};
  return kKind;
}

// A cache of the contract has a method for each operation. After an error nothing has changed.
class Ring {
 public:
  virtual ~Ring() = default;
  kvo::Status push(const kvo::Tensor& tokens, WhenFull when_full) {
    if (tokens.dtype != kvo::DType::kF32 || tokens.shape.size() != 1)
      return kvo::fail(kvo::Code::kBadShape, "tokens");
    return do_push(tokens.floats(), when_full);
  }
  [[nodiscard]] kvo::Tensor window() const {
    const std::vector<float> tokens = all();
    return kvo::tensor_of({std::ssize(tokens)}, tokens);
  }
  virtual void clear() = 0;

 protected:
  virtual kvo::Status do_push(std::span<const float> tokens, WhenFull when_full) = 0;
  [[nodiscard]] virtual std::vector<float> all() const = 0;  // the oldest first
};

// The reference: a list of tokens. Its marks are states that random cases must reach, or they have
// proved little.
class ListRing final : public Ring {
 public:
  ListRing(std::size_t capacity, Quirks quirks) : capacity_(capacity), quirks_(quirks) {}
  void clear() override {  // RING-4
    if (tokens_.size() == capacity_) KVO_MARK("ring.tokens", "full ring cleared");
    tokens_.clear();
  }

 private:
  kvo::Status do_push(std::span<const float> tokens, WhenFull when_full) override {
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
  std::vector<float> all() const override { return tokens_; }

  std::size_t capacity_;
  Quirks quirks_;
  std::vector<float> tokens_;
};

// A second cache, by arithmetic on indices; and a mutant of it.
class IndexRing : public Ring {
 public:
  IndexRing(std::size_t capacity, Quirks quirks) : quirks_(quirks), cells_(capacity) {}
  void clear() override { begin_ = size_ = 0; }

 protected:
  kvo::Status do_push(std::span<const float> tokens, WhenFull when_full) override {
    if (size_ + tokens.size() > cells_.size() && when_full == WhenFull::kRefuse)
      return kvo::fail(kvo::Code::kFull);
    if (cells_.empty()) return {};
    if (tokens.size() > cells_.size()) {
      clear();
      if (quirks_.has(Quirk::kLongPushEmpties)) return {};
      tokens = tokens.last(cells_.size());
    }
    for (const float token : tokens) {
      cells_[(begin_ + size_) % cells_.size()] = token;
      size_ < cells_.size() ? ++size_ : ++begin_;
    }
    begin_ %= cells_.size();
    return {};
  }
  std::vector<float> all() const override {
    std::vector<float> tokens(size_);
    for (std::size_t i = 0; i < size_; ++i) tokens[i] = cells_[(begin_ + i) % cells_.size()];
    return tokens;
  }

 private:
  Quirks quirks_;
  std::vector<float> cells_;  // [capacity]
  std::size_t begin_ = 0;     // the cell of the oldest token
  std::size_t size_ = 0;
};
struct NeverRefuses final : IndexRing {
  using IndexRing::IndexRing;
  kvo::Status do_push(std::span<const float> tokens, WhenFull /*when_full*/) override {
    return IndexRing::do_push(tokens, WhenFull::kEvict);
  }
};

// The session of a case carries its operations to one ring.
struct RingSession final : kvo::DispatchSession<RingSession, Ops> {
  explicit RingSession(std::unique_ptr<Ring> made) : ring(std::move(made)) {}
  kvo::Result<Ring*> cache_of(const auto& /*op*/) const { return ring.get(); }
  std::unique_ptr<Ring> ring;
};
template <class Made>
kvo::Subject cache(std::string variant, std::string doc) {
  const auto open = [](const kvo::Setup& setup,
                       Quirks quirks) -> kvo::Result<std::unique_ptr<kvo::Session>> {
    return std::make_unique<RingSession>(
        std::make_unique<Made>(setup.config_as<Config>().capacity, quirks));
  };
  return kvo::subject_of<Quirk>(tokens_kind(), std::move(variant), std::move(doc), open,
                                kQuirkRows);
}

// Requests, for `run`: one sequence at a time, and without drafts, because what a ring has evicted
// cannot be taken back.
struct Requests final : kvo::replay::SequenceOps {
  explicit Requests(const kvo::replay::LoweringInput& input)
      : SequenceOps(input.with_slots(1).without_drafts()) {}
  void begin(std::int64_t /*slot*/) override { emit(Clear{}); }
  void append(std::int64_t /*slot*/, std::int64_t tokens) override {
    emit(Push{tagger().pair({tokens}).first});
  }
  void reject(std::int64_t /*slot*/, std::int64_t /*tokens*/) override {}
  void read(std::int64_t /*slot*/) override { emit(Window{}); }
  void end(std::int64_t /*slot*/) override {}
};
Config replay_config(const kvo::replay::LoweringInput& input) {
  return {static_cast<std::uint16_t>(input.schedule.chunk_tokens)};
}

std::vector<kvo::Mutant> mutants() {
  const std::string fault = "a push that must be refused evicts instead";
  return {{cache<NeverRefuses>("mutant:never_refuses", fault), fault, "an unread option"}};
}
std::vector<kvo::replay::Lowering> lowerings() {
  return {{.kind = &tokens_kind(),
           .setup = kvo::replay::setup_by<replay_config>,
           .lower = kvo::replay::lower_by<Requests>}};
}

}  // namespace ring

// The row has no generators: random scripts are drawn from the declarations above.
int main(int argc, char** argv) {
  return kvo::main(
      argc, argv, {},
      {{.name = "ring",
        .references = [] { return std::vector{ring::cache<ring::ListRing>("reference", "list")}; },
        .optimized = [] { return std::vector{ring::cache<ring::IndexRing>("optimized", "array")}; },
        .lowerings = ring::lowerings,
        .mutants = ring::mutants}});
}
