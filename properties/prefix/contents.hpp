// properties/prefix/contents.hpp: what a place holds, told by number: rows for oracles.
//
// The rows of a token depend on all tokens before it and on the namespace (PX-1): its content is
// that prefix. So a place that holds the content of another prefix serves the wrong rows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

/// Two contents are equal exactly if their prefixes and namespaces are.
using Content = std::int64_t;
inline constexpr Content kNoContent = -1;

/// Ids prefixes.
class Contents {
 public:
  using Space = std::vector<std::optional<std::string>>;

  /// Of no token, in a namespace.
  [[nodiscard]] Content start(const Space& space) {
    const auto [found, is_new] = starts_.try_emplace(space, next_);
    if (is_new) ++next_;
    return found->second;
  }
  /// Of the prefix that is one token longer.
  [[nodiscard]] Content after(Content before, Token token) {
    const auto [found, is_new] = longer_.try_emplace({before, token}, next_);
    if (is_new) ++next_;
    return found->second;
  }
  /// Of all prefixes of the tokens behind those that `prefixes` ends with, which is not empty.
  void extend(std::vector<Content>& prefixes, TokensView tokens) {
    for (const Token token : tokens) prefixes.push_back(after(prefixes.back(), token));
  }

 private:
  struct Mixed {
    std::size_t operator()(const std::pair<Content, Token>& key) const {
      constexpr std::uint64_t kOdd = 0x9E37'79B9'7F4A'7C15U;
      const auto token = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.second));
      return (static_cast<std::uint64_t>(key.first) * kOdd) ^ (token * (kOdd >> 7U));
    }
  };

  std::map<Space, Content> starts_;
  std::unordered_map<std::pair<Content, Token>, Content, Mixed> longer_;
  Content next_ = 0;
};

}  // namespace kvo::prefix
