// tools/reports/gate.hpp: whether a run is worse than an earlier one: in what it found, in what it
// reached, and in time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/reports/run_file.hpp"

namespace kvo::tools {

/// What a gate lets pass.
struct GateTerms {
  double slower = 0.1;  ///< growth of a ratio to the reference's time, as a share
  double error = 0.01;  ///< probability of a false alarm, of all timings together
  double fewer = 0;     ///< loss of operations and of judged cases, as a share
  bool timings = true;
};

/// In what a run is worse.
enum class Regression : std::uint8_t {
  kFailure,          ///< a case fails that did not, or fails in another way
  kSubjectGone,      ///< a subject takes no part any more
  kFewerCases,       ///< of a law, in which something was judged
  kFewerOperations,  ///< of a subject
  kStateLost,        ///< a state that matters is not reached any more
  kSlower,
};
BOOST_DESCRIBE_ENUM(Regression, kFailure, kSubjectGone, kFewerCases, kFewerOperations, kStateLost,
                    kSlower)

/// One regression.
struct GateFinding {
  Regression regression = Regression::kFailure;
  std::string name;  ///< of the subject; for a state that of the cache kind
  std::string what;  ///< one line
};
BOOST_DESCRIBE_STRUCT(GateFinding, (), (regression, name, what))

/// One operation of one subject, in cases that are in both runs: how its time, as a ratio to the
/// reference's in the same case, has changed.
struct GateTiming {
  std::string subject;
  std::string op;           ///< empty: all operations of a case together
  std::uint64_t cases = 0;  ///< pairs
  double before = 0;        ///< median ratio in the baseline
  double now = 0;           ///< median ratio in the current run
  double factor = 1;        ///< median growth of a case's ratio
  /// What `factor` is without any change: that of a second run of the baseline. 1: none was given.
  double noise = 1;
  /// Of such growth beyond what is allowed by chance; absent where there are too few pairs to tell.
  std::optional<double> probability = std::nullopt;
  bool slower = false;
};
BOOST_DESCRIBE_STRUCT(GateTiming, (),
                      (subject, op, cases, before, now, factor, noise, probability, slower))

struct GateResult {
  std::vector<GateFinding> findings;  ///< none: no regression
  /// The same, one a cause: a cache that takes no part, a subject with several slower operations.
  std::vector<GateFinding> causes;
  std::vector<GateTiming> timings;   ///< by subject and operation, in order of first appearance
  std::uint64_t subjects = 0;        ///< of the baseline
  std::uint64_t states = 0;          ///< that the baseline reached
  std::uint64_t known_failures = 0;  ///< cases that fail as they did in the baseline
  /// Why times were not compared; empty where they were.
  std::string untimed = {};
};

/// Whether two runs have the same cases: made by one command of the same options and seed.
[[nodiscard]] bool same_cases(const RunHeader& one, const RunHeader& other);

/// Compares two runs of one command and profile. `again`, which may be null, is another run of what
/// the baseline is of: what differs between these two is noise, and allowed on top.
/// A timing counts where a case agreed in both runs and has times of the reference, and a call
/// takes 200 ns at least on average; it is slower if the signed-rank test says so of more growth
/// than is allowed, corrected for the number of comparisons.
[[nodiscard]] GateResult compare_runs(const RunRecord& baseline, const RunRecord& current,
                                      const RunRecord* again, const GateTerms& terms);

}  // namespace kvo::tools
