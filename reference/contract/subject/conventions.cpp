#include "reference/contract/subject/conventions.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace kvo {

std::string because_of(const Error& error) {
  std::string text;
  bool in_number = false;
  for (const char c : error.detail) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) text += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
    if (digit && !in_number) text += '#';
    in_number = digit;
  }
  return text;
}

bool may_answer(const Conventions& conventions, std::string_view operation, const Error& wanted,
                const std::optional<std::string>& given) {
  if (conventions.refusals.empty()) return false;
  const std::string code = wanted.code_text();
  const std::string because = because_of(wanted);
  return std::ranges::any_of(conventions.refusals, [&](const RefusalConvention& row) {
    return row.operation == operation && row.wanted == code && row.given == given &&
           (row.because.empty() || row.because == because);
  });
}

Observation as_promised(const Conventions& conventions, const OpKind& operation,
                        const Observation& want, Observation got) {
  if (want.error && got.error) {
    if (may_answer(conventions, operation.name, *want.error, got.error->code_text())) return want;
    return got;
  }
  if (!conventions.copies || want.error || got.error || !want.returns || !got.returns) return got;
  const Type& type = got.returns.type();
  if (&want.returns.type() != &type) return got;
  for (const Field& field : type.fields) {
    if (field.domain == nullptr || !field.domain->depends_on_addresses) continue;
    const std::shared_ptr<void> promised = type.copy_of(got.returns.get());
    field.type->assign(field.of(promised.get()), field.of(want.returns.get()));
    got.returns = Record(type, promised);
  }
  return got;
}

}  // namespace kvo
