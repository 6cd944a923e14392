// reference/contract/shrink.hpp: simpler versions of a described record, for shrinking scripts.
//
// Each candidate changes one thing: a number towards zero, a flag to false, an optional to absent,
// a list or one axis of the record's tensors to fewer entries. Tensors of one record shrink
// together, because keys and values of unequal shape are a different mistake; so do its lists of
// numbers that are equally long.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/contract/describe.hpp"
#include "reference/contract/tensor.hpp"

namespace kvo {

/// `tensor` cut to the first `size` entries of `axis`.
[[nodiscard]] Tensor cut_axis(const Tensor& tensor, std::size_t axis, std::int64_t size);

namespace detail {

/// Values between `low` and `value` to try, the boldest first; each leaves half as far to go as the
/// one before, so that a bound is found in steps that halve.
template <class Integer>
std::vector<Integer> towards(Integer low, Integer value) {
  std::vector<Integer> tries;
  for (Integer far = value - low; far != 0; far /= 2)
    tries.push_back(static_cast<Integer>(value - far));
  return tries;
}

template <class T>
void collect_tensors(T& value, std::vector<Tensor*>& found) {
  if constexpr (std::is_same_v<T, Tensor>) {
    found.push_back(&value);
  } else if constexpr (Optional<T>) {
    if (value) collect_tensors(*value, found);
  } else if constexpr (NullableType<T>) {
    if (value.value) collect_tensors(*value.value, found);
  } else if constexpr (Described<T>) {
    for_each_member(value, [&](std::string_view, auto& member) { collect_tensors(member, found); });
  }
}

template <class T>
concept NumberList = Vector<T> && std::is_integral_v<typename T::value_type>;

/// Smaller versions of one member that is no tensor.
template <class T>
std::vector<T> smaller(const T& value) {
  std::vector<T> tries;
  if constexpr (std::is_same_v<T, bool>) {
    if (value) tries.push_back(false);
  } else if constexpr (std::is_integral_v<T>) {
    tries = towards<T>(0, value);
  } else if constexpr (Optional<T> && !std::is_same_v<T, std::optional<Tensor>>) {
    if (value) {
      tries.push_back(std::nullopt);
      for (auto&& inner : smaller(*value)) tries.push_back(std::move(inner));
    }
  } else if constexpr (Vector<T>) {
    for (const std::size_t size : towards<std::size_t>(0, value.size()))
      tries.emplace_back(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(size));
  }
  return tries;
}

/// A copy of `record` without the entries [begin, end) of its number lists of length `size`.
template <class Record>
Record without_entries(const Record& record, std::size_t size, std::size_t begin, std::size_t end) {
  Record smaller = record;
  for_each_member(smaller, [&](std::string_view, auto& member) {
    if constexpr (NumberList<std::remove_cvref_t<decltype(member)>>) {
      if (member.size() != size) return;
      member.erase(member.begin() + static_cast<std::ptrdiff_t>(begin),
                   member.begin() + static_cast<std::ptrdiff_t>(end));
    }
  });
  return smaller;
}

/// Candidates with lists of equal length cut together, at the end and at the beginning.
template <class Record, class Candidate>
void shrink_lists_together(const Record& record, Candidate&& candidate) {
  std::vector<std::size_t> sizes;
  for_each_member(record, [&](std::string_view, const auto& member) {
    if constexpr (NumberList<std::remove_cvref_t<decltype(member)>>)
      if (!member.empty()) sizes.push_back(member.size());
  });
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (std::find(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), sizes[i]) !=
        sizes.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    if (std::count(sizes.begin(), sizes.end(), sizes[i]) < 2) continue;
    for (const std::size_t kept : towards<std::size_t>(1, sizes[i])) {
      if (kept >= sizes[i]) continue;
      candidate(without_entries(record, sizes[i], kept, sizes[i]));
      candidate(without_entries(record, sizes[i], 0, sizes[i] - kept));
    }
  }
}

}  // namespace detail

/// Calls candidate(smaller record) for each simpler version, the boldest cuts of an axis first.
template <Described Record, class Candidate>
void shrink_record(const Record& record, Candidate&& candidate) {
  std::vector<Tensor*> tensors;
  Record copy = record;
  detail::collect_tensors(copy, tensors);
  const std::size_t axes = tensors.empty() ? 0 : tensors.front()->shape.size();
  for (std::size_t axis = 0; axis < axes; ++axis) {
    for (const std::int64_t size : detail::towards<std::int64_t>(1, tensors.front()->shape[axis])) {
      if (size > tensors.front()->shape[axis]) continue;
      Record smaller = record;
      std::vector<Tensor*> cut;
      detail::collect_tensors(smaller, cut);
      for (Tensor* tensor : cut)
        if (axis < tensor->shape.size() && size <= tensor->shape[axis])
          *tensor = cut_axis(*tensor, axis, size);
      candidate(std::move(smaller));
    }
  }
  detail::shrink_lists_together(record, candidate);
  boost::mp11::mp_for_each<Members<Record>>([&](auto member) {
    for (auto&& value : detail::smaller(record.*member.pointer)) {
      Record smaller = record;
      smaller.*member.pointer = std::move(value);
      candidate(std::move(smaller));
    }
  });
}

}  // namespace kvo
