// reference/contract/describe/parse_json.hpp: JSON text whose numbers are read to the last bit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/json.hpp>

namespace kvo {

/// The document in `text`, as boost::json::parse reads it, but a number with a fraction is the
/// nearest double: that of Boost 1.81 is the next one now and then. No object may have two members
/// of one name.
/// Returns  null with `failure` set where the text is no JSON. Where only a name is there twice,
///          `twice` is that name, which may be empty.
[[nodiscard]] boost::json::value parse_json(std::string_view text,
                                            boost::system::error_code& failure,
                                            std::optional<std::string>* twice = nullptr);

}  // namespace kvo
