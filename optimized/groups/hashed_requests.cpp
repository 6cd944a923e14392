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

// The keys that the tokens have and the list does not. Throws std::bad_alloc; no content is new
// then.
void HashedRequests::add_keys(Row& row) {
  Text& text = row.text;
  if (!enable_caching()) return;
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
  for (std::int64_t unit = known; unit < whole; ++unit) {
    const prefix::TokensView tokens(first(unit), static_cast<std::size_t>(unit_ + lookahead_));
    row.hash = hash_behind(row.hash, tokens);
    index_.prefetch(row.hash);
    hashes_.push_back(row.hash);
  }
  auto before =
      known > 0 ? static_cast<ContentIndex::Id>(prefix::number_of(key(known - 1))) : row.root;
  for (std::int64_t unit = known; unit < whole; ++unit) {
    before = index_.use(before, hashes_[static_cast<std::size_t>(unit - known)], first(unit));
    key(unit) = prefix::key_of(before);
    set_depth(before, unit + 1);
  }
}

void HashedRequests::put(std::int64_t row, Text text) {
  root_text_.clear();
  if (text.lora) {
    add_counted_part(root_text_, text.lora->first);
    add_counted_part(root_text_, text.lora->second);
  }
  root_text_.append("s").append(text.salt);
  Row made{.text = std::move(text),
           .root = index_.use_root(root_text_),
           .hash = ContentIndex::root_hash(root_text_)};
  add_keys(made);
  changed_ = row;
  if (row < std::ssize(rows_)) {
    whole_ = std::exchange(at(row), std::move(made));
    change_ = Change::kReplaced;
  } else {
    rows_.push_back(std::move(made));
    change_ = Change::kAdded;
  }
}

void HashedRequests::append(std::int64_t row, prefix::TokensView tokens) {
  Row& there = at(row);
  changed_ = row;
  tokens_before_ = there.text.tokens.size();
  keys_before_ = there.text.keys.size();
  hash_before_ = there.hash;
  change_ = Change::kAppended;
  there.text.tokens.insert(there.text.tokens.end(), tokens.begin(), tokens.end());
  add_keys(there);
}

prefix::RequestTable::Progress& HashedRequests::change_progress(std::int64_t row) {
  changed_ = row;
  progress_before_ = at(row).progress;
  change_ = Change::kProgress;
  return at(row).progress;
}

void HashedRequests::commit_rows() noexcept {
  if (change_ == Change::kReplaced) whole_ = {};
  change_ = Change::kNothing;
}

void HashedRequests::roll_back_rows() noexcept {
  switch (std::exchange(change_, Change::kNothing)) {
    case Change::kNothing:
      break;
    case Change::kAdded:
      rows_.pop_back();
      break;
    case Change::kReplaced:
      at(changed_) = std::exchange(whole_, {});
      break;
    case Change::kAppended: {
      Row& there = at(changed_);
      there.text.tokens.resize(tokens_before_);
      there.text.keys.resize(keys_before_);
      there.hash = hash_before_;
      break;
    }
    case Change::kProgress:
      at(changed_).progress = progress_before_;
      break;
  }
}

}  // namespace kvo::optimized
