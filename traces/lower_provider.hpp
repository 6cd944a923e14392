// traces/lower_provider.hpp: what the lowerings to caches of contract `provider` share.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reference/provider/contract.hpp"
#include "traces/lowering.hpp"

namespace kvo::traces {

/// A slot is one cache; a layer gets its rows in one update; taking back is truncate. What a read
/// must show follows from the tags of the rows that were appended and not taken back.
class ProviderOps : public LoweredOps {
 public:
  explicit ProviderOps(const LoweringInput& input);

 protected:
  /// Shape of an update of `tokens` positions: [batch or channels, tokens, dim].
  [[nodiscard]] virtual Shape rows(std::int64_t tokens) const = 0;
  /// Emits the update of one layer.
  virtual void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v);

  void begin(std::int64_t slot) override;
  void append(std::int64_t slot, std::int64_t tokens) override;
  void truncate(std::int64_t slot, std::int64_t tokens) override;
  void read(std::int64_t slot) override;
  [[nodiscard]] std::optional<std::int64_t> appends_to(const Op& op) const override;

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
  [[nodiscard]] provider::Found shown(const std::vector<Chunk>& chunks) const;

  std::vector<std::vector<Chunk>> chunks_;
};

}  // namespace kvo::traces
