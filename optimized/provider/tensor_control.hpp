// optimized/provider/tensor_control.hpp: what a cache of `provider.tensor` decides.
//
// Words    lane     consecutive positions. A buffer is lane after lane, each of max_seq_len
//                   positions: one for each row of the batch, or, with kFlatStorage, one for all
//                   (ZF-60).
//          packed   without gaps between lanes: as callers pass rows and get them back.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/contract/device/host_device.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::optimized {

/// Where layers are, which cells an update writes, and what the counters hold. The host knows the
/// counters as long as it alone moves them: so a decode step with rows on the device is its
/// launches, and waits for nothing. Lanes are numbers, not lists: a step allocates nothing. A
/// derived class moves the cells.
class TensorControl : public provider::TensorBacked {
 public:
  using Rows = provider::Rows;
  using Shown = Result<std::optional<provider::KvPair>>;

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override;
  [[nodiscard]] Shown get(std::int64_t layer) override;
  [[nodiscard]] Shown full_buffer(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override {
    return layers_.empty() ? 0 : layers_.front().length;
  }
  [[nodiscard]] std::int64_t max_seq_len() const override { return max_seq_len_; }
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] Status sync_counter() override;
  [[nodiscard]] provider::CounterPtrs counters() const override;
  void free() override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  static constexpr std::int64_t kFloat = 4;  ///< bytes of a cell
  static constexpr std::int64_t kHalf = 2;
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  static constexpr std::array<std::size_t, 2> kSides{0, 1};  ///< K, V

  using Buffers = std::array<std::shared_ptr<DeviceStorage>, 2>;  ///< both or none
  struct Counter {
    std::shared_ptr<DeviceStorage> cell = nullptr;
    std::optional<std::int64_t> held = std::nullopt;  ///< its value, where the host knows it
  };
  struct Layer {
    bool pinned = false;
    bool gpu = false;   ///< the buffers are on the device
    bool half = false;  ///< and hold fp16
    std::int64_t batch = 0;
    std::int64_t dim = 0;
    std::int64_t length = 0;  ///< positions
    std::int64_t cells = 0;   ///< of each buffer
    Buffers buffers = {};
    [[nodiscard]] DevicePtr at(std::size_t side, std::int64_t cell) const {
      return buffers[side]->ptr() + cell * (half ? kHalf : kFloat);
    }
  };
  /// Cells that are moved: some positions of each lane.
  struct Lanes {
    struct Piece {
      std::int64_t stored = 0;  ///< its first cell in the buffer
      std::int64_t packed = 0;
      std::int64_t count = 0;  ///< cells
    };
    std::int64_t lanes = 0;
    std::int64_t stride = 0;      ///< cells from one lane to the next
    std::int64_t start = 0;       ///< of the first lane
    std::int64_t count = 0;       ///< cells of a lane
    std::int64_t given = kNoEnd;  ///< cells that the source has
    bool takes_all = false;       ///< a single lane takes all that is given

    [[nodiscard]] Piece piece(std::int64_t lane) const {
      const std::int64_t packed = std::min(lane * count, given);
      const std::int64_t left = given - packed;
      return {lane * stride + start, packed, takes_all ? left : std::min(left, count)};
    }
    /// Calls visit(piece), which returns a Status, until one fails.
    template <class Visit>
    [[nodiscard]] Status each(const Visit& visit) const {
      Status done;
      for (std::int64_t lane = 0; done && lane < lanes; ++lane) done = visit(piece(lane));
      return done;
    }
  };
  /// The cells of K or V, on the device or, where that is null, on the host.
  struct Source {
    DevicePtr device = {};
    std::span<const float> host = {};
    std::int64_t cells = 0;
  };
  /// An update that passed the checks.
  struct Step {
    std::size_t layer = 0;
    std::int64_t batch = 0;
    std::int64_t seq = 0;
    std::int64_t dim = 0;
    std::array<Source, 2> sources = {};
    std::array<Lanes, 2> lanes = {};
    bool decode = false;  ///< written at gpu_counter (ZF-58)
  };

  TensorControl(const provider::TensorOptions& options, QuirkSet<provider::Quirk> quirks);
  /// Errors  as provider::MakeTensor says.
  [[nodiscard]] static Status check(const provider::TensorOptions& options,
                                    QuirkSet<provider::Quirk> quirks);
  [[nodiscard]] bool has(provider::Quirk quirk) const { return quirks_.has(quirk); }

  // ---- Memory. Errors of the device ----
  /// Sees to all that moving cells to the device needs.
  [[nodiscard]] virtual Status prepare() = 0;
  /// Copies the cells of a layer on the host to buffers on the device.
  [[nodiscard]] virtual Status promote(const Layer& from, const Layer& to, const Lanes& held) = 0;
  /// Stores both sides of a step that is no decode step.
  [[nodiscard]] virtual Status store_both(const Layer& layer, const Step& step) = 0;
  /// Queues the kernel that stores the row of a lane at the position in gpu_counter.
  [[nodiscard]] virtual Status store_row(const Layer& layer, DevicePtr source, std::size_t side,
                                         const Lanes::Piece& lane) = 0;

  /// Positions [first, first + positions); nothing when one is outside of a buffer of `cells`.
  /// Without cells there are no lanes but that of kFlatStorage.
  [[nodiscard]] std::optional<Lanes> lanes(std::int64_t batch, std::int64_t dim, std::int64_t first,
                                           std::int64_t positions, std::int64_t cells) const;
  /// A counter that does not exist is not changed. Waits for the device where the value is unknown.
  [[nodiscard]] Result<std::int64_t> held(Counter& counter) const;
  [[nodiscard]] Status set(Counter& counter, std::int64_t value) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Device> host_ = std::make_shared<HostDevice>();  ///< memory of layers on the host
  std::int64_t max_seq_len_;
  std::vector<Layer> layers_;
  Counter gpu_counter_;
  Counter kv_seq_len_;
  bool ahead_ = false;  ///< the counters may be ahead of the lengths

 private:
  [[nodiscard]] const Layer* find(std::int64_t layer) const;
  [[nodiscard]] bool is_last(const Step& step) const { return step.layer + 1 == layers_.size(); }
  /// Two buffers; none when there is no memory for both.
  [[nodiscard]] static Buffers allocate(const std::shared_ptr<Device>& device, std::int64_t cells,
                                        std::int64_t cell_bytes);

  // An update, in this order; what allocates comes before anything changes.
  [[nodiscard]] Result<Step> checked(std::int64_t layer, const Rows& rows) const;
  [[nodiscard]] Result<Layer> placed(const Step& step);
  [[nodiscard]] Result<Layer> promoted(Layer layer, const Step& step, std::int64_t cells);
  [[nodiscard]] Status take_back(Step& step, std::array<std::vector<float>, 2>& cells) const;
  [[nodiscard]] Status plan(const Layer& layer, Step& step);
  [[nodiscard]] Status write(const Layer& layer, const Step& step);
  [[nodiscard]] Status decode(const Layer& layer, const Step& step);

  [[nodiscard]] Shown show(const Layer& layer, std::int64_t positions);
  [[nodiscard]] Buffers result_buffers(std::int64_t cells);

  [[nodiscard]] Status set_both(std::int64_t value);
  /// Queues an increment.
  [[nodiscard]] Status count(Counter& counter) const;
  /// Makes the counters the lengths that they promise to be (ZF-57, ZF-59).
  [[nodiscard]] Status settle_counters();

  bool half_;
  QuirkSet<provider::Quirk> quirks_;
  Buffers scratch_;  ///< only with kSharedScratch
  std::int64_t scratch_cells_ = 0;
  std::vector<std::weak_ptr<DeviceStorage>> results_;  ///< only without
};

}  // namespace kvo::optimized
