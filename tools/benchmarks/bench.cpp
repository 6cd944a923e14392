#include "tools/benchmarks/bench.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "properties/runner/pulse.hpp"
#include "reference/contract/describe/type.hpp"
#include "tools/reports/found_or_added.hpp"
#include "tools/reports/quantities.hpp"

namespace kvo::tools {
namespace {

// Each sequence twice, one behind the other: cold and warm.
constexpr std::int64_t kTimes = 2;

// K and V in f32 of all sequences at their ends.
std::size_t held_bytes(const BenchLoad& load) {
  return static_cast<std::size_t>(load.sequences * (load.prompt + load.answer) * load.num_layers *
                                  load.num_heads * load.head_dim) *
         2 * sizeof(float);
}

std::vector<replay::Request> requests_of(const BenchLoad& load) {
  std::vector<replay::Request> requests;
  for (std::int64_t i = 0; i < kTimes * load.sequences; ++i)
    requests.push_back(
        {.arrival_us = 0, .input_tokens = load.prompt, .output_tokens = load.answer});
  return requests;
}

replay::ReplayOptions replay_options(const BenchLoad& load, Profile profile) {
  replay::ReplayOptions options;
  options.schedule = {.max_running = load.sequences,
                      .chunk_tokens = load.chunk,
                      .draft_every = 0,
                      .read_every = load.answer,
                      .cancel_every = 0,
                      .burst = kTimes * load.sequences};
  options.lowering = {.num_layers = load.num_layers,
                      .num_heads = load.num_heads,
                      .head_dim = load.head_dim,
                      .pool_percent = 100,
                      .requests_per_case = kTimes * load.sequences};
  options.scale = 1;
  options.profile = profile;
  options.invariants_every = std::numeric_limits<std::uint64_t>::max();
  return options;
}

// Tensor bytes that a call was given, and all that it moved.
struct Bytes {
  std::size_t given = 0;
  std::size_t all = 0;
};

Bytes bytes_of(const Op& op, const Observation& seen) {
  const std::size_t given = payload_bytes(op.arguments().type(), op.arguments().get());
  if (!seen.returns) return {given, given};
  return {given, given + payload_bytes(seen.returns.type(), seen.returns.get())};
}

using DurationsOf = std::vector<std::pair<std::string, Durations>>;

void merge(DurationsOf& into, const std::string& op, const Durations& more) {
  found_or_added(into, {op, {}}, &DurationsOf::value_type::first).second.merge(more);
}

std::vector<TimingRecord> timings_of(const DurationsOf& durations) {
  std::vector<TimingRecord> timings;
  for (const auto& [op, of_op] : durations) timings.push_back(timing_record(op, of_op));
  return timings;
}

// As timings of a run file.
std::string timing_name(const std::string& op, bool cold) {
  return cold ? op + ", cold" : op;
}

// Calls that move about as much are one row.
std::string row_name(const Op& op, std::size_t bytes) {
  std::string name(op.kind().name);
  if (bytes == 0) return name;
  return fmt::format("{}, {}", name, bytes_text(std::bit_ceil(bytes)));
}

}  // namespace

std::string BenchLoad::name() const {
  return fmt::format("{}x{}x{}, {} sequence{}", num_layers, num_heads, head_dim, sequences,
                     sequences == 1 ? "" : "s");
}

std::span<const BenchLoad> bench_loads(bool quick) {
  static const std::array kQuick{
      BenchLoad{2, 2, 16, 8, 64, 16, 64},
      BenchLoad{32, 8, 128, 1, 32, 8, 32},
  };
  static const std::array kAll{
      BenchLoad{2, 2, 16, 1, 4'096, 64, 512}, BenchLoad{2, 2, 16, 8, 1'024, 64, 64},
      BenchLoad{2, 2, 16, 64, 256, 64, 64},   BenchLoad{32, 8, 128, 1, 512, 64, 128},
      BenchLoad{32, 8, 128, 8, 64, 32, 64},   BenchLoad{80, 8, 128, 1, 256, 32, 128},
  };
  return quick ? std::span<const BenchLoad>(kQuick) : std::span<const BenchLoad>(kAll);
}

Bench::Bench(const Contracts& contracts, const Comparison& comparison, const BenchLoad& load,
             Profile profile)
    : load_(load),
      replay_(contracts, requests_of(load), {comparison}, replay_options(load, profile)) {}

CaseResult Bench::verified() {
  CaseResult result = run_case(replay_.plan(0), {.attempts = 0});
  operations_ = result.operations;
  return result;
}

Bench::Pass Bench::pass(const CasePlan& plan, const Subject& subject) {
  allocation_gate.fill_bytes = 0;
  // Where memory lies makes a difference of a tenth and more: it is to be that of a pass, not of a
  // process, so that rounds tell it from a change.
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kMostLines = 1'024;
  const std::vector<std::byte> elsewhere(kLine * (1 + passes_++ * 619 % kMostLines));
  const auto session = subject.open(plan.setup);
  KVO_CHECK(session.has_value());
  const auto ops = plan.ops();
  Probe probe;
  Labels labels;
  if (!warm_memory_) warm_memory_.emplace(held_bytes(load_), true);
  LimitMemory cold_memory(kTimes * held_bytes(load_), false);
  Pass lines;
  std::uint64_t operations = 0;
  while (const std::optional<Op> op = ops->next()) {
    const std::uint64_t allocations = allocation_gate.count;
    tell(subject, operations, &op->kind());
    const Observation seen = (*session)->apply(*op, probe);
    const std::uint64_t nanoseconds = probe.take_nanoseconds();
    ops->observe(*op, seen, labels);
    const bool cold = ++operations * kTimes <= operations_;
    const Bytes bytes = bytes_of(*op, seen);
    const std::string name = row_name(*op, bytes.all);
    Line& line = found_or_added(lines, {.op = name, .cold = cold}, &Line::op, &Line::cold);
    line.own.add(nanoseconds, bytes.all);
    line.allocations += allocation_gate.count - allocations;
    if (bytes.all == 0) continue;
    LimitMemory& memory = cold ? cold_memory : *warm_memory_;
    line.copied.add(memory.copied(bytes.all), bytes.all);
    if (bytes.given == 0) line.cleared.add(memory.cleared(bytes.all), bytes.all);
  }
  return lines;
}

void Bench::add(const std::string& subject, const Pass& first, const Pass& second,
                const Pass& reference) {
  const auto same_in = [](const Pass& pass, const Line& line) {
    return std::ranges::find_if(
        pass, [&](const Line& one) { return one.cold == line.cold && one.op == line.op; });
  };
  for (const Line& line : first) {
    Cell& cell = found_or_added(cells_, {.subject = subject, .op = line.op, .cold = line.cold},
                                &Cell::subject, &Cell::op, &Cell::cold);
    const std::uint64_t own = line.own.total_nanoseconds();
    cell.durations.merge(line.own);
    cell.allocations += line.allocations;
    cell.to_memcpy.add_times(own, line.copied.total_nanoseconds());
    cell.to_memset.add_times(own, line.cleared.total_nanoseconds());
    const auto again = same_in(second, line);
    if (again == second.end()) continue;
    cell.durations.merge(again->own);
    cell.allocations += again->allocations;
    cell.noise.add_times(again->own.total_nanoseconds(), own);
    const auto other = same_in(reference, line);
    if (other == reference.end() || &reference == &first) continue;
    cell.to_reference.add_times(own, other->own.total_nanoseconds());
  }
}

CaseResult Bench::round(std::uint64_t index) {
  const CasePlan plan = replay_.plan(0);
  std::vector<const Subject*> order{plan.baseline};
  for (const Subject* subject : plan.subjects)
    if (subject != plan.baseline) order.push_back(subject);
  std::vector<Pass> there;
  there.reserve(order.size());
  for (const Subject* subject : order) there.push_back(pass(plan, *subject));
  std::vector<Pass> back(order.size());
  for (std::size_t i = order.size(); i-- > 0;) back[i] = pass(plan, *order[i]);

  CaseResult record{.index = index,
                    .name = fmt::format("{}, round {}", load_.name(), index),
                    .kind = plan.kind->name(),
                    .law = "bench"};
  DurationsOf copies;
  for (std::size_t i = 0; i < order.size(); ++i) {
    add(order[i]->name(), there[i], back[i], there.front());
    SubjectResult& own = record.subjects.emplace_back();
    own.subject = order[i]->name();
    DurationsOf calls;
    for (const Pass* one : {&there[i], &back[i]})
      for (const Line& line : *one) {
        merge(calls, timing_name(line.op, line.cold), line.own);
        if (line.copied.count() > 0) merge(copies, timing_name(line.op, line.cold), line.copied);
      }
    own.timings = timings_of(calls);
  }
  for (const Line& line : there.front()) record.operations += line.own.count();
  if (!copies.empty())
    record.subjects.push_back({.subject = plan.kind->name() + "@" + std::string(kLimitVariant),
                               .timings = timings_of(copies)});
  return record;
}

std::vector<BenchRow> Bench::rows() const {
  std::vector<BenchRow> rows;
  for (const Cell& cell : cells_)
    rows.push_back({.load = load_.name(),
                    .subject = cell.subject,
                    .op = cell.op,
                    .cold = cell.cold,
                    .calls = cell.durations.count(),
                    .payload_bytes = cell.durations.payload_bytes() / cell.durations.count(),
                    .allocations = cell.allocations,
                    .median_nanoseconds = static_cast<double>(cell.durations.quantile(0.5)),
                    .worst_nanoseconds = static_cast<double>(cell.durations.quantile(1)),
                    .to_reference = cell.to_reference.middle(),
                    .to_memcpy = cell.to_memcpy.middle(),
                    .to_memset = cell.to_memset.middle(),
                    .noise = cell.noise.middle()});
  return rows;
}

}  // namespace kvo::tools
