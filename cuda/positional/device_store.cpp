#include "cuda/positional/device_store.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "cuda/jobs/build_mask.hpp"
#include "cuda/jobs/cells.hpp"
#include "optimized/positional/causal_cache.hpp"

namespace kvo::cuda {

using optimized::CellRange;
using optimized::HeldCell;
using optimized::KeyGroup;
using optimized::LayerRows;
using optimized::PositionalPass;

namespace {

constexpr std::int64_t kWordBits = 32;

std::int64_t bytes_of(DType dtype) {
  return static_cast<std::int64_t>(dtype_bytes(dtype));
}

Error no_memory() {
  return fail(Code::kOutOfMemory, "device memory");
}

/// Memory of zeroes for elements of a shape, at least one.
Result<std::shared_ptr<DeviceStorage>> make_elements(const std::shared_ptr<Device>& device,
                                                     const Shape& shape, DType dtype) {
  const std::optional<std::int64_t> count = element_count(shape);
  if (!count) return no_memory();
  return make_cells(device, std::max<std::int64_t>(*count, 1), bytes_of(dtype));
}

}  // namespace

template <class Work>
void PositionalDeviceStore::attempt(const Work& work) noexcept {
  Status done;
  try {
    done = staging_.carry_out(work);
  } catch (const std::bad_alloc&) {
    done = no_memory();
  }
  if (!done && failed_) failed_ = std::move(done);
}

// ---- Rows ----

Status PositionalDeviceStore::check(const StorageFormat& storage) const {
  if (!in_groups(storage.type)) return {};
  return not_on_device(storage.type, "dtype");
}

void PositionalDeviceStore::set_layer(std::int64_t layer) noexcept {
  const auto found = layers_.find(layer);
  layer_ = layer;
  rows_ = found == layers_.end() ? nullptr : &found->second;
  form_ = rows_ != nullptr ? &rows_->form : nullptr;
}

Status PositionalDeviceStore::make_rows(const LayerRows::Form& form) {
  Layer made{.form = form, .cells = {}};
  const std::array<std::int64_t, 2> dims{form.k_dim, form.v_dim};
  // What the put needs that follows: once the layer is there, nothing lacks.
  const std::int64_t row_bytes = form.heads * std::max(dims[0], dims[1]) * kCellBytes;
  if (Status there = staging_.reserve(pass_.tokens * row_bytes); !there) return there;
  for (const std::size_t which : {0U, 1U}) {
    auto cells =
        make_elements(device_, {plan_.rows.cells, form.heads, dims[which]}, plan_.rows.dtype());
    if (!cells) return cells.error();
    made.cells[which] = std::move(*cells);
  }
  rows_ = &layers_.insert_or_assign(layer_, std::move(made)).first->second;
  form_ = &rows_->form;
  return {};
}

Status PositionalDeviceStore::put(const PositionalPass& /*pass*/, const positional::Rows& k,
                                  const positional::Rows& v) {
  if (!failed_) return failed_;
  const std::array<const positional::Rows*, 2> sides{&k, &v};
  const std::size_t most = std::max(k.values.size_bytes(), v.values.size_bytes());
  if (Status there = staging_.reserve(static_cast<std::int64_t>(most)); !there) return there;
  return staging_.carry_out([&]() -> Status {
    for (const std::size_t which : {0U, 1U}) {
      const positional::Rows& rows = *sides[which];
      const DevicePtr room = staging_.room(which);
      Status queued = staging_.upload(which, room, std::as_bytes(rows.values));
      if (!queued) return queued;
      const PutRows put{.dtype = plan_.rows.dtype(),
                        .to = rows_->cells[which]->ptr(),
                        .rows = room,
                        .targets = in_table(pass_.targets()),
                        .count = rows.tokens,
                        .width = rows.heads * rows.dim};
      const bool permuted = which == 1 && plan_.rows.permuted_v;
      queued = device_->run(permuted ? put.columns(plan_.rows.cells) : put.cells());
      if (!queued) return queued;
    }
    return {};
  });
}

PositionalDeviceStore::Mirrored PositionalDeviceStore::side(std::size_t which,
                                                            const CellRange& range) const {
  const std::int64_t heads = rows_->form.heads;
  const std::int64_t dim = which == 0 ? rows_->form.k_dim : rows_->form.v_dim;
  const std::int64_t width = heads * dim;
  const std::int64_t cells = plan_.rows.cells;
  const std::int64_t low = range.empty() ? 0 : range.low;
  if (which == 0 || !plan_.rows.permuted_v)
    return {{{range.size(), heads, dim}, {width, dim, 1}, plan_.rows.dtype()},
            low * width,
            range.size() * width};
  // With the cells between the lines: one copy, and the strides of the buffer.
  return {{{heads, dim, range.size()}, {dim * cells, cells, 1}, plan_.rows.dtype()},
          low,
          range.empty() ? 0 : (width - 1) * cells + range.size()};
}

PositionalDeviceStore::Mirrored PositionalDeviceStore::mask() const {
  return {{{pass_.tokens, pass_.columns}, {pass_.columns, 1}, plan_.mask_dtype},
          0,
          pass_.tokens * pass_.columns};
}

Status PositionalDeviceStore::read(Mirrored& piece, DevicePtr from,
                                   std::vector<std::byte>& mirror) {
  const std::int64_t element = bytes_of(piece.view.dtype);
  const auto bytes = static_cast<std::size_t>(piece.elements * element);
  if (mirror.size() < bytes) mirror.resize(bytes);
  piece.view.data = mirror.data();
  if (bytes == 0) return {};
  return device_->to_host_async(std::span(mirror).first(bytes), from + piece.first * element,
                                Stream());
}

Result<positional::Shown> PositionalDeviceStore::show(const CellRange& range) {
  if (!failed_) return failed_.error();
  std::array<Mirrored, 2> sides{side(0, range), side(1, range)};
  Mirrored shown = mask();
  shown.view.data = mask_mirror_.data();
  const Status done = staging_.carry_out([&]() -> Status {
    for (const std::size_t which : {0U, 1U}) {
      Status queued = read(sides[which], rows_->cells[which]->ptr(), mirrors_[which]);
      if (!queued) return queued;
    }
    if (mask_read_ || shown.elements == 0) return {};
    return read(shown, mask_room_.ptr(), mask_mirror_);
  });
  if (!done) return done.error();
  mask_read_ = true;
  return positional::Shown{sides[0].view, sides[1].view, shown.view};
}

// ---- Keys that move ----

Status PositionalDeviceStore::prepare_keys(const KeyGroup& group) {
  const std::int64_t first = group.moved.front().cell;
  const std::int64_t count = group.moved.back().cell - first + 1;
  const auto moved = std::ssize(moved_);
  std::vector<std::int32_t> offsets(static_cast<std::size_t>(count), 0);
  moved_.resize(moved_.size() + offsets.size(), 0);
  for (const HeldCell& held : group.moved) {
    offsets[static_cast<std::size_t>(held.cell - first)] = group.offset;
    moved_[static_cast<std::size_t>(moved + held.cell - first)] = 1;
  }
  offset_ = group.offset;
  for (const auto& [number, layer] : layers_) {
    const Shape shape{count, layer.form.heads, layer.form.k_dim};
    auto rule = begin_shift_(number, shape, offsets);
    if (!rule) return rule.error();
    Move move{.layer = &layer,
              .first = first,
              .cells = count,
              .moved = moved,
              .all = group.all_converted,
              .rule = *rule};
    if (const auto* turned = std::get_if<positional::TurnedPairs>(&move.rule))
      move.turns = turns_of(turned->base, layer.form.k_dim / 2, group.offset);
    moves_.push_back(move);
  }
  return {};
}

std::int64_t PositionalDeviceStore::turns_of(double base, std::int64_t half, std::int32_t offset) {
  for (const Turns& known : worked_out_)
    if (known.base == base && known.half == half) return known.at;
  const auto at = std::ssize(turns_);
  for (const std::int32_t by : {0, offset}) {
    for (std::int64_t d = 0; d < half; ++d) {
      const double exponent = -static_cast<double>(d) / static_cast<double>(half);
      const double angle = by * std::pow(base, exponent);
      turns_.push_back({std::cos(angle), std::sin(angle)});
    }
  }
  worked_out_.push_back({base, half, at});
  return at;
}

Status PositionalDeviceStore::reserve_keys() {
  if (moves_.empty()) return {};
  const auto turns = std::as_bytes(std::span(turns_));
  const auto moved = std::as_bytes(std::span(moved_));
  keys_table_.assign(turns.begin(), turns.end());
  keys_table_.insert(keys_table_.end(), moved.begin(), moved.end());
  if (Status there = staging_.reserve(0); !there) return there;
  return keys_room_.reserve(device_, std::ssize(keys_table_));
}

Status PositionalDeviceStore::run(const Move& move) const {
  const LayerRows::Form& form = move.layer->form;
  const std::int64_t row = form.heads * form.k_dim * bytes_of(plan_.rows.dtype());
  const DevicePtr moved = keys_room_.ptr() + std::ssize(turns_) * std::int64_t{sizeof(Turn)};
  const ShiftKeys keys{.dtype = plan_.rows.dtype(),
                       .keys = move.layer->cells[0]->ptr() + move.first * row,
                       .moved = moved + move.moved,
                       .cells = move.cells,
                       .heads = form.heads,
                       .dim = form.k_dim,
                       .all = move.all};
  if (const auto* by = std::get_if<positional::AddedOffset>(&move.rule))
    return device_->run(
        keys.added(by->scale * static_cast<float>(0), by->scale * static_cast<float>(offset_)));
  if (form.k_dim < 2) return {};  // no pair
  return device_->run(keys.turned(keys_room_.ptr() + move.turns * std::int64_t{sizeof(Turn)}));
}

void PositionalDeviceStore::commit_keys() noexcept {
  if (!moves_.empty()) {
    keys_room_.begin();
    attempt([&]() -> Status {
      Status queued = staging_.upload(0, keys_room_.ptr(), keys_table_);
      for (auto move = moves_.begin(); queued && move != moves_.end(); ++move) queued = run(*move);
      return queued;
    });
  }
  cancel_keys();
}

void PositionalDeviceStore::cancel_keys() noexcept {
  moves_.clear();
  moved_.clear();
  turns_.clear();
  worked_out_.clear();
}

// ---- The mask ----

PositionalDeviceStore::PassTable PositionalDeviceStore::table_of(const PositionalPass& pass) {
  return {.columns = pass.range.size(),
          .words = (std::ssize(pass.sequences) + kWordBits - 1) / kWordBits,
          .tokens = std::ssize(pass.positions)};
}

Status PositionalDeviceStore::reserve_mask(const PositionalPass& pass) {
  if (!failed_) return failed_;
  const PassTable table = table_of(pass);
  // A range has less than 2^31 cells; tokens and sequences lie in memory.
  std::int64_t mask_bytes = 0;
  std::int64_t owners = 0;
  if (__builtin_mul_overflow(table.tokens * bytes_of(plan_.mask_dtype), table.columns,
                             &mask_bytes) ||
      __builtin_mul_overflow(table.columns * kCellBytes, table.words, &owners))
    return no_memory();
  table_.reserve(static_cast<std::size_t>(table.size()));
  if (Status there = staging_.reserve(0); !there) return there;
  if (Status there = table_room_.reserve(device_, table.size() * kCellBytes); !there) return there;
  return mask_room_.reserve(device_, mask_bytes);
}

void PositionalDeviceStore::fill_table(const PositionalPass& pass,
                                       std::span<const char> ahead) noexcept {
  const CellRange& range = pass.range;
  table_.assign(static_cast<std::size_t>(pass_.size()), 0);  // reserve_mask made room
  const auto at = [&](std::int64_t cell) -> std::uint32_t& {
    return table_[static_cast<std::size_t>(cell)];
  };
  for (std::int64_t s = 0; s < std::ssize(pass.sequences); ++s) {
    const optimized::SequenceCells* cells = pass.sequences[static_cast<std::size_t>(s)].cells;
    if (cells == nullptr) continue;
    const std::uint32_t bit = 1U << static_cast<unsigned>(s % kWordBits);
    for (const HeldCell& held : cells->held()) {
      if (!range.contains(held.cell)) continue;
      const std::int64_t column = held.cell - range.low;
      at(column) = static_cast<std::uint32_t>(held.position);
      at(pass_.owners() + column * pass_.words + s / kWordBits) |= bit;
    }
  }
  for (std::int64_t token = 0; token < pass_.tokens; ++token) {
    const auto i = static_cast<std::size_t>(token);
    at(pass_.positions() + token) = static_cast<std::uint32_t>(pass.positions[i]);
    at(pass_.sequences() + token) = pass.sequence_of[i];
    if (!pass.targets.empty())
      at(pass_.targets() + token) = static_cast<std::uint32_t>(pass.targets[i]);
  }
  if (!ahead.empty()) std::memcpy(&at(pass_.ahead()), ahead.data(), ahead.size());
}

DevicePtr PositionalDeviceStore::in_table(std::int64_t cell) const {
  return table_room_.ptr() + cell * kCellBytes;
}

template <class Cell>
Job PositionalDeviceStore::mask_job() const {
  return BuildMask<Cell>{.mask = mask_room_.ptr().as<Cell>(),
                         .positions = in_table(pass_.positions()).as<const std::int32_t>(),
                         .sequences = in_table(pass_.sequences()).as<const std::int32_t>(),
                         .ahead = in_table(pass_.ahead()).as<const std::uint8_t>(),
                         .cell_positions = in_table(0).as<const std::int32_t>(),
                         .owners = in_table(pass_.owners()).as<const std::uint32_t>(),
                         .tokens = pass_.tokens,
                         .low = 0,
                         .columns = pass_.columns,
                         .words = pass_.words,
                         .window = plan_.window,
                         .chunk = plan_.chunk};
}

void PositionalDeviceStore::show_mask(PositionalPass& pass, std::span<const char> ahead) noexcept {
  pass_ = table_of(pass);
  mask_read_ = false;
  fill_table(pass, ahead);
  table_room_.begin();
  mask_room_.begin();
  if (table_.empty()) return;
  attempt([&]() -> Status {
    Status queued = staging_.upload(0, table_room_.ptr(), std::as_bytes(std::span(table_)));
    if (!queued || pass_.tokens * pass_.columns == 0) return queued;
    const bool half = plan_.mask_dtype == DType::kF16;
    return device_->run(half ? mask_job<std::uint16_t>() : mask_job<std::uint32_t>());
  });
}

Result<std::unique_ptr<positional::Cache>> make_causal_device_cache(
    const std::shared_ptr<Device>& device, const positional::CacheOptions& options) {
  if (options.members.size() != 1) return fail(Code::kPrecondition, "members: not one");
  const positional::MemberOptions& member = options.members.front();
  if (member.shift && !member.begin_shift)
    return fail(Code::kNotSupported, "shift: it does not tell what it does");
  return optimized::PositionalCausalCache::make_over(
      options, std::make_unique<PositionalDeviceStore>(device, member.begin_shift));
}

}  // namespace kvo::cuda
