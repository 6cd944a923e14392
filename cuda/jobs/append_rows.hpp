// cuda/jobs/append_rows.hpp: rows behind each other into a contiguous buffer.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/jobs/unit.hpp"

namespace kvo::cuda {

/// buffer[b, first + s] = rows[b, s]. Widths are counted in units.
template <class Unit>
struct AppendRows {
  static constexpr std::string_view kName = "append_rows";
  Unit* buffer;      ///< [batch, max_seq, width]
  const Unit* rows;  ///< [batch, seq, width]
  std::int64_t batch;
  std::int64_t seq;
  std::int64_t width;
  std::int64_t first;    ///< position of the first row
  std::int64_t max_seq;  ///< positions

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return batch * seq * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t lane = seq * width;
    const std::int64_t to = ((i / lane) * max_seq + first) * width + i % lane;
    memory.store(buffer + to, memory.load(rows + i));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("buffer", buffer, width),
            JobArgument::rows("rows", rows, width),
            JobArgument::of("batch", batch),
            JobArgument::of("seq", seq),
            JobArgument::of("width", width),
            JobArgument::of("first", first),
            JobArgument::of("max_seq", max_seq)};
  }
};

/// The same with widths in bytes.
[[nodiscard]] inline Job append_rows(DevicePtr buffer, DevicePtr rows, std::int64_t batch,
                                     std::int64_t seq, std::int64_t row_bytes, std::int64_t first,
                                     std::int64_t max_seq) {
  return in_units({buffer.address, rows.address, static_cast<std::uint64_t>(row_bytes)},
                  [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
                    return Job(AppendRows<Unit>{buffer.as<Unit>(), rows.as<const Unit>(), batch,
                                                seq, row_bytes / bytes, first, max_seq});
                  });
}

}  // namespace kvo::cuda
