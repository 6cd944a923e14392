#include "traces/lower_provider.hpp"

#include <algorithm>

namespace kvo::traces {
namespace {

std::int64_t positions(const auto& chunks) {
  std::int64_t sum = 0;
  for (const auto& chunk : chunks) sum += chunk.left;
  return sum;
}

}  // namespace

ProviderOps::ProviderOps(const LoweringInput& input)
    : LoweredOps(input),
      chunks_(static_cast<std::size_t>(input.schedule.max_running * input.policy.num_layers)) {}

void ProviderOps::begin(std::int64_t slot) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) chunks(slot, layer).clear();
  emit(provider::SeqLen{slot}, {0});
}

void ProviderOps::append(std::int64_t slot, std::int64_t tokens) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
    chunks(slot, layer).push_back({tagger().last() + 1, tokens, tokens});
    auto [k, v] = tagger().pair(rows(tokens));
    update(slot, layer, std::move(k), std::move(v));
  }
}

void ProviderOps::update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) {
  emit(provider::Update{slot, layer, std::move(k), std::move(v)});
}

void ProviderOps::truncate(std::int64_t slot, std::int64_t tokens) {
  emit(provider::Truncate{slot, tokens});
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
    std::vector<Chunk>& held = chunks(slot, layer);
    std::int64_t surplus = positions(held) - tokens;
    while (surplus > 0) {
      const std::int64_t cut = std::min(surplus, held.back().left);
      held.back().left -= cut;
      surplus -= cut;
      if (held.back().left == 0) held.pop_back();
    }
  }
}

// No handle is kept: a replay may last for days.
void ProviderOps::read(std::int64_t slot) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer)
    emit(provider::Get{slot, layer, false}, shown(chunks(slot, layer)));
  emit(provider::SeqLen{slot}, {positions(chunks(slot, 0))});
}

std::optional<std::int64_t> ProviderOps::appends_to(const Op& op) const {
  if (const auto* made = op.as<provider::Update>()) return made->cache;
  return std::nullopt;
}

provider::Found ProviderOps::shown(const std::vector<Chunk>& held) const {
  const std::int64_t total = positions(held);
  if (total == 0) return {};
  const Shape shape = rows(total);
  const std::int64_t dim = shape[2];
  provider::Found found{.found = true, .k = make_tensor(shape), .v = make_tensor(shape)};
  const auto keys = found.k->floats();
  const auto values = found.v->floats();
  std::int64_t base = 0;
  for (const Chunk& chunk : held) {
    for (std::int64_t outer = 0; outer < shape[0]; ++outer) {
      const auto to = static_cast<std::size_t>((outer * total + base) * dim);
      const std::uint64_t from =
          chunk.first_tag + static_cast<std::uint64_t>(outer * chunk.appended * dim);
      for (std::size_t i = 0; i < static_cast<std::size_t>(chunk.left * dim); ++i) {
        keys[to + i] = tag(from + i);
        values[to + i] = -keys[to + i];
      }
    }
    base += chunk.left;
  }
  return found;
}

}  // namespace kvo::traces
