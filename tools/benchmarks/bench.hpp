// tools/benchmarks/bench.hpp: loads of one shape, timed side by side: subjects, their reference,
// and memcpy.
//
// A round passes over the subjects of a cache kind from the first to the last and back (A B B A),
// so that a drift of the machine falls on all; a pass is a session of its own, which carries out
// the whole load twice: cold, in memory that it has not touched, and warm, as a service works that
// has been up for a while. Behind each call that moves rows the same number of bytes is copied by
// memcpy and, where none were given, set by memset: the limits, at that moment, in memory as cold
// or warm as the cache's. A round is a case of a run file, so that `kvoracle gate` compares two
// benches as it compares two runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/replay/replay.hpp"
#include "tools/benchmarks/limit_memory.hpp"
#include "tools/reports/paired_ratios.hpp"
#include "tools/reports/run_file.hpp"

namespace kvo::tools {

/// What a service does: so many sequences at once, each with a prompt and an answer.
struct BenchLoad {
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t sequences = 0;
  std::int64_t prompt = 0;  ///< tokens, appended in chunks of `chunk`
  std::int64_t answer = 0;  ///< tokens, one a step
  std::int64_t chunk = 0;

  /// "32x8x128, 1 sequence": layers, heads, cells of a head.
  [[nodiscard]] std::string name() const;
};

/// The loads of --quick, and all others.
[[nodiscard]] std::span<const BenchLoad> bench_loads(bool quick);

/// One operation of one subject under one load. Operations that move rows are told apart by how
/// many bytes they move: appends of a chunk and of a token are two rows.
struct BenchRow {
  std::string load;
  std::string subject;
  std::string op;     ///< "update, 8.00 KiB"
  bool cold = false;  ///< of the first time in a session
  std::uint64_t calls = 0;
  std::uint64_t payload_bytes = 0;  ///< tensor bytes in arguments and results of a call, on average
  std::uint64_t allocations = 0;    ///< of all calls, from the heap
  double median_nanoseconds = 0;    ///< to 1/16
  double worst_nanoseconds = 0;     ///< to 1/16
  std::optional<Ratios::Middle> to_reference = std::nullopt;  ///< median of the rounds' ratios
  std::optional<Ratios::Middle> to_memcpy = std::nullopt;     ///< time over memcpy's
  std::optional<Ratios::Middle> to_memset = std::nullopt;     ///< as to_memcpy; of results alone
  /// Time in the second pass of a round over that in the first: what differs without any reason.
  std::optional<Ratios::Middle> noise = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(BenchRow, (),
                      (load, subject, op, cold, calls, payload_bytes, allocations,
                       median_nanoseconds, worst_nanoseconds, to_reference, to_memcpy, to_memset,
                       noise))

/// A cache kind under a load.
class Bench {
 public:
  Bench(const Contracts& contracts, const Comparison& comparison, const BenchLoad& load,
        Profile profile);

  /// The load as a case. Requires  possible()
  [[nodiscard]] CasePlan plan() const { return replay_.plan(0); }
  /// Whether the kind can carry the load: requests can be lowered to it.
  [[nodiscard]] bool possible() const { return replay_.cases() > 0; }
  /// All subjects compared with each other and with what was put in, untimed. A time counts only
  /// behind this.
  [[nodiscard]] CaseResult verified();
  /// One round, as case `index` of a run file. Requires  verified() found no fault.
  [[nodiscard]] CaseResult round(std::uint64_t index);
  /// All rounds so far.
  [[nodiscard]] std::vector<BenchRow> rows() const;

 private:
  /// What one pass took for one row.
  struct Line {
    std::string op;
    bool cold = false;
    std::uint64_t allocations = 0;
    Durations own = {};
    Durations copied = {};   ///< memcpy of as many bytes
    Durations cleared = {};  ///< memset of as many bytes
  };
  struct Cell {
    std::string subject;
    std::string op;
    bool cold = false;
    std::uint64_t allocations = 0;
    Durations durations = {};
    Ratios to_reference = {};
    Ratios to_memcpy = {};
    Ratios to_memset = {};
    Ratios noise = {};
  };
  using Pass = std::vector<Line>;

  [[nodiscard]] Pass pass(const CasePlan& plan, const Subject& subject);
  void add(const std::string& subject, const Pass& first, const Pass& second,
           const Pass& reference);

  BenchLoad load_;
  replay::Replay replay_;
  std::vector<Cell> cells_;
  std::optional<LimitMemory> warm_memory_;  ///< made by the process that uses it
  std::uint64_t operations_ = 0;            ///< of both times together
  std::size_t passes_ = 0;
};

}  // namespace kvo::tools
