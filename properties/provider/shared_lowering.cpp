#include "properties/provider/shared_lowering.hpp"

#include <algorithm>

#include "properties/replay/storable.hpp"

namespace kvo::provider {
namespace {

std::int64_t positions(const auto& chunks) {
  std::int64_t sum = 0;
  for (const auto& chunk : chunks) sum += chunk.left;
  return sum;
}

}  // namespace

ProviderStream::ProviderStream(const replay::LoweringInput& input)
    : SequenceOps(input),
      chunks_(static_cast<std::size_t>(input.schedule.max_running * input.policy.num_layers)) {}

void ProviderStream::begin(std::int64_t slot) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) chunks(slot, layer).clear();
  emit(SeqLen{slot}, {0});
}

void ProviderStream::append(std::int64_t slot, std::int64_t tokens) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
    chunks(slot, layer).push_back({tagger().last() + 1, tokens, tokens});
    auto [k, v] = tagger().pair(rows(tokens));
    for (Tensor* side : {&k, &v}) replay::make_storable(side->floats(), stored());
    update(slot, layer, std::move(k), std::move(v));
  }
}

void ProviderStream::update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) {
  emit(Update{slot, layer, std::move(k), std::move(v)});
}

void ProviderStream::reject(std::int64_t slot, std::int64_t tokens) {
  emit(Truncate{slot, positions(chunks(slot, 0)) - tokens});
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
    std::vector<Chunk>& held = chunks(slot, layer);
    for (std::int64_t surplus = tokens; surplus > 0;) {
      const std::int64_t cut = std::min(surplus, held.back().left);
      held.back().left -= cut;
      surplus -= cut;
      if (held.back().left == 0) held.pop_back();
    }
  }
}

// No handle is kept: a replay may last for days.
void ProviderStream::read(std::int64_t slot) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer)
    emit(Get{slot, layer, false}, shown(chunks(slot, layer)));
  emit(SeqLen{slot}, {positions(chunks(slot, 0))});
  ask(slot);
}

Found ProviderStream::shown(const std::vector<Chunk>& held) const {
  const std::int64_t total = positions(held);
  if (total == 0) return {};
  const Shape shape = rows(total);
  const std::int64_t dim = shape[2];
  Found found{.found = true, .k = make_tensor(shape), .v = make_tensor(shape)};
  const auto keys = found.k->floats();
  const auto values = found.v->floats();
  std::int64_t base = 0;
  for (const Chunk& chunk : held) {
    for (std::int64_t outer = 0; outer < shape[0]; ++outer) {
      const auto to = static_cast<std::size_t>((outer * total + base) * dim);
      const std::uint64_t from =
          chunk.first_tag + static_cast<std::uint64_t>(outer * chunk.appended * dim);
      for (std::size_t i = 0; i < static_cast<std::size_t>(chunk.left * dim); ++i) {
        keys[to + i] = replay::storable(tag(from + i), stored());
        values[to + i] = -keys[to + i];
      }
    }
    base += chunk.left;
  }
  return found;
}

}  // namespace kvo::provider
