// tools/probe/serve/slots.hpp: which rows a request reuses where the contract leaves that to the
// engine: the longest prefix of a text that a slot still holds, as llama-server and Ollama do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tools/probe/serve/cache.hpp"

namespace kvo::tools {

/// A cache whose sequences are slots. A slot holds its text until another one needs the space.
class SlotCache : public ServedCache {
 public:
  [[nodiscard]] Result<Begun> begin(const ProbeTokens& prompt, const RowSharing& sharing) final;
  [[nodiscard]] Status prompt_read(const Begun& begun, const ProbeTokens& prompt) final;
  void end(std::int64_t sequence, const ProbeTokens& text) final;

 protected:
  /// Gives `target`, which has no rows, the first `rows` of `source`.
  [[nodiscard]] virtual Status copy(std::int64_t source, std::int64_t target, std::size_t rows) = 0;
  /// Removes all rows of a sequence but the first `rows`.
  [[nodiscard]] virtual Status cut(std::int64_t sequence, std::size_t rows) = 0;
  /// Whether the rows after a gap can be moved.
  [[nodiscard]] virtual bool moves() const { return false; }
  /// Removes rows [1, 1 + count) and moves the later ones. Requires  moves().
  [[nodiscard]] virtual Status close_gap(std::int64_t /*sequence*/, std::size_t /*count*/) {
    return {};
  }

  /// The result of `act`, which is repeated while the cache is full and a text can be dropped.
  template <class Act>
  auto with_space(Act&& act) {
    while (true) {
      auto done = act();
      if (done.has_value()) return done;
      const Code code = done.error().code;
      if ((code != Code::kFull && code != Code::kExhausted) || !drop_oldest()) return done;
    }
  }

 private:
  struct Slot {
    ProbeTokens text = {};  ///< whose rows it has
    bool busy = false;
    std::uint64_t used = 0;  ///< when, in calls of begin()
  };
  /// The idle slot that was used longest ago, but `other`; kSequences: there is none.
  [[nodiscard]] std::size_t oldest_idle(std::size_t other, bool with_text) const;
  /// Empties the idle slot that was used longest ago. False: all are busy or empty.
  bool drop_oldest();
  /// Fills `target` with the first rows of `source`; how many: `rows`, or 0 if it cannot.
  std::size_t reuse(std::size_t source, std::size_t target, std::size_t rows);

  std::array<Slot, kSequences> slots_;
  std::uint64_t begun_ = 0;
};

}  // namespace kvo::tools
