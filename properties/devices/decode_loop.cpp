#include "properties/devices/decode_loop.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "cuda/provider/kv_device_cache.hpp"
#include "cuda/provider/tensor_device_cache.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/contract/values/random.hpp"
#include "reference/provider/device_cache.hpp"
#include "reference/provider/tensor_cache.hpp"

namespace kvo::devices {
namespace {

using Launches = cuda::DecodeGraph::Launches;

/// Rows of all layers: [layer][cells].
struct StepRows {
  std::vector<std::vector<float>> k;
  std::vector<std::vector<float>> v;
};

void expect_refusal(const Status& got, Code code) {
  EXPECT_FALSE(got);
  if (!got) {
    EXPECT_EQ(got.error(), fail(code)) << got.error().text();
  }
}

/// Cells of the host on their way to a device, and where they went; lives as long as the script.
class Uploads {
 public:
  explicit Uploads(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Uploads() {
    EXPECT_TRUE(device_->synchronize(Stream()));
    for (const DevicePtr ptr : places_) EXPECT_TRUE(device_->free(ptr));
  }
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  /// Queues the copy to memory of its own.
  DevicePtr put(const std::vector<float>& cells) {
    places_.push_back(*device_->alloc(std::ssize(cells) * kBytes));
    put(places_.back(), cells);
    return places_.back();
  }
  /// Queues the copy to memory that is there.
  void put(DevicePtr to, const std::vector<float>& cells) {
    cells_.push_back(cells);
    EXPECT_TRUE(device_->to_device_async(to, std::as_bytes(std::span(cells_.back())), Stream()));
  }

 private:
  static constexpr std::int64_t kBytes = sizeof(float);

  std::shared_ptr<Device> device_;
  std::deque<std::vector<float>> cells_;
  std::vector<DevicePtr> places_;
};

std::int64_t drawn(traces::Random& random, std::int64_t first, std::int64_t last) {
  return first +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last - first + 1)));
}

/// A cache on the device under test and the reference on the host. Unless said otherwise an
/// operation is carried out on both and must have the same outcome.
class Pair {
 public:
  Pair(std::shared_ptr<Device> device, traces::Random& random, Profile profile)
      : layers_(drawn(random, 1, 3)),
        max_seq_len_(drawn(random, 4, 12)),
        profile_(profile),
        device_(std::move(device)) {}
  virtual ~Pair() = default;

  [[nodiscard]] std::int64_t layers() const { return layers_; }
  [[nodiscard]] std::int64_t max_seq_len() const { return max_seq_len_; }
  [[nodiscard]] bool documented() const { return profile_ == Profile::kDocumented; }
  /// Cells that K or V of a layer has of one position.
  [[nodiscard]] virtual std::int64_t width() const = 0;
  [[nodiscard]] virtual cuda::DecodeCache& cache() = 0;
  /// Of the reference.
  [[nodiscard]] virtual std::int64_t length() const = 0;

  virtual void decode(const StepRows& rows) = 0;
  /// What a replay did is done on the reference.
  virtual void replayed(const StepRows& rows) = 0;
  /// `seq` positions, from the host where the cache takes them.
  virtual void prefill(const StepRows& rows, std::int64_t seq) = 0;
  /// Rows of the host, on the cache alone, which is ahead.
  [[nodiscard]] virtual Status refused(const StepRows& rows) = 0;
  /// Truncate; false: the kind has none, and was reset.
  virtual bool cut(std::int64_t n) = 0;
  virtual void reset() = 0;
  /// sync_counter, of the cache alone.
  [[nodiscard]] virtual Status sync_cache() = 0;
  virtual void sync() = 0;
  /// Free or close, of the cache alone.
  virtual void end(bool destroy) = 0;
  virtual void expect_same_counters() = 0;
  virtual void expect_same_contents() = 0;

 protected:
  std::int64_t layers_;
  std::int64_t max_seq_len_;
  Profile profile_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Device> host_ = std::make_shared<HostDevice>();
  Uploads on_device_{device_};
  Uploads on_host_{host_};
};

class DevicePair final : public Pair {
 public:
  DevicePair(const std::shared_ptr<Device>& device, traces::Random& random, Profile profile)
      : Pair(device, random, profile), heads_(drawn(random, 1, 3)), head_dim_(drawn(random, 1, 5)) {
    const QuirkSet<provider::Quirk> quirks(profile_);
    cache_ = std::move(*cuda::KvDeviceCache::make_own(options(device), quirks));
    reference_ = std::move(*provider::DeviceCache::make(options(host_), quirks));
  }
  ~DevicePair() override {
    if (cache_) {
      EXPECT_TRUE(cache_->close());
    }
    EXPECT_TRUE(reference_->close());
  }

  [[nodiscard]] std::int64_t width() const override { return heads_ * head_dim_; }
  [[nodiscard]] cuda::DecodeCache& cache() override { return *cache_; }
  [[nodiscard]] std::int64_t length() const override { return reference_->seq_len(); }

  void decode(const StepRows& rows) override {
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const auto i = static_cast<std::size_t>(layer);
      EXPECT_TRUE(cache_->append_gpu(layer, on_device_.put(rows.k[i]), on_device_.put(rows.v[i])));
    }
    replayed(rows);
  }
  void replayed(const StepRows& rows) override {
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const auto i = static_cast<std::size_t>(layer);
      EXPECT_TRUE(reference_->append_gpu(layer, on_host_.put(rows.k[i]), on_host_.put(rows.v[i])));
    }
  }
  void prefill(const StepRows& rows, std::int64_t seq) override {
    for (std::int64_t position = 0; position < seq; ++position)
      for (std::int64_t layer = 0; layer < layers_; ++layer) {
        const auto i = static_cast<std::size_t>(layer);
        const auto first = static_cast<std::size_t>(position * width());
        const auto k = std::span(rows.k[i]).subspan(first, static_cast<std::size_t>(width()));
        const auto v = std::span(rows.v[i]).subspan(first, static_cast<std::size_t>(width()));
        EXPECT_TRUE(cache_->append(layer, k, v, cache_->seq_len()));
        EXPECT_TRUE(reference_->append(layer, k, v, reference_->seq_len()));
      }
  }
  [[nodiscard]] Status refused(const StepRows& rows) override {
    const Status gpu = cache_->append_gpu(0, on_device_.put(rows.k[0]), on_device_.put(rows.v[0]));
    expect_refusal(gpu, Code::kBadPosition);
    return cache_->append(0, rows.k[0], rows.v[0], cache_->seq_len());
  }
  bool cut(std::int64_t /*n*/) override {
    reset();
    return false;
  }
  void reset() override {
    cache_->reset();
    reference_->reset();
  }
  [[nodiscard]] Status sync_cache() override { return cache_->sync_counter(); }
  void sync() override {
    EXPECT_TRUE(cache_->sync_counter());
    EXPECT_TRUE(reference_->sync_counter());
  }
  void end(bool destroy) override {
    EXPECT_TRUE(cache_->close());
    if (destroy) cache_.reset();
  }
  void expect_same_counters() override {
    EXPECT_EQ(*read_counter(*device_, cache_->counter()),
              *read_counter(*host_, reference_->counter()));
  }
  void expect_same_contents() override {
    EXPECT_EQ(cache_->seq_len(), reference_->seq_len());
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      const auto got = cache_->pointers(layer);
      const auto want = reference_->pointers(layer);
      EXPECT_EQ(cells(*device_, got.k), cells(*host_, want.k)) << "K of layer " << layer;
      EXPECT_EQ(cells(*device_, got.v), cells(*host_, want.v)) << "V of layer " << layer;
    }
  }

 private:
  [[nodiscard]] provider::DeviceOptions options(const std::shared_ptr<Device>& memory) const {
    return {memory, layers_, max_seq_len_, heads_, head_dim_};
  }
  [[nodiscard]] std::vector<float> cells(Device& device, DevicePtr from) const {
    std::vector<float> found(static_cast<std::size_t>(max_seq_len_ * width()));
    EXPECT_TRUE(device.to_host(std::as_writable_bytes(std::span(found)), from));
    return found;
  }

  std::int64_t heads_;
  std::int64_t head_dim_;
  std::unique_ptr<cuda::KvDeviceCache> cache_;
  std::unique_ptr<provider::DeviceKv> reference_;
};

class TensorPair final : public Pair {
 public:
  TensorPair(const std::shared_ptr<Device>& device, traces::Random& random, Profile profile,
             bool half)
      : Pair(device, random, profile),
        half_(half),
        batch_(drawn(random, 1, 3)),
        dim_(drawn(random, 1, 6)),
        cache_(std::make_unique<cuda::TensorDeviceCache>(options(device),
                                                         QuirkSet<provider::Quirk>(profile_))),
        reference_(options(host_), QuirkSet<provider::Quirk>(profile_)) {}

  [[nodiscard]] std::int64_t width() const override { return batch_ * dim_; }
  [[nodiscard]] cuda::DecodeCache& cache() override { return *cache_; }
  [[nodiscard]] std::int64_t length() const override { return reference_.seq_len(); }

  void decode(const StepRows& rows) override {
    for (std::size_t i = 0; i < rows.k.size(); ++i)
      EXPECT_TRUE(update(*cache_, on_device_, rows, i, 1, true));
    replayed(rows);
  }
  void replayed(const StepRows& rows) override {
    for (std::size_t i = 0; i < rows.k.size(); ++i)
      EXPECT_TRUE(update(reference_, on_host_, rows, i, 1, true));
  }
  void prefill(const StepRows& rows, std::int64_t seq) override {
    for (std::size_t i = 0; i < rows.k.size(); ++i) {
      EXPECT_TRUE(update(*cache_, on_device_, rows, i, seq, half_));
      EXPECT_TRUE(update(reference_, on_host_, rows, i, seq, half_));
    }
  }
  [[nodiscard]] Status refused(const StepRows& rows) override {
    return update(*cache_, on_device_, rows, 0, 1, half_);
  }
  bool cut(std::int64_t n) override {
    EXPECT_TRUE(cache_->truncate(n));
    EXPECT_TRUE(reference_.truncate(n));
    return true;
  }
  void reset() override {
    EXPECT_TRUE(cache_->reset());
    EXPECT_TRUE(reference_.reset());
  }
  [[nodiscard]] Status sync_cache() override { return cache_->sync_counter(); }
  void sync() override {
    EXPECT_TRUE(cache_->sync_counter());
    EXPECT_TRUE(reference_.sync_counter());
  }
  void end(bool destroy) override {
    if (destroy) return cache_.reset();
    cache_->free();
  }
  void expect_same_counters() override {
    const provider::CounterPtrs got = cache_->counters();
    const provider::CounterPtrs want = reference_.counters();
    EXPECT_EQ(*read_counter(*device_, got.gpu_counter), *read_counter(*host_, want.gpu_counter));
    EXPECT_EQ(*read_counter(*device_, got.kv_seq_len), *read_counter(*host_, want.kv_seq_len));
  }
  void expect_same_contents() override {
    EXPECT_EQ(cache_->seq_len(), reference_.seq_len());
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      expect_same(cache_->get(layer), reference_.get(layer), layer);
      expect_same(cache_->full_buffer(layer), reference_.full_buffer(layer), layer);
    }
  }

 private:
  using Shown = Result<std::optional<provider::KvPair>>;

  [[nodiscard]] provider::TensorOptions options(const std::shared_ptr<Device>& memory) const {
    return {layers_, max_seq_len_, half_ ? "fp16" : "fp32", true, memory};
  }
  [[nodiscard]] Status update(provider::TensorBacked& cache, Uploads& uploads, const StepRows& rows,
                              std::size_t layer, std::int64_t seq, bool from_device) const {
    const auto count = static_cast<std::size_t>(batch_ * seq * dim_);
    const auto k = std::span(rows.k[layer]).first(count);
    const auto v = std::span(rows.v[layer]).first(count);
    const Shape shape{batch_, seq, dim_};
    const Tensor keys = tensor_of(shape, k);
    const Tensor values = tensor_of(shape, v);
    provider::Rows given{.k = &keys, .v = &values};
    if (from_device) {
      given.k_device = uploads.put({k.begin(), k.end()});
      given.v_device = uploads.put({v.begin(), v.end()});
    }
    return cache.update(static_cast<std::int64_t>(layer), given);
  }
  static void expect_same(const Shown& got, const Shown& want, std::int64_t layer) {
    ASSERT_TRUE(got && want);
    ASSERT_EQ(got->has_value(), want->has_value()) << "layer " << layer;
    if (!got->has_value()) return;
    EXPECT_EQ(materialize((*got)->k), materialize((*want)->k)) << "K of layer " << layer;
    EXPECT_EQ(materialize((*got)->v), materialize((*want)->v)) << "V of layer " << layer;
  }

  bool half_;
  std::int64_t batch_;
  std::int64_t dim_;
  std::unique_ptr<cuda::TensorDeviceCache> cache_;
  provider::TensorCache reference_;
};

/// A script, operation by operation.
class Script {
 public:
  Script(const DecodeLoop& loop, const WatchedDevice& watched, std::uint64_t seed)
      : random_(seed), device_(watched.device), uploads_(device_) {
    if (loop.cache == DecodeLoop::Cache::kDevice) {
      pair_ = std::make_unique<DevicePair>(device_, random_, loop.profile);
    } else {
      pair_ = std::make_unique<TensorPair>(device_, random_, loop.profile,
                                           loop.cache == DecodeLoop::Cache::kHalfTensor);
    }
    pair_->decode(rows());  // layers of a tensor cache come to the device with their first rows
    for (std::int64_t layer = 0; layer < pair_->layers(); ++layer) {
      const std::vector<float> none(static_cast<std::size_t>(pair_->width()));
      sources_.push_back({uploads_.put(none), uploads_.put(none)});
    }
    auto captured = cuda::DecodeGraph::capture(pair_->cache(), sources_, loop.launches);
    if (captured) graph_ = std::move(*captured);
  }

  /// Whether there is a graph.
  [[nodiscard]] bool captured() const { return graph_ != nullptr; }
  [[nodiscard]] std::int64_t replays() const { return replays_; }

  void play() {
    pair_->expect_same_counters();  // the capture has moved nothing
    pair_->expect_same_contents();
    for (int i = 0; i < 14; ++i) step();
    sync();
    const bool destroy = random_.chance(50);
    pair_->end(destroy);
    expect_refusal(graph_->replay(), Code::kClosed);
  }

 private:
  StepRows rows(std::int64_t seq = 1) {
    StepRows made;
    for (auto* side : {&made.k, &made.v})
      for (std::int64_t layer = 0; layer < pair_->layers(); ++layer) {
        side->emplace_back(static_cast<std::size_t>(seq * pair_->width()));
        for (float& cell : side->back()) cell = next_cell_++;
      }
    return made;
  }
  [[nodiscard]] std::int64_t room() const { return pair_->max_seq_len() - pair_->length(); }

  void replay(const StepRows& rows) {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      uploads_.put(sources_[i].k, rows.k[i]);
      uploads_.put(sources_[i].v, rows.v[i]);
    }
    EXPECT_TRUE(graph_->replay());
    ++replays_;
    ahead_ = true;
  }
  void replay_and_follow() {
    const StepRows next = rows();
    replay(next);
    pair_->replayed(next);
  }
  void sync() {
    if (ahead_) expect_refusal(pair_->refused(rows()), Code::kBadPosition);
    pair_->sync();
    ahead_ = false;
    pair_->expect_same_counters();
    pair_->expect_same_contents();
  }
  void step() {
    switch (random_.below(9)) {
      case 0:
      case 1:
      case 2:
        for (std::int64_t n = std::min(drawn(random_, 1, 3), room()); n > 0; --n)
          replay_and_follow();
        if (random_.chance(50)) pair_->expect_same_counters();
        return;
      case 3:
        return sync();
      case 4:
        sync();
        return prefill();
      case 5:
        sync();
        if (room() > 0) pair_->decode(rows());
        return pair_->expect_same_counters();
      case 6:
        return cut(drawn(random_, 0, pair_->length()));
      case 7:
        pair_->reset();
        ahead_ = false;
        return pair_->expect_same_counters();
      default:
        return run_over();
    }
  }
  void prefill() {
    // In profile original one position from the host leaves the counter behind.
    const std::int64_t least = pair_->documented() ? 1 : 2;
    if (room() < least) return;
    const std::int64_t seq = std::min(room(), drawn(random_, least, 3));
    pair_->prefill(rows(seq), seq);
    pair_->expect_same_counters();
  }
  void cut(std::int64_t n) {
    if (!pair_->cut(n)) ahead_ = false;
    pair_->expect_same_counters();
    if (random_.chance(50)) sync();
  }
  // Steps past the end write nothing; truncate or reset bring the counter back.
  void run_over() {
    if (!pair_->documented()) sync();  // lengths and counter may have parted
    if (room() == 0 && !ahead_) {
      if (pair_->documented()) expect_refusal(graph_->replay(), Code::kFull);
      return;
    }
    while (room() > 0) replay_and_follow();
    for (int i = 0; i < 2; ++i) replay(rows());
    if (pair_->documented()) expect_refusal(pair_->sync_cache(), Code::kBadPosition);
    cut(drawn(random_, 0, pair_->max_seq_len()));
    sync();
  }

  traces::Random random_;
  std::shared_ptr<Device> device_;
  Uploads uploads_;
  std::unique_ptr<Pair> pair_;
  std::vector<cuda::LayerRows> sources_;
  std::unique_ptr<cuda::DecodeGraph> graph_;
  bool ahead_ = false;
  float next_cell_ = 1;
  std::int64_t replays_ = 0;
};

}  // namespace

std::vector<DecodeLoop> decode_loops() {
  using Cache = DecodeLoop::Cache;
  std::vector<DecodeLoop> all;
  for (const auto& [cache, name] :
       {std::pair(Cache::kDevice, "Device"), std::pair(Cache::kTensor, "Tensor"),
        std::pair(Cache::kHalfTensor, "HalfTensor")})
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented})
      for (const Launches launches : {Launches::kEach, Launches::kFused})
        all.push_back({std::string(name) +
                           (profile == Profile::kOriginal ? "Original" : "Documented") +
                           (launches == Launches::kEach ? "ALaunchARow" : "Fused"),
                       cache, profile, launches});
  return all;
}

std::int64_t expect_decode_loop_to_agree(const DecodeLoop& loop, const WatchedDevice& watched,
                                         std::uint64_t seed) {
  std::int64_t replays = 0;
  {
    Script script(loop, watched, seed);
    EXPECT_TRUE(script.captured());
    if (!script.captured()) return 0;
    script.play();
    replays = script.replays();
  }
  for (const DeviceReport& report : watched.reports()) ADD_FAILURE() << report.text;
  return replays;
}

}  // namespace kvo::devices
