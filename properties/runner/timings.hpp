// properties/runner/timings.hpp: how long operations took, in constant memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/contract/describe/operation.hpp"

namespace kvo {

/// Durations of one operation kind in a histogram whose buckets are at most 1/16 wide.
class Durations {
 public:
  void add(std::uint64_t nanoseconds, std::size_t payload_bytes);
  void merge(const Durations& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t total_nanoseconds() const { return total_; }
  /// Tensor bytes in arguments and results.
  [[nodiscard]] std::uint64_t payload_bytes() const { return bytes_; }
  /// The duration below which a `share` of all lies, to 1/16; 0 without any.
  [[nodiscard]] std::uint64_t quantile(double share) const;

  static constexpr std::size_t kSteps = 16;  ///< buckets a power of two
  static constexpr std::size_t kBuckets = 64 * kSteps;
  /// A filled bucket of the histogram.
  struct Bucket {
    std::uint32_t bucket = 0;
    std::uint32_t count = 0;
  };
  /// The filled buckets, and durations made from them again.
  [[nodiscard]] std::vector<Bucket> histogram() const;
  [[nodiscard]] static Durations of(std::uint64_t total_nanoseconds, std::uint64_t payload_bytes,
                                    const std::vector<Bucket>& histogram);

 private:
  static std::size_t bucket(std::uint64_t nanoseconds);
  static std::uint64_t middle(std::size_t bucket);

  std::uint64_t count_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t bytes_ = 0;
  std::array<std::uint32_t, kBuckets> buckets_{};
};

/// Durations by operation, in the order of the cache kind's operations.
class Timings {
 public:
  struct Row {
    const OpKind* op;
    Durations durations;
  };

  void add(const OpKind& op, std::uint64_t nanoseconds, std::size_t payload_bytes);
  void add(const OpKind& op, const Durations& durations);
  void merge(const Timings& other);
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// Null when the operation did not occur.
  [[nodiscard]] const Durations* of(const OpKind& op) const;
  [[nodiscard]] std::uint64_t total_nanoseconds() const;

 private:
  Durations& at(const OpKind& op);
  std::vector<Row> rows_;
};

}  // namespace kvo
