// optimized/groups/hashed_requests.hpp: requests of `groups.blocks` whose contents are found by
// hash.
//
// A key is the number of a content, as in the reference: contents get numbers in the order of their
// coming, and none is forgotten. Each is verified token by token (content_index.hpp).
// Source   rules PX-10 to PX-13, PX-42; GR-3.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "optimized/prefix/content_index.hpp"
#include "reference/prefix/parts.hpp"

namespace kvo::optimized {

class HashedRequests final : public prefix::RequestTable {
 public:
  /// Keys stand for `unit` tokens, and hold the `lookahead` tokens that follow. Fewer hash bits are
  /// for tests.
  HashedRequests(std::int64_t unit, std::int64_t lookahead, bool enable_caching,
                 unsigned hash_bits = ContentIndex::kAllBits);

  [[nodiscard]] const Text& text(std::int64_t row) const override { return at(row).text; }
  [[nodiscard]] const Progress& progress(std::int64_t row) const override {
    return at(row).progress;
  }
  [[nodiscard]] std::int64_t keys() const override { return std::ssize(index_); }
  void append(std::int64_t row, prefix::TokensView tokens) override;

 private:
  struct Row {
    Text text = {};
    Progress progress = {};
    ContentIndex::Id root = ContentIndex::kNone;
    ChainHash hash = {};  ///< of all keys
  };
  /// What the operation changed. It changes one row.
  enum class Change : std::uint8_t { kNothing, kAdded, kReplaced, kAppended, kProgress };

  [[nodiscard]] Row& at(std::int64_t row) { return rows_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] const Row& at(std::int64_t row) const {
    return rows_[static_cast<std::size_t>(row)];
  }
  void put(std::int64_t row, Text text) override;
  [[nodiscard]] Progress& change_progress(std::int64_t row) override;
  void add_keys(Row& row);
  void commit_rows() noexcept override;
  void roll_back_rows() noexcept override;

  std::int64_t unit_;
  std::int64_t lookahead_;
  ContentIndex index_;
  std::deque<Row> rows_;
  // The change of the operation, and what was there before.
  Change change_ = Change::kNothing;
  std::int64_t changed_ = 0;  ///< row
  Row whole_;
  std::size_t tokens_before_ = 0;
  std::size_t keys_before_ = 0;
  ChainHash hash_before_ = {};
  Progress progress_before_;
  std::string root_text_;
  std::vector<ChainHash> hashes_;  ///< of the units that get keys
};

}  // namespace kvo::optimized
