// reference/contract/subject/named_quirks.hpp: from the names of quirks to a cache's set of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "reference/contract/subject/subject.hpp"
#include "reference/contract/values/quirk.hpp"

namespace kvo {

/// Those rows of a contract that concern one kind.
template <class Quirk, std::size_t kRows, std::size_t kCount>
constexpr std::array<QuirkInfo, kCount> rows_of(const std::array<QuirkInfo, kRows>& rows,
                                                const std::array<Quirk, kCount>& concerned) {
  std::array<QuirkInfo, kCount> found;
  for (std::size_t i = 0; i < kCount; ++i) found[i] = rows[static_cast<std::size_t>(concerned[i])];
  return found;
}

/// The rows of two contracts, for a kind that brings caches of both.
template <std::size_t kFirst, std::size_t kSecond>
constexpr std::array<QuirkInfo, kFirst + kSecond> joined(
    const std::array<QuirkInfo, kFirst>& first, const std::array<QuirkInfo, kSecond>& second) {
  std::array<QuirkInfo, kFirst + kSecond> all;
  std::ranges::copy(second, std::ranges::copy(first, all.begin()).out);
  return all;
}

/// The quirks of a case: those of its profile, and those that it names. Names of `others`, the rows
/// of another contract that the kind brings caches of, are left to that.
/// Errors  kNotSupported: a name that no row has.
template <class Quirk>
Result<QuirkSet<Quirk>> quirks_of(const Setup& setup, std::span<const QuirkInfo> rows,
                                  std::span<const QuirkInfo> others = {}) {
  QuirkSet<Quirk> quirks(setup.profile);
  for (const std::string& name : setup.quirks) {
    const auto row = std::ranges::find(rows, name, &QuirkInfo::name);
    if (row != rows.end()) {
      quirks.add(static_cast<Quirk>(row - rows.begin()));
    } else if (std::ranges::find(others, name, &QuirkInfo::name) == others.end()) {
      return fail(Code::kNotSupported, "quirk " + name);
    }
  }
  return quirks;
}

/// A subject whose sessions are what `open(setup, quirks)` returns, with the quirks of quirks_of.
template <class Quirk, class Open>
[[nodiscard]] Subject subject_of(const CacheKind& kind, std::string variant, std::string doc,
                                 Open open, std::span<const QuirkInfo> rows,
                                 std::span<const QuirkInfo> others = {}) {
  return {.kind = &kind,
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [open = std::move(open), rows,
                   others](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, rows, others);
            if (!quirks) return quirks.error();
            return open(setup, *quirks);
          }};
}

}  // namespace kvo
