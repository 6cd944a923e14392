// properties/snapshot/token_rows.hpp: rows as a list of tokens in order of time, whatever buffers,
// slots and shapes a cache keeps them in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "reference/contract/values/tensor.hpp"

namespace kvo::snapshot {

/// Keys or values, [B, H, S, D], token by token.
struct Side {   // NOLINT(bugprone-exception-escape): as Tensor
  Shape shape;  ///< of no tokens
  DType type = DType::kF32;
  /// The elements of each in the order of [B, H, D]; lists share them.
  std::vector<std::shared_ptr<const std::vector<std::byte>>> tokens = {};

  /// Requires  four axes.
  [[nodiscard]] static Side of(const Tensor& tensor);
  /// As a tensor, which begins with token `first` and goes round.
  [[nodiscard]] Tensor shown(std::size_t first = 0) const;
  /// Tokens [begin, end).
  [[nodiscard]] Side part(std::int64_t begin, std::int64_t end) const;
  /// The same in another type, rounded to nearest even.
  [[nodiscard]] Side cast(DType to) const;
};

/// Keys and values of as many tokens.
struct TokenRows {  // NOLINT(bugprone-exception-escape): as Tensor
  Side k;
  Side v;

  /// Requires  four axes each, and as many tokens.
  [[nodiscard]] static TokenRows of(const Tensor& k, const Tensor& v) {
    return {Side::of(k), Side::of(v)};
  }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(k.tokens.size()); }
  [[nodiscard]] std::int64_t bytes() const;
  [[nodiscard]] TokenRows part(std::int64_t begin, std::int64_t end) const {
    return {k.part(begin, end), v.part(begin, end)};
  }
  /// The newest, `most` at most.
  [[nodiscard]] TokenRows newest(std::int64_t most) const;
  /// `more` behind, cast to the types of these.
  void append(const TokenRows& more);
  /// Whether B, H and D are alike, of keys and of values.
  [[nodiscard]] bool alike(const TokenRows& other) const {
    return k.shape == other.k.shape && v.shape == other.v.shape;
  }
};

/// Whether K and V have four axes, and the same B, H and S.
[[nodiscard]] bool are_rows(const Tensor& k, const Tensor& v);

}  // namespace kvo::snapshot
