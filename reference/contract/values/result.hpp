// reference/contract/values/result.hpp: outcomes as values.
//
// Words    outcome   what an operation of a contract answers; part of the semantics, so a value.
//          code      what two outcomes are compared by; the words beside it are for people.
// Source   codes: the operation-log format (docs/kvlog.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/system/result.hpp>

namespace kvo {

enum class Code : std::uint8_t {
  kFull,          ///< a cache holds as many tokens as it may
  kNotSupported,  ///< this cache does not offer that
  kOutOfRange,    ///< an index or size outside what is allowed
  kBadShape,      ///< a tensor of the wrong shape
  kExhausted,     ///< a block pool has no free block
  kBadPosition,   ///< a position that is not the next one
  kClosed,        ///< the cache has been closed
  kPrecondition,  ///< what the original leaves undefined or answers with a panic; nothing changed
  kOther,         ///< a reason of one contract, named by Error::reason
  kOutOfMemory,   ///< an allocation failed; the state is as before the call
  kThrew,         ///< the subject threw or broke an invariant; its state is unknown
  kDied,          ///< the subject's own process crashed, ended, hung or gave no answer
};

struct Error {
  Code code = Code::kOther;
  std::string reason = {};  ///< only for kOther: compared like a code, for instance "alloc_failed"
  std::string detail = {};  ///< for people: the offending field and value

  /// "full", "other:alloc_failed": as written in logs.
  [[nodiscard]] std::string code_text() const;
  /// code_text and the detail in brackets, when there is one.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Error& a, const Error& b) {
    return a.code == b.code && (a.code != Code::kOther || a.reason == b.reason);
  }
};

/// An error or none, as an optional of it, in the size of a pointer: most results have none.
class PossibleError {
 public:
  PossibleError() = default;
  PossibleError(std::nullopt_t /*none*/) {}                            // NOLINT: as an optional
  PossibleError(Error error) : error_(new Error(std::move(error))) {}  // NOLINT: as an optional
  PossibleError(std::optional<Error> error)                            // NOLINT: as an optional
      : error_(error ? new Error(*std::move(error)) : nullptr) {}
  PossibleError(const PossibleError& other) : error_(other ? new Error(*other) : nullptr) {}
  PossibleError(PossibleError&&) noexcept = default;
  PossibleError& operator=(const PossibleError& other) { return *this = PossibleError(other); }
  PossibleError& operator=(PossibleError&&) noexcept = default;
  ~PossibleError() = default;

  [[nodiscard]] bool has_value() const { return error_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  Error& operator*() { return *error_; }
  const Error& operator*() const { return *error_; }
  Error* operator->() { return error_.get(); }
  const Error* operator->() const { return error_.get(); }
  friend bool operator==(const PossibleError& a, const PossibleError& b) {
    return a && b ? *a == *b : a.has_value() == b.has_value();
  }

 private:
  std::unique_ptr<Error> error_;
};

/// The error of a log's code; an unknown code is {kOther, that text}.
[[nodiscard]] Error error_of_code(std::string_view code);

inline Error fail(Code code, std::string detail = {}) {
  return {.code = code, .detail = std::move(detail)};
}
inline Error fail_other(std::string reason) {
  return {.code = Code::kOther, .reason = std::move(reason)};
}

/// Asking a failed result for its value is a programmer error.
[[noreturn]] void throw_exception_from_error(const Error& error,
                                             const boost::source_location& where);

template <class T>
using Result = boost::system::result<T, Error>;
using Status = Result<void>;

/// Whether `outcome` is an error of that code, which is not kOther. It allocates nothing, while
/// error() copies, which must not fail where state has changed.
[[nodiscard]] inline bool failed_with(const Status& outcome, Code code) {
  return outcome == Status(Error{.code = code});
}

}  // namespace kvo
