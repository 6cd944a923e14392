// traces/lower_provider.hpp: what the lowerings to caches of contract `provider` share.
#pragma once

#include <utility>

#include "reference/provider/contract.hpp"
#include "traces/lowering.hpp"

namespace kvo::traces {

/// A slot is one cache; a layer gets its rows in one update; taking back is truncate.
class ProviderOps : public LoweredOps {
 public:
  using LoweredOps::LoweredOps;

 protected:
  /// Shape of an update of `tokens` positions.
  [[nodiscard]] virtual Shape rows(std::int64_t tokens) const = 0;

  void append(std::int64_t slot, std::int64_t tokens) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      auto [k, v] = tagger().pair(rows(tokens));
      emit(provider::Update{slot, layer, std::move(k), std::move(v)});
    }
  }
  void truncate(std::int64_t slot, std::int64_t tokens) override {
    emit(provider::Truncate{slot, tokens});
  }
  // No handle is kept: a replay may last for days.
  void read(std::int64_t slot) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer)
      emit(provider::Get{slot, layer, false});
    emit(provider::SeqLen{slot});
  }
  [[nodiscard]] std::optional<std::int64_t> appends_to(const Op& op) const override {
    const auto* update = op.as<provider::Update>();
    return update != nullptr ? update->cache : std::nullopt;
  }
};

}  // namespace kvo::traces
