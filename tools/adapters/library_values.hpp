// tools/adapters/library_values.hpp: records as values of kvoracle.h.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <string>

#include "reference/contract/describe/type.hpp"
#include "tools/adapters/c/kvoracle.h"

namespace kvo::tools {

/// Makes values of records, and holds them until clear().
class LibraryValues {
 public:
  /// One value a member of the record, in order. Tensors refer to the record's own.
  /// Requires  `record` is of `type`, a described record.
  [[nodiscard]] const kvoracle_value* of_members(const Type& type, const void* record);
  void clear() { memory_.release(); }

 private:
  template <class T>
  [[nodiscard]] T* made(std::size_t count) {
    return static_cast<T*>(memory_.allocate(std::max<std::size_t>(count, 1) * sizeof(T)));
  }
  [[nodiscard]] kvoracle_value of(const Type& type, const void* value);
  [[nodiscard]] kvoracle_value text(const std::string& words);
  [[nodiscard]] kvoracle_value list(const Type& type, const void* value);

  std::pmr::monotonic_buffer_resource memory_{std::size_t{16} << 10U};
};

}  // namespace kvo::tools
