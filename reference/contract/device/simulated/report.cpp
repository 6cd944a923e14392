#include "reference/contract/device/simulated/report.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kvo {

std::uint32_t Clock::advance(std::size_t lane) {
  if (lane >= turns_.size()) turns_.resize(lane + 1, 0);
  return ++turns_[lane];
}

void Clock::join(const Clock& other) {
  if (other.turns_.size() > turns_.size()) turns_.resize(other.turns_.size(), 0);
  for (std::size_t lane = 0; lane < other.turns_.size(); ++lane)
    turns_[lane] = std::max(turns_[lane], other.turns_[lane]);
}

WorkId History::add(std::string_view name, std::uint64_t stream, std::size_t lane,
                    std::uint32_t turn) {
  stamps_.push_back({name, stream, lane, turn});
  return static_cast<WorkId>(stamps_.size() - 1);
}

std::string History::text(WorkId work) const {
  const Stamp& stamp = stamps_[work];
  return "#" + std::to_string(work) + " " + std::string(stamp.name) + " on stream " +
         std::to_string(stamp.stream);
}

History::Set History::with(Set set, WorkId last, const Clock& clock) {
  if (newest_.result != 0 && newest_.set == set && newest_.last == last) return newest_.result;
  std::vector<WorkId> members;
  for (const WorkId member : sets_[set])
    if (member != last && !before(member, clock)) members.push_back(member);
  members.push_back(last);
  const auto [found, fresh] = numbers_.try_emplace(members, static_cast<Set>(sets_.size()));
  if (fresh) sets_.push_back(members);
  newest_ = {set, last, found->second};
  return found->second;
}

std::string_view report_name(DeviceReport::Kind kind) {
  constexpr std::array<std::string_view, 7> kNames{"read of unwritten memory",
                                                   "race",
                                                   "out of bounds",
                                                   "misaligned",
                                                   "use after free",
                                                   "overlapping copy",
                                                   "host memory touched too early"};
  return kNames.at(static_cast<std::size_t>(kind));
}

void ReportList::add(DeviceReport report) {
  if (knows(report.kind, report.work, report.other)) return;
  known_.emplace(report.kind, report.work, report.other);
  report.text.insert(0, ": ").insert(0, report_name(report.kind));
  reports_.push_back(std::move(report));
}

}  // namespace kvo
