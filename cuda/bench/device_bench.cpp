#include "cuda/bench/device_bench.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "cuda/jobs/cells.hpp"
#include "cuda/jobs/rows.hpp"
#include "reference/contract/device/jobs.hpp"
#include "reference/contract/values/thrown.hpp"

namespace kvo::cuda {
namespace {

constexpr std::int64_t kCell = 4;  // bytes
using Queue = std::function<Status(std::int64_t launch)>;

/// The value of a result. Throws ErrorThrown.
template <class T>
T must(Result<T> result) {
  if (!result) demand(result.error());
  return *std::move(result);
}

/// Buffers that live as long as a line.
class Buffers {
 public:
  explicit Buffers(Device& device) : device_(device) {}
  ~Buffers() {
    for (const DevicePtr ptr : all_) (void)device_.free(ptr);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  [[nodiscard]] DevicePtr make(std::int64_t bytes) {
    return all_.emplace_back(must(device_.alloc(bytes)));
  }

 private:
  Device& device_;
  std::vector<DevicePtr> all_;
};

Graph captured(Device& device, Stream stream, std::int64_t launches, const Queue& queue) {
  demand(device.begin_capture(stream));
  Status queued;
  for (std::int64_t i = 0; i < launches && queued; ++i) queued = queue(i);
  const auto graph = device.end_capture(stream);
  demand(queued);
  return must(graph);
}

double replayed(Device& device, Graph graph, Stream stream) {
  const auto begin = std::chrono::steady_clock::now();
  demand(device.replay(graph, stream));
  demand(device.synchronize(stream));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + std::ssize(seconds) / 2;
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

struct Pair {
  double one = 0;
  double other = 0;
};

/// Medians of two graphs, replayed in turn behind a first time that is not counted.
Pair in_turn(Device& device, int repetitions, std::int64_t launches, const Queue& one,
             const Queue& other, Stream stream) {
  const Graph first = captured(device, stream, launches, one);
  const Graph second = captured(device, stream, launches, other);
  std::vector<double> ones;
  std::vector<double> others;
  for (int i = -1; i < repetitions; ++i)
    for (const auto& [graph, times] : {std::pair{first, &ones}, std::pair{second, &others}}) {
      const double seconds = replayed(device, graph, stream);
      if (i >= 0) times->push_back(seconds);
    }
  for (const Graph graph : {first, second}) demand(device.destroy(graph));
  return {median(std::move(ones)), median(std::move(others))};
}

/// A line whose launch i makes `job(to, from)`, of buffers of its own, against a copy of the bytes
/// of `from`. `written` and `read`: bytes of one launch.
struct Line {
  std::string work;
  std::int64_t launches = 0;
  std::int64_t written = 0;
  std::int64_t read = 0;
  std::function<Job(DevicePtr to, DevicePtr from)> job;
  std::int64_t spare = 0;  ///< bytes of a buffer behind them: the rest of the last block
};

BenchLine measured(Device& device, const Line& line, int repetitions, Stream stream) {
  Buffers buffers(device);
  std::vector<std::pair<DevicePtr, DevicePtr>> pairs;
  for (std::int64_t i = 0; i < line.launches; ++i) {
    const std::int64_t bytes = std::max(line.written, line.read) + line.spare;
    const DevicePtr to = buffers.make(bytes);
    pairs.emplace_back(to, buffers.make(bytes));
  }
  const auto work = [&](std::int64_t i) {
    const auto& [to, from] = pairs[static_cast<std::size_t>(i)];
    return device.launch(line.job(to, from), stream);
  };
  const auto copy = [&](std::int64_t i) {
    const auto& [to, from] = pairs[static_cast<std::size_t>(i)];
    return device.copy_async(to, from, line.read, stream);
  };
  const Pair times = in_turn(device, repetitions, line.launches, work, copy, stream);
  constexpr double kGiga = 1e9;
  const auto bytes = static_cast<double>((line.written + line.read) * line.launches);
  const auto copied = static_cast<double>(2 * line.read * line.launches);
  return BenchLine{.work = line.work,
                   .launches = line.launches,
                   .bytes = bytes,
                   .seconds = times.one,
                   .gigabytes_per_second = bytes / times.one / kGiga,
                   .of_copy = (bytes / times.one) / (copied / times.other)};
}

DevicePtr table_of_blocks(Device& device, Buffers& buffers, std::int64_t positions,
                          std::int64_t block) {
  const std::int64_t blocks = (positions + block - 1) / block;
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(blocks));
  std::iota(numbers.rbegin(), numbers.rend(), 0);  // no two in a row lie behind each other
  const DevicePtr table = buffers.make(blocks * kCell);
  demand(device.to_device(table, std::as_bytes(std::span(numbers))));
  return table;
}

std::vector<Line> lines_of(const BenchSizes& sizes, DevicePtr prompt_table,
                           DevicePtr gather_table) {
  const std::int64_t row = sizes.row_cells * kCell;
  const std::int64_t prefill = sizes.prefill * row;
  const std::int64_t gathered = sizes.gathered * row;
  const std::int64_t cells = sizes.converted;
  const auto paged = [=](DevicePtr pool, DevicePtr rows, DevicePtr table, std::int64_t count) {
    return PagedRows{pool, rows, table, sizes.block, row, 0, count};
  };
  const std::int64_t few = std::max<std::int64_t>(sizes.layers / 4, 1);
  std::vector<Line> lines{
      {"append of a prompt, contiguous", 2 * sizes.layers, prefill, prefill,
       [=](DevicePtr to, DevicePtr from) {
         return append_rows(to, from, 1, sizes.prefill, row, 0, sizes.prefill);
       }},
      {"append of a prompt, paged", 2 * sizes.layers, prefill, prefill,
       [=](DevicePtr to, DevicePtr from) {
         return paged(to, from, prompt_table, sizes.prefill).append();
       },
       sizes.block * row},
      {"gather, paged", 2 * few, gathered, gathered,
       [=](DevicePtr to, DevicePtr from) {
         return paged(from, to, gather_table, sizes.gathered).gather();
       },
       sizes.block * row},
      {"f32 to f16, cell by cell", 2 * few, 2 * cells, 4 * cells,
       [=](DevicePtr to, DevicePtr from) {
         return Job(ToHalfJob{to.as<std::uint16_t>(), from.as<const std::uint32_t>(), cells});
       }},
      {"f16 to f32, cell by cell", 2 * few, 4 * cells, 2 * cells,
       [=](DevicePtr to, DevicePtr from) {
         return Job(ToFloatJob{to.as<std::uint32_t>(), from.as<const std::uint16_t>(), cells});
       }},
  };
  const auto bytes = [](DType type) { return static_cast<std::int64_t>(dtype_bytes(type)); };
  for (const auto& types : {std::pair{DType::kF32, DType::kF16},
                            {DType::kF16, DType::kF32},
                            {DType::kF32, DType::kBF16},
                            {DType::kBF16, DType::kF32},
                            {DType::kF16, DType::kBF16}})
    lines.push_back({fmt::format("{} to {}", dtype_name(types.first), dtype_name(types.second)),
                     2 * few, bytes(types.second) * cells, bytes(types.first) * cells,
                     [=](DevicePtr to, DevicePtr from) {
                       return convert_cells(to, types.second, from, types.first, cells);
                     }});
  return lines;
}

StepLine measured_step(Device& device, const BenchSizes& sizes, Stream stream) {
  Buffers buffers(device);
  const std::int64_t count = 2 * sizes.layers;
  std::vector<std::uint64_t> to;
  std::vector<std::uint64_t> from;
  for (std::int64_t i = 0; i < count; ++i)
    for (auto [list, rows] : {std::pair{&to, std::int64_t{64}}, std::pair{&from, std::int64_t{1}}})
      list->push_back(buffers.make(rows * sizes.row_cells * kCell).address);
  const DevicePtr tables = buffers.make(2 * count * 8);
  const DevicePtr counter = buffers.make(kCell);
  to.insert(to.end(), from.begin(), from.end());
  demand(device.to_device(tables, std::as_bytes(std::span(to))));
  const AppendLayers<std::uint32_t> step{
      .buffers = tables.as<std::uint32_t* const>(),
      .sources = (tables + count * 8).as<const std::uint32_t* const>(),
      .counter = counter.as<const std::int32_t>(),
      .count = count,
      .dim = sizes.row_cells,
      .max_seq_len = 64};
  const Pair times = in_turn(
      device, 4 * sizes.repetitions, 1, [&](std::int64_t) { return device.launch(step, stream); },
      [&](std::int64_t) {
        return device.launch(IncrementJob{counter.as<std::int32_t>(), 0}, stream);
      },
      stream);
  return {times.one, times.other};
}

}  // namespace

Result<BenchResult> measure(Device& device, const BenchSizes& sizes) try {
  const Stream stream = must(device.create_stream());
  Buffers shared(device);
  const DevicePtr prompt_table = table_of_blocks(device, shared, sizes.prefill, sizes.block);
  const DevicePtr gather_table = table_of_blocks(device, shared, sizes.gathered, sizes.block);
  BenchResult result;
  for (const Line& line : lines_of(sizes, prompt_table, gather_table))
    result.lines.push_back(measured(device, line, sizes.repetitions, stream));
  result.step = measured_step(device, sizes, stream);
  demand(device.destroy(stream));
  return result;
} catch (const ErrorThrown& thrown) {
  return thrown.error();
}

std::string table_of(const BenchResult& result) {
  constexpr double kMicro = 1e6;
  std::string text =
      "| work | launches | GB/s | of the device copy |\n| --- | ---: | ---: | ---: |\n";
  for (const BenchLine& line : result.lines)
    text += fmt::format("| {} | {} | {:.0f} | {:.2f} |\n", line.work, line.launches,
                        line.gigabytes_per_second, line.of_copy);
  text += fmt::format(
      "\nA decode step of all layers in one graph: {:.1f} us, {:.2f} of a graph of one kernel.\n",
      result.step.step_seconds * kMicro, result.step.step_seconds / result.step.empty_seconds);
  return text;
}

}  // namespace kvo::cuda
