#include "reference/contract/device/simulated/report.hpp"

#include <utility>

#include "reference/contract/values/check.hpp"

namespace kvo {

std::string_view report_name(DeviceReport::Kind kind) {
  using Kind = DeviceReport::Kind;
  switch (kind) {
    case Kind::kUnwritten:
      return "read of what nobody wrote";
    case Kind::kRace:
      return "race";
    case Kind::kOutOfBounds:
      return "out of bounds";
    case Kind::kMisaligned:
      return "misaligned";
    case Kind::kUseAfterFree:
      return "use after free";
    case Kind::kOverlap:
      return "overlapping copy";
    case Kind::kHostTouched:
      return "host memory touched too early";
  }
  KVO_CHECK(false);
}

void ReportList::add(DeviceReport report) {
  if (knows(report.kind, report.work, report.other)) return;
  known_.emplace(report.kind, report.work, report.other);
  report.text.insert(0, ": ").insert(0, report_name(report.kind));
  reports_.push_back(std::move(report));
}

}  // namespace kvo
