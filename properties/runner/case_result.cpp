#include "properties/runner/case_result.hpp"

#include <algorithm>

namespace kvo {

std::string Verdict::text() const {
  if (outcome == Outcome::kAgrees) return "agrees";
  if (outcome == Outcome::kVacuous) return "vacuous: " + reason;
  return "op " + std::to_string(op_index) + " " + op + ": " + problem();
}

std::string Verdict::problem() const {
  return outcome == Outcome::kMismatch ? difference.text() : reason;
}

std::string Verdict::signature() const {
  if (outcome == Outcome::kDied) return "died";
  if (outcome == Outcome::kBroken) return "broken " + op;
  return "mismatch " + op + " " + difference.place.substr(0, difference.place.find('['));
}

std::string Verdict::symptom() const {
  const auto code = [](const std::string& error) { return error.substr(0, error.find(" (")); };
  if (differs_in_error())
    return signature() + " " + code(difference.want) + " " + code(difference.got);
  if (outcome == Outcome::kBroken)
    return signature() + " " + reason.substr(0, reason.find_first_of("0123456789"));
  const bool once = outcome == Outcome::kDied && reason.ends_with(kNotRepeated);
  return signature() + (once ? ", not repeated" : "");
}

bool Verdict::lacks_memory() const {
  return (outcome == Outcome::kOutOfMemory && reason == kNeedsMemory) ||
         (differs_in_error() && difference.got.starts_with("out_of_memory"));
}

void Evidence::add(const Evidence& more) {
  compared += more.compared;
  rows_judged += more.rows_judged;
  rows_skipped += more.rows_skipped;
  failures += more.failures;
  retried += more.retried;
  deferred += more.deferred;
  skipped += more.skipped;
}

TimingRecord timing_record(std::string_view op, const Durations& durations) {
  TimingRecord timing{.op = std::string(op),
                      .total_nanoseconds = durations.total_nanoseconds(),
                      .payload_bytes = durations.payload_bytes()};
  for (const auto& [bucket, count] : durations.histogram())
    timing.histogram.push_back({bucket, count});
  return timing;
}

Durations durations_of(const TimingRecord& record) {
  std::vector<Durations::Bucket> buckets;
  for (const HistogramRecord& bucket : record.histogram)
    buckets.push_back(
        {static_cast<std::uint32_t>(bucket.bucket), static_cast<std::uint32_t>(bucket.count)});
  return Durations::of(record.total_nanoseconds, record.payload_bytes, buckets);
}

void merge(std::vector<TimingRecord>& into, const std::vector<TimingRecord>& more) {
  for (const TimingRecord& record : more) {
    const auto known = std::ranges::find(into, record.op, &TimingRecord::op);
    if (known == into.end()) {
      into.push_back(record);
      continue;
    }
    Durations all = durations_of(*known);
    all.merge(durations_of(record));
    *known = timing_record(record.op, all);
  }
}

std::string SubjectResult::group(std::string_view law) const {
  return last_law(law) + " " + last_verdict().symptom();
}

template const Type& type_of<CaseResult>();

}  // namespace kvo
