#include "optimized/snapshot/slots.hpp"

#include <algorithm>
#include <cstring>

namespace kvo::optimized {
namespace {

using snapshot::Array;

constexpr std::int64_t kLeastCapacity = 256;
// A larger block is begun when the one at hand is filled to three quarters. At five rows for each
// that is added it is complete before the rest is.
constexpr std::int64_t kRowsAStep = 5;
// More at once is a prefill, which may as well move everything.
constexpr std::int64_t kSmallPart = 16;

std::int64_t bound(std::int64_t at, std::int64_t slots) {
  return std::clamp(at < 0 ? at + slots : at, std::int64_t{0}, slots);
}

void clear_rows(Block& block, std::int64_t begin, std::int64_t end) {
  if (end > begin && block.form().bytes() > 0)
    std::memset(block.row(begin), 0,
                static_cast<std::size_t>((end - begin) * block.form().bytes()));
}

}  // namespace

// ---- SlotsChange ----

void SlotsChange::start(const Array& like) {
  form_ = RowForm::of(like);
  size_ = 0;
  parts_ = {};
}

bool SlotsChange::extend(const Array& like, std::int64_t count) {
  if (count < 0 || !form_->same_shape(RowForm::of(like))) return false;
  if (snapshot::wider(like.view.dtype, form_->type)) form_->type = like.view.dtype;
  size_ += count;
  return true;
}

void SlotsChange::keep(std::int64_t begin, std::int64_t end) {
  begin = bound(begin, size_);
  end = std::max(bound(end, size_), begin);
  size_ = end - begin;
  for (Part& part : parts_) {
    const std::int64_t size = part.size();
    part.end = part.begin + std::clamp<std::int64_t>(end, 0, size);
    part.begin += std::clamp<std::int64_t>(begin, 0, part.size());
    begin = std::max<std::int64_t>(begin - size, 0);
    end = std::max<std::int64_t>(end - size, 0);
  }
}

void SlotsChange::rotate(std::int64_t at) {
  at = bound(at, size_);
  parts_ = {Part{at, size_}, Part{0, at}};
}

bool SlotsChange::put(std::int64_t begin, std::int64_t end, const Array& rows) {
  begin = bound(begin, size_);
  const std::int64_t count = std::max<std::int64_t>(bound(end, size_) - begin, 0);
  const std::int64_t given = snapshot::tokens_of(rows);
  if (!form_->same_shape(RowForm::of(rows)) || (given != count && given != 1)) return false;
  put_begin_ = begin;
  put_end_ = begin + count;
  rows_ = &rows;
  return true;
}

void SlotsChange::show(std::int64_t end) {
  shown_ = bound(end, size_);
}

// ---- Slots ----

RowRange Slots::range(std::int64_t begin, std::int64_t end) const {
  const std::int64_t first = bound(begin, size_);
  return RowRange{block_, begin_, std::min(size_, stored_), *form_}.part(
      first, std::max(bound(end, size_), first));
}

SlotsChange Slots::change() const {
  SlotsChange made;
  made.form_ = form_;
  made.size_ = size_;
  made.parts_[0].end = size_;
  return made;
}

std::int64_t Slots::stored_after(const SlotsChange& change) const {
  const auto& [front, behind] = change.parts_;
  if (behind.size() > 0) return change.held();
  return std::clamp<std::int64_t>(std::min(stored_, change.needed_) - front.begin, 0, front.size());
}

Slots::Room Slots::room_for(const SlotsChange& change) const {
  if (!change.exists()) return {};
  const std::int64_t stays = stored_after(change);
  const std::int64_t put_end = change.rows_ != nullptr ? change.put_end_ : 0;
  const std::int64_t wanted = std::max({stays, put_end, change.shown_});
  const std::int64_t begin = begin_ + change.parts_[0].begin;
  const bool whole = block_ && change.parts_[1].size() == 0 && block_->form() == *change.form_;
  const bool writes = wanted > stays || put_end > change.put_begin_;
  if (whole && !writes) return {};
  if (wanted == 0) return {};
  const std::int64_t room = block_ ? block_->capacity() - begin : 0;
  const std::int64_t first =
      put_end > change.put_begin_ ? std::min(change.put_begin_, stays) : stays;
  const bool alone = block_.use_count() == 1;
  const bool next = block_ && first == stays && block_->written == begin + stays;
  if (whole && wanted <= room && (alone || next)) {
    const std::int64_t added = wanted - stays;
    const bool grows = !larger_ && change.parts_[0].begin == 0 && room < most_ &&
                       4 * wanted >= 3 * room && added <= room / kSmallPart;
    if (!grows) return {};
    const std::int64_t more = std::min(2 * room, most_);
    return {.larger = std::make_shared<Block>(*change.form_, more, live_)};
  }
  std::int64_t capacity = std::max(2 * wanted, kLeastCapacity);
  if (most_ >= wanted) capacity = std::min(capacity, most_);
  return {.moved = std::make_shared<Block>(*change.form_, capacity, live_)};
}

void Slots::apply(const SlotsChange& change, Room room) noexcept {
  if (!change.exists()) return;
  const std::int64_t before = std::min(stored_, change.needed_);
  const std::int64_t stays = stored_after(change);
  const auto& parts = change.parts_;
  form_ = change.form_;
  size_ = change.size_;
  if (room.moved) {
    std::int64_t at = 0;
    for (const auto& part : parts) {
      const std::int64_t stored = std::clamp<std::int64_t>(before - part.begin, 0, part.size());
      if (stored > 0)
        put_rows(*room.moved, at, RowRange{block_, begin_, before, block_->form()}.array(),
                 part.begin, stored);
      if (at + stored < stays)
        clear_rows(*room.moved, at + stored, std::min(at + part.size(), stays));
      at += part.size();
    }
    room.moved->written = stays;
    enter(std::move(room.moved));
  } else {
    if (parts[0].begin > 0) larger_ = nullptr;
    begin_ += parts[0].begin;
  }
  stored_ = stays;
  if (room.larger) {
    larger_ = std::move(room.larger);
    copied_ = 0;
  }
  write(change);
  if (larger_) fill_larger(std::max<std::int64_t>(stored_ - stays, 1));
}

void Slots::write(const SlotsChange& change) noexcept {
  const bool puts = change.rows_ != nullptr && change.put_end_ > change.put_begin_;
  const std::int64_t first = puts ? std::min(change.put_begin_, stored_) : stored_;
  const std::int64_t end = std::max({stored_, puts ? change.put_end_ : 0, change.shown_});
  if (!block_ || (!puts && end == stored_)) return;
  copied_ = std::min(copied_, first);
  if (puts) {
    clear_rows(*block_, begin_ + stored_, begin_ + std::max(stored_, change.put_begin_));
    if (snapshot::tokens_of(*change.rows_) == change.put_end_ - change.put_begin_) {
      put_rows(*block_, begin_ + change.put_begin_, *change.rows_, 0,
               change.put_end_ - change.put_begin_);
    } else {
      for (std::int64_t at = change.put_begin_; at < change.put_end_; ++at)
        put_rows(*block_, begin_ + at, *change.rows_, 0, 1);
    }
  }
  const std::int64_t filled = std::max(stored_, puts ? change.put_end_ : 0);
  clear_rows(*block_, begin_ + filled, begin_ + end);
  stored_ = end;
  block_->written = begin_ + end;
}

void Slots::fill_larger(std::int64_t rows) noexcept {
  copied_ = std::min(copied_, stored_);
  const std::int64_t end = std::min(stored_, copied_ + kRowsAStep * rows);
  put_rows(*larger_, copied_, RowRange{block_, begin_, stored_, *form_}.array(), copied_,
           end - copied_);
  copied_ = end;
  if (copied_ < stored_) return;
  larger_->written = stored_;
  enter(std::move(larger_));
}

bool Slots::can_adopt(const SlotsChange& change, std::int64_t from, const RowRange& rows) const {
  const bool puts = change.rows_ != nullptr && change.put_begin_ == from &&
                    change.put_end_ == from + rows.count && rows.block && change.form_ == rows.form;
  const bool whole = change.parts_[0].begin == 0 && change.parts_[1].size() == 0;
  const std::int64_t stays = stored_after(change);
  if (!puts || !whole || stays > from + rows.count) return false;
  return from == 0 || (rows.block == block_ && begin_ + from == rows.begin && stays >= from);
}

void Slots::adopt(const SlotsChange& change, std::int64_t from, const RowRange& rows) noexcept {
  form_ = change.form_;
  size_ = change.size_;
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
  larger_ = nullptr;
  begin_ = copied_ = 0;
  if (!left) return;
  --left->writers;
  give_up_if_sparse(left);
}

}  // namespace kvo::optimized
