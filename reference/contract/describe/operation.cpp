#include "reference/contract/describe/operation.hpp"

#include <limits>

#include "reference/contract/describe/json.hpp"

namespace kvo {

namespace {

// "ValueError: text": what an exception says depends on versions, and no contract names it.
bool is_python_exception(const Error& error) {
  const std::string_view reason = error.reason;
  return error.code == Code::kOther && reason.substr(0, reason.find(": ")).ends_with("Error") &&
         reason.find(": ") != std::string_view::npos;
}

}  // namespace

std::optional<Difference> observation_difference(const Observation& want, const Observation& got,
                                                 const Exactness& exactness) {
  const bool any_error = exactness.wanted == Wanted::kRecorded && want.error && got.error &&
                         is_python_exception(*want.error);
  if (want.error != got.error && !any_error) {
    const auto shown = [](const Observation& seen) {
      return seen.error ? seen.error->text() : std::string("no error");
    };
    return Difference{"error", shown(want), shown(got)};
  }
  if (!want.returns || !got.returns) return std::nullopt;
  // What is wanted may have fewer members than the type.
  KVO_CHECK(want.returns.type().make == got.returns.type().make);
  return first_difference(want.returns.type(), want.returns.get(), got.returns.get(), exactness);
}

namespace {

std::string limit_text(std::int64_t limit, bool is_least) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (limit == (is_least ? kLeast : kMost)) return "any";
  return std::to_string(limit);
}

std::optional<Error> value_error(const Field& field, const Type& type, const void* value) {
  if (type.type_class == TypeClass::kOptional || type.type_class == TypeClass::kNullable) {
    const void* held = type.held_by(value);
    return held != nullptr ? value_error(field, *type.element, held) : std::nullopt;
  }
  if (type.type_class == TypeClass::kList) {
    for (std::size_t i = 0; i < type.length(value); ++i)
      if (auto error = value_error(field, *type.element, type.element_at(value, i))) return error;
    return std::nullopt;
  }
  KVO_CHECK(type.type_class == TypeClass::kInteger);
  const std::int64_t number = integer_at(type, value);
  const Domain& domain = *field.domain;
  if (number >= domain.least && number <= domain.most) return std::nullopt;
  return fail(domain.outside, std::string(field.name) + ": " + std::to_string(number) +
                                  ", allowed: " + limit_text(domain.least, true) + " to " +
                                  limit_text(domain.most, false));
}

}  // namespace

std::optional<Error> argument_error(const Op& op) {
  for (const Field& field : op.arguments().type().fields) {
    if (field.domain == nullptr || !field.domain->is_bounded()) continue;
    if (auto error = value_error(field, *field.type, field.of(op.arguments().get()))) return error;
  }
  return std::nullopt;
}

std::string op_text(const Op& op) {
  boost::json::object line;
  line["op"] = op.kind().name;
  line["args"] = write_record(op.arguments());
  return boost::json::serialize(line);
}

}  // namespace kvo
