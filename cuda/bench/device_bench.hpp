// cuda/bench/device_bench.hpp: kernels of a device against its own copy of the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/contract/device/device.hpp"

namespace kvo::cuda {

/// How much is moved. The defaults are layers of 8 heads x 128, f32, as a 7B model has them; all
/// buffers of one line together are larger than the second-level cache of a card.
struct BenchSizes {
  std::int64_t layers = 32;
  std::int64_t row_cells = 1024;      ///< of a position and layer, K or V
  std::int64_t prefill = 512;         ///< positions of a prompt
  std::int64_t gathered = 4096;       ///< positions that are read
  std::int64_t block = 16;            ///< positions of a block
  std::int64_t converted = 1 << 22U;  ///< cells
  int repetitions = 51;               ///< of which the median counts
};

/// One line: the work of a graph of `launches` launches against as many copies.
struct BenchLine {
  std::string work;
  std::int64_t launches = 0;
  double bytes = 0;    ///< read and written by all launches
  double seconds = 0;  ///< median of a replay with its wait
  double gigabytes_per_second = 0;
  double of_copy = 0;  ///< its rate over that of the copies
};

/// A decode step of all layers in one graph against a graph of one kernel that does nothing much.
struct StepLine {
  double step_seconds = 0;
  double empty_seconds = 0;
};

struct BenchResult {
  std::vector<BenchLine> lines;
  StepLine step;
};

/// Measures, graphs of work and of copies in turn. Errors  of the device.
[[nodiscard]] Result<BenchResult> measure(Device& device, const BenchSizes& sizes);

/// As Markdown.
[[nodiscard]] std::string table_of(const BenchResult& result);

}  // namespace kvo::cuda
