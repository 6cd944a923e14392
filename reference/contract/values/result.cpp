#include "reference/contract/values/result.hpp"

#include <array>

#include "reference/contract/values/check.hpp"

namespace kvo {
namespace {

constexpr std::array<std::pair<Code, std::string_view>, 11> kCodes{{
    {Code::kFull, "full"},
    {Code::kNotSupported, "not_supported"},
    {Code::kOutOfRange, "out_of_range"},
    {Code::kBadShape, "bad_shape"},
    {Code::kExhausted, "exhausted"},
    {Code::kBadPosition, "bad_position"},
    {Code::kClosed, "closed"},
    {Code::kPrecondition, "precondition"},
    {Code::kOutOfMemory, "out_of_memory"},
    {Code::kThrew, "threw"},
    {Code::kDied, "died"},
}};

constexpr std::string_view kOtherPrefix = "other:";

}  // namespace

std::string Error::code_text() const {
  for (const auto& [known, name] : kCodes)
    if (known == code) return std::string(name);
  return std::string(kOtherPrefix) + reason;
}

std::string Error::text() const {
  return detail.empty() ? code_text() : code_text() + " (" + detail + ")";
}

Error error_of_code(std::string_view code) {
  for (const auto& [known, name] : kCodes)
    if (name == code) return fail(known);
  if (code.starts_with(kOtherPrefix)) code.remove_prefix(kOtherPrefix.size());
  return fail_other(std::string(code));
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw CheckFailed("value of a failed result: " + error.text() + " at " + where.to_string());
}

}  // namespace kvo
