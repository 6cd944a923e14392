#include "cuda/provider/kv_device_cache.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {

KvMemory::KvMemory(const provider::DeviceOptions& options)
    : device_(options.memory),
      staging_(device_),
      layers_(options.num_layers),
      max_seq_len_(options.max_seq_len),
      width_(options.num_heads * options.head_dim) {}

Status KvMemory::allocate() {
  const std::int64_t count = 2 * layers_ + 1;
  pieces_.reserve(static_cast<std::size_t>(count + 2));
  Status done;
  while (done && std::ssize(pieces_) < count) {
    const bool last = std::ssize(pieces_) + 1 == count;
    const auto made = device_->alloc(last ? kCellBytes : max_seq_len_ * width_ * kCellBytes);
    if (made) {
      pieces_.push_back(*made);
    } else {
      done = made.error();
    }
  }
  if (done) done = write(0);
  if (done) return done;
  // K without its V, and the counter, go first.
  std::span<DevicePtr> rest(pieces_);
  if (rest.size() % 2 == 1) {
    (void)free(rest.last(1));
    rest = rest.first(rest.size() - 1);
  }
  (void)free(rest);
  return done;
}

Status KvMemory::free(std::span<DevicePtr> pieces) {
  Status first;
  for (DevicePtr& piece : pieces) {
    if (!piece) continue;
    const Status done = device_->free(std::exchange(piece, {}));
    if (!done && first) first = done;
  }
  return first;
}

Status KvMemory::upload(std::int64_t layer, std::int64_t pos, std::span<const float> k_row,
                        std::span<const float> v_row) {
  if (Status made = staging_.reserve(0); !made) return made;
  const std::int64_t offset = pos * width_ * kCellBytes;
  return staging_.carry_out([&]() -> Status {
    if (Status after = staging_.after_work(); !after) return after;
    Status keys = staging_.upload(0, k(layer) + offset, std::as_bytes(k_row));
    return keys ? staging_.upload(1, v(layer) + offset, std::as_bytes(v_row)) : keys;
  });
}

Status KvMemory::launch(std::int64_t layer, DevicePtr k_row, DevicePtr v_row, bool last) {
  const DecodeStep step{.counter = counter(), .max_seq_len = max_seq_len_};
  Status done = device_->run(step.job({k(layer), k_row, width_}));
  if (done) done = device_->run(step.job({v(layer), v_row, width_}));
  if (done && last) done = device_->run(IncrementJob{counter().as<std::int32_t>(), 1});
  return done;
}

Result<provider::PointerArrays> KvMemory::arrays(bool stored) {
  const auto counter_at = static_cast<std::size_t>(2 * layers_);
  if (pieces_.size() > counter_at + 1 && at(2 * layers_ + 1))
    return provider::PointerArrays{at(2 * layers_ + 1), at(2 * layers_ + 2)};
  std::array<std::vector<DevicePtr>, 2> contents;
  for (std::size_t i = 0; i < counter_at; ++i) contents[i % 2].push_back(pieces_[i]);
  std::array<DevicePtr, 2> made;
  for (const std::size_t side : {0U, 1U}) {
    const auto bytes = std::as_bytes(std::span(contents[side]));
    const auto ptr = device_->alloc(std::ssize(bytes));
    Status done = ptr ? Status() : Status(ptr.error());
    if (ptr) done = device_->to_device(made[side] = *ptr, bytes);
    if (done) continue;
    (void)free(made);
    return done.error();
  }
  if (stored) {
    pieces_.resize(counter_at + 1);
    pieces_.insert(pieces_.end(), made.begin(), made.end());
  }
  return provider::PointerArrays{made[0], made[1]};
}

Status KvMemory::close() {
  (void)device_->synchronize(Stream());  // kernels that were queued use what is freed
  return free(pieces_);
}

DecodeStep KvMemory::step(std::span<const LayerRows> rows) const {
  DecodeStep step{.counted_last = {counter()}, .counter = counter(), .max_seq_len = max_seq_len_};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    step.rows.push_back({k(layer), rows[i].k, width_});
    step.rows.push_back({v(layer), rows[i].v, width_});
  }
  return step;
}

Status KvDeviceCache::close() {
  life_.reset();
  return DeviceControl::close();
}

Result<DecodeStep> KvDeviceCache::decode_step(std::span<const LayerRows> rows) {
  if (is_closed()) return fail(Code::kClosed);
  if (std::ssize(rows) != num_layers()) return fail(Code::kOutOfRange, "layers");
  if (!life_) life_ = std::make_shared<const char>();
  DecodeStep step = memory_.step(rows);
  step.life = life_;
  return step;
}

}  // namespace kvo::cuda
