#include "reference/contract/describe/parse_json.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string>

#include <boost/container/small_vector.hpp>
#include <boost/json/basic_parser_impl.hpp>

namespace kvo {
namespace {

namespace json = boost::json;
using Failure = boost::system::error_code;
using Text = json::string_view;

// Makes a value of what the parser finds.
struct Builder {
  // NOLINTBEGIN(readability-identifier-naming): the parser asks for these names
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  bool on_document_begin(Failure& /*ec*/) { return true; }
  bool on_document_end(Failure& /*ec*/) { return true; }
  bool on_object_begin(Failure& /*ec*/) { return true; }
  bool on_object_end(std::size_t n, Failure& ec) {
    const auto own = keys.end() - static_cast<std::ptrdiff_t>(n);
    std::sort(own, keys.end());
    if (const auto first = std::adjacent_find(own, keys.end()); first != keys.end()) {
      twice = *first;
      ec = json::error::syntax;
      return false;
    }
    keys.erase(own, keys.end());
    stack.push_object(n);
    return true;
  }
  bool on_array_begin(Failure& /*ec*/) { return true; }
  bool on_array_end(std::size_t n, Failure& /*ec*/) {
    stack.push_array(n);
    return true;
  }
  bool on_key_part(Text part, std::size_t /*n*/, Failure& /*ec*/) {
    key.append(part.data(), part.size());
    stack.push_chars(part);
    return true;
  }
  bool on_key(Text part, std::size_t /*n*/, Failure& /*ec*/) {
    std::string_view whole(part.data(), part.size());
    if (!key.empty()) whole = key.append(whole);
    keys.push_back(std::hash<std::string_view>()(whole));
    if (twice == keys.back()) name = whole;
    key.clear();
    stack.push_key(part);
    return true;
  }
  bool on_string_part(Text part, std::size_t /*n*/, Failure& /*ec*/) {
    stack.push_chars(part);
    return true;
  }
  bool on_string(Text part, std::size_t /*n*/, Failure& /*ec*/) {
    stack.push_string(part);
    return true;
  }
  bool on_number_part(Text part, Failure& /*ec*/) {
    number.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t value, Text /*text*/, Failure& /*ec*/) {
    number.clear();
    stack.push_int64(value);
    return true;
  }
  bool on_uint64(std::uint64_t value, Text /*text*/, Failure& /*ec*/) {
    number.clear();
    stack.push_uint64(value);
    return true;
  }
  bool on_double(double value, Text text, Failure& /*ec*/) {
    number.append(text.data(), text.size());
    double nearest = 0;
    const char* end = number.data() + number.size();
    const auto read = std::from_chars(number.data(), end, nearest);
    // Beyond the range of doubles the parser's zero or infinity stands.
    stack.push_double(read.ec == std::errc() && read.ptr == end ? nearest : value);
    number.clear();
    return true;
  }
  bool on_bool(bool value, Failure& /*ec*/) {
    stack.push_bool(value);
    return true;
  }
  bool on_null(Failure& /*ec*/) {
    stack.push_null();
    return true;
  }
  bool on_comment_part(Text /*part*/, Failure& /*ec*/) { return true; }
  bool on_comment(Text /*part*/, Failure& /*ec*/) { return true; }

  json::value_stack stack;
  std::string number;  // as far as it was read
  std::string key;     // the same
  boost::container::small_vector<std::size_t, 32>
      keys;                          // hashes of the keys of objects that are not read to their end
  std::optional<std::size_t> twice;  // that of a key that an object has twice
  std::string name;                  // such a key, in a second reading
};

}  // namespace

json::value parse_json(std::string_view text, Failure& failure, std::optional<std::string>* twice) {
  json::basic_parser<Builder> parser(json::parse_options{});
  parser.handler().stack.reset();
  const std::size_t read = parser.write_some(false, text.data(), text.size(), failure);
  if (!failure && read < text.size()) failure = json::error::extra_data;
  if (!failure) return parser.handler().stack.release();
  if (parser.handler().twice && twice != nullptr) {
    json::basic_parser<Builder> again(json::parse_options{});
    again.handler().stack.reset();
    again.handler().twice = parser.handler().twice;
    Failure same;
    (void)again.write_some(false, text.data(), text.size(), same);
    *twice = again.handler().name;
  }
  return nullptr;
}

}  // namespace kvo
