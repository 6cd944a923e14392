#include "properties/replay/variation.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>
#include <utility>

#include "properties/campaign/generator.hpp"
#include "reference/contract/values/random.hpp"

namespace kvo::replay {
namespace {

constexpr std::size_t kValues = 4;
constexpr std::int64_t kMostBatch = 1'000;

/// Values that are drawn together, and the member that the i-th of them sets.
struct Member {
  std::string_view name;
  std::string_view drawn_with;  ///< members of one word take values of one index
  std::array<std::int64_t, kValues> values;
  void (*set)(Policies& policies, std::int64_t value);
};

template <auto kMember>
void set_size(Policies& to, std::int64_t value) {
  using Type = std::remove_reference_t<decltype(to.lowering.*kMember)>;
  to.lowering.*kMember = static_cast<Type>(value);
}
template <auto kMember>
void set_load(Policies& to, std::int64_t value) {
  to.schedule.*kMember = value;
}
// The limit of a chunk depends on the number of sequences, which is set before.
void set_chunk(Policies& to, std::int64_t value) {
  const std::int64_t most = kMostBatch / to.schedule.max_running;
  to.schedule.chunk_tokens = std::clamp<std::int64_t>(value, 1, std::max<std::int64_t>(most, 1));
}

// The mean size of a row is about that of the fixed shape, so that a replay takes as long. Loads go
// from a quiet hour to one in which more sequences come at once than a word has bits.
constexpr std::array<Member, 10> kMembers{
    Member{"num_layers", "num_layers", {1, 1, 2, 4}, set_size<&LoweringPolicy::num_layers>},
    Member{"num_heads", "num_heads", {1, 2, 2, 3}, set_size<&LoweringPolicy::num_heads>},
    Member{"head_dim", "head_dim", {1, 3, 4, 8}, set_size<&LoweringPolicy::head_dim>},
    Member{"block_size", "block_size", {2, 5, 16, 32}, set_size<&LoweringPolicy::block_size>},
    Member{"storage", "storage", {0, 1, 0, 2}, set_size<&LoweringPolicy::storage>},
    Member{"mask", "mask", {0, 1, 0, 1}, set_size<&LoweringPolicy::mask>},
    Member{"max_running", "load", {3, 8, 16, 72}, set_load<&SchedulePolicy::max_running>},
    Member{"burst", "load", {1, 1, 8, 72}, set_load<&SchedulePolicy::burst>},
    Member{"pool_percent", "load", {60, 40, 20, 5}, set_size<&LoweringPolicy::pool_percent>},
    Member{"chunk_tokens", "chunk_tokens", {7, 16, 64, 200}, set_chunk}};

// Which of the values the case takes: a new order for each as many cases.
std::size_t value_index(std::uint64_t seed, std::string_view lowering, std::string_view drawn_with,
                        std::uint64_t number) {
  for (const std::string_view name : {lowering, drawn_with})
    for (const char c : name) seed = case_seed(seed, static_cast<unsigned char>(c));
  traces::Random random(case_seed(seed, number / kValues));
  std::array<std::size_t, kValues> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t left = kValues; left > 1; --left)
    std::swap(order.at(left - 1), order.at(random.below(left)));
  return order.at(number % kValues);
}

}  // namespace

const Members& varying_members() {
  static const Members kNames = [] {
    Members names;
    for (const Member& member : kMembers) names.emplace(member.name);
    return names;
  }();
  return kNames;
}

Policies varied(const Policies& given, const Members& varied_members, std::uint64_t seed,
                std::string_view lowering, std::uint64_t number) {
  Policies policies = given;
  for (const Member& member : kMembers) {
    if (!varied_members.contains(member.name)) continue;
    member.set(policies, member.values.at(value_index(seed, lowering, member.drawn_with, number)));
  }
  return policies;
}

std::string sizes_text(const Policies& policies) {
  const auto& [schedule, lowering] = policies;
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const auto type_text = [](ElementType type) {
    return std::string(dtype_name(static_cast<DType>(type)));
  };
  return text(lowering.num_layers) + " layers, " + text(lowering.num_heads) + " heads of " +
         text(lowering.head_dim) + ", blocks of " + text(lowering.block_size) + ", rows " +
         type_text(lowering.storage) + ", masks " + type_text(lowering.mask) + ", " +
         text(schedule.max_running) + " slots, chunks of " + text(schedule.chunk_tokens) +
         ", arrivals by " + text(schedule.burst) + ", pool " + text(lowering.pool_percent) + " %";
}

}  // namespace kvo::replay
