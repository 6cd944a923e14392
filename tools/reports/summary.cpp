#include "tools/reports/summary.hpp"

#include <algorithm>
#include <limits>

#include "tools/benchmarks/memory_speed.hpp"
#include "tools/reports/found_or_added.hpp"

namespace kvo::tools {
namespace {

std::optional<float> ratio(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<float>(static_cast<double>(part) / static_cast<double>(whole));
}

// Whether an outcome rests on anything: a failure speaks for itself.
bool says_something(const SubjectResult& subject) {
  const Evidence& evidence = subject.evidence;
  const bool agrees =
      subject.verdict.outcome == Outcome::kAgrees || subject.verdict.outcome == Outcome::kEnded;
  return subject.verdict.failed() ||
         (agrees && evidence.compared + evidence.rows_judged + evidence.failures > 0);
}

FailureSummary failure_of(const CaseResult& record, const SubjectResult& subject) {
  FailureSummary failure{.name = record.name,
                         .law = record.law,
                         .operations = record.operations,
                         .config = record.config,
                         .group = subject.group(record.law),
                         .laws = {record.law},
                         .result = subject};
  failure.result.timings.clear();
  return failure;
}

// One a subject.
void keep_first(std::vector<FailureSummary>& firsts, const CaseResult& record,
                const SubjectResult& subject) {
  (void)found_or_added(firsts, failure_of(record, subject),
                       [](const FailureSummary& one) { return one.result.subject; });
}

// What a reader has to look through.
std::size_t length_of(const FailureSummary& failure) {
  constexpr std::size_t kLine = 1'000;
  if (!failure.result.shrunk || !failure.result.shrunk->verdict.failed())
    return std::numeric_limits<std::size_t>::max();
  std::size_t length = failure.result.shrunk->operations * kLine;
  for (const ScriptLine& line : failure.result.shrunk->script) length += line.text.size();
  return length;
}

}  // namespace

void LawVerdicts::add(const CaseResult& record) {
  for (const SubjectResult& subject : record.subjects) {
    LawVerdict& row =
        found_or_added(rows_, LawVerdict{.subject = subject.subject, .law = record.law},
                       &LawVerdict::subject, &LawVerdict::law);
    ++row.cases;
    row.judged += says_something(subject) ? 1 : 0;
    row.failed += subject.verdict.failed() ? 1 : 0;
    row.died += subject.verdict.outcome == Outcome::kDied ? 1 : 0;
    for (const TimingRecord& timing : subject.timings) row.nanoseconds += timing.total_nanoseconds;
  }
}

void Summary::add_failure(const CaseResult& record, const SubjectResult& subject) {
  FailureSummary failure = failure_of(record, subject);
  const auto alike = std::ranges::find_if(failures_, [&](const FailureSummary& known) {
    return known.result.subject == subject.subject && known.group == failure.group;
  });
  if (alike == failures_.end()) {
    if (failures_.size() < kMostFailures) failures_.push_back(std::move(failure));
    return;
  }
  failure.cases = alike->cases + 1;
  failure.laws = alike->laws;
  if (std::ranges::find(failure.laws, record.law) == failure.laws.end())
    failure.laws.push_back(record.law);
  if (length_of(failure) < length_of(*alike)) {
    *alike = std::move(failure);
  } else {
    alike->cases = failure.cases;
    alike->laws = std::move(failure.laws);
  }
}

void Summary::add_figure(const std::string& kind, const Figure& figure) {
  const bool most = figure.fold == Fold::kMost;
  const std::int64_t least = most ? std::numeric_limits<std::int64_t>::min() : 0;
  std::int64_t& value =
      found_or_added(figures_, FigureSummary{kind, figure.name, least, figure.fold, figure.of},
                     &FigureSummary::kind, &FigureSummary::figure)
          .value;
  value = most ? std::max(value, figure.value) : value + figure.value;
}

void Summary::add_times(Total& total, const SubjectResult& subject,
                        const SubjectResult* reference) {
  std::uint64_t own = 0;
  std::uint64_t others = 0;
  for (const TimingRecord& timing : subject.timings) {
    OperationTotal& known =
        found_or_added(total.operations, {timing.op, {}, {}}, &OperationTotal::op);
    known.durations.merge(durations_of(timing));
    if (reference == nullptr) continue;
    const auto same = std::ranges::find(reference->timings, timing.op, &TimingRecord::op);
    if (same == reference->timings.end()) continue;
    known.ratios.add_times(timing.total_nanoseconds, same->total_nanoseconds);
    own += timing.total_nanoseconds;
    others += same->total_nanoseconds;
  }
  total.ratios.add_times(own, others);
}

void Summary::add(const CaseResult& record) {
  ++cases_;
  if (!record.subjects.empty()) ++played_cases_;
  law_verdicts_.add(record);
  LawSummary& law = found_or_added(laws_, LawSummary{.law = record.law}, &LawSummary::law);
  ++law.cases;
  law.operations += record.operations;
  bool failed = false;
  for (const std::string& label : record.labels) ++labels_[{record.kind, label}];
  for (const Figure& figure : record.figures) add_figure(record.kind, figure);
  for (const SubjectResult& subject : record.subjects) {
    law.evidence.add(subject.evidence);
    law.vacuous = law.vacuous && !says_something(subject);
    Total& total = found_or_added(totals_, Total{{.subject = subject.subject}, {}, {}},
                                  [](const Total& one) { return one.counts.subject; });
    const Outcome outcome = subject.verdict.outcome;
    ++total.counts.cases;
    total.counts.operations += record.operations;
    total.counts.mismatches += outcome == Outcome::kMismatch ? 1 : 0;
    total.counts.broken += outcome == Outcome::kBroken ? 1 : 0;
    total.counts.died += outcome == Outcome::kDied ? 1 : 0;
    died_ += outcome == Outcome::kDied ? 1 : 0;
    total.counts.not_supported += outcome == Outcome::kNotSupported ? 1 : 0;
    total.counts.ended += outcome == Outcome::kEnded ? 1 : 0;
    total.counts.out_of_memory += outcome == Outcome::kOutOfMemory ? 1 : 0;
    out_of_memory_ += outcome == Outcome::kOutOfMemory ? 1 : 0;
    const std::string reference = reference_name(subject.subject);
    const auto same = std::ranges::find(record.subjects, reference, &SubjectResult::subject);
    add_times(total, subject,
              same == record.subjects.end() || &*same == &subject ? nullptr : &*same);
    if (outcome == Outcome::kNotSupported) keep_first(unsupported_, record, subject);
    if (outcome == Outcome::kOutOfMemory) keep_first(without_memory_, record, subject);
    if (!subject.verdict.failed()) continue;
    failed = true;
    add_failure(record, subject);
  }
  failed_ += failed ? 1 : 0;
}

std::vector<SubjectSummary> Summary::subjects(bool beside_memcpy) const {
  std::vector<SubjectSummary> out;
  for (const Total& total : totals_) {
    SubjectSummary& subject = out.emplace_back(total.counts);
    for (const auto& [op, durations, ratios] : total.operations) {
      OperationSummary& row = subject.timings.emplace_back();
      row.op = op;
      row.count = durations.count();
      row.total_nanoseconds = durations.total_nanoseconds();
      row.median_nanoseconds = durations.quantile(0.5);
      row.p99_nanoseconds = durations.quantile(0.99);
      row.payload_bytes = durations.payload_bytes();
      row.gigabytes_per_second =
          row.payload_bytes > 0 ? ratio(row.payload_bytes, row.total_nanoseconds) : std::nullopt;
      if (beside_memcpy && row.payload_bytes > 0)
        row.ratio_to_memcpy = static_cast<float>(
            static_cast<double>(row.total_nanoseconds) /
            (static_cast<double>(row.count) *
             memcpy_nanoseconds(std::max<std::uint64_t>(row.payload_bytes / row.count, 1))));
      if (const auto middle = ratios.middle()) {
        row.ratio_to_reference = static_cast<float>(middle->median);
        row.ratio_low = middle->low;
        row.ratio_high = middle->high;
      }
    }
    if (const auto middle = total.ratios.middle()) {
      subject.time_ratio = static_cast<float>(middle->median);
      subject.ratio_low = middle->low;
      subject.ratio_high = middle->high;
    }
  }
  return out;
}

std::vector<LabelSummary> Summary::labels() const {
  std::vector<LabelSummary> out;
  for (const auto& [key, cases] : labels_) out.push_back({key.first, key.second, cases});
  return out;
}

std::vector<FigureSummary> Summary::figures() const {
  std::vector<FigureSummary> out = figures_;
  for (FigureSummary& part : out) {
    const auto whole = std::ranges::find_if(out, [&](const FigureSummary& one) {
      return one.kind == part.kind && part.of == one.figure;
    });
    if (whole != out.end() && whole->value != 0)
      part.share = static_cast<double>(part.value) / static_cast<double>(whole->value);
  }
  return out;
}

}  // namespace kvo::tools
