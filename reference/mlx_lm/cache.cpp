#include "reference/mlx_lm/cache.hpp"

#include "reference/contract/describe/json.hpp"

namespace kvo::mlx_lm {

namespace json = boost::json;

json::value Value::to_json() const {
  return std::visit(
      [](const auto& value) -> json::value {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, List>) {
          json::array list;
          for (const Value& one : value) list.push_back(one.to_json());
          return list;
        } else {
          return write_json(value);
        }
      },
      held);
}

bool Value::from_json(const json::value& in) {
  JsonFault fault;
  const auto read = [&](auto value) {
    if (!read_json(in, value, fault)) return false;
    held = std::move(value);
    return true;
  };
  if (in.is_null()) {
    held = std::monostate();
    return true;
  }
  if (in.is_bool()) return read(bool());
  if (in.is_int64()) return read(std::int64_t());
  if (in.is_string()) return read(std::string());
  if (in.is_object()) return in.get_object().contains("shape") ? read(Tensor()) : read(Quantized());
  if (!in.is_array()) return false;
  List list(in.get_array().size());
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!list[i].from_json(in.get_array()[i])) return false;
  held = std::move(list);
  return true;
}

bool operator==(const Value& a, const Value& b) {
  if (const auto* rows = std::get_if<Quantized>(&a.held))
    if (const auto* others = std::get_if<Quantized>(&b.held))
      return rows->w == others->w && rows->scales == others->scales &&
             rows->biases == others->biases;
  return a.held.index() == b.held.index() && std::visit(
                                                 [&](const auto& value) {
                                                   using T = std::remove_cvref_t<decltype(value)>;
                                                   if constexpr (std::is_same_v<T, Quantized>)
                                                     return false;
                                                   else
                                                     return value == std::get<T>(b.held);
                                                 },
                                                 a.held);
}

Value Side::shown() const {
  if (arrays.empty() || !arrays.front()) return {};
  const auto one = [&](const Array& array) { return count ? sliced(*array, 0, *count) : *array; };
  if (arrays.size() == 1) return one(arrays.front());
  return Quantized{one(arrays[0]), one(arrays[1]), one(arrays[2])};
}

namespace {

Error not_offered(const char* method) {
  return fail(Code::kNotSupported, method);
}

}  // namespace

Result<Value> Cache::offset() const {
  return not_offered("offset");
}
Result<Pair> Cache::update(const Array& /*k*/, const Array& /*v*/) {
  return not_offered("update");
}
Result<Pair> Cache::keys_and_values() const {
  return not_offered("keys_and_values");
}
Result<std::int64_t> Cache::trim(std::int64_t /*n*/) {
  return not_offered("trim");
}
Result<Value> Cache::make_mask(std::int64_t /*queries*/, std::optional<std::int64_t> /*window*/,
                               bool /*return_array*/) const {
  return not_offered("make_mask");
}
Result<CachePtr> Cache::merge(std::span<const Cache* const> /*caches*/) const {
  return not_offered("merge");
}
Result<CachePtr> Cache::extract(std::int64_t /*row*/) const {
  return not_offered("extract");
}
Result<CachePtr> Cache::to_quantized(std::int64_t /*group_size*/, std::int64_t /*bits*/) const {
  return not_offered("to_quantized");
}
Result<std::vector<Tensor>> Cache::dequantized() const {
  return not_offered("dequantized");
}
Result<std::vector<std::int64_t>> Cache::maybe_trim_front() {
  return not_offered("maybe_trim_front");
}
Status Cache::filter(const Ints& /*rows*/) {
  return not_offered("filter");
}
Status Cache::extend(Cache& /*other*/) {
  return not_offered("extend");
}
Status Cache::prepare(const std::optional<Ints>& /*left_padding*/,
                      const std::optional<Ints>& /*lengths*/,
                      const std::optional<Ints>& /*right_padding*/) {
  return not_offered("prepare");
}
Status Cache::finalize() {
  return not_offered("finalize");
}
Status Cache::set(std::int64_t /*entry*/, const Array& /*array*/) {
  return not_offered("set");
}
Status Cache::advance(std::int64_t /*n*/) {
  return not_offered("advance");
}

Value causal_mask(const Mask& mask, bool return_array) {
  if (mask.window != nullptr) return mask.matrix();
  if (mask.queries == 1) return {};
  if (return_array) return mask.matrix();
  return "causal";
}

}  // namespace kvo::mlx_lm
