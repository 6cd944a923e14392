#include "optimized/groups/hashed_requests.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kvo::optimized {
namespace {

// The length first, so that no other parts give the same text.
void add_counted_part(std::string& text, std::string_view part) {
  text.append(std::to_string(part.size())).append(":").append(part);
}

}  // namespace

HashedRequests::HashedRequests(std::int64_t unit, std::int64_t lookahead, bool enable_caching,
                               unsigned hash_bits)
    : RequestTable(enable_caching),
      unit_(unit),
      lookahead_(lookahead),
      index_(static_cast<std::size_t>(unit + lookahead), hash_bits) {}

// The namespace of a request, which is the content before its first unit.
ContentIndex::Id HashedRequests::root_of(const Text& text) {
  root_text_.clear();
  if (text.lora) {
    add_counted_part(root_text_, text.lora->first);
    add_counted_part(root_text_, text.lora->second);
  }
  root_text_.append("s").append(text.salt);
  return index_.use_root(root_text_);
}

// Hashes come first: they wait for each other, but not for the memory that they have fetched.
void HashedRequests::add_keys(Text& text, Chain& chain) {
  const std::int64_t whole = prefix::floor_of(std::ssize(text.tokens) - lookahead_, unit_);
  const std::int64_t known = std::ssize(text.keys);
  if (whole <= known) return;
  const auto more = static_cast<std::size_t>(whole - known);
  hashes_.clear();
  hashes_.reserve(more);
  index_.reserve(more);
  grow_depths(keys() + static_cast<std::int64_t>(more));
  text.keys.resize(static_cast<std::size_t>(whole));
  const auto first = [&](std::int64_t unit) { return text.tokens.data() + unit * unit_; };
  const auto key = [&](std::int64_t unit) -> prefix::Key& {
    return text.keys[static_cast<std::size_t>(unit)];
  };
  ContentIndex::Id before = 0;
  ChainHash hash = {.high = chain[0], .low = chain[1]};
  if (known > 0) {
    before = static_cast<ContentIndex::Id>(prefix::number_of(key(known - 1)));
  } else {
    before = root_of(text);
    hash = ContentIndex::root_hash(root_text_);
  }
  for (std::int64_t unit = known; unit < whole; ++unit) {
    const prefix::TokensView tokens(first(unit), static_cast<std::size_t>(unit_ + lookahead_));
    hash = hash_behind(hash, tokens);
    index_.prefetch(hash);
    hashes_.push_back(hash);
  }
  for (std::int64_t unit = known; unit < whole; ++unit) {
    before = index_.use(before, hashes_[static_cast<std::size_t>(unit - known)], first(unit));
    key(unit) = prefix::key_of(before);
    set_depth(before, unit + 1);
  }
  chain = {hash.high, hash.low};
}

}  // namespace kvo::optimized
