#include "reference/layered/cache.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "reference/contract/values/strided_view.hpp"
#include "reference/contract/values/thrown.hpp"

namespace kvo::layered {
namespace {

// One item a line when pretty, "a, b" otherwise.
class DebugWriter {
 public:
  explicit DebugWriter(bool pretty) : pretty_(pretty) {}

  template <class Items>
  void list(const Items& items, char open, char close) {
    text_ += open;
    ++depth_;
    bool first = true;
    for (const auto& item : items) {
      separate(first);
      first = false;
      item(*this);
    }
    --depth_;
    if (pretty_ && !first) {
      text_ += ',';
      new_line();
    } else if (open == '{') {
      text_ += ' ';
    }
    text_ += close;
  }
  void write(std::string_view text) { text_ += text; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void separate(bool first) {
    if (!first) text_ += pretty_ ? "," : ", ";
    if (pretty_) {
      new_line();
    } else if (first && text_.back() == '{') {
      text_ += ' ';
    }
  }
  void new_line() {
    text_ += '\n';
    text_.append(4 * depth_, ' ');
  }

  bool pretty_;
  std::size_t depth_ = 0;
  std::string text_;
};

// Rust's {:?} of an f32: the shortest digits that read back, with an exponent where plain digits
// would be long.
std::string float_text(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  const std::string_view scientific(buffer.data(),
                                    static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const std::string_view tail = scientific.substr(e + (scientific[e + 1] == '+' ? 2 : 1));
  std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
  const std::string_view mantissa = scientific.substr(0, e);
  if (value != 0 && (exponent < -4 || exponent >= 16))
    return std::string(mantissa) + "e" + std::to_string(exponent);
  const std::string sign = mantissa.front() == '-' ? "-" : "";
  std::string digits;
  for (const char c : mantissa)
    if (c >= '0' && c <= '9') digits += c;
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

using Item = std::function<void(DebugWriter&)>;

Item layers_item(const Cache& cache, const StorageFormat& storage, bool keys) {
  return [&cache, storage, keys](DebugWriter& out) {
    std::vector<Item> layers;
    for (std::uint64_t layer = 0; layer < cache.num_layers(); ++layer) {
      layers.emplace_back([&cache, &storage, keys, layer](DebugWriter& inner) {
        const auto side = keys ? cache.k({.layer = layer}) : cache.v({.layer = layer});
        if (!side) demand(side.error());
        std::vector<Item> elements;
        const Tensor shown = shown_rows(cache.geometry(), storage, *side);
        const std::size_t step = dtype_bytes(shown.dtype);
        for (std::size_t at = 0; at < shown.bytes.size(); at += step) {
          const float value = load_element(shown.dtype, &shown.bytes[at]);
          elements.emplace_back([value](DebugWriter& leaf) { leaf.write(float_text(value)); });
        }
        inner.list(elements, '[', ']');
      });
    }
    out.list(layers, '[', ']');
  };
}

Item field(std::string_view name, Item value) {
  return [name, value = std::move(value)](DebugWriter& out) {
    out.write(name);
    out.write(": ");
    value(out);
  };
}

Item number(std::uint64_t value) {
  return [value](DebugWriter& out) { out.write(std::to_string(value)); };
}

}  // namespace

Result<std::uint64_t> entry_elements(const Geometry& geometry, const Behaviour& behaviour) {
  const bool unchecked = behaviour.quirks.has(Quirk::kSizesUnchecked);
  std::uint64_t product = 0;
  const bool overflow = __builtin_mul_overflow(geometry.num_kv_heads, geometry.head_dim, &product);
  if (overflow && !(unchecked && behaviour.build == Build::kRelease))
    return fail(unchecked ? Code::kPrecondition : Code::kOutOfRange,
                "num_kv_heads * head_dim overflows");
  return product;
}

Result<std::uint64_t> reserved_elements(const Geometry& geometry, std::uint64_t max_seq_len,
                                        const Behaviour& behaviour) {
  const bool unchecked = behaviour.quirks.has(Quirk::kSizesUnchecked);
  const Code code = unchecked ? Code::kPrecondition : Code::kOutOfRange;
  const auto entry = entry_elements(geometry, behaviour);
  if (!entry) return entry.error();
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(max_seq_len, *entry, &product) &&
      !(unchecked && behaviour.build == Build::kRelease))
    return fail(code, "max_seq_len * num_kv_heads * head_dim overflows");
  // No type takes more than five bytes an element: a code and the scale and offset of its group.
  const std::uint64_t bytes = behaviour.storage.type == StorageType::kF32 ? sizeof(float) : 5;
  if (product > std::numeric_limits<std::int64_t>::max() / bytes &&
      (geometry.num_layers > 0 || !unchecked))
    return fail(code, "max_seq_len: capacity overflow");
  return geometry.num_layers > 0 ? product : 0;
}

std::uint64_t stored_bytes_of(const Geometry& geometry, std::uint64_t elements,
                              const StorageFormat& storage) {
  if (!in_groups(storage.type)) return elements * dtype_bytes(dtype_of(storage.type));
  if (elements == 0) return 0;
  return elements / geometry.head_dim * stored_bytes(storage, geometry.head_dim);
}

Tensor shown_rows(const Geometry& geometry, const StorageFormat& storage,
                  std::span<const std::byte> rows) {
  // Of floats every element stands for itself.
  const std::uint64_t dim = in_groups(storage.type) ? geometry.head_dim : 1;
  const std::size_t count = rows.empty() ? 0 : rows.size() / stored_bytes(storage, dim);
  Tensor shown = show_rows(
      storage, {static_cast<std::int64_t>(count), static_cast<std::int64_t>(dim)}, rows.data());
  shown.shape = {shown.elements()};
  return shown;
}

std::string debug_text(const Cache& cache, const StorageFormat& storage, bool pretty) {
  const Geometry geometry = cache.geometry();
  DebugWriter out(pretty);
  out.write("KVCache ");
  const std::vector<Item> fields{field("k", layers_item(cache, storage, true)),
                                 field("v", layers_item(cache, storage, false)),
                                 field("num_layers", number(geometry.num_layers)),
                                 field("num_kv_heads", number(geometry.num_kv_heads)),
                                 field("head_dim", number(geometry.head_dim)),
                                 field("len", number(cache.len()))};
  out.list(fields, '{', '}');
  return out.text();
}

}  // namespace kvo::layered
