// cuda/provider/tensor_device_cache.hpp: `provider.tensor` on a device with streams.
//
// Words    lane     positions that lie one behind the other. A buffer is lane after lane, each with
//                   room for max_seq_len positions: one for each row of the batch, or, with
//                   kFlatStorage, one for all (ZF-60).
//          piece    cells that lie together: some positions of one lane.
//          packed   without the room between lanes: as callers hand rows in and get them back.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/decode/decode_graph.hpp"
#include "cuda/memory/staging.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::cuda {

/// A buffer a layer and side, on the device or in host memory. The host knows what the counters
/// hold as long as it alone moves them: so a decode step with rows on the device is its launches
/// and nothing else, and waits for nothing. The contract counts launches (TensorBacked), so rows of
/// a batch are not gathered in one; a DecodeGraph does that. Rows of the host are uploaded on a
/// stream of their own, K and V at once, and waited for.
class TensorDeviceCache : public provider::TensorBacked, public DecodeCache {
 public:
  /// Errors  as provider::MakeTensor says.
  static Result<std::unique_ptr<provider::TensorBacked>> make(
      const provider::TensorOptions& options, QuirkSet<provider::Quirk> quirks);
  /// The same of a class of that base.
  template <class Cache>
  static Result<std::unique_ptr<Cache>> make_as(const provider::TensorOptions& options,
                                                QuirkSet<provider::Quirk> quirks) {
    if (Status good = check(options, quirks); !good) return good.error();
    return std::make_unique<Cache>(options, quirks);
  }

  TensorDeviceCache(const provider::TensorOptions& options, QuirkSet<provider::Quirk> quirks);

  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> full_buffer(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override {
    return layers_.empty() ? 0 : layers_.front().length;
  }
  [[nodiscard]] std::int64_t max_seq_len() const override { return max_seq_len_; }
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] Status sync_counter() override;
  [[nodiscard]] provider::CounterPtrs counters() const override;
  /// A graph that was captured over the cache refuses to go on.
  void free() override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

  [[nodiscard]] const std::shared_ptr<Device>& device() const override { return device_; }
  [[nodiscard]] Result<DecodeStep> decode_step(std::span<const LayerRows> rows) override;
  [[nodiscard]] Status before_replay() override;

 protected:
  static constexpr std::int64_t kFloat = 4;  ///< bytes of a cell
  static constexpr std::int64_t kHalf = 2;

  static constexpr std::array<std::size_t, 2> kSides{0, 1};  ///< K, V

  using Buffer = std::shared_ptr<DeviceStorage>;
  using Buffers = std::array<Buffer, 2>;  ///< both or none
  struct Counter {
    Buffer cell = nullptr;
    std::optional<std::int64_t> held = std::nullopt;  ///< what it holds, where the host knows
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
    bool decode = false;  ///< written at gpu_counter (ZF-58)
  };

  [[nodiscard]] static Status check(const provider::TensorOptions& options,
                                    QuirkSet<provider::Quirk> quirks);
  [[nodiscard]] bool has(provider::Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] const Layer* find(std::int64_t layer) const;
  [[nodiscard]] bool is_last(const Step& step) const { return step.layer + 1 == layers_.size(); }

  /// A piece a lane, for positions [first, first + positions); nothing when one would lie outside
  /// of a buffer of `cells`. Without cells there are no lanes but that of kFlatStorage.
  [[nodiscard]] std::optional<Pieces> pieces(std::int64_t batch, std::int64_t dim,
                                             std::int64_t first, std::int64_t positions,
                                             std::int64_t cells) const;
  /// Two buffers; none when there is no memory for both.
  [[nodiscard]] static Buffers allocate(const std::shared_ptr<Device>& device, std::int64_t cells,
                                        std::int64_t cell_bytes);

  // An update, in this order; what allocates comes before anything changes.
  [[nodiscard]] Result<Step> checked(std::int64_t layer, const provider::Rows& rows) const;
  [[nodiscard]] Result<Layer> placed(const Step& step);
  [[nodiscard]] Result<Layer> promoted(Layer layer, const Step& step, std::int64_t cells);
  [[nodiscard]] Status take_back(Step& step, std::array<std::vector<float>, 2>& cells) const;
  [[nodiscard]] Status plan(const Layer& layer, Step& step);
  [[nodiscard]] static bool fit(const Layer& layer, const Source& source, Pieces& pieces);
  [[nodiscard]] Status write(const Layer& layer, const Step& step);
  [[nodiscard]] Status decode(const Layer& layer, const Step& step);
  /// The row of one lane of a decode step.
  [[nodiscard]] static DecodeStep::Row row(const Layer& layer, DevicePtr source, std::size_t side,
                                           const Piece& lane);
  [[nodiscard]] Status store_both(const Layer& layer, const Step& step);
  [[nodiscard]] Status store(const Layer& layer, const Step& step, std::size_t side);
  /// Queues cells of the host to their place on the device.
  [[nodiscard]] Status upload(std::size_t side, DevicePtr to, std::span<const float> cells);

  [[nodiscard]] Result<std::optional<provider::KvPair>> show(const Layer& layer,
                                                             std::int64_t positions);
  [[nodiscard]] Buffers result_buffers(std::int64_t cells);

  // Counters; one that does not exist is left alone.
  /// What it holds; waits for the device where the host does not know.
  [[nodiscard]] Result<std::int64_t> held(Counter& counter) const;
  [[nodiscard]] Status set(Counter& counter, std::int64_t value) const;
  [[nodiscard]] Status set_both(std::int64_t value);
  /// Queues an increment.
  [[nodiscard]] Status count(Counter& counter) const;
  /// Makes the counters the lengths that they promise to be (ZF-57, ZF-59).
  [[nodiscard]] Status settle_counters();

  std::shared_ptr<Device> device_;
  std::shared_ptr<Device> host_ = std::make_shared<HostDevice>();  ///< memory of layers on the host
  Staging staging_;
  std::int64_t max_seq_len_;
  bool half_;
  QuirkSet<provider::Quirk> quirks_;
  std::vector<Layer> layers_;
  Counter gpu_counter_;
  Counter kv_seq_len_;
  bool ahead_ = false;
  Buffers scratch_;  ///< only with kSharedScratch
  std::int64_t scratch_cells_ = 0;
  std::vector<std::weak_ptr<DeviceStorage>> results_;  ///< only without
  std::shared_ptr<const char> life_;  ///< of the buffers, for graphs; null until one asks
};

}  // namespace kvo::cuda
