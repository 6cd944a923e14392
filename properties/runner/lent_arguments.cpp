#include "properties/runner/lent_arguments.hpp"

#include <algorithm>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace kvo {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xA5};

#if defined(__SANITIZE_ADDRESS__)
// Who touches a guard crashes there, whether it writes or reads.
void set(std::span<std::byte> bytes) {
  ASAN_POISON_MEMORY_REGION(bytes.data(), bytes.size());
}
void lift(std::span<std::byte> bytes) {
  ASAN_UNPOISON_MEMORY_REGION(bytes.data(), bytes.size());
}
bool is_whole(std::span<const std::byte> /*bytes*/) {
  return true;
}
#else
void set(std::span<std::byte> bytes) {
  std::ranges::fill(bytes, kGuard);
}
void lift(std::span<std::byte> /*bytes*/) {}
bool is_whole(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == kGuard; });
}
#endif

// Lists of numbers are handed out as they lie in memory.
bool is_handed_out(const Type& type) {
  if (type.type_class == TypeClass::kTensor) return true;
  return type.type_class == TypeClass::kList && type.element->is_number();
}

}  // namespace

const Op& LentArguments::lend(const Op& op) {
  lift_guards();
  original_ = &op;
  lent_ = &copy_of(op.kind(), op);
  if (lent_->arguments == nullptr) lent_ = nullptr;
  if (lent_ == nullptr) return op;
  fill();
  return lent_->op;
}

std::optional<std::string> LentArguments::damage() {
  if (lent_ == nullptr) return std::nullopt;
  std::optional<std::string> words;
  if (const auto changed = first_difference(original_->arguments().type(),
                                            original_->arguments().get(), lent_->arguments.get()))
    words = "changed its arguments: " + changed->text();
  for (const Guard& guard : guards_)
    if (!words && !is_whole(guard.bytes))
      words = "wrote behind its arguments: " + std::string(guard.field);
  if (!words) return std::nullopt;
  lift_guards();
  fill();
  return words;
}

LentArguments::Copy& LentArguments::copy_of(const OpKind& kind, const Op& op) {
  for (const auto& copy : copies_)
    if (copy->kind == &kind) return *copy;
  const bool any = std::ranges::any_of(kind.arguments->fields, [](const Field& field) {
    return is_handed_out(field.type->value_type());
  });
  if (!any) return *copies_.emplace_back(std::make_unique<Copy>(Copy{&kind, nullptr, op}));
  const std::shared_ptr<void> arguments = kind.arguments->made();
  return *copies_.emplace_back(
      std::make_unique<Copy>(Copy{&kind, arguments, Op(kind, Record(*kind.arguments, arguments))}));
}

void LentArguments::fill() {
  const Type& type = *lent_->kind->arguments;
  void* to = lent_->arguments.get();
  type.assign(to, original_->arguments().get());
  for (const Field& field : type.fields) {
    const Type* held = field.type;
    void* value = field.of(to);
    while (value != nullptr && (held->is_optional() || held->is_nullable())) {
      value = held->held(value);
      held = held->element;
    }
    if (value != nullptr && is_handed_out(*held)) guard(*held, value, field.name);
  }
}

// What a list has given up stays its memory, as long as it does not grow.
void LentArguments::guard(const Type& type, void* value, std::string_view field) {
  std::byte* end = nullptr;
  if (type.type_class == TypeClass::kTensor) {
    std::vector<std::byte>& bytes = detail::to<Tensor>(value).bytes;
    const std::size_t size = bytes.size();
    bytes.resize(size + kGuardBytes);
    end = bytes.data() + size;
    bytes.resize(size);
  } else {
    const std::size_t length = type.length(value);
    type.resize(value, length + kGuardBytes / type.element->size);
    end = static_cast<std::byte*>(type.at(value, length));
    type.resize(value, length);
  }
  guards_.push_back({{end, kGuardBytes}, field});
  set(guards_.back().bytes);
}

void LentArguments::lift_guards() {
  for (const Guard& guard : guards_) lift(guard.bytes);
  guards_.clear();
}

}  // namespace kvo
