#include "properties/snapshot/token_rows.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reference/contract/values/strided_view.hpp"
#include "reference/snapshot/arrays.hpp"

namespace kvo::snapshot {
namespace {

// Of one token in one head of one sequence.
std::size_t row_bytes(const Side& side) {
  return static_cast<std::size_t>(side.shape[3]) * dtype_bytes(side.type);
}

std::size_t planes(const Side& side) {
  return static_cast<std::size_t>(side.shape[0] * side.shape[1]);
}

}  // namespace

Side Side::of(const Tensor& tensor) {
  Side side{.shape = tensor.shape, .type = tensor.dtype};
  const auto count = static_cast<std::size_t>(std::exchange(side.shape[kTokenAxis], 0));
  const std::size_t row = row_bytes(side);
  for (std::size_t token = 0; token < count; ++token) {
    auto elements = std::make_shared<std::vector<std::byte>>(planes(side) * row);
    for (std::size_t plane = 0; plane < planes(side) && row > 0; ++plane)
      std::memcpy(elements->data() + plane * row,
                  tensor.bytes.data() + (plane * count + token) * row, row);
    side.tokens.push_back(std::move(elements));
  }
  return side;
}

Tensor Side::shown(std::size_t first) const {
  Shape whole = shape;
  whole[kTokenAxis] = static_cast<std::int64_t>(tokens.size());
  Tensor tensor = make_tensor(whole, type);
  const std::size_t row = row_bytes(*this);
  for (std::size_t at = 0; at < tokens.size() && row > 0; ++at)
    for (std::size_t plane = 0; plane < planes(*this); ++plane)
      std::memcpy(tensor.bytes.data() + (plane * tokens.size() + at) * row,
                  tokens[(first + at) % tokens.size()]->data() + plane * row, row);
  return tensor;
}

Side Side::part(std::int64_t begin, std::int64_t end) const {
  return {.shape = shape, .type = type, .tokens = {tokens.begin() + begin, tokens.begin() + end}};
}

Side Side::cast(DType to) const {
  if (to == type) return *this;
  Side side{.shape = shape, .type = to};
  const std::size_t from_bytes = dtype_bytes(type);
  const std::size_t to_bytes = dtype_bytes(to);
  for (const auto& token : tokens) {
    const std::size_t count = token->size() / from_bytes;
    auto elements = std::make_shared<std::vector<std::byte>>(count * to_bytes);
    for (std::size_t i = 0; i < count; ++i)
      store_element(to, load_element(type, token->data() + i * from_bytes),
                    elements->data() + i * to_bytes);
    side.tokens.push_back(std::move(elements));
  }
  return side;
}

std::int64_t TokenRows::bytes() const {
  std::size_t sum = 0;
  for (const Side* side : {&k, &v}) sum += planes(*side) * row_bytes(*side) * side->tokens.size();
  return static_cast<std::int64_t>(sum);
}

TokenRows TokenRows::newest(std::int64_t most) const {
  return part(std::max<std::int64_t>(count() - most, 0), count());
}

void TokenRows::append(const TokenRows& more) {
  for (auto side : {&TokenRows::k, &TokenRows::v}) {
    const Side cast = (more.*side).cast((this->*side).type);
    (this->*side).tokens.insert((this->*side).tokens.end(), cast.tokens.begin(), cast.tokens.end());
  }
}

bool are_rows(const Tensor& k, const Tensor& v) {
  return k.shape.size() == kArrayAxes && v.shape.size() == kArrayAxes &&
         std::equal(k.shape.begin(), k.shape.begin() + 3, v.shape.begin());
}

}  // namespace kvo::snapshot
