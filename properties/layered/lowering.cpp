// Requests as operations of layered.vector: a slot is one cache. The contract cannot cut a
// sequence, so a draft is saved by clone_from into a spare cache, and taken back by clone_from out
// of it.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {
namespace {

using replay::LoweringInput;

std::uint64_t number(std::int64_t slot) {
  return static_cast<std::uint64_t>(slot);
}

class LayeredStream final : public replay::SequenceOps {
 public:
  explicit LayeredStream(const LoweringInput& input)
      : SequenceOps(input),
        slots_(input.schedule.max_running),
        rows_(static_cast<std::size_t>(slots_ * policy().num_layers)),
        lengths_(static_cast<std::size_t>(slots_)) {
    for (std::int64_t slot = 0; slot <= slots_; ++slot)
      emit(WithCapacity{number(policy().num_layers), number(policy().num_heads),
                        number(policy().head_dim), number(input.longest_sequence())});
  }

 protected:
  void begin(std::int64_t slot) override {
    emit(Clear{number(slot)});
    cut(slot, 0);
  }
  void append(std::int64_t slot, std::int64_t tokens) override {
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
        rows(slot, layer).push_back(tagger().last() + 1);
        auto [k, v] = tagger().pair({width()});
        emit(Append{number(slot), number(layer), std::move(k), std::move(v)});
      }
      emit(Advance{number(slot)});
    }
    length(slot) += tokens;
  }
  void save(std::int64_t slot) override {
    emit(CloneFrom{number(slots_), number(slot)});
    saved_ = length(slot);
  }
  void reject(std::int64_t slot, std::int64_t tokens) override {
    const std::int64_t accepted = length(slot) - tokens - saved_;
    emit(CloneFrom{number(slot), number(slots_)});
    cut(slot, saved_);
    append(slot, accepted);
  }
  void read(std::int64_t slot) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      const auto [k, v] = replay::tagged_rows(rows(slot, layer), width());
      emit(Keys{number(slot), number(layer)}, {k});
      emit(Values{number(slot), number(layer)}, {v});
    }
  }
  void end(std::int64_t slot) override {
    emit(Len{number(slot)}, {number(length(slot))});
    emit(IsEmpty{number(slot)}, {length(slot) == 0});
    emit(NumLayers{number(slot)}, {number(policy().num_layers)});
    emit(EntrySize{number(slot)}, {number(width())});
  }

 private:
  [[nodiscard]] std::int64_t width() const { return policy().num_heads * policy().head_dim; }
  // The first tag of every row that a layer holds.
  std::vector<std::uint64_t>& rows(std::int64_t slot, std::int64_t layer) {
    return rows_[static_cast<std::size_t>(slot * policy().num_layers + layer)];
  }
  void cut(std::int64_t slot, std::int64_t tokens) {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer)
      rows(slot, layer).resize(static_cast<std::size_t>(tokens));
    length(slot) = tokens;
  }
  std::int64_t& length(std::int64_t slot) { return lengths_[static_cast<std::size_t>(slot)]; }

  std::int64_t slots_;
  std::vector<std::vector<std::uint64_t>> rows_;
  std::vector<std::int64_t> lengths_;
  std::int64_t saved_ = 0;
};

}  // namespace

std::vector<replay::Lowering> lowerings() {
  return {{.kind = &vector_kind(),
           .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
           .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
             return std::make_unique<LayeredStream>(input);
           }}};
}

}  // namespace kvo::layered
