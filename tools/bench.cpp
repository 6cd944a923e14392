#include "tools/bench.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "reference/contract/describe/type.hpp"
#include "tools/quantities.hpp"

namespace kvo::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Copies go round in it: larger than the caches of a processor, as what a cache holds is.
constexpr std::size_t kLimitBytes = std::size_t{64} << 20U;

std::vector<replay::Request> requests_of(const BenchLoad& load) {
  std::vector<replay::Request> requests;
  for (std::int64_t i = 0; i < load.sequences; ++i)
    requests.push_back(
        {.arrival_us = 0, .input_tokens = load.prompt, .output_tokens = load.answer});
  return requests;
}

replay::ReplayOptions options_of(const BenchLoad& load, Profile profile) {
  replay::ReplayOptions options;
  options.schedule = {.max_running = load.sequences,
                      .chunk_tokens = load.chunk,
                      .draft_every = 0,
                      .read_every = load.answer,
                      .cancel_every = 0,
                      .burst = load.sequences};
  options.lowering = {.num_layers = load.num_layers,
                      .num_heads = load.num_heads,
                      .head_dim = load.head_dim,
                      .pool_percent = 100,
                      .requests_per_case = load.sequences};
  options.scale = 1;
  options.profile = profile;
  options.invariants_every = std::numeric_limits<std::uint64_t>::max();
  return options;
}

std::size_t bytes_of(const Op& op, const Observation& seen) {
  std::size_t bytes = payload_bytes(op.arguments().type(), op.arguments().get());
  if (seen.returns) bytes += payload_bytes(seen.returns.type(), seen.returns.get());
  return bytes;
}

using DurationsOf = std::vector<std::pair<std::string, Durations>>;

void merge(DurationsOf& into, const std::string& op, const Durations& more) {
  auto known = std::ranges::find(into, op, &DurationsOf::value_type::first);
  if (known == into.end()) known = into.insert(into.end(), {op, {}});
  known->second.merge(more);
}

std::vector<TimingRecord> timings_of(const DurationsOf& durations) {
  std::vector<TimingRecord> timings;
  for (const auto& [op, of_op] : durations) timings.push_back(timing_record(op, of_op));
  return timings;
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
      BenchLoad{2, 2, 16, 8, 128, 16, 64},
      BenchLoad{32, 8, 128, 1, 32, 16, 32},
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
      replay_(contracts, requests_of(load), {comparison}, options_of(load, profile)),
      limit_memory_(kLimitBytes, std::byte{1}) {}

CaseResult Bench::verified() const {
  return run_case(replay_.plan(0), {.attempts = 0});
}

Bench::Cell& Bench::cell_of(const std::string& subject, const std::string& op) {
  const auto known = std::ranges::find_if(
      cells_, [&](const Cell& cell) { return cell.subject == subject && cell.op == op; });
  return known != cells_.end() ? *known : cells_.emplace_back(Cell{.subject = subject, .op = op});
}

// Nanoseconds of a memcpy from memory that was just read to memory that was touched before.
std::uint64_t Bench::copied(std::size_t bytes) {
  const std::size_t size = std::min(bytes, kLimitBytes / 2);
  if (limit_at_ + 2 * size > kLimitBytes) limit_at_ = 0;
  const auto begin = Clock::now();
  std::memcpy(limit_memory_.data() + size + limit_at_, limit_memory_.data(), size);
  asm volatile("" : : "r"(limit_memory_.data()) : "memory");
  const std::chrono::duration<double, std::nano> spent = Clock::now() - begin;
  limit_at_ += size;
  return static_cast<std::uint64_t>(spent.count() * static_cast<double>(bytes) /
                                    static_cast<double>(size));
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
  Pass lines;
  while (const std::optional<Op> op = ops->next()) {
    const Observation seen = (*session)->apply(*op, probe);
    const std::uint64_t nanoseconds = probe.take_nanoseconds();
    ops->saw(*op, seen, labels);
    const std::size_t bytes = bytes_of(*op, seen);
    const std::string name = row_name(*op, bytes);
    auto line = std::ranges::find(lines, name, &Line::op);
    if (line == lines.end()) line = lines.insert(lines.end(), {name, {}, {}});
    line->own.add(nanoseconds, bytes);
    if (bytes > 0) line->limit.add(copied(bytes), bytes);
  }
  return lines;
}

void Bench::add(const std::string& subject, const Pass& first, const Pass& second,
                const Pass& reference) {
  for (const Line& line : first) {
    Cell& cell = cell_of(subject, line.op);
    cell.durations.merge(line.own);
    cell.to_limit.add_times(line.own.total_nanoseconds(), line.limit.total_nanoseconds());
    const auto again = std::ranges::find(second, line.op, &Line::op);
    if (again == second.end()) continue;
    cell.durations.merge(again->own);
    cell.noise.add_times(again->own.total_nanoseconds(), line.own.total_nanoseconds());
    const auto other = std::ranges::find(reference, line.op, &Line::op);
    if (other == reference.end() || &reference == &first) continue;
    cell.to_reference.add_times(line.own.total_nanoseconds(), other->own.total_nanoseconds());
  }
}

CaseRecord Bench::round(std::uint64_t index) {
  const CasePlan plan = replay_.plan(0);
  std::vector<const Subject*> order{plan.baseline};
  for (const Subject* subject : plan.subjects)
    if (subject != plan.baseline) order.push_back(subject);
  std::vector<Pass> there;
  there.reserve(order.size());
  for (const Subject* subject : order) there.push_back(pass(plan, *subject));
  std::vector<Pass> back(order.size());
  for (std::size_t i = order.size(); i-- > 0;) back[i] = pass(plan, *order[i]);

  CaseRecord record{.index = index,
                    .name = fmt::format("{}, round {}", load_.name(), index),
                    .kind = plan.kind->name(),
                    .law = "bench"};
  DurationsOf copies;
  for (std::size_t i = 0; i < order.size(); ++i) {
    add(order[i]->name(), there[i], back[i], there.front());
    SubjectRecord& own = record.subjects.emplace_back();
    own.subject = order[i]->name();
    DurationsOf calls;
    for (const Pass* one : {&there[i], &back[i]})
      for (const Line& line : *one) {
        merge(calls, line.op, line.own);
        if (line.limit.count() > 0) merge(copies, line.op, line.limit);
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
                    .calls = cell.durations.count(),
                    .payload_bytes = cell.durations.payload_bytes() / cell.durations.count(),
                    .median_nanoseconds = static_cast<double>(cell.durations.quantile(0.5)),
                    .worst_nanoseconds = static_cast<double>(cell.durations.quantile(1)),
                    .to_reference = cell.to_reference.middle(),
                    .to_limit = cell.to_limit.middle(),
                    .noise = cell.noise.middle()});
  return rows;
}

}  // namespace kvo::tools
