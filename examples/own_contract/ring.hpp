// A contract of one's own: a ring of the last tokens of a sequence, for a model with a window.
//
// Rules   RING-1  A ring holds `capacity` tokens at most; the config of a case says how many.
//         RING-2  A push that does not fit evicts the oldest tokens, or is refused with kFull.
//         RING-3  A push longer than the ring leaves its last tokens.
//         RING-4  After clear the ring is as if new.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "properties/campaign/contracts.hpp"

namespace ring {

KVO_QUIRKS(Quirk, (kLongPushEmpties, "RING-3", "a push longer than the ring empties it"))
using Quirks = kvo::QuirkSet<Quirk>;

enum class WhenFull : std::uint8_t { kEvict, kRefuse };
BOOST_DESCRIBE_ENUM(WhenFull, kEvict, kRefuse)

/// A cache of the contract. After an error nothing has changed.
class Ring {
 public:
  virtual ~Ring() = default;
  [[nodiscard]] virtual kvo::Status push(std::span<const float> tokens, WhenFull when_full) = 0;
  /// All tokens, the oldest first.
  [[nodiscard]] virtual std::vector<float> window() const = 0;
  virtual void clear() = 0;
};

KVO_RECORD(Config, (std::uint16_t, capacity, "tokens that the ring holds at most; not 0", 4))

/// Tokens, the oldest first.
struct Tokens {
  using Value = kvo::Tensor;
  static constexpr std::array<std::string_view, 1> kAxes{"token"};
  static constexpr kvo::Domain kDomain{.meaning = "tokens, the oldest first", .axes = kAxes};
};
KVO_RECORD(Held, (Tokens, tokens))
KVO_OPERATION(Push, push, "Adds tokens after those of the window (RING-2, RING-3).", kvo::Nothing,
              (Tokens, tokens), (WhenFull, when_full, "evict the oldest, or refuse"))
KVO_OPERATION(Window, window, "Reads all tokens (RING-1).", Held)
KVO_OPERATION(Clear, clear, "Drops all tokens (RING-4).", kvo::Nothing)

using Ops = boost::mp11::mp_list<Push, Window, Clear>;

/// The cache kind `ring.tokens`.
[[nodiscard]] const kvo::CacheKind& tokens_kind();
using MakeRing = std::unique_ptr<Ring> (*)(std::size_t capacity, Quirks quirks);
/// A subject whose rings come from `make`.
[[nodiscard]] kvo::Subject make_subject(std::string variant, std::string doc, MakeRing make);
template <class Made>
[[nodiscard]] std::unique_ptr<Ring> make_ring(std::size_t capacity, Quirks quirks) {
  return std::make_unique<Made>(capacity, quirks);
}

// What stands in the contract's row.
[[nodiscard]] std::vector<kvo::Subject> references();
[[nodiscard]] std::vector<kvo::Subject> optimized();
[[nodiscard]] std::vector<kvo::Mutant> mutants();
[[nodiscard]] std::vector<kvo::Generator> generators();
[[nodiscard]] std::vector<kvo::replay::Lowering> lowerings();

}  // namespace ring
