// reference/contract/values/profile.hpp: which of two behaviours a cache shows.
#pragma once

#include <cstdint>

#include <boost/describe/enum.hpp>

namespace kvo {

/// `original` is what the followed system does, quirks included; `documented` what it promises.
enum class Profile : std::uint8_t { kOriginal, kDocumented };
BOOST_DESCRIBE_ENUM(Profile, kOriginal, kDocumented)

}  // namespace kvo
