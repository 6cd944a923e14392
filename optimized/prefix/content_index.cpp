#include "optimized/prefix/content_index.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "optimized/memory/growth.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::optimized {
namespace {

constexpr std::uint64_t kOdd[] = {0x9E3779B97F4A7C15U, 0xC2B2AE3D27D4EB4FU, 0x165667B19E3779F9U,
                                  0xD6E8FEB86659FD93U};

std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

// Two lanes that see both words, so that neither alone says what the other does.
ChainHash mixed(ChainHash hash, std::uint64_t a, std::uint64_t b) {
  return {.high = folded(a ^ hash.high ^ kOdd[0], b ^ kOdd[1]) + (hash.low ^ b),
          .low = folded(b ^ hash.low ^ kOdd[2], a ^ kOdd[3]) + (hash.high ^ a)};
}

ChainHash hash_of_bytes(ChainHash hash, const char* bytes, std::size_t size) {
  std::size_t at = 0;
  std::uint64_t words[2];
  for (; at + sizeof words <= size; at += sizeof words) {
    std::memcpy(words, bytes + at, sizeof words);
    hash = mixed(hash, words[0], words[1]);
  }
  words[0] = words[1] = 0;
  std::memcpy(words, bytes + at, size - at);
  hash = mixed(hash, words[0], words[1]);
  return mixed(hash, size, kOdd[0]);
}

}  // namespace

ChainHash hash_behind(ChainHash before, std::string_view text) {
  return hash_of_bytes(before, text.data(), text.size());
}

ChainHash hash_behind(ChainHash before, prefix::TokensView tokens) {
  return hash_of_bytes(before, reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
}

ContentIndex::ContentIndex(std::size_t tokens, unsigned hash_bits)
    : tokens_of_one_(tokens), hash_bits_(hash_bits) {}

ChainHash ContentIndex::cut(ChainHash hash) const {
  if (hash_bits_ >= kAllBits) return hash;
  return {.high = 0, .low = hash.low & ((std::uint64_t{1} << hash_bits_) - 1)};
}

ChainHash ContentIndex::root_hash(std::string_view text) {
  return hash_of_bytes({.high = kOdd[2], .low = kOdd[3]}, text.data(), text.size());
}

ContentIndex::Id ContentIndex::use_root(std::string_view text) {
  const auto known = roots_.find(text);
  if (known != roots_.end()) {
    ++users(known->second);
    return known->second;
  }
  if (roots_.size() >= sweep_at_) sweep_roots();
  if (root_users_.size() >= kNone - kRoots) throw std::bad_alloc();
  make_room(root_users_, 1);
  make_room(root_unused_, root_users_.size() + 1 - root_unused_.size());
  const auto placed = roots_.emplace(std::string(text), kNone).first;
  if (root_unused_.empty()) {
    root_unused_.push_back(kRoots + static_cast<Id>(root_users_.size()));
    root_users_.push_back(0);
  }
  placed->second = root_unused_.back();
  root_unused_.pop_back();
  users(placed->second) = 1;
  return placed->second;
}

// Roots that nobody uses are kept for a while: most namespaces come again.
void ContentIndex::sweep_roots() noexcept {
  std::erase_if(roots_, [&](const auto& root) {
    if (users(root.second) > 0) return false;
    root_unused_.push_back(root.second);
    return true;
  });
  sweep_at_ = std::max(kLeastSweep, 2 * roots_.size());
}

void ContentIndex::reserve(std::size_t more) {
  const std::size_t made = more - std::min(more, forgotten_count_);
  if (made >= kRoots - contents_.size()) throw std::bad_alloc();
  make_room(contents_, made);
  make_room(firsts_, made);
  if (tokens_of_one_ > 0 && made > tokens_.max_size() / tokens_of_one_) throw std::bad_alloc();
  make_room(tokens_, made * tokens_of_one_);
  filed_.reserve(more);
}

ContentIndex::Id ContentIndex::make() noexcept {
  if (forgotten_ != kNone) {
    const Id content = forgotten_;
    forgotten_ = contents_[content].before;
    --forgotten_count_;
    contents_[content] = {};
    firsts_[content] = kNone;
    return content;
  }
  contents_.emplace_back();  // there is room
  firsts_.push_back(kNone);
  tokens_.resize(tokens_.size() + tokens_of_one_);
  return static_cast<Id>(contents_.size() - 1);
}

ContentIndex::Id ContentIndex::find(const prefix::Key& name) const {
  return filed_.find(static_cast<std::uint32_t>(name.low),
                     [&](Id id) { return contents_[id].name == name; });
}

ContentIndex::Id ContentIndex::use(Id before, ChainHash hash,
                                   const prefix::Token* tokens) noexcept {
  const std::size_t bytes = tokens_of_one_ * sizeof(prefix::Token);
  hash = cut(hash);
  const auto tag = static_cast<std::uint32_t>(hash.low);
  const Id found = filed_.find(tag, [&](Id id) {
    return contents_[id].before == before &&
           std::memcmp(&tokens_[id * tokens_of_one_], tokens, bytes) == 0;
  });
  if (found != kNone) {
    ++contents_[found].users;
    return found;
  }
  prefix::Key name{hash.high, hash.low};
  while (find(name) != kNone) ++name.high;
  const Id made = make();
  contents_[made] = {.name = name,
                     .before = before,
                     .users = hash_bits_ < kAllBits ? 2U : 1U,
                     .depth = before < kRoots ? contents_[before].depth + 1 : 1};
  std::memcpy(&tokens_[made * tokens_of_one_], tokens, bytes);
  ++users(before);
  filed_.add(tag, made);
  return made;
}

void ContentIndex::leave(Id content) noexcept {
  while (--users(content) == 0 && content < kRoots) {
    filed_.remove(static_cast<std::uint32_t>(contents_[content].name.low), content);
    const Id before = contents_[content].before;
    contents_[content].before = forgotten_;
    forgotten_ = content;
    ++forgotten_count_;
    content = before;
  }
}

}  // namespace kvo::optimized
