// reference/generation/stop_strings.hpp: where a text ends, and what of it may be sent already.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/values/quirk.hpp"
#include "reference/generation/quirks.hpp"

namespace kvo::generation {

/// Where the stop string begins that ends the text, in bytes; nothing if none does (ZF-79).
[[nodiscard]] std::optional<std::size_t> stop_in(std::string_view text,
                                                 const std::vector<std::string>& stops,
                                                 QuirkSet<Quirk> quirks);

/// Bytes of a text that no further token can take back: its end may be the beginning of a stop
/// string, or of a character (ZF-84, documented).
[[nodiscard]] std::size_t settled(std::string_view text, const std::vector<std::string>& stops);

}  // namespace kvo::generation
