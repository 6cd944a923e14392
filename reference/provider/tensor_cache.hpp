// reference/provider/tensor_cache.hpp: the reference of `provider.tensor`.
//
// Words    lane     positions that lie one behind the other. A buffer is lane after lane, each with
//                   room for max_seq_len positions: one for each row of the batch, or, with
//                   kFlatStorage, one for all (ZF-60). That is all in which the layouts differ.
//          piece    cells that lie together: some positions of one lane.
//          packed   without the room between lanes: as callers hand rows in and get them back.
// Memory   rows on the host lie in a device of their own, whose memory is that of the host: so
//          there is one sort of buffer.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/contract/device/host_device.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract, over any device.
class TensorCache : public TensorBacked {
 public:
  /// Errors  as MakeTensor says.
  static Result<std::unique_ptr<TensorBacked>> make(const TensorOptions& options,
                                                    QuirkSet<Quirk> quirks);

  TensorCache(const TensorOptions& options, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] Result<std::optional<KvPair>> full_buffer(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override {
    return layers_.empty() ? 0 : layers_.front().length;
  }
  [[nodiscard]] std::int64_t max_seq_len() const override { return max_seq_len_; }
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] Status sync_counter() override;
  [[nodiscard]] CounterPtrs counters() const override;
  void free() override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  static constexpr std::int64_t kFloat = 4;  ///< bytes of a cell
  static constexpr std::int64_t kHalf = 2;

  static constexpr std::array<std::size_t, 2> kSides{0, 1};  ///< K, V

  using Buffer = std::shared_ptr<DeviceStorage>;
  using Buffers = std::array<Buffer, 2>;  ///< both or none
  struct Layer {
    bool pinned = false;
    bool gpu = false;   ///< the buffers are on the device
    bool half = false;  ///< and hold fp16
    std::int64_t batch = 0;
    std::int64_t dim = 0;
    std::int64_t length = 0;  ///< positions
    std::int64_t cells = 0;   ///< of each buffer
    Buffers buffers = {};
    [[nodiscard]] std::int64_t cell_bytes() const { return half ? kHalf : kFloat; }
  };
  struct Piece {
    std::int64_t stored = 0;  ///< its first cell in the buffer
    std::int64_t packed = 0;
    std::int64_t count = 0;  ///< cells
  };
  using Pieces = std::vector<Piece>;
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
    std::array<Pieces, 2> pieces = {};
    bool decode = false;  ///< written by the kernels of ZF-58
  };

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] const Layer* find(std::int64_t layer) const;
  [[nodiscard]] bool is_last(const Step& step) const { return step.layer + 1 == layers_.size(); }

  /// A piece a lane, for positions [first, first + positions); nothing when one would lie outside
  /// of a buffer of `cells`. Without cells there are no lanes but that of kFlatStorage.
  [[nodiscard]] std::optional<Pieces> pieces(std::int64_t batch, std::int64_t dim,
                                             std::int64_t first, std::int64_t positions,
                                             std::int64_t cells) const;
  /// Two buffers; none when there is no memory for both.
  [[nodiscard]] static Buffers allocate(const std::shared_ptr<Device>& memory, std::int64_t cells,
                                        std::int64_t cell_bytes);

  // An update, in this order; everything that allocates comes before anything changes.
  [[nodiscard]] Result<Step> checked(std::int64_t layer, const Rows& rows) const;
  [[nodiscard]] Result<Layer> placed(const Step& step) const;
  [[nodiscard]] Result<Layer> promoted(Layer layer, const Step& step, std::int64_t cells) const;
  [[nodiscard]] Status plan(const Layer& layer, Step& step) const;
  [[nodiscard]] static bool fit(const Layer& layer, const Source& source, Pieces& pieces);
  [[nodiscard]] Status write(const Layer& layer, const Step& step);
  [[nodiscard]] Status decode(const Layer& layer, const Step& step);
  [[nodiscard]] Job row_job(const Layer& layer, const Step& step, std::size_t side,
                            const Piece& lane) const;
  [[nodiscard]] Status store(const Layer& layer, const Step& step, std::size_t side) const;

  [[nodiscard]] Result<std::optional<KvPair>> show(const Layer& layer, std::int64_t positions);
  [[nodiscard]] Buffers result_buffers(std::int64_t cells);

  /// A counter that does not exist is left alone.
  [[nodiscard]] Status set(const Buffer& counter, std::int64_t value) const;
  [[nodiscard]] Status set_both(std::int64_t value) const;
  /// Makes the counters the lengths that they promise to be (ZF-57, ZF-59).
  [[nodiscard]] Status settle_counters() const;

  std::shared_ptr<Device> memory_;
  std::shared_ptr<Device> host_ = std::make_shared<HostDevice>();
  std::int64_t max_seq_len_;
  bool half_;
  QuirkSet<Quirk> quirks_;
  std::vector<Layer> layers_;
  Buffer gpu_counter_;
  Buffer kv_seq_len_;
  Buffers scratch_;  ///< only with kSharedScratch
  std::int64_t scratch_cells_ = 0;
  std::vector<std::weak_ptr<DeviceStorage>> results_;  ///< only without
};

}  // namespace kvo::provider
