#include "optimized/positional/host_store.hpp"

#include <algorithm>
#include <cstring>

namespace kvo::optimized {

// ---- Rows ----

void PositionalHostStore::set_layer(std::int64_t layer) noexcept {
  const auto found = layers_.find(layer);
  layer_ = layer;
  rows_ = found == layers_.end() ? nullptr : &found->second;
  form_ = rows_ != nullptr ? &rows_->form() : nullptr;
}

Status PositionalHostStore::make_rows(const LayerRows::Form& form) {
  rows_ = &layers_.try_emplace(layer_, plan_.rows, form).first->second;
  form_ = &rows_->form();
  return {};
}

Status PositionalHostStore::put(const PositionalPass& pass, const positional::Rows& k,
                                const positional::Rows& v) {
  rows_->put(pass.targets, k.values, v.values);
  return {};
}

Result<positional::Shown> PositionalHostStore::show(const CellRange& range) {
  // Views are moved once: they are most of what this takes.
  Result<positional::Shown> shown = positional::Shown{};
  shown->k.emplace(rows_->k(range));
  shown->v.emplace(rows_->v(range));
  shown->mask.emplace(mask_.view());
  return shown;
}

// ---- Keys that move ----

Status PositionalHostStore::prepare_keys(const KeyGroup& group) {
  const std::int64_t first = group.moved.front().cell;
  const auto count = static_cast<std::size_t>(group.moved.back().cell - first + 1);
  std::vector<std::int32_t> offsets(count, 0);
  for (const HeldCell& held : group.moved)
    offsets[static_cast<std::size_t>(held.cell - first)] = group.offset;
  for (auto& [layer, rows] : layers_) {
    const Shape shape{static_cast<std::int64_t>(count), rows.form().heads, rows.form().k_dim};
    std::vector<float> keys(count * static_cast<std::size_t>(shape[1] * shape[2]));
    rows.load_keys(first, keys);
    if (Status done = shift_(layer, shape, keys, offsets); !done) return done;
    ShiftedKeys shifted{.rows = &rows,
                        .first = first,
                        .keys = std::vector<std::byte>(count * rows.key_bytes()),
                        .cells = {}};
    rows.encode_keys(keys, shifted.keys.data());
    if (!group.all_converted)
      for (const HeldCell& held : group.moved) shifted.cells.push_back(held.cell);
    shifted_.push_back(std::move(shifted));
  }
  return {};
}

void PositionalHostStore::commit_keys() noexcept {
  for (ShiftedKeys& shifted : shifted_) {
    const std::size_t bytes = shifted.rows->key_bytes();
    if (shifted.cells.empty())
      std::memcpy(shifted.rows->key(shifted.first), shifted.keys.data(), shifted.keys.size());
    for (const std::int32_t cell : shifted.cells)
      std::memcpy(shifted.rows->key(cell),
                  shifted.keys.data() + static_cast<std::size_t>(cell - shifted.first) * bytes,
                  bytes);
  }
  shifted_.clear();
}

// ---- The mask ----

MaskRows::Layout PositionalHostStore::layout(const PositionalPass& pass) const {
  return {std::ssize(pass.positions), plan_.rows.cells, pass.range, plan_.mask_dtype};
}

Status PositionalHostStore::reserve_mask(const PositionalPass& pass) {
  mask_.reserve(layout(pass));
  return {};
}

SeenCells PositionalHostStore::seen(const BatchSequence& sequence, std::int32_t position,
                                    bool ahead) const {
  if (sequence.cells == nullptr) return {};
  const SequenceCells& cells = *sequence.cells;
  std::int64_t first = std::int64_t{position} - plan_.window;  // OK-31
  if (plan_.chunk > 0) first = std::max<std::int64_t>(first, position - position % plan_.chunk);
  const std::uint64_t begin = cells.index_of(first);
  return {&cells, begin, ahead ? cells.end() : cells.index_of(std::int64_t{position} + 1)};
}

void PositionalHostStore::show_mask(PositionalPass& pass, std::span<const char> ahead) noexcept {
  const auto row_sees = [&](std::size_t row) {
    const bool sees_ahead = !ahead.empty() && ahead[row] != 0;
    return seen(pass.sequences[pass.sequence_of[row]], pass.positions[row], sees_ahead);
  };
  const std::size_t rows = pass.positions.size();
  mask_.begin(layout(pass), rows > 0 ? row_sees(0) : SeenCells());
  for (BatchSequence& sequence : pass.sequences) sequence.last_row.reset();
  for (std::size_t row = 0; row < rows; ++row) {
    BatchSequence& sequence = pass.sequences[pass.sequence_of[row]];
    const auto number = static_cast<std::int64_t>(row);
    mask_.show(number, row_sees(row), sequence.last_row);
    sequence.last_row = number;
  }
}

}  // namespace kvo::optimized
