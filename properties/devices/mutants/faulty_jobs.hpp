// properties/devices/mutants/faulty_jobs.hpp: decode kernels with one thing done wrong.
#pragma once

#include <cstdint>
#include <memory>

#include "reference/contract/device/device.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo::devices {

/// Leaves the cells behind the last whole tile of four.
template <class Cell>
struct LastTileDropped : OffsetCopy<Cell> {
  [[nodiscard]] constexpr std::int64_t items() const { return this->dim / 4 * 4; }
};

/// As a grid that is computed from one item too few, without a loop over the rest.
template <class Cell>
struct GridTooSmall : OffsetCopy<Cell> {
  [[nodiscard]] constexpr std::int64_t items() const { return this->dim - 1; }
};

/// Takes the buffer for [dim, max_seq_len].
template <class Cell>
struct RowsTransposed : OffsetCopy<Cell> {
  template <class Memory>
  constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t position = memory.load(this->counter);
    if (position >= this->max_seq_len) return;
    memory.store(this->buffer + i * this->max_seq_len + position,
                 cell_of<Cell>(memory.load(this->source + i)));
  }
};

/// Multiplies position and dim in 32 bits.
template <class Cell>
struct OffsetOf32Bits : OffsetCopy<Cell> {
  template <class Memory>
  constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t position = memory.load(this->counter);
    if (position >= this->max_seq_len) return;
    const auto first = static_cast<std::uint32_t>(position) * static_cast<std::uint32_t>(this->dim);
    memory.store(this->buffer + first + i, cell_of<Cell>(memory.load(this->source + i)));
  }
};

/// Launches `Faulty` where a row is to go to the position in a counter.
template <template <class> class Faulty>
class FaultyJobs final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  [[nodiscard]] Status queue(const Work& work, Stream stream) override {
    if (!work.job) return below_->queue(work, stream);
    const Job& job = *work.job;
    if (&job.type() == &kJobType<OffsetCopyJob>) return launch_faulty<std::uint32_t>(job, stream);
    if (&job.type() == &kJobType<OffsetCopyHalfJob>)
      return launch_faulty<std::uint16_t>(job, stream);
    return below_->launch(job, stream);
  }

 private:
  template <class Cell>
  Status launch_faulty(const Job& job, Stream stream) {
    return below_->launch(Faulty<Cell>{*static_cast<const OffsetCopy<Cell>*>(job.data())}, stream);
  }
};

}  // namespace kvo::devices
