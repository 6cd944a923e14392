// cuda/positional/device_store.hpp: rows, masks and shifts of a causal cache on a device.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/jobs/cells.hpp"
#include "cuda/memory/staging.hpp"
#include "optimized/positional/store.hpp"
#include "reference/contract/device/device.hpp"
#include "reference/positional/cache.hpp"

namespace kvo::cuda {

/// What is in it stays until what room was made for begins.
class GrownRoom {
 public:
  /// Makes room for `bytes`. Requires bytes >= 0.
  /// Errors  kOutOfMemory; the device's own. Nothing has changed.
  [[nodiscard]] Status reserve(const std::shared_ptr<Device>& device, std::int64_t bytes) {
    if (bytes <= std::max(bytes_, larger_bytes_)) return {};
    const std::int64_t cells = (std::max(bytes, bytes_ + bytes_ / 2) - 1) / kCellBytes + 1;
    auto made = make_cells(device, cells);
    if (!made) return made.error();
    larger_ = std::move(*made);
    larger_bytes_ = cells * kCellBytes;
    return {};
  }
  /// Nothing queued may use what was in it.
  void begin() noexcept {
    if (!larger_) return;
    room_ = std::exchange(larger_, nullptr);
    bytes_ = std::exchange(larger_bytes_, 0);
  }
  /// Requires room for a byte or more.
  [[nodiscard]] DevicePtr ptr() const { return room_->ptr(); }

 private:
  std::shared_ptr<DeviceStorage> room_;
  std::int64_t bytes_ = 0;
  std::shared_ptr<DeviceStorage> larger_;  ///< takes its place
  std::int64_t larger_bytes_ = 0;
};

/// Two buffers a layer; what the kernels must know of a pass (positions and owners of the cells in
/// view, its tokens, their cells) goes to the device in one piece when its mask is built. Rows are
/// rounded, keys moved and masks built there. What get shows is host memory by contract: mirrors,
/// one of each side and one of the mask, which a get brings up to date.
///
/// What cannot answer an error (noexcept) keeps it for the next operation on rows or masks.
class PositionalDeviceStore final : public optimized::PositionalStore {
 public:
  /// `begin_shift` may be null as the shift function may.
  PositionalDeviceStore(const std::shared_ptr<Device>& device, positional::BeginShift begin_shift)
      : device_(device), begin_shift_(std::move(begin_shift)), staging_(device) {}

  /// Floats; kNotSupported to codes.
  [[nodiscard]] Status check(const StorageFormat& storage) const override;
  void open(const Plan& plan) noexcept override { plan_ = plan; }

  void set_layer(std::int64_t layer) noexcept override;
  Status make_rows(const optimized::LayerRows::Form& form) override;
  Status put(const optimized::PositionalPass& pass, const positional::Rows& k,
             const positional::Rows& v) override;
  Result<positional::Shown> show(const optimized::CellRange& range) override;

  Status prepare_keys(const optimized::KeyGroup& group) override;
  Status reserve_keys() override;
  void commit_keys() noexcept override;
  void cancel_keys() noexcept override;

  Status reserve_mask(const optimized::PositionalPass& pass) override;
  void show_mask(optimized::PositionalPass& pass, std::span<const char> ahead) noexcept override;
  void forget_mask() noexcept override {}

 private:
  struct Layer {
    optimized::LayerRows::Form form;
    std::array<std::shared_ptr<DeviceStorage>, 2> cells;  ///< K, V
  };
  /// Where what the kernels know of a pass lies in one buffer, in cells of 4 bytes: positions
  /// [columns], owners [columns, words], and [tokens] each of positions, sequences, targets, and,
  /// a byte each, who looks ahead.
  struct PassTable {
    std::int64_t columns = 0;  ///< cells in view
    std::int64_t words = 0;    ///< sequences of the batch / 32, rounded up
    std::int64_t tokens = 0;

    [[nodiscard]] std::int64_t owners() const { return columns; }
    [[nodiscard]] std::int64_t positions() const { return owners() + columns * words; }
    [[nodiscard]] std::int64_t sequences() const { return positions() + tokens; }
    [[nodiscard]] std::int64_t targets() const { return sequences() + tokens; }
    [[nodiscard]] std::int64_t ahead() const { return targets() + tokens; }
    [[nodiscard]] std::int64_t size() const { return ahead() + (tokens + 3) / 4; }
  };
  /// Keys of a group in a layer.
  struct Move {
    const Layer* layer = nullptr;
    std::int64_t first = 0;
    std::int64_t cells = 0;
    std::int64_t moved = 0;  ///< in moved_
    bool all = false;
    positional::ShiftRule rule;
    std::int64_t turns = 0;  ///< in turns_, of TurnedPairs
  };
  /// Angles that were worked out for heads of a size.
  struct Turns {
    double base = 0;
    std::int64_t half = 0;
    std::int64_t at = 0;  ///< in turns_
  };
  /// A piece of a buffer and the view of its mirror.
  struct Mirrored {
    StridedView view;
    std::int64_t first = 0;     ///< element of the buffer
    std::int64_t elements = 0;  ///< up to the last that the view shows
  };

  [[nodiscard]] static PassTable table_of(const optimized::PositionalPass& pass);
  void fill_table(const optimized::PositionalPass& pass, std::span<const char> ahead) noexcept;
  [[nodiscard]] DevicePtr in_table(std::int64_t cell) const;
  template <class Cell>
  [[nodiscard]] Job mask_job() const;
  [[nodiscard]] Mirrored side(std::size_t which, const optimized::CellRange& range) const;
  [[nodiscard]] Mirrored mask() const;
  /// Queues the copy of a piece to a mirror.
  [[nodiscard]] Status read(Mirrored& piece, DevicePtr from, std::vector<std::byte>& mirror);
  [[nodiscard]] std::int64_t turns_of(double base, std::int64_t half, std::int32_t offset);
  [[nodiscard]] Status run(const Move& move) const;
  /// Carries out work of the device that cannot answer an error.
  template <class Work>
  void attempt(const Work& work) noexcept;

  std::shared_ptr<Device> device_;
  positional::BeginShift begin_shift_;
  Staging staging_;
  Plan plan_;
  Status failed_;  ///< what attempt() could not answer
  std::int64_t layer_ = 0;
  const Layer* rows_ = nullptr;  ///< of the current layer; null without storage
  std::map<std::int64_t, Layer> layers_;

  PassTable pass_;  ///< of the mask shown
  std::vector<std::uint32_t> table_;
  GrownRoom table_room_;
  GrownRoom mask_room_;

  std::vector<Move> moves_;
  std::int32_t offset_ = 0;  ///< of all moves
  std::vector<std::uint8_t> moved_;
  std::vector<Turn> turns_;
  std::vector<Turns> worked_out_;
  std::vector<std::byte> keys_table_;  ///< turns_, and behind them moved_
  GrownRoom keys_room_;

  std::array<std::vector<std::byte>, 2> mirrors_;
  std::vector<std::byte> mask_mirror_;
  bool mask_read_ = false;
};

/// All four causal caches (OK-7): the bookkeeping of those for a CPU, over memory of a device.
/// Errors  kPrecondition: window or memory below 0; kNotSupported: a shift function that does not
///         tell what it does.
[[nodiscard]] Result<std::unique_ptr<positional::Cache>> make_causal_device_cache(
    const std::shared_ptr<Device>& device, const positional::CacheOptions& options);

}  // namespace kvo::cuda
