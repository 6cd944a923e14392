// tools/commands/shared_operations.hpp: operations that mean the same in several contracts.
//
// One sequence: tokens are appended, the last ones are cut off, the first ones are dropped. Then
// one more token is appended, and what it sees says what the cache held. Tokens are numbered in
// order of their appending, from 0.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::tools {

enum class SharedOpKind : std::uint8_t { kAppend, kCutTo, kDropFirst };
BOOST_DESCRIBE_ENUM(SharedOpKind, kAppend, kCutTo, kDropFirst)

/// "append 3", "cut to 2", "drop first 1"; the number of a cut is that of tokens that stay.
struct SharedOp {
  SharedOpKind kind = SharedOpKind::kAppend;
  std::int64_t n = 0;
  [[nodiscard]] std::string text() const;
};
using SharedScript = std::vector<SharedOp>;

/// "append 3, cut to 2"
[[nodiscard]] std::string text_of(const SharedScript& script);

/// How a cache took a script.
struct SharedAnswer {
  /// Of the last operation: "ok", a code, or "not offered": the cache has no such operation.
  std::string outcome;
  /// Tokens that the next one sees, itself not counted, oldest first. Nothing: the cache refuses
  /// the next token, or an earlier operation is not offered.
  std::optional<std::vector<std::int64_t>> seen = std::nullopt;
  std::vector<Op> ops = {};  ///< of the kind, the next token's included

  /// "ok, sees 0 1 2", "out_of_range, sees 0 1 2", "ok, the next token is refused"
  [[nodiscard]] std::string text() const;
};

/// How one cache kind is asked.
struct SharingKind {
  std::string_view kind;  ///< "snapshot.kv"
  /// The answer of a subject of the kind. `window`: see sharing_kinds.
  std::function<SharedAnswer(const Subject& subject, Profile profile, const SharedScript& script)>
      answer;
};

/// The kinds that keep all tokens; or, with a window of `window` tokens, those that have one.
[[nodiscard]] std::vector<SharingKind> sharing_kinds(std::optional<std::int64_t> window);

/// All scripts of at most `most` operations that begin with an append of 3 tokens, or with another
/// operation alone, short ones first. Numbers lie around the ends of what is held.
[[nodiscard]] std::vector<SharedScript> shared_scripts(std::size_t most);

}  // namespace kvo::tools
