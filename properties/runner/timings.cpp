#include "properties/runner/timings.hpp"

#include <algorithm>
#include <bit>

namespace kvo {

std::size_t Durations::bucket(std::uint64_t nanoseconds) {
  if (nanoseconds < kSteps) return static_cast<std::size_t>(nanoseconds);
  const auto power = static_cast<std::size_t>(std::bit_width(nanoseconds)) - 1;  // at least 4
  const auto step = static_cast<std::size_t>(nanoseconds >> (power - 4)) - kSteps;
  return (power - 3) * kSteps + step;
}

std::uint64_t Durations::middle(std::size_t bucket) {
  if (bucket < kSteps) return bucket;
  const std::size_t power = bucket / kSteps + 3;
  const std::uint64_t low = (kSteps + bucket % kSteps) << (power - 4);
  return low + (std::uint64_t{1} << (power - 4)) / 2;
}

void Durations::add(std::uint64_t nanoseconds, std::size_t payload_bytes) {
  ++count_;
  total_ += nanoseconds;
  bytes_ += payload_bytes;
  ++buckets_[bucket(nanoseconds)];
}

void Durations::merge(const Durations& other) {
  count_ += other.count_;
  total_ += other.total_;
  bytes_ += other.bytes_;
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
}

std::uint64_t Durations::quantile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (below > wanted || (below == count_ && count_ > 0)) return middle(i);
  }
  return 0;
}

std::vector<Durations::Bucket> Durations::histogram() const {
  std::vector<Bucket> filled;
  for (std::uint32_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i] != 0) filled.push_back({i, buckets_[i]});
  return filled;
}

Durations Durations::of(std::uint64_t total_nanoseconds, std::uint64_t payload_bytes,
                        const std::vector<Bucket>& histogram) {
  Durations made;
  made.total_ = total_nanoseconds;
  made.bytes_ = payload_bytes;
  for (const Bucket& bucket : histogram) {
    if (bucket.bucket >= made.buckets_.size()) continue;
    made.buckets_[bucket.bucket] += bucket.count;
    made.count_ += bucket.count;
  }
  return made;
}

Durations& Timings::at(const OpKind& op) {
  const auto known = std::ranges::find(rows_, &op, &Row::op);
  return known != rows_.end() ? known->durations : rows_.emplace_back(Row{&op, {}}).durations;
}

void Timings::add(const OpKind& op, std::uint64_t nanoseconds, std::size_t payload_bytes) {
  at(op).add(nanoseconds, payload_bytes);
}

void Timings::add(const OpKind& op, const Durations& durations) {
  at(op).merge(durations);
}

void Timings::merge(const Timings& other) {
  for (const Row& row : other.rows_) at(*row.op).merge(row.durations);
}

const Durations* Timings::of(const OpKind& op) const {
  const auto known = std::ranges::find(rows_, &op, &Row::op);
  return known != rows_.end() ? &known->durations : nullptr;
}

std::uint64_t Timings::total_nanoseconds() const {
  std::uint64_t sum = 0;
  for (const Row& row : rows_) sum += row.durations.total_nanoseconds();
  return sum;
}

}  // namespace kvo
