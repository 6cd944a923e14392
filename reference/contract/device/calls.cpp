#include "reference/contract/device/calls.hpp"

#include <array>
#include <string_view>

namespace kvo {
namespace {

namespace json = boost::json;
using Where = ShownPtr::Where;

struct NamedPlace {
  Where where;
  std::string_view name;
};
constexpr std::array<NamedPlace, 3> kNames{
    {{Where::kHost, "host"}, {Where::kKSource, "k_src"}, {Where::kVSource, "v_src"}}};

}  // namespace

json::value ShownPtr::to_json() const {
  for (const auto& [place, name] : kNames)
    if (place == where) return json::value(name);
  if (where == Where::kNull && off == 0) return nullptr;
  json::object out;
  out["buf"] = where == Where::kBuffer ? json::value(buf) : json::value(nullptr);
  out["off"] = off;
  return out;
}

bool ShownPtr::from_json(const json::value& in) {
  *this = {};
  if (in.is_null()) return true;
  if (in.is_string()) {
    for (const auto& [place, name] : kNames)
      if (std::string_view(in.get_string()) == name) where = place;
    return where != Where::kNull;
  }
  const json::object* object = in.if_object();
  if (object == nullptr || object->size() != 2) return false;
  const json::value* number = object->if_contains("buf");
  const json::value* offset = object->if_contains("off");
  if (number == nullptr || offset == nullptr || !offset->is_int64()) return false;
  off = offset->get_int64();
  if (number->is_null()) return true;
  if (!number->is_int64()) return false;
  where = Where::kBuffer;
  buf = number->get_int64();
  return true;
}

}  // namespace kvo
