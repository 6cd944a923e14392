// reference/contract/fields.hpp: what the fields of operations mean, for `kvoracle list`.
//
// Operations of all contracts name the same thing alike, so one table serves them all. Where a name
// means two things, the type tells them apart or the entry gives both. The axes of tensors stand in
// the records themselves.
#pragma once

#include <string_view>

namespace kvo {

/// Meaning and unit of the field of that name, on one line: "layer, counted from 0". The type is
/// FieldInfo's; it matters to few names. Empty for a name without an entry.
[[nodiscard]] std::string_view field_unit(std::string_view name, std::string_view type = {});

}  // namespace kvo
