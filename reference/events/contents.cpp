#include "reference/events/contents.hpp"

namespace kvo::events {

std::optional<Tier> tier_of(const Event& event) {
  if (!event.medium || event.medium->empty()) return Tier::kDevice;
  static const std::map<std::string, Tier, std::less<>> kTiers{
      {"GPU", Tier::kDevice},        {"DEVICE", Tier::kDevice},    {"CPU", Tier::kHost},
      {"CPU_PINNED", Tier::kHost},   {"CPU_TIER1", Tier::kHost},   {"CPU_TIER2", Tier::kDisk},
      {"DISK", Tier::kDisk},         {"NVME", Tier::kDisk},        {"STORAGE", Tier::kDisk},
      {"EXTERNAL", Tier::kExternal}, {"NETWORK", Tier::kExternal}, {"REMOTE", Tier::kExternal},
      {"SHARED", Tier::kExternal}};
  const auto found = kTiers.find(*event.medium);
  if (found == kTiers.end()) return std::nullopt;
  return found->second;
}

bool is_main(const std::string& spec) {
  return spec == "full_attention" || spec == "mla_attention" || spec == "sink_full_attention";
}

bool Groups::takes(const Engine& engine, const Event& event) {
  if (!event.group) return !event.spec || is_main(*event.spec);
  if (event.spec) main_[{engine, *event.group}] = is_main(*event.spec);
  const auto known = main_.find({engine, *event.group});
  return known != main_.end() ? known->second : *event.group == 0;
}

void Groups::forget(std::int64_t worker, std::optional<std::int64_t> rank) {
  std::erase_if(main_, [&](const auto& entry) {
    const Engine& engine = entry.first.first;
    return engine.worker == worker && (!rank || engine.rank == *rank);
  });
}

}  // namespace kvo::events
