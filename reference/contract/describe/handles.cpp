#include "reference/contract/describe/handles.hpp"

#include <algorithm>

namespace kvo {
namespace {

void collect(const Field& field, const Type& type, const void* value, const std::string& member,
             std::vector<Handle>& found) {
  switch (type.type_class) {
    case TypeClass::kInteger:
      if (field.domain != nullptr && !field.domain->handle_of.empty())
        found.push_back(
            {.of = field.domain->handle_of, .member = member, .value = integer_at(type, value)});
      return;
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      if (const void* held = type.held_by(value))
        collect(field, *type.element, held, member, found);
      return;
    case TypeClass::kList:
      if (type.element->type_class != TypeClass::kInteger) return;
      for (std::size_t i = 0; i < type.length(value); ++i) {
        const std::size_t before = found.size();
        collect(field, *type.element, type.element_at(value, i), member, found);
        if (found.size() > before) found.back().at = i;
      }
      return;
    case TypeClass::kRecord:
      for (const Field& inner : type.fields)
        collect(inner, *inner.type, inner.of(value), member + "." + std::string(inner.name), found);
      return;
    default:
      return;
  }
}

// The value in an argument that may be absent or null; it is neither then.
void* present(const Type*& type, void* value) {
  while (type->is_optional() || type->is_nullable()) {
    void* held = type->held(value);
    value = held != nullptr ? held : type->emplace(value);
    type = type->element;
  }
  return value;
}

}  // namespace

std::vector<Handle> handles_of(const Record& record) {
  std::vector<Handle> found;
  if (!record) return found;
  for (const Field& field : record.type().fields)
    collect(field, *field.type, field.of(record.get()), std::string(field.name), found);
  return found;
}

std::optional<Record> with_result(const Record& arguments, const ResultReference& reference,
                                  std::span<const Handle> returned) {
  const auto field = std::ranges::find(arguments.type().fields, reference.argument, &Field::name);
  KVO_CHECK(field != arguments.type().fields.end());
  std::vector<std::int64_t> values;
  for (const Handle& handle : returned)
    if (handle.member == reference.member && (!reference.of || handle.at == reference.of))
      values.push_back(handle.value);
  const std::shared_ptr<void> changed = arguments.type().copy_of(arguments.get());
  const Type* type = field->type;
  void* value = present(type, field->of(changed.get()));
  const bool whole_list = type->type_class == TypeClass::kList && !reference.at;
  if (whole_list) {
    type->resize(value, values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      set_integer(*type->element, type->at(value, i), values[i]);
    return Record(arguments.type(), changed);
  }
  if (values.size() != 1) return std::nullopt;
  if (type->type_class == TypeClass::kList) {
    KVO_CHECK(*reference.at < type->length(value));
    value = type->at(value, *reference.at);
    type = type->element;
  }
  set_integer(*type, value, values.front());
  return Record(arguments.type(), changed);
}

}  // namespace kvo
