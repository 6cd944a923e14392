// reference/events/publisher.hpp: the batches of one engine, numbered (EV-20 to EV-24).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "reference/events/cache.hpp"

namespace kvo::events {

/// The batches of one life of an engine.
class Publisher {
 public:
  /// Returns  the number of the batch.
  std::int64_t publish(Batch batch) {
    batches_.push_back(std::move(batch));
    return last();
  }
  /// Number of the last batch; -1: there is none.
  [[nodiscard]] std::int64_t last() const { return std::ssize(batches_) - 1; }
  /// The batch of that number, if it was published in this life.
  [[nodiscard]] const Batch* batch(std::int64_t seq) const {
    return seq >= 0 && seq <= last() ? &batches_[static_cast<std::size_t>(seq)] : nullptr;
  }
  /// Those of the last `buffer` batches whose numbers are `from` or more.
  [[nodiscard]] Replayed replay(std::int64_t from, std::int64_t buffer) const {
    const std::int64_t oldest = std::max<std::int64_t>(0, std::ssize(batches_) - buffer);
    Replayed answer{.first = std::max(from, oldest)};
    for (std::int64_t seq = answer.first; seq <= last(); ++seq)
      answer.batches.push_back(batch(seq));
    return answer;
  }

 private:
  std::vector<Batch> batches_;
};

}  // namespace kvo::events
