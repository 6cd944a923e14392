#include "reference/mlx_lm/quantized_cache.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "reference/contract/values/strided_view.hpp"

namespace kvo::mlx_lm {
namespace {

constexpr std::int64_t kWordBits = 32;

void check_terms(std::int64_t group_size, std::int64_t bits) {
  if (group_size != 32 && group_size != 64 && group_size != 128) throw Misuse("group_size");
  if (bits != 2 && bits != 3 && bits != 4 && bits != 5 && bits != 6 && bits != 8)
    throw Misuse("bits");
}

float element(const Tensor& tensor, std::int64_t at) {
  return load_element(tensor.dtype,
                      &tensor.bytes[static_cast<std::size_t>(at) * dtype_bytes(tensor.dtype)]);
}

void set_element(Tensor& tensor, std::int64_t at, float value) {
  store_element(tensor.dtype, value,
                &tensor.bytes[static_cast<std::size_t>(at) * dtype_bytes(tensor.dtype)]);
}

// A row of words is its numbers' bits one after another, lowest first: what ML-31 says of bytes and
// words comes to that.
void put_bits(Tensor& words, std::int64_t first_bit, std::int64_t bits, std::uint32_t number) {
  for (std::int64_t i = 0; i < bits; ++i) {
    const std::int64_t at = first_bit + i;
    words.bytes[static_cast<std::size_t>(at / 8)] |=
        std::byte((number >> static_cast<unsigned>(i) & 1U) << static_cast<unsigned>(at % 8));
  }
}

std::uint32_t get_bits(const Tensor& words, std::int64_t first_bit, std::int64_t bits) {
  std::uint32_t number = 0;
  for (std::int64_t i = 0; i < bits; ++i) {
    const std::int64_t at = first_bit + i;
    const auto bit = std::to_integer<std::uint32_t>(words.bytes[static_cast<std::size_t>(at / 8)] >>
                                                    static_cast<unsigned>(at % 8)) &
                     1U;
    number |= bit << static_cast<unsigned>(i);
  }
  return number;
}

struct Group {
  float scale;
  float bias;
};

Group group_of(float low, float high, float levels) {
  float scale = std::max((high - low) / levels, 1e-7F);
  const bool from_low = std::abs(low) > std::abs(high);
  const float edge = from_low ? low : high;
  if (!from_low) scale = -scale;
  const float steps = std::nearbyint(edge / scale);
  if (steps == 0) return {scale, 0};
  return {edge / steps, edge};
}

// Each array of K and of V.
void for_each_array(QuantizedState& s, const std::function<void(Array&)>& change) {
  for (Arrays* side : {&s.k, &s.v}) std::ranges::for_each(*side, change);
}

}  // namespace

Arrays quantized(const Tensor& rows, std::int64_t group_size, std::int64_t bits) {
  check_terms(group_size, bits);
  const std::int64_t dim = rows.shape.back();
  if (dim % group_size != 0) throw Misuse("rows are not whole groups");
  Shape shape = rows.shape;
  shape.back() = dim * bits / kWordBits;
  Tensor words = zeros(shape, DType::kU32);
  shape.back() = dim / group_size;
  Tensor scales = zeros(shape, rows.dtype);
  Tensor biases = zeros(shape, rows.dtype);
  const auto most = static_cast<float>((std::int64_t{1} << static_cast<unsigned>(bits)) - 1);
  for (std::int64_t group = 0; group < scales.elements(); ++group) {
    const std::int64_t begin = group * group_size;
    float low = element(rows, begin);
    float high = low;
    for (std::int64_t i = begin; i < begin + group_size; ++i) {
      low = std::min(low, element(rows, i));
      high = std::max(high, element(rows, i));
    }
    const auto [scale, bias] = group_of(low, high, most);
    for (std::int64_t i = begin; i < begin + group_size; ++i) {
      const float steps = std::nearbyint((element(rows, i) - bias) / scale);
      put_bits(words, i * bits, bits,
               steps > 0 ? static_cast<std::uint32_t>(std::min(steps, most)) : 0);
    }
    set_element(scales, group, scale);
    set_element(biases, group, bias);
  }
  return {array_of(std::move(words)), array_of(std::move(scales)), array_of(std::move(biases))};
}

Tensor dequantized(const Quantized& rows, std::int64_t group_size, std::int64_t bits) {
  check_terms(group_size, bits);
  Shape shape = rows.w.shape;
  shape.back() = shape.back() * kWordBits / bits;
  Tensor out = zeros(std::move(shape), rows.scales.dtype);
  if (out.elements() == 0) throw Misuse("there are no rows");
  if (out.elements() != rows.scales.elements() * group_size) throw Misuse("words and scales");
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    // Both steps round to the type.
    set_element(out, i,
                static_cast<float>(get_bits(rows.w, i * bits, bits)) *
                    element(rows.scales, i / group_size));
    set_element(out, i, element(out, i) + element(rows.biases, i / group_size));
  }
  return out;
}

Value::List QuantizedCache::state() const {
  return {Side{s_.k}.shown(), Side{s_.v}.shown(), s_.offset, s_.group_size, s_.bits};
}

Result<Info> QuantizedCache::info() const {
  if (s_.k.empty() && has(Quirk::kEmptyHasNoBytes))
    return fail(Code::kPrecondition, "there is no buffer");
  Info info{.size = 0, .empty = s_.k.empty(), .trimmable = true};
  for (const Arrays* side : {&s_.k, &s_.v})
    for (const Array& array : *side) info.nbytes += bytes_of(array);
  return info;
}

CachePtr QuantizedCache::copy(bool deep) const {
  QuantizedState state = s_;
  if (deep) for_each_array(state, [](Array& array) { array = clone(array); });
  return std::make_unique<QuantizedCache>(step_, quirks_, std::move(state));
}

Result<Pair> QuantizedCache::update(const Array& k, const Array& v) {
  return attempt([&](QuantizedState& s, Writes& writes) {
    const std::int64_t begin = s.offset;
    const std::int64_t tokens = slots(k);
    if (s.k.empty() || begin + tokens > slots(s.k.front())) {
      const std::int64_t more = (step_ + tokens - 1) / step_ * step_;
      if (begin % step_ != 0)
        for_each_array(s, [&](Array& array) { array = array_of(sliced(*array, 0, begin)); });
      if (s.k.empty()) {
        if (s.bits < 1 || s.bits > kWordBits || s.group_size < 1) throw Misuse("bits, group_size");
        const auto made = [&](const Array& rows) {
          Shape shape = k->shape;
          const auto of = [&](std::int64_t dim, DType type) {
            shape.back() = dim;
            return array_of(zero_slots(shape, more, type));
          };
          const std::int64_t dim = rows->shape.back();
          return Arrays{of(dim / (kWordBits / s.bits), DType::kU32),
                        of(dim / s.group_size, k->dtype), of(dim / s.group_size, k->dtype)};
        };
        Arrays first = made(k);
        s.v = made(v);
        s.k = std::move(first);
      } else {
        for_each_array(s, [&](Array& array) {
          Shape shape = k->shape;
          shape.back() = array->shape.back();
          array = array_of(joined(*array, zero_slots(std::move(shape), more, array->dtype)));
        });
      }
    }
    s.offset += tokens;
    const Arrays words_k = quantized(*k, s.group_size, s.bits);
    const Arrays words_v = quantized(*v, s.group_size, s.bits);
    for (std::size_t i = 0; i < words_k.size(); ++i) {
      writes.put(s.k[i], begin, s.offset, *words_k[i]);
      writes.put(s.v[i], begin, s.offset, *words_v[i]);
    }
    if (s.offset == slots(s.k.front())) return Pair{{s.k}, {s.v}};
    return Pair{{s.k, s.offset}, {s.v, s.offset}};
  });
}

Result<Pair> QuantizedCache::keys_and_values() const {
  if (s_.k.empty()) return fail(Code::kPrecondition, "there is no buffer");
  if (s_.offset == slots(s_.k.front())) return Pair{{s_.k}, {s_.v}};
  return Pair{{s_.k, s_.offset}, {s_.v, s_.offset}};
}

Result<std::int64_t> QuantizedCache::trim(std::int64_t n) {
  const std::int64_t taken = trimmed(n, s_.offset, quirks_);
  s_.offset -= taken;
  return taken;
}

Result<Value> QuantizedCache::make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                        bool return_array) const {
  return answer([&] {
    return causal_mask({queries, s_.offset, window ? &*window : nullptr}, return_array);
  });
}

Result<std::vector<Tensor>> QuantizedCache::dequantized() const {
  return answer([&] {
    if (s_.k.empty()) throw Misuse("there is no buffer");
    std::vector<Tensor> out;
    for (const Arrays* side : {&s_.k, &s_.v}) {
      const Value shown = Side{*side, s_.offset}.shown();
      out.push_back(mlx_lm::dequantized(std::get<Quantized>(shown.held), s_.group_size, s_.bits));
    }
    return out;
  });
}

}  // namespace kvo::mlx_lm
