#include "traces/formats/mooncake.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/error.hpp>
#include <boost/json/kind.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "traces/formats/field_values.hpp"

namespace kvo::traces {

namespace {

namespace json = boost::json;

constexpr std::string_view kTimestamp = "timestamp";
constexpr std::string_view kInputLength = "input_length";
constexpr std::string_view kOutputLength = "output_length";
constexpr std::string_view kHashIds = "hash_ids";
constexpr std::int64_t kMicrosecondsPerMillisecond = 1000;
constexpr std::int64_t kMaxTimestampMs =
    std::numeric_limits<std::int64_t>::max() / kMicrosecondsPerMillisecond;

std::string not_whole(const json::value& value) {
  if (value.is_double()) return "not a whole number below 2^64";
  return fmt::format("a whole number is wanted, not {}", json::to_string(value.kind()).data());
}

TraceError wrong(Place place, std::string_view field, const json::value& value,
                 std::string_view message) {
  return error_at(place, field, json::serialize(value), message);
}

/// The member `field` as an integer of 63 bits and a sign.
TraceResult<std::int64_t> whole_number(Place place, const json::object& object,
                                       std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr) return error_at(place, field, {}, "this field is missing");
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return wrong(place, field, *value, "larger than 2^63 - 1");
  return wrong(place, field, *value, not_whole(*value));
}

TraceResult<std::int64_t> tokens(Place place, const json::object& object, std::string_view field) {
  const auto number = whole_number(place, object, field);
  return number ? check_tokens(place, field, *number) : number;
}

TraceResult<std::int64_t> arrival_us(Place place, const json::object& object) {
  auto ms = whole_number(place, object, kTimestamp);
  if (!ms) return ms;
  if (*ms < 0) return error_at(place, kTimestamp, std::to_string(*ms), "below zero");
  if (*ms > kMaxTimestampMs) {
    return error_at(place, kTimestamp, std::to_string(*ms), "too large a time");
  }
  return *ms * kMicrosecondsPerMillisecond;
}

TraceResult<std::vector<std::uint64_t>> block_ids(Place place, const json::object& object) {
  const json::value* value = object.if_contains(kHashIds);
  if (value == nullptr) return error_at(place, kHashIds, {}, "this field is missing");
  const json::array* array = value->if_array();
  if (array == nullptr) {
    return wrong(place, kHashIds, *value,
                 fmt::format("an array is wanted, not {}", json::to_string(value->kind()).data()));
  }
  std::vector<std::uint64_t> ids;
  ids.reserve(array->size());
  for (const json::value& id : *array) {
    if (id.is_uint64()) {
      ids.push_back(id.get_uint64());
    } else if (id.is_int64() && id.get_int64() >= 0) {
      ids.push_back(static_cast<std::uint64_t>(id.get_int64()));
    } else {
      const auto field = fmt::format("{}[{}]", kHashIds, ids.size());
      return wrong(place, field, id, id.is_int64() ? "below zero" : not_whole(id));
    }
  }
  return ids;
}

class MooncakeReader final : public Reader {
 public:
  explicit MooncakeReader(TextSource source) : source_(std::move(source)) {}

 protected:
  TraceResult<std::optional<Request>> read_next() override {
    if (const auto passed = source_.pass_blank_lines(); !passed) return passed.error();
    const auto line = source_.next_line();
    if (!line) return line.error();
    if (!*line) return std::optional<Request>();
    auto request = parse(**line);
    if (!request) return request.error();
    return std::optional(std::move(*request));
  }

 private:
  TraceResult<Request> parse(std::string_view line) {
    // The values live in memory that is dropped at once: parsing is most of the reading time.
    json::monotonic_resource memory(scratch_.data(), scratch_.size());
    parser_.reset(&memory);
    auto request = parse_in(line);
    parser_.reset();
    return request;
  }

  TraceResult<Request> parse_in(std::string_view line) {
    json::error_code code;
    const std::size_t used = parser_.write_some(line, code);
    if (code == json::error::incomplete) {
      return error_at(source_.place(), "json", line, "the line stops in the middle of its value");
    }
    if (!code && line.find_first_not_of(" \t\r", used) != std::string_view::npos) {
      code = json::error::extra_data;
    }
    if (code) {
      return error_at(source_.place(), "json", line,
                      fmt::format("no JSON at byte {}: {}", used + 1, code.message()));
    }
    const json::value value = parser_.release();
    const json::object* object = value.if_object();
    if (object == nullptr) {
      return error_at(source_.place(), "json", line, "an object is wanted");
    }
    return to_request(*object);
  }

  [[nodiscard]] TraceResult<Request> to_request(const json::object& object) const {
    const Place place = source_.place();
    const auto arrival = arrival_us(place, object);
    if (!arrival) return arrival.error();
    const auto input = tokens(place, object, kInputLength);
    if (!input) return input.error();
    const auto output = tokens(place, object, kOutputLength);
    if (!output) return output.error();
    auto ids = block_ids(place, object);
    if (!ids) return ids.error();
    return Request{.arrival_us = *arrival,
                   .input_tokens = *input,
                   .output_tokens = *output,
                   .block_ids = std::move(*ids),
                   .line = place.line};
  }

  TextSource source_;
  json::parser parser_;
  std::array<unsigned char, 16 << 10> scratch_;
};

}  // namespace

bool looks_like_mooncake(std::string_view first_line) {
  const auto begin = first_line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || first_line[begin] != '{') return false;
  constexpr std::array kFields{kTimestamp, kInputLength, kOutputLength, kHashIds};
  return std::any_of(kFields.begin(), kFields.end(), [&](std::string_view field) {
    return first_line.find(fmt::format("\"{}\"", field)) != std::string_view::npos;
  });
}

TraceResult<std::unique_ptr<Reader>> open_mooncake(TextSource source) {
  return std::unique_ptr<Reader>(std::make_unique<MooncakeReader>(std::move(source)));
}

std::string to_mooncake_line(const Request& request) {
  return fmt::format(R"({{"{}": {}, "{}": {}, "{}": {}, "{}": [{}]}})", kTimestamp,
                     request.arrival_us / kMicrosecondsPerMillisecond, kInputLength,
                     request.input_tokens, kOutputLength, request.output_tokens, kHashIds,
                     fmt::join(request.block_ids, ", "));
}

}  // namespace kvo::traces
