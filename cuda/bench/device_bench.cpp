#include "cuda/bench/device_bench.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "cuda/jobs/cells.hpp"
#include "cuda/jobs/rows.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {
namespace {

constexpr std::int64_t kCell = 4;  // bytes
using Queue = std::function<Status(std::int64_t launch)>;

/// Buffers that live as long as a line.
class Buffers {
 public:
  explicit Buffers(Device& device) : device_(device) {}
  ~Buffers() {
    for (const DevicePtr ptr : all_) (void)device_.free(ptr);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  [[nodiscard]] Result<DevicePtr> make(std::int64_t bytes) {
    auto made = device_.alloc(bytes);
    if (made) all_.push_back(*made);
    return made;
  }

 private:
  Device& device_;
  std::vector<DevicePtr> all_;
};

Result<Graph> captured(Device& device, Stream stream, std::int64_t launches, const Queue& queue) {
  if (const Status begun = device.begin_capture(stream); !begun) return begun.error();
  Status queued;
  for (std::int64_t i = 0; i < launches && queued; ++i) queued = queue(i);
  auto graph = device.end_capture(stream);
  if (!queued) return queued.error();
  return graph;
}

Result<double> replayed(Device& device, Graph graph, Stream stream) {
  const auto begin = std::chrono::steady_clock::now();
  if (const Status done = device.replay(graph, stream); !done) return done.error();
  if (const Status done = device.synchronize(stream); !done) return done.error();
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
Result<Pair> in_turn(Device& device, int repetitions, std::int64_t launches, const Queue& one,
                     const Queue& other, Stream stream) {
  const auto first = captured(device, stream, launches, one);
  if (!first) return first.error();
  const auto second = captured(device, stream, launches, other);
  if (!second) return second.error();
  std::vector<double> ones;
  std::vector<double> others;
  for (int i = -1; i < repetitions; ++i)
    for (const auto& [graph, times] : {std::pair{*first, &ones}, std::pair{*second, &others}}) {
      const auto seconds = replayed(device, graph, stream);
      if (!seconds) return seconds.error();
      if (i >= 0) times->push_back(*seconds);
    }
  for (const Graph graph : {*first, *second})
    if (const Status done = device.destroy(graph); !done) return done.error();
  return Pair{median(std::move(ones)), median(std::move(others))};
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

Result<BenchLine> measured(Device& device, const Line& line, int repetitions, Stream stream) {
  Buffers buffers(device);
  std::vector<std::pair<DevicePtr, DevicePtr>> pairs;
  for (std::int64_t i = 0; i < line.launches; ++i) {
    const auto to = buffers.make(std::max(line.written, line.read) + line.spare);
    if (!to) return to.error();
    const auto from = buffers.make(std::max(line.written, line.read) + line.spare);
    if (!from) return from.error();
    pairs.emplace_back(*to, *from);
  }
  const auto work = [&](std::int64_t i) {
    const auto& [to, from] = pairs[static_cast<std::size_t>(i)];
    return device.launch(line.job(to, from), stream);
  };
  const auto copy = [&](std::int64_t i) {
    const auto& [to, from] = pairs[static_cast<std::size_t>(i)];
    return device.copy_async(to, from, line.read, stream);
  };
  const auto times = in_turn(device, repetitions, line.launches, work, copy, stream);
  if (!times) return times.error();
  constexpr double kGiga = 1e9;
  const double bytes = static_cast<double>((line.written + line.read) * line.launches);
  const double copied = static_cast<double>(2 * line.read * line.launches);
  return BenchLine{.work = line.work,
                   .launches = line.launches,
                   .bytes = bytes,
                   .seconds = times->one,
                   .gigabytes_per_second = bytes / times->one / kGiga,
                   .of_copy = (bytes / times->one) / (copied / times->other)};
}

Result<DevicePtr> table_of_blocks(Device& device, Buffers& buffers, std::int64_t positions,
                                  std::int64_t block) {
  const std::int64_t blocks = (positions + block - 1) / block;
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(blocks));
  std::iota(numbers.rbegin(), numbers.rend(), 0);  // no two in a row lie behind each other
  const auto table = buffers.make(blocks * kCell);
  if (!table) return table.error();
  if (const Status done = device.to_device(*table, std::as_bytes(std::span(numbers))); !done)
    return done.error();
  return *table;
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
  return {
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
      {"f32 to f16", 2 * few, 2 * cells, 4 * cells,
       [=](DevicePtr to, DevicePtr from) { return convert<HalfCell, FloatCell>(to, from, cells); }},
      {"f16 to f32", 2 * few, 4 * cells, 2 * cells,
       [=](DevicePtr to, DevicePtr from) { return convert<FloatCell, HalfCell>(to, from, cells); }},
      {"f32 to bf16", 2 * few, 2 * cells, 4 * cells,
       [=](DevicePtr to, DevicePtr from) {
         return convert<BrainCell, FloatCell>(to, from, cells);
       }},
      {"bf16 to f32", 2 * few, 4 * cells, 2 * cells,
       [=](DevicePtr to, DevicePtr from) {
         return convert<FloatCell, BrainCell>(to, from, cells);
       }},
      {"f16 to bf16", 2 * few, 2 * cells, 2 * cells,
       [=](DevicePtr to, DevicePtr from) { return convert<BrainCell, HalfCell>(to, from, cells); }},
      {"f32 to f16, cell by cell", 2 * few, 2 * cells, 4 * cells,
       [=](DevicePtr to, DevicePtr from) {
         return Job(ToHalfJob{to.as<std::uint16_t>(), from.as<const std::uint32_t>(), cells});
       }},
      {"f16 to f32, cell by cell", 2 * few, 4 * cells, 2 * cells,
       [=](DevicePtr to, DevicePtr from) {
         return Job(ToFloatJob{to.as<std::uint32_t>(), from.as<const std::uint16_t>(), cells});
       }},
  };
}

Result<StepLine> measured_step(Device& device, const BenchSizes& sizes, Stream stream) {
  Buffers buffers(device);
  const std::int64_t count = 2 * sizes.layers;
  std::vector<std::uint64_t> to;
  std::vector<std::uint64_t> from;
  for (std::int64_t i = 0; i < count; ++i)
    for (auto [list, rows] :
         {std::pair{&to, std::int64_t{64}}, std::pair{&from, std::int64_t{1}}}) {
      const auto made = buffers.make(rows * sizes.row_cells * kCell);
      if (!made) return made.error();
      list->push_back(made->address);
    }
  const auto tables = buffers.make(2 * count * 8);
  if (!tables) return tables.error();
  const auto counter = buffers.make(kCell);
  if (!counter) return counter.error();
  to.insert(to.end(), from.begin(), from.end());
  if (const Status done = device.to_device(*tables, std::as_bytes(std::span(to))); !done)
    return done.error();
  const AppendLayers<std::uint32_t> step{
      .buffers = tables->as<std::uint32_t* const>(),
      .sources = (*tables + count * 8).as<const std::uint32_t* const>(),
      .counter = counter->as<const std::int32_t>(),
      .count = count,
      .dim = sizes.row_cells,
      .max_seq_len = 64};
  const auto times = in_turn(
      device, 4 * sizes.repetitions, 1, [&](std::int64_t) { return device.launch(step, stream); },
      [&](std::int64_t) {
        return device.launch(IncrementJob{counter->as<std::int32_t>(), 0}, stream);
      },
      stream);
  if (!times) return times.error();
  return StepLine{times->one, times->other};
}

}  // namespace

Result<BenchResult> measure(Device& device, const BenchSizes& sizes) {
  const auto stream = device.create_stream();
  if (!stream) return stream.error();
  Buffers shared(device);
  const auto prompt_table = table_of_blocks(device, shared, sizes.prefill, sizes.block);
  if (!prompt_table) return prompt_table.error();
  const auto gather_table = table_of_blocks(device, shared, sizes.gathered, sizes.block);
  if (!gather_table) return gather_table.error();
  BenchResult result;
  for (const Line& line : lines_of(sizes, *prompt_table, *gather_table)) {
    auto made = measured(device, line, sizes.repetitions, *stream);
    if (!made) return made.error();
    result.lines.push_back(std::move(*made));
  }
  const auto step = measured_step(device, sizes, *stream);
  if (!step) return step.error();
  result.step = *step;
  if (const Status done = device.destroy(*stream); !done) return done.error();
  return result;
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
