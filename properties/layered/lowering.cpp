// Requests as operations of layered.vector: a slot is one cache. The contract cannot cut a
// sequence, so a draft is saved by clone_from into a spare cache, and taken back by clone_from out
// of it.
#include <cstdint>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/engine.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {
namespace {

using replay::LoweringInput;

std::uint64_t number(std::int64_t slot) {
  return static_cast<std::uint64_t>(slot);
}

class LayeredStream final : public replay::SequenceOps {
 public:
  explicit LayeredStream(const LoweringInput& input) : SequenceOps(input) {
    for (std::int64_t slot = 0; slot <= slots(); ++slot)
      emit(WithCapacity{number(policy().num_layers), number(policy().num_heads),
                        number(policy().head_dim), number(input.longest_sequence())});
  }

 protected:
  [[nodiscard]] Shape shape(std::int64_t tokens) const override { return {tokens * width()}; }

  void begin(std::int64_t slot) override { emit(Clear{number(slot)}); }
  void append(std::int64_t slot, std::int64_t tokens) override {
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
        auto [k, v] = grow(slot, layer, 1);
        emit(Append{number(slot), number(layer), std::move(k), std::move(v)});
      }
      emit(Advance{number(slot)});
    }
  }
  void save(std::int64_t slot) override {
    emit(CloneFrom{number(slots()), number(slot)});
    saved_ = length(slot);
  }
  void reject(std::int64_t slot, std::int64_t tokens) override {
    const std::int64_t accepted = length(slot) - tokens - saved_;
    emit(CloneFrom{number(slot), number(slots())});
    cut(slot, saved_);
    append(slot, accepted);
  }
  void read(std::int64_t slot) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      auto [k, v] = tensors(rows(slot, layer));
      emit(Keys{number(slot), number(layer)}, {std::move(k)});
      emit(Values{number(slot), number(layer)}, {std::move(v)});
    }
  }
  void end(std::int64_t slot) override {
    emit(Len{number(slot)}, {number(length(slot))});
    emit(IsEmpty{number(slot)}, {length(slot) == 0});
    emit(NumLayers{number(slot)}, {number(policy().num_layers)});
    emit(EntrySize{number(slot)}, {number(width())});
  }

 private:
  std::int64_t saved_ = 0;
};

}  // namespace

std::vector<replay::Lowering> lowerings() {
  return {{.kind = &vector_kind(),
           .setup = replay::no_setup,
           .lower = replay::lower_by<LayeredStream>}};
}

}  // namespace kvo::layered
