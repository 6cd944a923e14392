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

/// The sizes of a case, in the order in which they are drawn.
struct Sizes {
  Sizes(traces::Random& random, const DecodeLoop& loop)
      : layers(drawn(random, 1, 3)), max_seq_len(drawn(random, 4, 12)) {
    const bool device = loop.cache == DecodeLoop::Cache::kDevice;
    lanes = drawn(random, 1, 3);
    dim = drawn(random, 1, device ? 5 : 6);
  }
  /// Cells that K or V of a layer has of one position.
  [[nodiscard]] std::int64_t width() const { return lanes * dim; }

  std::int64_t layers;
  std::int64_t max_seq_len;
  std::int64_t lanes;  ///< heads, or rows of a batch
  std::int64_t dim;
};

/// A cache on a device: the one under test, or the reference on the host.
class Side {
 public:
  Side(const Sizes& sizes, std::shared_ptr<Device> device)
      : sizes_(sizes), device_(std::move(device)), uploads_(device_) {}
  virtual ~Side() = default;
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] virtual std::int64_t length() const = 0;
  /// A position of all layers, from the device.
  virtual void decode(const StepRows& rows) = 0;
  /// `seq` positions, from the host where the cache takes them.
  virtual void prefill(const StepRows& rows, std::int64_t seq) = 0;
  /// The last of the errors of rows of layer 0.
  [[nodiscard]] virtual Status refused(const StepRows& rows) = 0;
  /// Truncate; false: the kind has none, and was reset.
  virtual bool cut(std::int64_t n) = 0;
  virtual void reset() = 0;
  [[nodiscard]] virtual Status sync() = 0;
  /// Free or close.
  virtual void end(bool destroy) = 0;
  [[nodiscard]] virtual std::vector<DevicePtr> counters() const = 0;
  /// All cells of all layers that the cache shows.
  [[nodiscard]] virtual std::vector<std::optional<Tensor>> contents() = 0;

  [[nodiscard]] std::vector<std::int64_t> counts() {
    std::vector<std::int64_t> all;
    for (const DevicePtr counter : counters()) all.push_back(*read_counter(*device_, counter));
    return all;
  }

 protected:
  Sizes sizes_;
  std::shared_ptr<Device> device_;
  Uploads uploads_;
};

class DeviceSide final : public Side {
 public:
  DeviceSide(const Sizes& sizes, const std::shared_ptr<Device>& device,
             std::unique_ptr<provider::DeviceKv> cache)
      : Side(sizes, device), cache_(std::move(cache)) {}
  ~DeviceSide() override {
    if (cache_) {
      EXPECT_TRUE(cache_->close());
    }
  }

  [[nodiscard]] std::int64_t length() const override { return cache_->seq_len(); }
  void decode(const StepRows& rows) override {
    for (std::size_t i = 0; i < rows.k.size(); ++i)
      EXPECT_TRUE(cache_->append_gpu(static_cast<std::int64_t>(i), uploads_.put(rows.k[i]),
                                     uploads_.put(rows.v[i])));
  }
  void prefill(const StepRows& rows, std::int64_t seq) override {
    const auto width = static_cast<std::size_t>(sizes_.width());
    for (std::size_t position = 0; position < static_cast<std::size_t>(seq); ++position)
      for (std::size_t i = 0; i < rows.k.size(); ++i)
        EXPECT_TRUE(cache_->append(
            static_cast<std::int64_t>(i), std::span(rows.k[i]).subspan(position * width, width),
            std::span(rows.v[i]).subspan(position * width, width), cache_->seq_len()));
  }
  [[nodiscard]] Status refused(const StepRows& rows) override {
    const Status gpu = cache_->append_gpu(0, uploads_.put(rows.k[0]), uploads_.put(rows.v[0]));
    expect_refusal(gpu, Code::kBadPosition);
    return cache_->append(0, rows.k[0], rows.v[0], cache_->seq_len());
  }
  bool cut(std::int64_t /*n*/) override {
    reset();
    return false;
  }
  void reset() override { cache_->reset(); }
  [[nodiscard]] Status sync() override { return cache_->sync_counter(); }
  void end(bool destroy) override {
    EXPECT_TRUE(cache_->close());
    if (destroy) cache_.reset();
  }
  [[nodiscard]] std::vector<DevicePtr> counters() const override { return {cache_->counter()}; }
  [[nodiscard]] std::vector<std::optional<Tensor>> contents() override {
    std::vector<std::optional<Tensor>> all;
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      const provider::LayerPointers found = cache_->pointers(layer);
      for (const DevicePtr from : {found.k, found.v}) {
        Tensor& cells = all.emplace_back(make_tensor({sizes_.max_seq_len, sizes_.width()})).value();
        EXPECT_TRUE(device_->to_host(std::as_writable_bytes(cells.floats()), from));
      }
    }
    return all;
  }

 private:
  std::unique_ptr<provider::DeviceKv> cache_;
};

class TensorSide final : public Side {
 public:
  TensorSide(const Sizes& sizes, const std::shared_ptr<Device>& device, bool half,
             std::unique_ptr<provider::TensorBacked> cache)
      : Side(sizes, device), half_(half), cache_(std::move(cache)) {}

  [[nodiscard]] std::int64_t length() const override { return cache_->seq_len(); }
  void decode(const StepRows& rows) override { update_all(rows, 1, true); }
  void prefill(const StepRows& rows, std::int64_t seq) override { update_all(rows, seq, half_); }
  [[nodiscard]] Status refused(const StepRows& rows) override { return update(rows, 0, 1, half_); }
  bool cut(std::int64_t n) override {
    EXPECT_TRUE(cache_->truncate(n));
    return true;
  }
  void reset() override { EXPECT_TRUE(cache_->reset()); }
  [[nodiscard]] Status sync() override { return cache_->sync_counter(); }
  void end(bool destroy) override {
    if (destroy) return cache_.reset();
    cache_->free();
  }
  [[nodiscard]] std::vector<DevicePtr> counters() const override {
    const provider::CounterPtrs found = cache_->counters();
    return {found.gpu_counter, found.kv_seq_len};
  }
  [[nodiscard]] std::vector<std::optional<Tensor>> contents() override {
    std::vector<std::optional<Tensor>> all;
    const auto add = [&](const Result<std::optional<provider::KvPair>>& shown) {
      EXPECT_TRUE(shown);
      for (const auto side : {&provider::KvPair::k, &provider::KvPair::v})
        all.push_back(shown && *shown ? std::optional(materialize(**shown.*side)) : std::nullopt);
    };
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      add(cache_->get(layer));
      add(cache_->full_buffer(layer));
    }
    return all;
  }

 private:
  [[nodiscard]] Status update(const StepRows& rows, std::size_t layer, std::int64_t seq,
                              bool from_device) {
    const Shape shape{sizes_.lanes, seq, sizes_.dim};
    const auto count = static_cast<std::size_t>(seq * sizes_.width());
    const auto k = std::span(rows.k[layer]).first(count);
    const auto v = std::span(rows.v[layer]).first(count);
    const Tensor keys = tensor_of(shape, k);
    const Tensor values = tensor_of(shape, v);
    provider::Rows given{.k = &keys, .v = &values};
    if (from_device) {
      given.k_device = uploads_.put({k.begin(), k.end()});
      given.v_device = uploads_.put({v.begin(), v.end()});
    }
    return cache_->update(static_cast<std::int64_t>(layer), given);
  }
  void update_all(const StepRows& rows, std::int64_t seq, bool from_device) {
    for (std::size_t i = 0; i < rows.k.size(); ++i) EXPECT_TRUE(update(rows, i, seq, from_device));
  }

  bool half_;
  std::unique_ptr<provider::TensorBacked> cache_;
};

/// A script, operation by operation.
class Script {
 public:
  Script(const DecodeLoop& loop, const WatchedDevice& watched, std::uint64_t seed)
      : random_(seed),
        sizes_(random_, loop),
        documented_(loop.profile == Profile::kDocumented),
        device_(watched.device),
        uploads_(device_) {
    const QuirkSet<provider::Quirk> quirks(loop.profile);
    cuda::DecodeCache* cache = nullptr;
    if (loop.cache == DecodeLoop::Cache::kDevice) {
      const auto options = [&](const std::shared_ptr<Device>& memory) -> provider::DeviceOptions {
        return {memory, sizes_.layers, sizes_.max_seq_len, sizes_.lanes, sizes_.dim};
      };
      auto made = *cuda::KvDeviceCache::make(options(device_), quirks);
      cache = dynamic_cast<cuda::DecodeCache*>(made.get());
      cache_ = std::make_unique<DeviceSide>(sizes_, device_, std::move(made));
      reference_ = std::make_unique<DeviceSide>(
          sizes_, host_, *provider::DeviceCache::make(options(host_), quirks));
    } else {
      const bool half = loop.cache == DecodeLoop::Cache::kHalfTensor;
      const auto options = [&](const std::shared_ptr<Device>& memory) -> provider::TensorOptions {
        return {sizes_.layers, sizes_.max_seq_len, half ? "fp16" : "fp32", true, memory};
      };
      auto made = *cuda::TensorDeviceCache::make(options(device_), quirks);
      cache = dynamic_cast<cuda::DecodeCache*>(made.get());
      cache_ = std::make_unique<TensorSide>(sizes_, device_, half, std::move(made));
      reference_ = std::make_unique<TensorSide>(
          sizes_, host_, half, *provider::TensorCache::make(options(host_), quirks));
    }
    decode(rows());  // layers of a tensor cache come to the device with their first rows
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      const std::vector<float> none(static_cast<std::size_t>(sizes_.width()));
      sources_.push_back({uploads_.put(none), uploads_.put(none)});
    }
    auto captured = cuda::DecodeGraph::capture(*cache, sources_, loop.launches);
    if (captured) graph_ = std::move(*captured);
  }

  /// Whether there is a graph.
  [[nodiscard]] bool captured() const { return graph_ != nullptr; }
  [[nodiscard]] std::int64_t replays() const { return replays_; }

  void play() {
    expect_same_counters();  // the capture has moved nothing
    expect_same_contents();
    for (int i = 0; i < 14; ++i) step();
    sync();
    const bool destroy = random_.chance(50);
    cache_->end(destroy);
    expect_refusal(graph_->replay(), Code::kClosed);
  }

 private:
  StepRows rows(std::int64_t seq = 1) {
    StepRows made;
    for (auto* side : {&made.k, &made.v})
      for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
        side->emplace_back(static_cast<std::size_t>(seq * sizes_.width()));
        for (float& cell : side->back()) cell = next_cell_++;
      }
    return made;
  }
  void decode(const StepRows& rows) {
    for (Side* side : {cache_.get(), reference_.get()}) side->decode(rows);
  }
  void expect_same_counters() { EXPECT_EQ(cache_->counts(), reference_->counts()); }
  void expect_same_contents() {
    EXPECT_EQ(cache_->length(), reference_->length());
    EXPECT_EQ(cache_->contents(), reference_->contents());
  }
  [[nodiscard]] std::int64_t room() const { return sizes_.max_seq_len - reference_->length(); }

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
    reference_->decode(next);
  }
  void sync() {
    if (ahead_) expect_refusal(cache_->refused(rows()), Code::kBadPosition);
    EXPECT_TRUE(cache_->sync());
    EXPECT_TRUE(reference_->sync());
    ahead_ = false;
    expect_same_counters();
    expect_same_contents();
  }
  void step() {
    switch (random_.below(9)) {
      case 0:
      case 1:
      case 2:
        for (std::int64_t n = std::min(drawn(random_, 1, 3), room()); n > 0; --n)
          replay_and_follow();
        if (random_.chance(50)) expect_same_counters();
        return;
      case 3:
        return sync();
      case 4:
        sync();
        return prefill();
      case 5:
        sync();
        if (room() > 0) decode(rows());
        return expect_same_counters();
      case 6:
        return cut(drawn(random_, 0, reference_->length()));
      case 7:
        cache_->reset();
        reference_->reset();
        ahead_ = false;
        return expect_same_counters();
      default:
        return run_over();
    }
  }
  void prefill() {
    // In profile original one position from the host leaves the counter behind.
    const std::int64_t least = documented_ ? 1 : 2;
    if (room() < least) return;
    const std::int64_t seq = std::min(room(), drawn(random_, least, 3));
    const StepRows more = rows(seq);
    cache_->prefill(more, seq);
    reference_->prefill(more, seq);
    expect_same_counters();
  }
  void cut(std::int64_t n) {
    (void)reference_->cut(n);
    if (!cache_->cut(n)) ahead_ = false;
    expect_same_counters();
    if (random_.chance(50)) sync();
  }
  // Steps past the end write nothing; truncate or reset bring the counter back.
  void run_over() {
    if (!documented_) sync();  // lengths and counter may have parted
    if (room() == 0 && !ahead_) {
      if (documented_) expect_refusal(graph_->replay(), Code::kFull);
      return;
    }
    while (room() > 0) replay_and_follow();
    for (int i = 0; i < 2; ++i) replay(rows());
    if (documented_) expect_refusal(cache_->sync(), Code::kBadPosition);
    cut(drawn(random_, 0, sizes_.max_seq_len));
    sync();
  }

  traces::Random random_;
  Sizes sizes_;
  bool documented_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Device> host_ = std::make_shared<HostDevice>();
  Uploads uploads_;
  std::unique_ptr<Side> cache_;
  std::unique_ptr<Side> reference_;
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

std::int64_t expect_decode_loops_to_agree(
    const DecodeLoop& loop, const std::function<Result<WatchedDevice>(std::uint64_t seed)>& open) {
  std::int64_t replays = 0;
  for (std::uint64_t seed = 0; seed < 100 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("script " + std::to_string(seed));
    const auto opened = open(seed);
    EXPECT_TRUE(opened);
    if (!opened) continue;
    {
      Script script(loop, *opened, seed);
      EXPECT_TRUE(script.captured());
      if (script.captured()) script.play();
      replays += script.replays();
    }
    for (const DeviceReport& report : opened->reports()) ADD_FAILURE() << report.text;
  }
  EXPECT_GT(replays, 1000);
  return replays;
}

}  // namespace kvo::devices
