// properties/provider/shared_lowering.hpp: what the lowerings to caches of contract `provider`
// share.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "properties/replay/lowering.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// A slot is one cache; a layer gets its rows in one update; taking back is truncate. What a read
/// must show follows from the tags of the rows that were appended and not taken back.
class ProviderStream : public replay::SequenceOps {
 public:
  explicit ProviderStream(const replay::LoweringInput& input);

 protected:
  /// Shape of an update of `tokens` positions: [batch or channels, tokens, dim].
  [[nodiscard]] virtual Shape rows(std::int64_t tokens) const = 0;
  /// What a cache stores; elements are exact in it.
  [[nodiscard]] virtual replay::ElementType stored() const { return replay::ElementType::kF32; }
  /// Emits queries of the contract that a read ends with; the reference says what they return.
  virtual void ask(std::int64_t /*slot*/) {}
  /// Emits the update of one layer.
  virtual void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v);

  void begin(std::int64_t slot) override;
  void append(std::int64_t slot, std::int64_t tokens) override;
  void reject(std::int64_t slot, std::int64_t tokens) override;
  void read(std::int64_t slot) override;

 private:
  /// An update as it was appended, and how many of its positions are left.
  struct Chunk {
    std::uint64_t first_tag;
    std::int64_t appended;
    std::int64_t left;
  };
  std::vector<Chunk>& chunks(std::int64_t slot, std::int64_t layer) {
    return chunks_[static_cast<std::size_t>(slot * policy().num_layers + layer)];
  }
  [[nodiscard]] Found shown(const std::vector<Chunk>& chunks) const;

  std::vector<std::vector<Chunk>> chunks_;
};

/// The stream of one kind. Derived has, for each T of Ops,
///   static std::optional<std::int64_t> appends_to(const T& op);   the slot, if it is an append
/// An append that fails preempts the slot's sequence.
template <class Derived, class Ops>
class KindStream : public ProviderStream {
 public:
  using ProviderStream::ProviderStream;

  void saw(const Op& op, const Observation& seen, Labels& labels) final {
    visit_op(Ops(), op, [&](const auto& operation) {
      const std::optional<std::int64_t> slot = Derived::appends_to(operation);
      if (slot && seen.error) preempt(*slot, labels);
    });
  }
};

}  // namespace kvo::provider
