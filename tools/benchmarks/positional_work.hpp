// tools/benchmarks/positional_work.hpp: a pool of `positional` that benchmarks fill and decode in.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reference/contract/values/check.hpp"
#include "reference/positional/cache.hpp"

namespace kvo::positional {

constexpr std::int64_t kChunk = 512;

/// Sequences of equal length that fill a pool to three quarters, a token of each in turn.
class FilledPool {
 public:
  FilledPool(const MakeCache& make, const MemberOptions& member, std::int64_t cells,
             std::int64_t sequences)
      : cells_(cells),
        filled_(cells * 3 / 4 / sequences),
        lengths_(static_cast<std::size_t>(sequences)),
        bounded_(member.window > 0) {
    CacheOptions options;
    options.members = {member};
    cache_ = make(options).value();
    cache_->init({.max_sequences = sequences, .capacity = cells / sequences, .max_batch = kChunk})
        .value();
    while (lengths_.back() < filled_) {
      plan(sequences);
      start();
    }
    const std::vector<float> row(static_cast<std::size_t>(sequences), 1);
    const Rows rows{sequences, 1, 1, row};
    KVO_CHECK(cache_->put(rows, rows).has_value());
  }

  /// Plans a batch: kChunk tokens of the next sequence, or one token each of so many; takes back
  /// all that was added where it would not fit.
  void plan(std::int64_t batch) {
    if (!bounded_ && used_ + batch > cells_) take_back();
    for (std::int64_t i = 1; i <= batch; ++i) {
      positions_.push_back(static_cast<std::int32_t>(lengths_[next_]++));
      sequences_.push_back(static_cast<std::int64_t>(next_));
      if (batch != kChunk || i == kChunk) next_ = (next_ + 1) % lengths_.size();
    }
    used_ += batch;
  }

  /// Carries out the planned batch.
  void start() {
    const Batch batch{.positions = positions_, .sequences = sequences_};
    KVO_CHECK(cache_->start_forward(batch).has_value());
    positions_.clear();
    sequences_.clear();
  }

  /// Takes back all that was added since the pool was filled.
  void take_back() {
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      const auto kept = static_cast<std::int32_t>(filled_);
      KVO_CHECK(cache_->remove(static_cast<std::int64_t>(i), kept, kMaxPosition).has_value());
      lengths_[i] = filled_;
    }
    used_ = filled_ * std::ssize(lengths_);
    next_ = 0;
  }

  [[nodiscard]] auto mask() const { return cache_->get().value().mask; }

 private:
  std::unique_ptr<Cache> cache_;
  std::int64_t cells_;
  std::int64_t filled_;  ///< length of each sequence
  std::int64_t used_ = 0;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> sequences_;
  std::size_t next_ = 0;
  bool bounded_;  ///< by a window: the pool is never full
};

}  // namespace kvo::positional
