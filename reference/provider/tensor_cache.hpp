// reference/provider/tensor_cache.hpp: the reference of `provider.tensor`.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "reference/provider/contract_tensor.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract, over any DeviceMemory.
class TensorCache : public TensorBacked {
 public:
  /// Errors  as MakeTensor says.
  static Result<std::unique_ptr<TensorBacked>> make(const TensorSetup& setup, Profile profile);

  TensorCache(const TensorSetup& setup, Profile profile);

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] Result<std::optional<KvPair>> full_buffer(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override { return first_length(); }
  [[nodiscard]] std::int64_t max_seq_len() const override { return max_seq_len_; }
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] Status sync_counter() override;
  [[nodiscard]] CounterPtrs counters() const override;
  void free() override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  /// Where the original departs from what it promises.
  struct Quirks {
    bool sizes_unchecked;        ///< ZF-53
    bool one_counter_will_do;    ///< ZF-53
    bool shapes_unchecked;       ///< ZF-54, ZF-59: batch and dim of later updates, and V's shape
    bool batch_0_unpinned;       ///< ZF-55
    bool promotes_to_fp32;       ///< ZF-55, ZF-56
    bool counters_drift;         ///< ZF-57, ZF-58, ZF-64: they are not the lengths of layers
    bool shared_position;        ///< ZF-58: decode writes where gpu_counter says
    bool failures_leave_traces;  ///< ZF-55, ZF-57, ZF-59
    bool flat_storage;           ///< ZF-60: updates lie one after the other, whatever the batch
    bool shared_scratch;         ///< ZF-61
    bool negative_truncate;      ///< ZF-64
    bool sync_takes_anything;    ///< ZF-65
    static Quirks of(Profile profile);
  };
  template <class S>
  struct Pair {
    std::shared_ptr<S> k = nullptr;
    std::shared_ptr<S> v = nullptr;
    explicit operator bool() const { return k != nullptr; }
  };
  /// On the host or on the device once it is allocated: one of the two pairs is set.
  struct Layer {
    bool pinned = false;
    std::int64_t batch = 0;
    std::int64_t dim = 0;
    std::int64_t length = 0;  ///< positions
    std::int64_t cells = 0;   ///< of each buffer
    bool half = false;        ///< the device buffers hold fp16
    Pair<HostStorage> host = {};
    Pair<DeviceStorage> gpu = {};
    [[nodiscard]] std::int64_t cell_bytes() const { return half ? kHalf : kFloat; }
  };
  /// The cells of K or V: on the device, or in host memory.
  struct Source {
    DevicePtr device;
    std::span<const float> host;
    std::int64_t cells = 0;
  };
  /// `count` cells that lie together, at `from` in the source and at `to` in the target.
  struct Run {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t count = 0;
  };
  /// An update that passed the checks.
  struct Step {
    std::size_t layer = 0;
    std::int64_t batch = 0;
    std::int64_t seq = 0;
    std::int64_t dim = 0;
    Source k;
    Source v;
    std::vector<Run> runs;
    [[nodiscard]] bool on_gpu() const { return k.device && v.device; }
  };

  static constexpr std::int64_t kFloat = 4;  ///< bytes of a cell
  static constexpr std::int64_t kHalf = 2;

  /// a * b * c; nothing when it leaves 63 bits.
  [[nodiscard]] static std::optional<std::int64_t> product(std::int64_t a, std::int64_t b,
                                                           std::int64_t c);
  [[nodiscard]] bool has(std::int64_t layer) const {
    return layer >= 0 && layer < static_cast<std::int64_t>(layers_.size());
  }
  [[nodiscard]] std::int64_t first_length() const {
    return layers_.empty() ? 0 : layers_.front().length;
  }
  [[nodiscard]] std::int64_t last_length() const {
    return layers_.empty() ? 0 : layers_.back().length;
  }
  [[nodiscard]] bool is_last(const Step& step) const { return step.layer + 1 == layers_.size(); }

  // An update, in this order; everything that allocates comes before anything changes.
  [[nodiscard]] Result<Step> checked(std::int64_t layer, const Rows& rows) const;
  [[nodiscard]] Status check_documented(const Layer& layer, const Rows& rows) const;
  [[nodiscard]] Result<Layer> placed(const Step& step) const;
  [[nodiscard]] Status promote(Layer& layer, const Step& step, std::int64_t cells) const;
  [[nodiscard]] bool aborts(const Layer& layer, const Step& step) const;
  [[nodiscard]] Status write(const Layer& layer, const Step& step);
  [[nodiscard]] Status decode(const Layer& layer, const Step& step);
  [[nodiscard]] Status store_on_gpu(const Layer& layer, const Step& step, bool keys) const;
  [[nodiscard]] Status read_back(Source& source, std::vector<float>& cells) const;
  void store_on_host(const Layer& layer, const Step& step) const;
  [[nodiscard]] std::vector<Run> runs(const Layer& layer, const Step& step) const;

  /// Two buffers on the device; empty when there is no memory for both.
  [[nodiscard]] Pair<DeviceStorage> on_device(std::int64_t cells, std::int64_t cell_bytes) const;

  // A query.
  [[nodiscard]] Result<std::optional<KvPair>> show(const Layer& layer, std::int64_t positions);
  [[nodiscard]] std::vector<Run> shown_runs(const Layer& layer, std::int64_t positions) const;
  [[nodiscard]] Pair<DeviceStorage> scratch(std::int64_t cells);
  [[nodiscard]] Status fill(const DeviceStorage& to, const DeviceStorage& from, bool half,
                            std::span<const Run> runs) const;

  [[nodiscard]] std::shared_ptr<DeviceStorage> make_counter() const;
  [[nodiscard]] Status set_counter(const std::shared_ptr<DeviceStorage>& counter,
                                   std::int64_t value) const;
  /// Sets the counters that exist.
  [[nodiscard]] Status set_counters(std::int64_t gpu_counter, std::int64_t kv_seq_len) const;
  [[nodiscard]] Result<std::int64_t> read_counter(const DeviceStorage& counter) const;

  std::shared_ptr<DeviceMemory> memory_;
  std::int64_t max_seq_len_;
  bool half_;
  Quirks quirks_;
  std::vector<Layer> layers_;
  std::shared_ptr<DeviceStorage> gpu_counter_;
  std::shared_ptr<DeviceStorage> kv_seq_len_;
  Pair<DeviceStorage> scratch_;  ///< only with shared_scratch
  std::int64_t scratch_cells_ = 0;
  std::vector<std::weak_ptr<DeviceStorage>> results_;  ///< only without shared_scratch
};

}  // namespace kvo::provider
