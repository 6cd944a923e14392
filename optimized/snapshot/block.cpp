#include "optimized/snapshot/block.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "optimized/memory/arena.hpp"
#include "optimized/memory/convert.hpp"

namespace kvo::optimized {

using snapshot::Array;
using snapshot::Pair;

namespace {

std::size_t checked_bytes(const RowForm& form, std::int64_t capacity) {
  const Shape shape{capacity, form.batch, form.heads, form.dim};
  const std::optional<std::int64_t> elements = element_count(shape);
  if (!elements || *elements > std::numeric_limits<std::int64_t>::max() / 4) throw std::bad_alloc();
  return static_cast<std::size_t>(*elements) * dtype_bytes(form.type);
}

void put_elements(const RowForm& form, std::byte* to, const StridedView& from,
                  const std::byte* row) {
  const auto to_bytes = dtype_bytes(form.type);
  const auto from_bytes = static_cast<std::int64_t>(dtype_bytes(from.dtype));
  for (std::int64_t b = 0; b < form.batch; ++b)
    for (std::int64_t h = 0; h < form.heads; ++h)
      for (std::int64_t d = 0; d < form.dim; ++d, to += to_bytes)
        store_element(form.type,
                      load_element(from.dtype, row + (b * from.strides[0] + h * from.strides[1] +
                                                      d * from.strides[3]) *
                                                         from_bytes),
                      to);
}

}  // namespace

void Block::Free::operator()(std::byte* bytes) const {
  if (mapped > 0)
    (void)::munmap(bytes, mapped);
  else
    ::operator delete(bytes);
}

// Null if the system has none.
Block::Bytes Block::mapped(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return {nullptr, Free{}};
  return {static_cast<std::byte*>(at), Free{bytes}};
}

Block::Block(const RowForm& form, std::int64_t capacity, Growth growth, LiveBytesPtr live)
    : form_(form), capacity_(capacity), live_(std::move(live)) {
  const std::size_t bytes = checked_bytes(form, capacity);
  const bool large = form.bytes() >= kLargeRow || bytes > kMostCopied;
  if (growth == Growth::kGrows && large && bytes <= kReserved) bytes_ = mapped(kReserved);
  if (bytes_)
    capacity_ = static_cast<std::int64_t>(kReserved) / form.bytes();
  else
    bytes_ = {static_cast<std::byte*>(::operator new(bytes)), Free{}};
  spoil(bytes_.get(), bytes);
}

Block::~Block() {
  live_->add(-held_ * form_.bytes());
}

void Block::wrote(std::int64_t rows) {
  written_ = rows;
  if (rows <= held_) return;
  live_->add((rows - held_) * form_.bytes());
  held_ = rows;
  if (bytes_.get_deleter().mapped > 0 && held_ >= ready_) ask_ahead();
}

void Block::ask_ahead() {
  constexpr std::int64_t kPage = 4096;
  constexpr std::int64_t kPages = kAhead / kPage;
  // The layers of a model grow alike; they must not all ask in the same step.
  static std::atomic<std::int64_t> blocks = 0;
  const std::int64_t pages = ready_ > 0 ? kPages : 1 + blocks++ % kPages;
  const std::int64_t begin = held_ * form_.bytes() / kPage * kPage;
  const std::int64_t end = std::min(begin + pages * kPage, static_cast<std::int64_t>(kReserved));
  // Where the system cannot, pages come one by one.
  (void)::madvise(bytes_.get() + begin, static_cast<std::size_t>(end - begin), MADV_POPULATE_WRITE);
  ready_ = end / form_.bytes();
}

snapshot::Array RowRange::array() const {
  return {.view = {{form.batch, form.heads, count, form.dim},
                   {form.heads * form.dim, form.dim, form.elements(), 1},
                   form.type,
                   block ? block->row(begin) : nullptr},
          .memory = block,
          .codes = form.codes};
}

RowRange RowRange::part(std::int64_t from, std::int64_t to) const {
  RowRange rows = *this;
  const std::int64_t first = bound(from, count);
  rows.begin += first;
  rows.count = std::max<std::int64_t>(bound(to, count) - first, 0);
  return rows;
}

KeptRows::KeptRows(RowRange rows) : rows_(std::move(rows)) {
  join();
}

void KeptRows::join() noexcept {
  if (rows_.block) rows_.block->keepers.push_back(*this);
}

BlockPtr KeptRows::leave() noexcept {
  if (rows_.block) rows_.block->keepers.erase(rows_.block->keepers.iterator_to(*this));
  return std::exchange(rows_.block, nullptr);
}

void KeptRows::drop() noexcept {
  const BlockPtr left = leave();
  rows_ = {};
  give_up_if_sparse(left);
}

void give_up_if_sparse(const BlockPtr& block) noexcept {
  if (!block || block->writers > 0) return;
  std::int64_t kept = 0;
  for (const KeptRows& keeper : block->keepers) kept += keeper.rows_.count;
  if (2 * kept >= block->held()) return;
  while (!block->keepers.empty()) {
    KeptRows& keeper = block->keepers.front();
    BlockPtr own;
    try {
      own = std::make_shared<Block>(block->form(), keeper.rows_.count, Block::Growth::kNone,
                                    block->live());
    } catch (const std::bad_alloc&) {
      return;  // they stay where they are
    }
    put_rows(*own, 0, keeper.rows_.array(), 0, keeper.rows_.count);
    own->wrote(keeper.rows_.count);
    (void)keeper.leave();
    keeper.rows_.block = std::move(own);
    keeper.rows_.begin = 0;
    keeper.join();
  }
}

void put_rows(Block& to, std::int64_t at, const snapshot::Array& from, std::int64_t first,
              std::int64_t count) {
  const RowForm& form = to.form();
  const StridedView& view = from.view;
  if (count <= 0 || form.elements() == 0) return;
  const auto bytes = static_cast<std::int64_t>(dtype_bytes(view.dtype));
  const std::byte* row = view.data + first * view.strides[2] * bytes;
  const bool whole_heads = view.strides[3] == 1 || form.dim == 1;
  const bool whole_rows = whole_heads && (view.strides[1] == form.dim || form.heads == 1) &&
                          (view.strides[0] == form.heads * form.dim || form.batch == 1);
  if (view.dtype == form.type && whole_rows && (view.strides[2] == form.elements() || count == 1)) {
    std::memcpy(to.row(at), row, static_cast<std::size_t>(count * form.bytes()));
    return;
  }
  const auto head_bytes = static_cast<std::size_t>(form.dim * bytes);
  for (std::int64_t i = 0; i < count; ++i, row += view.strides[2] * bytes) {
    std::byte* into = to.row(at + i);
    if (view.dtype != form.type || !whole_heads) {
      put_elements(form, into, view, row);
      continue;
    }
    for (std::int64_t b = 0; b < form.batch; ++b)
      for (std::int64_t h = 0; h < form.heads; ++h, into += head_bytes)
        std::memcpy(into, row + (b * view.strides[0] + h * view.strides[1]) * bytes, head_bytes);
  }
}

namespace {

/// Rows of all tokens to [S, B, H] rows of `row_bytes`.
void encode_tokens(const StorageFormat& format, const StridedView& rows, std::size_t row_bytes,
                   std::byte* to) {
  const std::int64_t heads = rows.shape[1];
  const auto dim = static_cast<std::size_t>(rows.shape[3]);
  const auto* const cells = reinterpret_cast<const float*>(rows.data);
  const bool in_a_row = (rows.strides[1] == rows.shape[3] || heads == 1) &&
                        (rows.strides[0] == heads * rows.shape[3] || rows.shape[0] == 1);
  const auto width = static_cast<std::size_t>(rows.shape[0] * heads) * dim;
  const std::size_t bytes = width / dim * row_bytes;
  for (std::int64_t s = 0; s < rows.shape[2]; ++s) {
    const float* const token = cells + s * rows.strides[2];
    if (in_a_row) {  // as those that come one by one
      encode_rows(format, dim, {token, width}, to);
      to += bytes;
      continue;
    }
    for (std::int64_t b = 0; b < rows.shape[0]; ++b)
      for (std::int64_t h = 0; h < heads; ++h, to += row_bytes)
        encode_rows(format, dim, {token + b * rows.strides[0] + h * rows.strides[1], dim}, to);
  }
}

}  // namespace

bool RowEncoder::takes(const Array& rows) const {
  if (rows.view.dtype != DType::kF32 || rows.view.shape.size() != snapshot::kArrayAxes)
    return false;
  Shape shape = rows.view.shape;
  shape.back() = snapshot::stored_dim(format_, shape.back());
  return element_count(shape).has_value();
}

Array RowEncoder::encoded(const Array& rows, Bytes& bytes) const {
  const bool codes = in_groups(format_.type);
  const std::int64_t dim = rows.view.shape[3];
  const auto row_bytes = stored_bytes(format_, static_cast<std::size_t>(dim));
  const std::int64_t width = snapshot::stored_dim(format_, dim);
  Array made{.view = {rows.view.shape, rows.view.strides,
                      codes ? snapshot::kCodeByte : dtype_of(format_.type), nullptr}};
  made.view.shape[3] = width;
  if (codes) made.codes = snapshot::Codes{format_, dim};
  const std::int64_t elements = *element_count(rows.view.shape);
  if (elements == 0) return made;
  const auto [batch, heads, count] =
      std::array{rows.view.shape[0], rows.view.shape[1], rows.view.shape[2]};
  made.view.strides = {heads * width, width, batch * heads * width, 1};
  if (!bytes || bytes.use_count() > 1) bytes = std::make_shared<std::vector<std::byte>>();
  bytes->resize(static_cast<std::size_t>(batch * heads * count) * row_bytes);
  made.view.data = bytes->data();
  made.memory = bytes;
  if (rows.view.strides[3] == 1) {
    encode_tokens(format_, rows.view, row_bytes, bytes->data());
  } else {
    const Tensor packed = materialize(rows.view);
    encode_tokens(format_, view_of(packed), row_bytes, bytes->data());
  }
  return made;
}

Result<Pair> RowEncoder::encoded(const Array& k, const Array& v, QuirkSet<snapshot::Quirk> quirks) {
  if (!takes(k) || !takes(v))
    return fail(
        quirks.has(snapshot::Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape,
        "k, v: not f32 of four axes");
  Array keys = encoded(k, k_bytes_);
  return Pair{std::move(keys), encoded(v, v_bytes_)};
}

}  // namespace kvo::optimized
