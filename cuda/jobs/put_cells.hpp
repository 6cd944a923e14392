// cuda/jobs/put_cells.hpp: rows to the cells of a pool, in its storage type.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/jobs/cell_format.hpp"

namespace kvo::cuda {

/// cells[targets[r], i] = rows[r, i], rounded. Widths are counted in packs of kLanes elements.
template <class Format, int kLanes>
struct PutCells {
  static constexpr std::string_view kName = "put_cells";
  using To = Pack<typename Format::Cell, kLanes>;
  using From = Pack<std::uint32_t, kLanes>;
  To* cells;                    ///< [cells, width]
  const From* rows;             ///< [count, width], bits of binary32
  const std::int32_t* targets;  ///< [count]: cells, each once
  std::int64_t count;
  std::int64_t width;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t cell = memory.load(targets + i / width);
    const From from = memory.load(rows + i);
    To to = {};
    for (int lane = 0; lane < kLanes; ++lane) to.lanes[lane] = Format::narrow(from.lanes[lane]);
    memory.store(cells + cell * width + i % width, to);
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("cells", cells, width), JobArgument::rows("rows", rows, width),
            JobArgument::of("targets", targets), JobArgument::of("count", count),
            JobArgument::of("width", width)};
  }
};

/// columns[i, targets[r]] = rows[r, i], rounded: cells are the fastest axis. Neighbours among
/// threads store beside each other where their cells are neighbours.
template <class Format>
struct PutColumns {
  static constexpr std::string_view kName = "put_columns";
  using Cell = typename Format::Cell;
  Cell* columns;                ///< [width, cells]
  const std::uint32_t* rows;    ///< [count, width], bits of binary32
  const std::int32_t* targets;  ///< [count]: cells, each once
  std::int64_t count;
  std::int64_t width;
  std::int64_t cells;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t row = i % count;
    const std::int64_t line = i / count;
    const std::int64_t cell = memory.load(targets + row);
    memory.store(columns + line * cells + cell,
                 Format::narrow(memory.load(rows + row * width + line)));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("columns", columns, cells),
            JobArgument::rows("rows", rows, width),
            JobArgument::of("targets", targets),
            JobArgument::of("count", count),
            JobArgument::of("width", width),
            JobArgument::of("cells", cells)};
  }
};

/// Both with widths in elements; PutCells takes four at a time where addresses and width allow.
struct PutRows {
  DType dtype = DType::kF32;
  DevicePtr to;
  DevicePtr rows;
  DevicePtr targets;
  std::int64_t count = 0;
  std::int64_t width = 0;

  [[nodiscard]] Job cells() const {
    return in_format(dtype, [&]<class Format>(Format /*format*/) -> Job {
      constexpr int kLanes = 4;
      using Packed = PutCells<Format, kLanes>;
      const bool aligned = width % kLanes == 0 && to.address % sizeof(typename Packed::To) == 0 &&
                           rows.address % sizeof(typename Packed::From) == 0;
      return aligned ? Job(make<Packed>(kLanes)) : Job(make<PutCells<Format, 1>>(1));
    });
  }
  /// Into columns of a pool of `cells` cells.
  [[nodiscard]] Job columns(std::int64_t cells) const {
    return in_format(dtype, [&]<class Format>(Format /*format*/) -> Job {
      return PutColumns<Format>{to.as<typename Format::Cell>(),
                                rows.as<const std::uint32_t>(),
                                targets.as<const std::int32_t>(),
                                count,
                                width,
                                cells};
    });
  }

 private:
  template <class Put>
  [[nodiscard]] Put make(int lanes) const {
    return {to.as<typename Put::To>(), rows.as<const typename Put::From>(),
            targets.as<const std::int32_t>(), count, width / lanes};
  }
};

}  // namespace kvo::cuda
