// reference/contract/describe/handles.hpp: handles in records, and arguments that refer to results.
//
// A handle is an integer whose domain says what it identifies (Domain::handle_of): a block, a
// node, a snapshot. Caches choose handles, so a script that loses an operation, or meets another
// cache, may get other ones. An argument that refers to a result follows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/type.hpp"

namespace kvo {

/// A handle that a record holds.
struct Handle {
  std::string_view of;                           ///< what it identifies: "block"
  std::string member;                            ///< "blocks", "parent.handle"
  std::optional<std::size_t> at = std::nullopt;  ///< its place, if the member is a list
  std::int64_t value = 0;
};

/// All handles of a record, in order of its members; not those of records in lists.
[[nodiscard]] std::vector<Handle> handles_of(const Record& record);

/// An argument that is what an earlier operation of the script returned.
struct ResultReference {
  std::string argument;
  std::optional<std::size_t> at = std::nullopt;  ///< its place; absent: no list, or all of it
  std::uint64_t operation = 0;                   ///< number of the earlier operation
  std::string member;                            ///< of its result
  std::optional<std::size_t> of = std::nullopt;  ///< place in it; absent: no list, or all of it
};

/// The arguments with what `returned` holds in the place of the reference; nothing if it holds no
/// such handle. Requires  the argument is a member of the record: an integer, or a list of them.
[[nodiscard]] std::optional<Record> with_result(const Record& arguments,
                                                const ResultReference& reference,
                                                std::span<const Handle> returned);

}  // namespace kvo
