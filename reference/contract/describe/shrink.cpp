#include "reference/contract/describe/shrink.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "reference/contract/describe/difference.hpp"
#include "reference/contract/describe/element.hpp"

namespace kvo {
namespace {

using Candidate = std::function<bool(Record)>;

// Values between `low` and `value` to try, the boldest first; each leaves half as far to go as the
// one before, so that a bound is found in steps that halve.
std::vector<std::int64_t> towards(std::int64_t low, std::int64_t value) {
  std::vector<std::int64_t> tries;
  for (std::int64_t far = value - low; far != 0; far /= 2) tries.push_back(value - far);
  return tries;
}

// As above for numbers beyond 2^63, which halve just as well.
std::vector<std::int64_t> integers_below(const Type& type, std::int64_t value) {
  if (type.is_signed || value >= 0) return towards(0, value);
  std::vector<std::int64_t> tries;
  const auto unsigned_value = static_cast<std::uint64_t>(value);
  for (std::uint64_t far = unsigned_value; far != 0; far /= 2)
    tries.push_back(static_cast<std::int64_t>(unsigned_value - far));
  return tries;
}

// A copy of a record that may still be changed.
class Draft {
 public:
  explicit Draft(const Record& record)
      : type_(&record.type()), value_(record.type().copy_of(record.get())) {}
  [[nodiscard]] void* member(const Field& field) const { return field.of(value_.get()); }
  [[nodiscard]] void* get() const { return value_.get(); }
  [[nodiscard]] Record done() const { return {*type_, value_}; }

 private:
  const Type* type_;
  std::shared_ptr<void> value_;
};

struct FoundInteger {
  std::string_view name;
  const Type* type;
  void* value;
};

// The integers in a value that a member `name` holds.
void collect_integers(std::string_view name, const Type& type, void* value,
                      std::vector<FoundInteger>& found) {
  switch (type.type_class) {
    case TypeClass::kInteger:
      found.push_back({name, &type, value});
      break;
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      if (void* held = type.held(value)) collect_integers(name, *type.element, held, found);
      break;
    case TypeClass::kList:
      for (std::size_t i = 0; i < type.length(value); ++i)
        collect_integers(name, *type.element, type.at(value, i), found);
      break;
    case TypeClass::kRecord:
      for (const Field& field : type.fields)
        collect_integers(field.name, *field.type, field.of(value), found);
      break;
    default:
      break;
  }
}

std::vector<Tensor*> tensors_of(const Record& record, const Draft& draft) {
  std::vector<Tensor*> found;
  for_each_tensor(record.type(), draft.get(),
                  [&](std::string_view /*place*/, const Tensor& tensor, AxisNames /*axes*/) {
                    found.push_back(const_cast<Tensor*>(&tensor));  // NOLINT: the draft's own
                  });
  return found;
}

// One axis of all tensors to fewer entries.
bool shrink_tensors(const Record& record, const Candidate& candidate) {
  const Draft original(record);
  const std::vector<Tensor*> tensors = tensors_of(record, original);
  const std::size_t axes = tensors.empty() ? 0 : tensors.front()->shape.size();
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::int64_t now = tensors.front()->shape[axis];
    for (const std::int64_t size : towards(1, now)) {
      if (size > now) continue;
      const Draft draft(record);
      for (Tensor* tensor : tensors_of(record, draft))
        if (axis < tensor->shape.size() && size <= tensor->shape[axis])
          *tensor = cut_axis(*tensor, axis, size);
      if (candidate(draft.done())) return true;
    }
  }
  return false;
}

bool is_number_list(const Type& type) {
  return type.type_class == TypeClass::kList && type.element->type_class == TypeClass::kInteger;
}

// Lists of equal length cut together, at the end and at the beginning.
bool shrink_lists(const Record& record, const Candidate& candidate) {
  std::map<std::size_t, int> lists;  // by length
  for (const Field& field : record.type().fields)
    if (is_number_list(*field.type)) ++lists[field.type->length(field.of(record.get()))];
  for (const auto& [size, count] : lists) {
    if (count < 2 || size == 0) continue;
    for (const std::int64_t fewer : towards(1, static_cast<std::int64_t>(size))) {
      const auto kept = static_cast<std::size_t>(fewer);
      if (candidate(without_entries(record, size, kept, size)) ||
          candidate(without_entries(record, size, 0, size - kept)))
        return true;
    }
  }
  return false;
}

// Entries of `more` behind those of `list`.
void append_entries(const Type& type, void* list, const void* more) {
  const std::size_t before = type.length(list);
  const std::size_t count = type.length(more);
  type.resize(list, before + count);
  for (std::size_t i = 0; i < count; ++i)
    set_integer(*type.element, type.at(list, before + i),
                integer_at(*type.element, type.element_at(more, i)));
}

// Whether the rows of `more` could be put behind those of `tensor`, as they then are.
bool append_rows(Tensor& tensor, const Tensor& more) {
  if (tensor.dtype != more.dtype || tensor.shape.empty() ||
      tensor.shape.size() != more.shape.size() ||
      !std::equal(tensor.shape.begin() + 1, tensor.shape.end(), more.shape.begin() + 1))
    return false;
  // Without elements any length is possible.
  if (tensor.shape.front() > std::numeric_limits<std::int64_t>::max() - more.shape.front())
    return false;
  tensor.shape.front() += more.shape.front();
  std::vector<std::byte>& bytes = tensor.bytes.own();
  bytes.insert(bytes.end(), more.bytes.begin(), more.bytes.end());
  return true;
}

bool shrink_member(const Type& type, void* member, const std::function<bool()>& attempt);

template <class Number>
bool shrink_fraction(Number& value, const std::function<bool()>& attempt) {
  const Number now = value;
  for (const Number simpler : {Number{0}, Number{1}, std::trunc(now)}) {
    // A value that is not itself simpler would be tried for ever.
    if (std::isnan(now) ? simpler != 0 : std::abs(simpler) >= std::abs(now)) continue;
    value = simpler;
    if (attempt()) return true;
  }
  value = now;
  return false;
}

bool shrink_integer(const Type& type, void* member, const std::function<bool()>& attempt) {
  const std::int64_t now = integer_at(type, member);
  for (const std::int64_t smaller : integers_below(type, now)) {
    set_integer(type, member, smaller);
    if (attempt()) return true;
  }
  set_integer(type, member, now);
  return false;
}

bool shrink_list(const Type& type, void* member, const std::function<bool()>& attempt) {
  const std::shared_ptr<void> whole = type.copy_of(member);
  const auto length = static_cast<std::int64_t>(type.length(member));
  for (const std::int64_t size : towards(0, length)) {
    type.assign(member, whole.get());
    type.resize(member, static_cast<std::size_t>(size));
    if (attempt()) return true;
  }
  type.assign(member, whole.get());
  return false;
}

// Changes `member` to each simpler value in turn until `attempt` takes one; else puts it back.
bool shrink_member(const Type& type, void* member, const std::function<bool()>& attempt) {
  switch (type.type_class) {
    case TypeClass::kBool: {
      bool& flag = detail::to<bool>(member);
      if (!flag) return false;
      flag = false;
      if (attempt()) return true;
      flag = true;
      return false;
    }
    case TypeClass::kInteger:
      return shrink_integer(type, member, attempt);
    case TypeClass::kFloat:
      return shrink_fraction(detail::to<float>(member), attempt);
    case TypeClass::kDouble:
      return shrink_fraction(detail::to<double>(member), attempt);
    case TypeClass::kList:
      return shrink_list(type, member, attempt);
    case TypeClass::kOptional: {
      if (type.held(member) == nullptr || type.element->type_class == TypeClass::kTensor)
        return false;
      const std::shared_ptr<void> held = type.copy_of(member);
      type.reset(member);
      if (attempt()) return true;
      type.assign(member, held.get());
      return shrink_member(*type.element, type.held(member), attempt);
    }
    case TypeClass::kRecord:
      return std::ranges::any_of(type.fields, [&](const Field& field) {
        return shrink_member(*field.type, field.of(member), attempt);
      });
    default:
      return false;
  }
}

}  // namespace

Tensor cut_axis(const Tensor& tensor, std::size_t axis, std::int64_t size) {
  KVO_CHECK(axis < tensor.shape.size() && size >= 0 && size <= tensor.shape[axis]);
  std::size_t outer = 1;
  std::size_t inner = dtype_bytes(tensor.dtype);
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(tensor.shape[i]);
  for (std::size_t i = axis + 1; i < tensor.shape.size(); ++i)
    inner *= static_cast<std::size_t>(tensor.shape[i]);
  const std::size_t old_stride = static_cast<std::size_t>(tensor.shape[axis]) * inner;
  const std::size_t kept = static_cast<std::size_t>(size) * inner;
  Tensor cut{.shape = tensor.shape, .dtype = tensor.dtype, .bytes = {}};
  cut.shape[axis] = size;
  std::vector<std::byte>& bytes = cut.bytes.own();
  bytes.reserve(outer * kept);
  for (std::size_t row = 0; row < outer; ++row) {
    const auto from = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(row * old_stride);
    bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(kept));
  }
  return cut;
}

bool shrink_record(const Record& record, const Candidate& candidate) {
  if (shrink_tensors(record, candidate) || shrink_lists(record, candidate)) return true;
  const Draft draft(record);
  return std::ranges::any_of(record.type().fields, [&](const Field& field) {
    return shrink_member(*field.type, draft.member(field), [&] {
      return candidate(Record(record.type(), record.type().copy_of(draft.get())));
    });
  });
}

std::optional<Record> joined(const Record& first, const Record& second) {
  const auto& fields = first.type().fields;
  const auto& others = second.type().fields;
  const bool lists =
      std::ranges::all_of(fields, [](const Field& field) { return is_number_list(*field.type); });
  const bool alike = std::ranges::equal(
      fields, others, [](const Field& a, const Field& b) { return a.type == b.type; });
  if (fields.empty() || !lists || !alike) return std::nullopt;
  const Draft draft(first);
  for (std::size_t member = 0; member < fields.size(); ++member) {
    const Field& field = fields[member];
    const void* const behind = others[member].of(second.get());
    append_entries(*field.type, draft.member(field), behind);
  }
  return draft.done();
}

std::optional<Record> as_one(const Record& first, const Record& second) {
  if (&first.type() != &second.type()) return std::nullopt;
  const Draft draft(first);
  for (const Field& field : first.type().fields) {
    void* const member = draft.member(field);
    const void* const more = field.of(second.get());
    if (is_number_list(*field.type)) {
      append_entries(*field.type, member, more);
    } else if (field.type->type_class == TypeClass::kTensor) {
      if (!append_rows(detail::to<Tensor>(member), detail::to<Tensor>(more))) return std::nullopt;
    } else if (first_difference(*field.type, member, more)) {
      return std::nullopt;
    }
  }
  return draft.done();
}

Record with_tensors(const Record& record, const std::function<void(Tensor&)>& change) {
  const Draft draft(record);
  for (Tensor* tensor : tensors_of(record, draft)) change(*tensor);
  return draft.done();
}

std::vector<NamedInteger> integers_of(const Record& record) {
  std::vector<NamedInteger> found;
  for (const Field& field : record.type().fields) {
    const Type* type = field.type;
    const void* value = field.of(record.get());
    if (type->is_optional() || type->is_nullable()) {
      value = type->held_by(value);
      type = type->element;
    }
    if (value != nullptr && type->type_class == TypeClass::kInteger)
      found.emplace_back(field.name, integer_at(*type, value));
  }
  return found;
}

std::vector<NamedInteger> all_integers_of(const Record& record) {
  std::vector<FoundInteger> found;
  // Only read; a copy would be one of all tensors.
  collect_integers(
      {}, record.type(),
      const_cast<void*>(record.get()),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
      found);
  std::vector<NamedInteger> integers;
  integers.reserve(found.size());
  for (const FoundInteger& one : found)
    integers.emplace_back(one.name, integer_at(*one.type, one.value));
  return integers;
}

Record with_integers(const Record& record,
                     const std::function<std::int64_t(const NamedInteger&)>& change) {
  const Draft draft(record);
  std::vector<FoundInteger> found;
  collect_integers({}, record.type(), draft.get(), found);
  for (const FoundInteger& one : found)
    set_integer(*one.type, one.value, change({one.name, integer_at(*one.type, one.value)}));
  return draft.done();
}

std::optional<Record> with_integer(const Record& record, const NamedInteger& integer,
                                   std::int64_t to) {
  const std::vector<NamedInteger> now = integers_of(record);
  if (std::ranges::find(now, integer) == now.end()) return std::nullopt;
  return with_integers(record,
                       [&](const NamedInteger& one) { return one == integer ? to : one.second; });
}

Record with_zero(const Record& record, std::string_view name) {
  const Draft draft(record);
  for (const Field& field : record.type().fields) {
    const bool absent = field.name == name && field.type->is_optional() &&
                        field.type->element->type_class == TypeClass::kInteger &&
                        field.type->held(draft.member(field)) == nullptr;
    if (absent) set_integer(*field.type->element, field.type->emplace(draft.member(field)), 0);
  }
  return draft.done();
}

Record without_entries(const Record& record, std::size_t size, std::size_t begin, std::size_t end) {
  const Draft draft(record);
  for (const Field& field : record.type().fields) {
    const Type& type = field.type->value_type();
    const bool may_lack = field.type->is_optional() || field.type->is_nullable();
    void* const list = may_lack ? field.type->held(draft.member(field)) : draft.member(field);
    if (list != nullptr && is_number_list(type) && type.length(list) == size)
      type.erase(list, begin, end);
  }
  return draft.done();
}

}  // namespace kvo
