// properties/prefix/tree_accounts.hpp: what a history knows of a tree of token runs, and of slots.
//
// The tree is known page by page: a node is the pages from behind the node above it to the one
// that it ends with, which never changes. So a split only gives a page in the middle a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "properties/prefix/contents.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {

/// The pages of a sequence, each by the content of all that ends with it.
using Path = std::vector<Content>;

class TreeAccounts {
 public:
  using Words = std::optional<std::string>;

  explicit TreeAccounts(std::int64_t page_size) : page_size_(page_size) {}

  struct Reached {
    std::int64_t pages = 0;
    std::int64_t node = 0;
  };
  /// The longest prefix that is held; its last page ends a node from now on (PX-64, PX-65).
  Reached walk(const Path& path);
  /// Adds what is not held, with its slots of all (PX-66). Returns  pages that were held before.
  Reached insert(const Path& path, const Ids& slots);
  /// Of the first pages of a path, which are held.
  [[nodiscard]] Ids slots(const Path& path, std::int64_t pages) const;

  /// By how much the evictable units change (PX-73); nothing where there is no such node.
  [[nodiscard]] std::optional<std::int64_t> lock(std::int64_t node) { return count_locks(node, 1); }
  /// The same; nothing also where that very node has no lock.
  [[nodiscard]] std::optional<std::int64_t> unlock(std::int64_t node) {
    return count_locks(node, -1);
  }
  [[nodiscard]] bool has(Content page) const { return pages_.contains(page); }
  /// The pages of a node, or of all; none where there is no such node.
  [[nodiscard]] Path run_of(std::int64_t node) const;
  [[nodiscard]] Path all_pages() const;
  /// Takes a leaf out, and adds its slots. Words where it is no leaf, or locked (PX-70).
  [[nodiscard]] Words remove(std::int64_t node, Ids& slots);
  /// Whether there is a leaf that may go.
  [[nodiscard]] bool has_evictable() const;
  void reset();

  [[nodiscard]] std::int64_t units() const { return std::ssize(pages_) * page_size_; }
  [[nodiscard]] std::int64_t locked_units() const { return locked_pages_ * page_size_; }
  /// Whether the tree has a slot of that page of the pool.
  [[nodiscard]] bool uses(std::int64_t pool_page) const { return used_.contains(pool_page); }
  [[nodiscard]] Ids all_slots() const;
  /// Words where nodes and leaves are not shown as they are. `pairs`: of tokens (PX-78).
  [[nodiscard]] Words compare(const ShowTree::Returns& shown, Contents& contents, bool pairs) const;

 private:
  struct Page {
    Content above = kNoContent;                       ///< none: the root
    std::optional<std::int64_t> node = std::nullopt;  ///< that ends with it
    std::int64_t below = 0;                           ///< pages
    std::int64_t locks = 0;                           ///< of nodes that end here or below
    std::int64_t own_locks = 0;                       ///< of the node that ends here
    Ids slots = {};
  };

  [[nodiscard]] const Page& at(Content page) const { return pages_.at(page); }
  std::optional<std::int64_t> count_locks(std::int64_t node, std::int64_t change);
  [[nodiscard]] bool is_leaf(Content end) const { return at(end).below == 0; }
  /// Pages of the node that ends there, last first.
  [[nodiscard]] Path run(Content end) const;
  [[nodiscard]] Words compare_node(const ShownNode& shown, Contents& contents, bool pairs) const;

  std::int64_t page_size_;
  std::unordered_map<Content, Page> pages_ = {};
  std::unordered_map<std::int64_t, Content> ends_ = {};       ///< [node]
  std::unordered_map<std::int64_t, std::int64_t> used_ = {};  ///< [page of the pool], nodes' pages
  std::int64_t locked_pages_ = 0;
  std::int64_t root_ = 0;
  std::int64_t next_ = 1;  ///< number of a node
};

/// Which pages of a pool are handed out.
class SlotAccounts {
 public:
  using Words = std::optional<std::string>;

  SlotAccounts(std::int64_t slots, std::int64_t page_size)
      : page_size_(page_size), pages_(slots / page_size) {}

  /// Free slots, of whole pages.
  [[nodiscard]] std::int64_t available() const {
    return (pages_ - std::ssize(out_) - std::ssize(held_back_)) * page_size_;
  }
  [[nodiscard]] bool is_out(std::int64_t slot) const { return out_.contains(slot / page_size_); }
  /// A row grows from that many slots by these; `last` is the last one before. Words where one does
  /// not follow, or its page is not free.
  [[nodiscard]] Words grow(std::int64_t from, std::int64_t last, IdsView slots);
  /// Gives pages back; false where one is not handed out.
  [[nodiscard]] bool give_back(const Ids& pages);
  /// The pages of slots, each once; of a segment.
  [[nodiscard]] Ids pages_of(const Ids& slots) const;
  [[nodiscard]] Ids pages_of_segment(IdsView slots) const;

  void begin_group() { in_group_ = true; }
  void end_group();
  void clear();
  /// Words where free pages are not those that are shown.
  [[nodiscard]] Words compare(const ShowTree::Returns& shown) const;

 private:
  std::int64_t page_size_;
  std::int64_t pages_;
  std::unordered_set<std::int64_t> out_ = {};
  std::unordered_set<std::int64_t> held_back_ = {};
  bool in_group_ = false;
};

}  // namespace kvo::prefix
