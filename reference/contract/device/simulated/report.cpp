#include "reference/contract/device/simulated/report.hpp"

#include <array>
#include <utility>

namespace kvo {

std::string_view report_name(DeviceReport::Kind kind) {
  constexpr std::array<std::string_view, 7> kNames{"read of what nobody wrote",
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
