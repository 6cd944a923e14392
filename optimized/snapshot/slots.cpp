#include "optimized/snapshot/slots.hpp"

#include <algorithm>
#include <cstring>

namespace kvo::optimized {
namespace {

using snapshot::Array;

constexpr std::int64_t kLeastCapacity = 256;

void clear_rows(Block& block, std::int64_t begin, std::int64_t end) {
  if (end > begin && block.form().bytes() > 0)
    std::memset(block.row(begin), 0,
                static_cast<std::size_t>((end - begin) * block.form().bytes()));
}

}  // namespace

RowRange Slots::shared(std::int64_t begin, std::int64_t end) const {
  const std::int64_t first = bound(begin, size_);
  return RowRange{block_, begin_, std::min(size_, stored_), *form_}.part(
      first, std::max(bound(end, size_), first));
}

void Slots::show(std::int64_t end, Array& out) const {
  StridedView& view = out.view;
  view.shape.resize(4);
  view.strides.resize(4);
  std::ranges::copy(
      std::array{form_->batch, form_->heads, std::min({end, size_, stored_}), form_->dim},
      view.shape.begin());
  std::ranges::copy(
      std::array{form_->heads * form_->dim, form_->dim, form_->elements(), std::int64_t{1}},
      view.strides.begin());
  view.dtype = form_->type;
  view.data = block_ ? block_->row(begin_) : nullptr;
  out.memory = block_;
  out.codes = form_->codes;
}

SlotsChange Slots::change() const {
  return form_ ? SlotsChange(*form_, size_) : SlotsChange();
}

std::int64_t Slots::stored_after(const SlotsChange& change) const {
  const auto& [front, behind] = change.parts();
  if (behind.size() > 0) return change.kept();
  return std::clamp<std::int64_t>(std::min(stored_, change.needed()) - front.begin, 0,
                                  front.size());
}

BlockPtr Slots::room_for(const SlotsChange& change) const {
  const std::int64_t stays = stored_after(change);
  const std::int64_t put_end = change.rows() != nullptr ? change.put_end() : 0;
  const std::int64_t wanted = std::max({stays, put_end, change.shown()});
  const bool puts = put_end > change.put_begin();
  const bool whole = block_ && change.parts()[1].size() == 0 && block_->form() == change.form();
  if (wanted == 0 || (whole && wanted == stays && !puts)) return nullptr;
  if (whole) {
    const std::int64_t begin = begin_ + change.parts()[0].begin;
    const bool behind =
        (!puts || change.put_begin() >= stays) && block_->written() == begin + stays;
    if (begin + wanted <= block_->capacity() && (behind || block_.use_count() == 1)) return nullptr;
  }
  std::int64_t capacity = std::max(2 * wanted, kLeastCapacity);
  if (most_ >= wanted) capacity = std::min(capacity, most_);
  return std::make_shared<Block>(change.form(), capacity, Block::Growth::kGrows, live_);
}

void Slots::apply(const SlotsChange& change, BlockPtr room) noexcept {
  const std::int64_t before = std::min(stored_, change.needed());
  const std::int64_t stays = stored_after(change);
  const auto& parts = change.parts();
  form_ = change.form();
  size_ = change.size();
  if (room) {
    std::int64_t at = 0;
    for (const auto& part : parts) {
      const std::int64_t stored = std::clamp<std::int64_t>(before - part.begin, 0, part.size());
      if (stored > 0)
        put_rows(*room, at, RowRange{block_, begin_, before, block_->form()}.array(), part.begin,
                 stored);
      if (at + stored < stays) clear_rows(*room, at + stored, std::min(at + part.size(), stays));
      at += part.size();
    }
    room->wrote(stays);
    enter(std::move(room));
  } else {
    begin_ += parts[0].begin;
  }
  stored_ = stays;
  write(change);
}

void Slots::write(const SlotsChange& change) noexcept {
  const bool puts = change.puts();
  const std::int64_t end = std::max({stored_, puts ? change.put_end() : 0, change.shown()});
  if (!block_ || (!puts && end == stored_)) return;
  if (puts) {
    clear_rows(*block_, begin_ + stored_, begin_ + std::max(stored_, change.put_begin()));
    if (snapshot::tokens_of(*change.rows()) == change.put_end() - change.put_begin()) {
      put_rows(*block_, begin_ + change.put_begin(), *change.rows(), 0,
               change.put_end() - change.put_begin());
    } else {
      for (std::int64_t at = change.put_begin(); at < change.put_end(); ++at)
        put_rows(*block_, begin_ + at, *change.rows(), 0, 1);
    }
  }
  const std::int64_t filled = std::max(stored_, puts ? change.put_end() : 0);
  clear_rows(*block_, begin_ + filled, begin_ + end);
  stored_ = end;
  block_->wrote(begin_ + end);
}

bool Slots::takes_in_place(std::int64_t at, const Array& row) const {
  if (!block_ || at < 0 || at >= size_ || at > stored_ || RowForm::of(row) != block_->form() ||
      snapshot::tokens_of(row) != 1 || begin_ + at >= block_->capacity())
    return false;
  return (at == stored_ && block_->written() == begin_ + at) || block_.use_count() == 1;
}

void Slots::put_in_place(std::int64_t at, const Array& row) noexcept {
  put_rows(*block_, begin_ + at, row, 0, 1);
  if (at < stored_) return;
  stored_ = at + 1;
  block_->wrote(begin_ + stored_);
}

bool Slots::can_adopt(const SlotsChange& change, std::int64_t from, const RowRange& rows) const {
  const bool puts = change.rows() != nullptr && change.put_begin() == from &&
                    change.put_end() == from + rows.count && rows.block &&
                    change.form() == rows.form;
  const bool whole = change.parts()[0].begin == 0 && change.parts()[1].size() == 0;
  const std::int64_t stays = stored_after(change);
  if (!puts || !whole || stays > from + rows.count) return false;
  return from == 0 || (rows.block == block_ && begin_ + from == rows.begin && stays >= from);
}

void Slots::adopt(const SlotsChange& change, std::int64_t from, const RowRange& rows) noexcept {
  form_ = change.form();
  size_ = change.size();
  enter(rows.block);
  begin_ = rows.begin - from;
  stored_ = from + rows.count;
}

void Slots::replace(const RowRange& rows) noexcept {
  form_ = rows.form;
  size_ = stored_ = rows.count;
  enter(rows.block);
  begin_ = rows.begin;
}

void Slots::clear() noexcept {
  enter(nullptr);
  form_.reset();
  size_ = stored_ = 0;
}

void Slots::enter(BlockPtr block) noexcept {
  if (block) ++block->writers;
  const BlockPtr left = std::exchange(block_, std::move(block));
  begin_ = 0;
  if (!left) return;
  --left->writers;
  give_up_if_sparse(left);
}

// ---- both sides, and the caches over them ----

void SlotsPair::make(const snapshot::SidesChange& change) {
  BlockPtr k_room = k.room_for(change.k);
  BlockPtr v_room = v.room_for(change.v);
  k.apply(change.k, std::move(k_room));
  v.apply(change.v, std::move(v_room));
}

Status SlotsPair::put_shared(const snapshot::SidesChange& change, std::int64_t from,
                             const RowRange& k_rows, const RowRange& v_rows) {
  if (k.can_adopt(change.k, from, k_rows) && v.can_adopt(change.v, from, v_rows)) {
    k.adopt(change.k, from, k_rows);
    v.adopt(change.v, from, v_rows);
  } else {
    make(change);
  }
  return {};
}

Result<RowRange> SlotsPair::joined(const RowRange& first, const RowRange& second,
                                   const RowForm& form) const {
  const std::int64_t count = first.count + second.count;
  RowRange all{std::make_shared<Block>(form, count, Block::Growth::kNone, k.live()), 0, count,
               form};
  put_rows(*all.block, 0, first.array(), 0, first.count);
  put_rows(*all.block, first.count, second.array(), 0, second.count);
  all.block->wrote(count);
  return all;
}

template class SnapshotKv<SlotsPair>;
template class SnapshotRing<SlotsPair>;

}  // namespace kvo::optimized
