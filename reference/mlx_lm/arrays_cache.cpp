#include "reference/mlx_lm/arrays_cache.hpp"

#include <algorithm>

namespace kvo::mlx_lm {
namespace {

// A list of Python by index, negative ones from the end.
std::size_t entry_of(std::int64_t at, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (at < -count || at >= count) throw Misuse("no such entry");
  return static_cast<std::size_t>(at < 0 ? at + count : at);
}

Value shown(const SharedInts& list) {
  if (!list) return {};
  return ints_of(*list);
}

SharedInts clone_list(const SharedInts& list) {
  return list ? std::make_shared<Ints>(*list) : nullptr;
}

SharedInts picked(const SharedInts& list, const Ints& rows) {
  if (!list) return nullptr;
  Ints out;
  for (const std::int64_t row : rows) out.push_back((*list)[entry_of(row, list->size())]);
  return std::make_shared<Ints>(std::move(out));
}

SharedInts joined_lists(const SharedInts& a, std::int64_t rows_a, const SharedInts& b,
                        std::int64_t rows_b) {
  if (!a && !b) return nullptr;
  Ints out = a ? *a : Ints(static_cast<std::size_t>(rows_a));
  const Ints more = b ? *b : Ints(static_cast<std::size_t>(rows_b));
  out.insert(out.end(), more.begin(), more.end());
  return std::make_shared<Ints>(std::move(out));
}

// Zeros of another number of rows.
Tensor zero_rows(const Tensor& like, std::int64_t rows) {
  Shape shape = like.shape;
  if (shape.empty()) throw Misuse("an array without axes");
  shape[kRowAxis] = rows;
  return zeros(std::move(shape), like.dtype);
}

}  // namespace

std::int64_t ArraysState::batch_size() const {
  for (const Array& array : *arrays)
    if (array) return array->shape.empty() ? 0 : array->shape[kRowAxis];
  if (left_padding) return std::ssize(*left_padding);
  return lengths ? std::ssize(*lengths) : 1;
}

Value::List ArraysCache::state() const {
  return {Value::List(s_.arrays->begin(), s_.arrays->end()), shown(s_.left_padding),
          shown(s_.lengths)};
}

Result<Info> ArraysCache::info() const {
  if (s_.arrays->empty()) return fail(Code::kPrecondition, "there is no entry");
  Info info{.empty = !s_.arrays->front(), .batch_size = s_.batch_size()};
  for (const Array& array : *s_.arrays) info.nbytes += bytes_of(array);
  return info;
}

CachePtr ArraysCache::copy(bool deep) const {
  if (!deep) return std::make_unique<ArraysCache>(quirks_, s_);
  ArraysState state{std::make_shared<std::vector<Array>>(), clone_list(s_.left_padding),
                    clone_list(s_.lengths)};
  for (const Array& array : *s_.arrays) state.arrays->push_back(clone(array));
  return std::make_unique<ArraysCache>(quirks_, std::move(state));
}

Result<Value> ArraysCache::make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                     bool return_array) const {
  if (window || return_array) return fail(Code::kPrecondition, "it takes N alone");
  return answer([&]() -> Value {
    if (!s_.left_padding && !s_.lengths) return {};
    const Ints padding = s_.left_padding ? *s_.left_padding : sum(*s_.lengths, *s_.lengths, -1);
    const Ints lengths = s_.lengths ? *s_.lengths : Ints{queries};
    const Ints rows = sum(padding, lengths);  // both have as many rows
    Tensor mask = zeros({std::ssize(rows), queries}, DType::kBool);
    std::size_t at = 0;
    for (std::size_t row = 0; row < rows.size(); ++row)
      for (std::int64_t j = 0; j < queries; ++j)
        mask.bytes[at++] = std::byte{j >= padding[padding.size() == 1 ? 0 : row] &&
                                     j < lengths[lengths.size() == 1 ? 0 : row]};
    return mask;
  });
}

Result<CachePtr> ArraysCache::merge(std::span<const Cache* const> caches) const {
  return answer([&]() -> CachePtr {
    std::vector<const ArraysState*> parts;
    for (const Cache* cache : caches) {
      const auto* part = dynamic_cast<const ArraysCache*>(cache);
      if (part == nullptr) throw Misuse("caches of several kinds");
      if (part->s_.arrays->size() < s_.arrays->size() || s_.arrays->empty())
        throw Misuse("no such entry");
      parts.push_back(&part->s_);
    }
    const std::int64_t rows = std::ssize(parts);
    ArraysState state{std::make_shared<std::vector<Array>>(s_.arrays->size())};
    if (std::ranges::none_of(parts,
                             [](const auto* part) { return part->arrays->front() != nullptr; })) {
      state.left_padding = std::make_shared<Ints>(parts.size());
      return std::make_unique<ArraysCache>(quirks_, std::move(state));
    }
    for (std::size_t entry = 0; entry < s_.arrays->size(); ++entry) {
      const auto first = std::ranges::find_if(
          parts, [&](const auto* part) { return (*part->arrays)[entry] != nullptr; });
      if (first == parts.end()) throw Misuse("no cache has the entry");
      Tensor made = zero_rows(*(*(*first)->arrays)[entry], rows);
      for (std::int64_t row = 0; row < rows; ++row)
        if (const Array& given = (*parts[static_cast<std::size_t>(row)]->arrays)[entry])
          overwrite(made, row, fitted(*given, made, row, row + 1, kRowAxis), kRowAxis);
      (*state.arrays)[entry] = array_of(std::move(made));
    }
    return std::make_unique<ArraysCache>(quirks_, std::move(state));
  });
}

Result<CachePtr> ArraysCache::extract(std::int64_t row) const {
  return answer([&]() -> CachePtr {
    ArraysState state{std::make_shared<std::vector<Array>>()};
    for (const Array& array : *s_.arrays) {
      if (!array) throw Misuse("an entry is missing");
      // A slice that begins before 0 and ends at 0 is empty.
      state.arrays->push_back(array_of(sliced(*array, row, row + 1, kRowAxis)));
    }
    return std::make_unique<ArraysCache>(quirks_, std::move(state));
  });
}

Status ArraysCache::filter(const Ints& rows) {
  return attempt([&](ArraysState& s, Writes& /*writes*/) {
    const bool nothing =
        std::ranges::none_of(*s.arrays, [](const Array& one) { return one != nullptr; }) &&
        !s.left_padding && !s.lengths;
    if (rows.empty() && !nothing && has(Quirk::kFilterNeedsRows)) throw Misuse("no rows");
    auto arrays = std::make_shared<std::vector<Array>>();
    for (const Array& array : *s.arrays)
      arrays->push_back(array ? array_of(rows_of(*array, rows)) : nullptr);
    s.arrays = std::move(arrays);
    s.left_padding = picked(s.left_padding, rows);
    s.lengths = picked(s.lengths, rows);
  });
}

Status ArraysCache::extend(Cache& other) {
  const auto* more = dynamic_cast<const ArraysCache*>(&other);
  if (more == nullptr) return fail(Code::kPrecondition, "a cache of another kind");
  return attempt([&](ArraysState& s, Writes& /*writes*/) {
    const ArraysState& b = more->s_;
    const std::int64_t rows = s.batch_size();
    const std::int64_t rows_b = b.batch_size();
    auto arrays = std::make_shared<std::vector<Array>>();
    for (std::size_t i = 0; i < std::min(s.arrays->size(), b.arrays->size()); ++i) {
      const Array& one = (*s.arrays)[i];
      const Array& two = (*b.arrays)[i];
      if (!one && !two)
        arrays->push_back(nullptr);
      else
        arrays->push_back(array_of(joined(one ? *one : zero_rows(*two, rows),
                                          two ? *two : zero_rows(*one, rows_b), kRowAxis)));
    }
    s.arrays = std::move(arrays);
    s.left_padding = joined_lists(s.left_padding, rows, b.left_padding, rows_b);
    s.lengths = joined_lists(s.lengths, rows, b.lengths, rows_b);
  });
}

Status ArraysCache::prepare(const std::optional<Ints>& /*left_padding*/,
                            const std::optional<Ints>& lengths,
                            const std::optional<Ints>& /*right_padding*/) {
  if (!lengths) return fail(Code::kPrecondition, "lengths are missing");
  s_.lengths = std::make_shared<Ints>(*lengths);
  return {};
}

Status ArraysCache::finalize() {
  s_.left_padding = nullptr;
  s_.lengths = nullptr;
  return {};
}

Status ArraysCache::set(std::int64_t entry, const Array& array) {
  const auto done = answer([&] { return entry_of(entry, s_.arrays->size()); });
  if (!done) return done.error();
  (*s_.arrays)[*done] = array;
  return {};
}

Status ArraysCache::advance(std::int64_t n) {
  return attempt([&](ArraysState& s, Writes& writes) {
    for (const SharedInts& list : {s.lengths, s.left_padding})
      if (list) writes.put(list, sum(*list, -n));
  });
}

}  // namespace kvo::mlx_lm
