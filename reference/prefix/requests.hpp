// reference/prefix/requests.hpp: requests of the references. Contract `groups` has the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/prefix/blocks.hpp"
#include "reference/prefix/parts.hpp"

namespace kvo::prefix {

/// Requests whose keys number the contents that a map has seen.
class Requests final : public RequestTable {
 public:
  /// Keys stand for `unit` tokens, and hold the `lookahead` tokens that follow.
  Requests(std::int64_t unit, std::int64_t lookahead, bool enable_caching)
      : RequestTable(enable_caching), unit_(unit), lookahead_(lookahead) {}

  [[nodiscard]] std::int64_t keys() const override { return std::ssize(contents_); }

 private:
  /// What a key stands for: the unit before it, its tokens, and extras (PX-10, PX-12, PX-13).
  using Content = std::tuple<std::int64_t, Tokens, std::string,
                             std::optional<std::pair<std::string, std::string>>>;

  void add_keys(Text& text, Chain& chain) override;

  std::int64_t unit_;
  std::int64_t lookahead_;
  std::map<Content, std::int64_t> contents_;  ///< number of each content that was ever seen
};

}  // namespace kvo::prefix
