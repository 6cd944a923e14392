// reference/contract/describe/storage.hpp: how a case stores rows, as its config says it.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo {

/// Members of a config: `storage`, `group`, `offset`.
struct RowStorage {
  static constexpr bool kInline = true;
  KVO_RECORD_MEMBERS(
      (std::optional<StorageType>, storage,
       "storage type of rows: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4; absent: f32, in snapshot "
       "the type that the rows have"),
      (std::optional<std::int64_t>, group,
       "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
      (std::optional<bool>, offset,
       "of q8 and q4: whether a group has an offset, too; absent: false"))
  [[nodiscard]] StorageFormat format() const { return storage_format(storage, group, offset); }
};
BOOST_DESCRIBE_STRUCT(RowStorage, (), (storage, group, offset))

}  // namespace kvo
