#include "cuda/provider/tensor_device_cache.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "reference/contract/device/jobs.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo::cuda {

using provider::Quirk;

Result<std::unique_ptr<provider::TensorBacked>> TensorDeviceCache::make(
    const provider::TensorOptions& options, QuirkSet<Quirk> quirks) {
  auto made = make_as<TensorDeviceCache>(options, quirks);
  if (!made) return made.error();
  return std::move(*made);
}

void TensorDeviceCache::free() {
  life_.reset();
  TensorControl::free();
}

Result<DecodeStep> TensorDeviceCache::decode_step(std::span<const LayerRows> rows) {
  if (!gpu_counter_.cell) return fail(Code::kNotSupported, "no_counter");
  if (rows.size() != layers_.size()) return fail(Code::kOutOfRange, "layers");
  if (!life_) life_ = std::make_shared<const char>();
  DecodeStep step{.counter = gpu_counter_.cell->ptr(), .max_seq_len = max_seq_len_, .life = life_};
  if (kv_seq_len_.cell) step.counted_first.push_back(kv_seq_len_.cell->ptr());
  step.counted_last.push_back(step.counter);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Layer& layer = layers_[i];
    const auto all = lanes(layer.batch, layer.dim, 0, 1, layer.cells);
    if (!layer.gpu || !all)
      return fail(Code::kNotSupported, "layer " + std::to_string(i) + " is not on the device");
    for (const std::size_t side : kSides)
      for (std::int64_t i_lane = 0; i_lane < all->lanes; ++i_lane) {
        const Lanes::Piece lane = all->piece(i_lane);
        const DevicePtr source = side == 0 ? rows[i].k : rows[i].v;
        step.rows.push_back(
            {layer.at(side, lane.stored), source + lane.packed * kFloat, lane.count, layer.half});
      }
  }
  return step;
}

Status TensorDeviceCache::before_replay() {
  if (!gpu_counter_.cell) return fail(Code::kNotSupported, "no_counter");
  if (!ahead_ && !has(Quirk::kSharedPosition)) {
    for (const Layer& layer : layers_)
      if (layer.length != seq_len()) return fail(Code::kBadPosition, "layers of several lengths");
    if (seq_len() >= max_seq_len_) return fail(Code::kFull);
    if (Status done = set(gpu_counter_, seq_len()); !done) return done;
  }
  gpu_counter_.held.reset();
  kv_seq_len_.held.reset();
  ahead_ = true;
  return {};
}

Status TensorDeviceCache::promote(const Layer& from, const Layer& to, const Lanes& held) {
  std::array<std::vector<std::vector<std::byte>>, 2> cells;  // of all lanes, until they are there
  for (const std::size_t side : kSides)
    for (std::int64_t lane = 0; lane < held.lanes; ++lane) {
      std::vector<float> floats(static_cast<std::size_t>(held.count));
      from.buffers[side]->read(held.piece(lane).stored, floats);
      std::vector<std::uint16_t> halves(to.half ? floats.size() : 0);
      if (to.half) std::ranges::transform(floats, halves.begin(), f16_of);
      const auto bytes =
          to.half ? std::as_bytes(std::span(halves)) : std::as_bytes(std::span(floats));
      cells[side].emplace_back(bytes.begin(), bytes.end());
    }
  return staging_.carry_out([&]() -> Status {
    Status queued;
    for (const std::size_t side : kSides)
      for (std::size_t lane = 0; queued && lane < cells[side].size(); ++lane)
        queued =
            staging_.upload(side, to.at(side, held.piece(static_cast<std::int64_t>(lane)).stored),
                            std::span<const std::byte>(cells[side][lane]));
    return queued;
  });
}

Status TensorDeviceCache::store_row(const Layer& layer, DevicePtr source, std::size_t side,
                                    const Lanes::Piece& lane) {
  const DecodeStep at{.counter = gpu_counter_.cell->ptr(), .max_seq_len = max_seq_len_};
  return device_->run(at.job({layer.at(side, lane.stored), source, lane.count, layer.half}));
}

// ZF-59. Rows of the host are waited for; those on the device are lent for what is queued.
Status TensorDeviceCache::store_both(const Layer& layer, const Step& step) {
  const auto both = [&]() -> Status {
    Status keys = store(layer, step, 0);
    return keys ? store(layer, step, 1) : keys;
  };
  const bool uploads = layer.gpu && !(step.sources[0].device && step.sources[1].device);
  if (!uploads) return both();
  return staging_.carry_out([&]() -> Status {
    Status after = staging_.after_work();
    return after ? both() : after;
  });
}

Status TensorDeviceCache::store(const Layer& layer, const Step& step, std::size_t side) {
  const Source& source = step.sources[side];
  if (layer.half && !source.device) return fail(Code::kNotSupported, "cpu_source");
  return step.lanes[side].each([&](const Lanes::Piece& piece) -> Status {
    const DevicePtr to = layer.at(side, piece.stored);
    if (!source.device) {
      const auto cells = std::as_bytes(source.host.subspan(static_cast<std::size_t>(piece.packed),
                                                           static_cast<std::size_t>(piece.count)));
      return layer.gpu ? staging_.upload(side, to, cells) : host_->to_device(to, cells);
    }
    const DevicePtr from = source.device + piece.packed * kFloat;
    if (!layer.half) return device_->copy(to, from, piece.count * kFloat);
    return device_->run(
        ToHalfJob{to.as<std::uint16_t>(), from.as<const std::uint32_t>(), piece.count});
  });
}

}  // namespace kvo::cuda
