#include "reference/contract/values/stored_rows.hpp"

#include <limits>
#include <new>
#include <utility>

#include "reference/contract/values/check.hpp"

namespace kvo {

StoredRows::StoredRows(const StorageFormat& format, std::int64_t dim, std::size_t elements)
    : format_(format), dim_(dim), own_(bytes_of(format, dim, elements)), bytes_(own_) {}

StoredRows::StoredRows(const StorageFormat& format, std::int64_t dim, std::span<std::byte> bytes,
                       std::shared_ptr<const void> owner)
    : format_(format), dim_(dim), owner_(std::move(owner)), bytes_(bytes) {}

std::size_t StoredRows::bytes_of(const StorageFormat& format, std::int64_t dim,
                                 std::size_t elements) {
  // No type takes more bytes for an element than a group of one with an offset.
  constexpr std::size_t kMost = std::numeric_limits<std::int64_t>::max() / 5;
  if (elements > kMost) throw std::bad_alloc();
  const auto row = static_cast<std::size_t>(dim);
  return elements == 0 ? 0 : elements / row * stored_bytes(format, row);
}

std::span<std::byte> StoredRows::rows(std::int64_t first, std::int64_t count) const {
  const std::size_t row = stored_bytes(format_, static_cast<std::size_t>(dim_));
  const std::size_t begin = static_cast<std::size_t>(first) * row;
  const std::size_t size = static_cast<std::size_t>(count) * row;
  KVO_CHECK(begin <= bytes_.size() && size <= bytes_.size() - begin);
  return bytes_.subspan(begin, size);
}

void StoredRows::put(std::int64_t first, std::span<const float> elements) {
  if (elements.empty()) return;
  const std::int64_t count = static_cast<std::int64_t>(elements.size()) / dim_;
  store_rows(format_, dim_, elements, rows(first, count).data());
}

void StoredRows::read(std::int64_t offset, std::span<float> out) const {
  KVO_CHECK(offset >= 0);
  if (out.empty()) return;
  if (!in_groups(format_.type)) {
    const std::size_t begin = stored_bytes(format_, static_cast<std::size_t>(offset));
    KVO_CHECK(begin + stored_bytes(format_, out.size()) <= bytes_.size());
    return decode(format_, bytes_.data() + begin, out);
  }
  const auto size = static_cast<std::int64_t>(out.size());
  KVO_CHECK(offset % dim_ == 0 && size % dim_ == 0);
  const std::byte* from = rows(offset / dim_, size / dim_).data();
  const auto row = static_cast<std::size_t>(dim_);
  for (std::size_t at = 0; at < out.size(); at += row, from += stored_bytes(format_, row))
    decode(format_, from, out.subspan(at, row));
}

void StoredRows::write(std::int64_t offset, float value) {
  KVO_CHECK(offset >= 0 && !in_groups(format_.type));
  const std::size_t begin = stored_bytes(format_, static_cast<std::size_t>(offset));
  KVO_CHECK(begin + stored_bytes(format_, 1) <= bytes_.size());
  encode(format_, {&value, 1}, bytes_.data() + begin);
}

}  // namespace kvo
