// tools/adapters/refusals.hpp: calls that the harness answers in the place of a cache outside.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reference/contract/subject/subject.hpp"

namespace kvo::tools {

/// What a cache is not asked, as with caches of this tree: operations that it lacks, arguments
/// outside their domains, a cache that was not made.
class Refusals {
 public:
  /// `missing`: operations that the cache lacks.
  Refusals(const CacheKind& kind, const std::vector<std::string>& missing) : kind_(&kind) {
    for (const OpKind* op : kind.operations)
      operations_.push_back({std::ranges::find(missing, op->name) != missing.end(),
                             caches_in(*op->arguments), caches_in(*op->returns)});
    numbered_ = std::ranges::any_of(operations_, [](const auto& op) { return !op.makes.empty(); });
  }

  /// Nothing: the cache is to answer. Requires  an operation of the kind.
  [[nodiscard]] std::optional<Error> of(const Op& op) const {
    const Operation& known = operations_[number_of(op.kind())];
    if (known.missing)
      return fail(Code::kNotSupported, fmt::format("no operation {}", op.kind().name));
    if (auto error = argument_error(op)) return error;
    if (!numbered_) return std::nullopt;
    for (const Field* field : known.takes)
      if (const std::int64_t cache = integer_at(*field->type, field->of(op.arguments().get()));
          std::ranges::find(caches_, cache) == caches_.end())
        return fail(Code::kPrecondition, fmt::format("no cache {}", cache));
    return std::nullopt;
  }
  /// Whether of() may answer differently after this operation.
  [[nodiscard]] bool depend_on(const OpKind& kind) const {
    return !operations_[number_of(kind)].makes.empty();
  }
  void learn(const Op& op, const Observation& seen) {
    if (seen.error) return;
    for (const Field* field : operations_[number_of(op.kind())].makes)
      caches_.push_back(integer_at(*field->type, field->of(seen.returns.get())));
  }
  /// The place of an operation among those of the kind.
  [[nodiscard]] std::size_t number_of(const OpKind& kind) const {
    return static_cast<std::size_t>(std::ranges::find(kind_->operations, &kind) -
                                    kind_->operations.begin());
  }

 private:
  struct Operation {
    bool missing;
    std::vector<const Field*> takes;  // numbers of caches
    std::vector<const Field*> makes;
  };

  [[nodiscard]] static std::vector<const Field*> caches_in(const Type& type) {
    std::vector<const Field*> found;
    for (const Field& field : type.fields)
      if (field.domain != nullptr && field.domain->handle_of == "cache" &&
          field.type->type_class == TypeClass::kInteger)
        found.push_back(&field);
    return found;
  }

  const CacheKind* kind_;
  std::vector<Operation> operations_;
  bool numbered_ = false;  // each cache has a number
  std::vector<std::int64_t> caches_;
};

/// What a refusal is observed as.
[[nodiscard]] inline Observation refused(Error error) {
  const bool unsupported = error.code == Code::kNotSupported;
  return {.error = std::move(error), .unsupported = unsupported};
}

}  // namespace kvo::tools
