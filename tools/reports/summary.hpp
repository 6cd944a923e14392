// tools/reports/summary.hpp: the cases of a run added up, by subject, operation, label and figure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/reports/paired_ratios.hpp"
#include "tools/reports/run_file.hpp"

namespace kvo::tools {

/// Below so much of memcpy's time nothing was copied: what is returned is a view.
inline constexpr double kViewOverMemcpy = 0.5;

/// One operation of one subject. Ratios are absent where there is nothing to compare with.
struct OperationSummary {
  std::string op;
  std::uint64_t count = 0;
  std::uint64_t total_nanoseconds = 0;
  std::uint64_t median_nanoseconds = 0;
  std::uint64_t p99_nanoseconds = 0;
  std::uint64_t payload_bytes = 0;  ///< tensor bytes in arguments and results
  std::optional<float> gigabytes_per_second = std::nullopt;
  /// Of the cases' ratios to the reference's time the median, and between what it lies with 95 %.
  std::optional<float> ratio_to_reference = std::nullopt;
  std::optional<float> ratio_low = std::nullopt;        ///< absent where there are few cases
  std::optional<float> ratio_high = std::nullopt;       ///< as ratio_low
  std::optional<float> ratio_to_memcpy = std::nullopt;  ///< total time over memcpy of the payload
};
BOOST_DESCRIBE_STRUCT(OperationSummary, (),
                      (op, count, total_nanoseconds, median_nanoseconds, p99_nanoseconds,
                       payload_bytes, gigabytes_per_second, ratio_to_reference, ratio_low,
                       ratio_high, ratio_to_memcpy))

struct SubjectSummary {
  std::string subject;
  std::uint64_t cases = 0;
  std::uint64_t operations = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t broken = 0;
  std::uint64_t died = 0;  ///< its process crashed, ended or hung
  std::uint64_t not_supported = 0;
  std::uint64_t ended = 0;  ///< by a convention, before the end of the script
  std::uint64_t out_of_memory = 0;
  std::optional<float> time_ratio = std::nullopt;  ///< as ratio_to_reference, of whole cases
  std::optional<float> ratio_low = std::nullopt;
  std::optional<float> ratio_high = std::nullopt;
  std::vector<OperationSummary> timings = {};
};
BOOST_DESCRIBE_STRUCT(SubjectSummary, (),
                      (subject, cases, operations, mismatches, broken, died, not_supported, ended,
                       out_of_memory, time_ratio, ratio_low, ratio_high, timings))

/// What the verdicts of one law rest on.
struct LawSummary {
  std::string law;
  std::uint64_t cases = 0;
  std::uint64_t operations = 0;  ///< of the scripts
  Evidence evidence = {};        ///< of all subjects
  bool vacuous = true;           ///< nothing was judged in the whole run
};
BOOST_DESCRIBE_STRUCT(LawSummary, (), (law, cases, operations, evidence, vacuous))

/// Cases of one group: that a subject failed alike, or one that it does not support.
struct FailureSummary {
  std::string name;  ///< the case whose result this is: of those of the group the smallest script
  std::string law;   ///< of that case; `result` may have a simpler one that its script fails, too
  std::uint64_t operations = 0;                      ///< of that case
  std::optional<std::string> config = std::nullopt;  ///< of that case, what is not default
  std::string group;                                 ///< SubjectResult::group
  std::uint64_t cases = 1;
  std::vector<std::string> laws = {};  ///< of the group's cases
  SubjectResult result = {};           ///< without times
};
BOOST_DESCRIBE_STRUCT(FailureSummary, (),
                      (name, law, operations, config, group, cases, laws, result))

struct LabelSummary {
  std::string kind;
  std::string label;
  std::uint64_t cases = 0;
};
BOOST_DESCRIBE_STRUCT(LabelSummary, (), (kind, label, cases))

/// A figure of all cases of one cache.
struct FigureSummary {
  std::string kind;
  std::string figure;
  std::int64_t value = 0;
  Fold fold = Fold::kSum;
  std::optional<std::string> of = std::nullopt;  ///< the figure that it is a share of
  std::optional<double> share = std::nullopt;    ///< of that one; absent where that is 0
};
BOOST_DESCRIBE_STRUCT(FigureSummary, (), (kind, figure, value, fold, of, share))

/// One subject under one law.
struct LawVerdict {
  std::string subject;
  std::string law;
  std::uint64_t cases = 0;
  std::uint64_t judged = 0;       ///< cases whose outcome rests on something
  std::uint64_t failed = 0;       ///< cases, those in which it died included
  std::uint64_t died = 0;         ///< cases
  std::uint64_t nanoseconds = 0;  ///< that its operations took
};

/// Adds cases up.
class LawVerdicts {
 public:
  void add(const CaseResult& record);
  /// In order of first appearance.
  [[nodiscard]] const std::vector<LawVerdict>& rows() const { return rows_; }

 private:
  std::vector<LawVerdict> rows_;
};

/// Adds cases up; their order does not matter but for which failures are kept.
class Summary {
 public:
  void add(const CaseResult& record);

  /// By subject, in order of first appearance; ratios against the subject "<kind>@reference", and
  /// only `beside_memcpy` against that, whose measurement takes a while.
  [[nodiscard]] std::vector<SubjectSummary> subjects(bool beside_memcpy) const;
  [[nodiscard]] std::vector<LabelSummary> labels() const;
  /// By cache and name, in order of first appearance.
  [[nodiscard]] std::vector<FigureSummary> figures() const;
  /// By law, in order of first appearance.
  [[nodiscard]] const std::vector<LawSummary>& laws() const { return laws_; }
  /// By subject and law.
  [[nodiscard]] const std::vector<LawVerdict>& law_verdicts() const { return law_verdicts_.rows(); }
  /// Failures whose shrunk scripts end alike are one; the first kMostFailures.
  [[nodiscard]] const std::vector<FailureSummary>& failures() const { return failures_; }
  /// Of each subject that did not support something, the first case and what it was.
  [[nodiscard]] const std::vector<FailureSummary>& unsupported() const { return unsupported_; }
  [[nodiscard]] std::uint64_t cases() const { return cases_; }
  /// Those in which a subject took part.
  [[nodiscard]] std::uint64_t played_cases() const { return played_cases_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_; }
  /// Times that a subject ended its process.
  [[nodiscard]] std::uint64_t died() const { return died_; }
  /// Times that a subject ran out of memory where nothing else was to be expected.
  [[nodiscard]] std::uint64_t out_of_memory() const { return out_of_memory_; }
  /// Of each subject that did, the first case and what it asked for.
  [[nodiscard]] const std::vector<FailureSummary>& without_memory() const {
    return without_memory_;
  }

  static constexpr std::size_t kMostFailures = 100;

 private:
  struct OperationTotal {
    std::string op;
    Durations durations;
    Ratios ratios;
  };
  struct Total {
    SubjectSummary counts;
    std::vector<OperationTotal> operations;
    Ratios ratios;
  };
  static void add_times(Total& total, const SubjectResult& subject, const SubjectResult* reference);
  void add_failure(const CaseResult& record, const SubjectResult& subject);
  void add_figure(const std::string& kind, const Figure& figure);

  std::vector<Total> totals_;
  std::vector<LawSummary> laws_;
  LawVerdicts law_verdicts_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> labels_;
  std::vector<FigureSummary> figures_;  ///< without shares
  std::vector<FailureSummary> failures_;
  std::vector<FailureSummary> unsupported_;
  std::vector<FailureSummary> without_memory_;
  std::uint64_t cases_ = 0;
  std::uint64_t played_cases_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t died_ = 0;
  std::uint64_t out_of_memory_ = 0;
};

}  // namespace kvo::tools
