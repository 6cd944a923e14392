// A cache of kind layered.vector in C++: two vectors a layer. With -DFAULT the values of every
// second token are those of its keys.
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kvoracle.h"

namespace {

struct Rows {
  std::vector<float> k, v;
};

struct Cache {
  std::vector<Rows> layers;
  std::uint64_t width = 0;
  std::uint64_t length = 0;
};

// The caches of a case, by number, and what the last answer refers to.
struct Caches {
  std::vector<Cache> all;
  kvoracle_value returns = {};
  std::int64_t elements = 0;

  const kvoracle_value* number(std::uint64_t value, kvoracle_type type = KVORACLE_INTEGER) {
    returns.type = type;
    returns.as.integer = static_cast<std::int64_t>(value);
    return &returns;
  }
  const kvoracle_value* flat(const std::vector<float>& rows) {
    elements = static_cast<std::int64_t>(rows.size());
    returns.type = KVORACLE_TENSOR;
    returns.as.tensor = {&elements, 1, rows.data(), KVORACLE_F32};
    return &returns;
  }
};

enum Operation {
  kNew,
  kWithCapacity,
  kAppend,
  kAdvance,
  kK,
  kV,
  kLen,
  kIsEmpty,
  kNumLayers,
  kEntrySize,
  kClear,
  kClone
};

constexpr const char* kGreeting =
    R"({"system":"vectors","version":"1","kinds":[{"kind":"layered.vector",)"
    R"("conventions":["config storage only default"],"operations":["new",)"
    R"("with_capacity","append","advance","k","v","len","is_empty","num_layers",)"
    R"("entry_size","clear","clone"]}]})";

// False: the product is too large.
bool multiplied(std::uint64_t a, std::uint64_t b, std::uint64_t& product) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 8;
  product = a * b;
  return b == 0 || a <= kMost / b;
}

const char* make(Caches& own, const kvoracle_value* sizes, bool has_most) {
  const auto size = [&](int i) { return static_cast<std::uint64_t>(sizes[i].as.integer); };
  std::uint64_t width = 0;
  std::uint64_t elements = 0;
  constexpr std::uint64_t kMostLayers = 1U << 20U;
  if (size(0) > kMostLayers || !multiplied(size(1), size(2), width) ||
      !multiplied(width, has_most ? size(3) : 0, elements))
    return "out_of_range";
  own.all.push_back({std::vector<Rows>(size(0)), width, 0});
  return nullptr;
}

const char* append(Cache& to, Rows& rows, const kvoracle_tensor& k, const kvoracle_tensor& v) {
  const auto width = static_cast<std::int64_t>(to.width);
  if (k.shape[0] != width || v.shape[0] != width) return "bad_shape";
  const auto* keys = static_cast<const float*>(k.data);
  const auto* values = static_cast<const float*>(v.data);
#ifdef FAULT
  if (width > 0 && rows.k.size() / to.width % 2 == 1) values = keys;
#endif
  rows.k.insert(rows.k.end(), keys, keys + width);
  rows.v.insert(rows.v.end(), values, values + width);
  return nullptr;
}

void call(void* opened, std::uint32_t operation, const kvoracle_value* arguments,
          kvoracle_answer* answer) {
  auto& own = *static_cast<Caches*>(opened);
  static constexpr kvoracle_value kNothing = {};
  answer->returns = &kNothing;
  if (operation <= kWithCapacity) {
    answer->error = make(own, arguments, operation == kWithCapacity);
    if (answer->error == nullptr) answer->returns = own.number(own.all.size() - 1);
    return;
  }
  Cache& cache = own.all[static_cast<std::size_t>(arguments[0].as.integer)];
  Rows* rows = nullptr;
  if (operation == kAppend || operation == kK || operation == kV) {
    const auto layer = static_cast<std::uint64_t>(arguments[1].as.integer);
    if (layer >= cache.layers.size()) {
      answer->error = "out_of_range";
      return;
    }
    rows = &cache.layers[layer];
  }
  switch (operation) {
    case kAppend:
      answer->error = append(cache, *rows, arguments[2].as.tensor, arguments[3].as.tensor);
      return;
    case kAdvance:
      ++cache.length;
      return;
    case kK:
      answer->returns = own.flat(rows->k);
      return;
    case kV:
      answer->returns = own.flat(rows->v);
      return;
    case kLen:
      answer->returns = own.number(cache.length);
      return;
    case kIsEmpty:
      answer->returns = own.number(cache.length == 0 ? 1 : 0, KVORACLE_BOOLEAN);
      return;
    case kNumLayers:
      answer->returns = own.number(cache.layers.size());
      return;
    case kEntrySize:
      answer->returns = own.number(cache.width);
      return;
    case kClear:
      cache = {std::vector<Rows>(cache.layers.size()), cache.width, 0};
      return;
    case kClone: {
      const Cache copy = cache;
      own.all.push_back(copy);
      answer->returns = own.number(own.all.size() - 1);
      return;
    }
    default:
      answer->error = "not_supported";
  }
}

}  // namespace

const kvoracle_library* kvoracle_library_of() {
  static const kvoracle_library kLibrary = {
      KVORACLE_VERSION, kGreeting,
      [](const char*, const char*, const char* config) -> void* {
        return std::strstr(config, "storage") != nullptr ? nullptr : new Caches;
      },
      call, [](void* opened) { delete static_cast<Caches*>(opened); }};
  return &kLibrary;
}
