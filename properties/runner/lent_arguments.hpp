// properties/runner/lent_arguments.hpp: what subjects get to see of an operation.
//
// A subject must neither alter its arguments nor write behind them. It gets a copy with guards, so
// that nobody else is harmed and no script holds what it wrote; and what it remembers of their
// place holds other values by the next operation.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/contract/describe/operation.hpp"

namespace kvo {

/// Copies of the operations of one case, one after the other.
class LentArguments {
 public:
  LentArguments() = default;
  LentArguments(const LentArguments&) = delete;
  LentArguments& operator=(const LentArguments&) = delete;
  ~LentArguments() { lift_guards(); }

  /// The operation in place of `op`, which must live until the next call. Only tensors and lists
  /// are copied: without any it is `op` itself.
  [[nodiscard]] const Op& lend(const Op& op);
  /// What was done to the operation that was lent last, in words, or nothing; it is undone.
  [[nodiscard]] std::optional<std::string> damage();

 private:
  // Memory that one kind of operation uses again and again.
  struct Copy {
    const OpKind* kind;
    std::shared_ptr<void> arguments;  // null: nothing to copy
    Op op;
  };
  struct Guard {
    std::span<std::byte> bytes;
    std::string_view field;
  };
  Copy& copy_of(const OpKind& kind, const Op& op);
  void fill();
  void guard(const Type& type, void* value, std::string_view field);
  void lift_guards();

  std::vector<std::unique_ptr<Copy>> copies_;
  std::vector<Guard> guards_;
  const Op* original_ = nullptr;
  Copy* lent_ = nullptr;  // null: the original itself was
};

}  // namespace kvo
