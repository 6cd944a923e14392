// reference/contract/describe/difference.hpp: the first difference of two described values, with
// its place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reference/contract/describe/type.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo {

/// Where two observations part. `place` is a path of fields; inside a tensor it ends in
/// coordinates: "k[batch 0, position 3, dim 1]".
struct Difference {
  std::string place;
  std::string want;
  std::string got;
  std::uint64_t differing = 0;  ///< of the elements of the tensor or list at `place`
  std::uint64_t elements = 0;   ///< 0: it is no element that differs
  /// Of two scripts of one subject: how the second one was made; `want` is of the original script.
  std::optional<std::string> varied = std::nullopt;
  /// "k[batch 0, position 3, dim 1]: want 7, got 9 (5 of 12 elements differ)"
  [[nodiscard]] std::string text() const;
};
BOOST_DESCRIBE_STRUCT(Difference, (), (place, want, got, differing, elements, varied))

/// Where what is wanted comes from.
enum class Wanted : std::uint8_t {
  kComputed,  ///< by another subject: every bit counts
  kRecorded,  ///< from another system: doubles of a record that says so may be a little off
};

/// How what is wanted and what is there may part and yet agree.
struct Exactness {
  Wanted wanted = Wanted::kComputed;
  /// Elements of f32 tensors may be off by what storing the wanted ones so may cost (error_bound;
  /// groups are counted along the last axis). What is no number, or beyond the type's range, must
  /// be shown as that type shows it (show_stored). Null: bit by bit.
  const StorageFormat* stored = nullptr;
};

/// The first difference in order of declaration; nothing when the values agree. Tensors and floats
/// are compared bit by bit: NaNs with the same bits agree, 0.0 and -0.0 differ; `exactness` may say
/// less.
[[nodiscard]] std::optional<Difference> first_difference(const Type& type, const void* want,
                                                         const void* got,
                                                         const Exactness& exactness = {});
template <class T>
[[nodiscard]] std::optional<Difference> first_difference(const T& want, const T& got) {
  return first_difference(type_of<T>(), &want, &got);
}

}  // namespace kvo
