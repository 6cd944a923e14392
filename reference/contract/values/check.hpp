// reference/contract/values/check.hpp: invariants, checked in every build.
#pragma once

#include <stdexcept>
#include <string>

namespace kvo {

/// A broken invariant. The runner turns it into a verdict on the subject that threw it.
class CheckFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void check_failed(const char* what, const char* file, int line) {
  throw CheckFailed(std::string(file) + ":" + std::to_string(line) + ": broken: " + what);
}

}  // namespace kvo

/// Throws CheckFailed unless `condition` holds.
#define KVO_CHECK(condition) \
  ((condition) ? void(0) : ::kvo::check_failed(#condition, __FILE__, __LINE__))
