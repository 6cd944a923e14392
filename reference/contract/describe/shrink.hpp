// reference/contract/describe/shrink.hpp: simpler versions of a described record, for shrinking
// scripts.
//
// Each candidate changes one thing: a number towards zero, a flag to false, an optional to absent,
// a list or one axis of the record's tensors to fewer entries. Tensors of one record shrink
// together, because keys and values of unequal shape are a different mistake; so do its lists of
// numbers that are equally long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/describe/type.hpp"

namespace kvo {

/// `tensor` cut to the first `size` entries of `axis`.
[[nodiscard]] Tensor cut_axis(const Tensor& tensor, std::size_t axis, std::int64_t size);

/// Calls candidate(simpler record) for each simpler version, the boldest cuts of an axis first,
/// until it returns true. True if it did.
bool shrink_record(const Record& record, const std::function<bool(Record)>& candidate);

/// A record of the type of `first` with its entries, and behind them those of `second`; nothing
/// unless the members of both are lists of integers of the same types.
[[nodiscard]] std::optional<Record> joined(const Record& first, const Record& second);

/// A record of their type with what both hold: lists of integers, and tensors along their first
/// axis, one behind the other. Nothing unless the rest is equal, and the other axes are.
[[nodiscard]] std::optional<Record> as_one(const Record& first, const Record& second);

/// The record with each of its tensors, in order of declaration, as `change` leaves it.
[[nodiscard]] Record with_tensors(const Record& record, const std::function<void(Tensor&)>& change);

/// An integer member of a record by name, and its value.
using NamedInteger = std::pair<std::string_view, std::int64_t>;
/// The integers that are members of the record itself, absent ones left out.
[[nodiscard]] std::vector<NamedInteger> integers_of(const Record& record);
/// The record with its member `integer.first` set to `to`; nothing unless that holds
/// `integer.second` now.
[[nodiscard]] std::optional<Record> with_integer(const Record& record, const NamedInteger& integer,
                                                 std::int64_t to);
/// integers_of, and those in its lists and records, each by the name of its member.
[[nodiscard]] std::vector<NamedInteger> all_integers_of(const Record& record);
/// The record with each of all_integers_of as `change` returns it, which must fit its type.
[[nodiscard]] Record with_integers(const Record& record,
                                   const std::function<std::int64_t(const NamedInteger&)>& change);

/// The record with 0 where its member `name`, an optional integer, is absent.
[[nodiscard]] Record with_zero(const Record& record, std::string_view name);

/// The record without the entries [begin, end) of its lists of numbers that are `size` long.
[[nodiscard]] Record without_entries(const Record& record, std::size_t size, std::size_t begin,
                                     std::size_t end);

}  // namespace kvo
