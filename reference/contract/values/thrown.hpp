// reference/contract/values/thrown.hpp: errors on their way through calls that cannot answer one.
#pragma once

#include <new>
#include <stdexcept>

#include "reference/contract/values/result.hpp"

namespace kvo {

/// Of a call whose type has no room for an error; the session that called answers it.
class ErrorThrown : public std::runtime_error {
 public:
  explicit ErrorThrown(const Error& error) : std::runtime_error(error.text()), error_(error) {}
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

/// Throws the error of what was not done: std::bad_alloc for kOutOfMemory, else ErrorThrown.
inline void demand(const Status& done) {
  if (done) return;
  if (failed_with(done, Code::kOutOfMemory)) throw std::bad_alloc();
  throw ErrorThrown(done.error());
}

}  // namespace kvo
