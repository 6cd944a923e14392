#include "properties/prefix/tree_accounts.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace kvo::prefix {
namespace {

std::string node_text(std::int64_t node) {
  return "node " + std::to_string(node);
}

}  // namespace

// ---- The tree ----

TreeAccounts::Reached TreeAccounts::walk(const Path& path) {
  Reached reached{.pages = 0, .node = root_};
  while (reached.pages < std::ssize(path) &&
         pages_.contains(path[static_cast<std::size_t>(reached.pages)]))
    ++reached.pages;
  if (reached.pages == 0) return reached;
  const Content end = path[static_cast<std::size_t>(reached.pages - 1)];
  Page& last = pages_.at(end);
  if (!last.node) {
    last.node = next_++;
    ends_[*last.node] = end;
  }
  reached.node = *last.node;
  return reached;
}

TreeAccounts::Reached TreeAccounts::insert(const Path& path, const Ids& slots) {
  Reached reached = walk(path);
  for (std::int64_t i = reached.pages; i < std::ssize(path); ++i) {
    Page page;
    if (i > 0) page.above = path[static_cast<std::size_t>(i - 1)];
    const auto first = slots.begin() + i * page_size_;
    page.slots.assign(first, first + page_size_);
    ++used_[page.slots.front() / page_size_];
    if (i > 0) ++pages_.at(page.above).below;
    pages_.emplace(path[static_cast<std::size_t>(i)], std::move(page));
  }
  if (reached.pages < std::ssize(path)) {
    reached.node = next_++;
    pages_.at(path.back()).node = reached.node;
    ends_[reached.node] = path.back();
  }
  return reached;
}

Ids TreeAccounts::slots(const Path& path, std::int64_t pages) const {
  Ids all;
  for (std::int64_t i = 0; i < pages; ++i)
    std::ranges::copy(at(path[static_cast<std::size_t>(i)]).slots, std::back_inserter(all));
  return all;
}

std::optional<std::int64_t> TreeAccounts::count_locks(std::int64_t node, std::int64_t change) {
  if (node == root_) return 0;
  const auto end = ends_.find(node);
  if (end == ends_.end() || at(end->second).own_locks + change < 0) return std::nullopt;
  pages_.at(end->second).own_locks += change;
  const std::int64_t before = locked_pages_;
  for (Content page = end->second; page != kNoContent; page = at(page).above) {
    std::int64_t& locks = pages_.at(page).locks;
    locked_pages_ -= locks > 0 ? 1 : 0;
    locks += change;
    locked_pages_ += locks > 0 ? 1 : 0;
  }
  return (before - locked_pages_) * page_size_;
}

Path TreeAccounts::run(Content end) const {
  Path pages{end};
  for (Content page = at(end).above; page != kNoContent && !at(page).node; page = at(page).above)
    pages.push_back(page);
  return pages;
}

Path TreeAccounts::run_of(std::int64_t node) const {
  const auto end = ends_.find(node);
  return end != ends_.end() && end->second != kNoContent ? run(end->second) : Path();
}

Path TreeAccounts::all_pages() const {
  Path all;
  for (const auto& [content, page] : pages_) all.push_back(content);
  return all;
}

TreeAccounts::Words TreeAccounts::remove(std::int64_t node, Ids& slots) {
  const auto end = ends_.find(node);
  if (end == ends_.end()) return node_text(node) + " is evicted, and is not in the tree";
  if (!is_leaf(end->second)) return node_text(node) + " is evicted before what is below it";
  if (at(end->second).locks > 0) return node_text(node) + " is evicted, and is locked";
  const Path pages = run(end->second);
  for (auto page = pages.rbegin(); page != pages.rend(); ++page)
    std::ranges::copy(at(*page).slots, std::back_inserter(slots));
  if (const Content above = at(pages.back()).above; above != kNoContent) --pages_.at(above).below;
  for (const Content page : pages) {
    const auto used = used_.find(at(page).slots.front() / page_size_);
    if (--used->second == 0) used_.erase(used);
    pages_.erase(page);
  }
  ends_.erase(end);
  return std::nullopt;
}

bool TreeAccounts::has_evictable() const {
  return std::ranges::any_of(
      ends_, [&](const auto& node) { return is_leaf(node.second) && at(node.second).locks == 0; });
}

void TreeAccounts::reset() {
  pages_.clear();
  ends_.clear();
  used_.clear();
  locked_pages_ = 0;
  root_ = next_++;
}

Ids TreeAccounts::all_slots() const {
  Ids all;
  for (const auto& [content, page] : pages_) std::ranges::copy(page.slots, std::back_inserter(all));
  return all;
}

TreeAccounts::Words TreeAccounts::compare_node(const ShownNode& shown, Contents& contents,
                                               bool pairs) const {
  const auto end = ends_.find(shown.node);
  if (end == ends_.end()) return node_text(shown.node) + " is shown, and nothing was put there";
  const Path pages = run(end->second);
  const Content above = at(pages.back()).above;
  const std::int64_t parent = above == kNoContent ? root_ : at(above).node.value_or(root_);
  if (shown.parent != parent)
    return node_text(shown.node) + " is below " + node_text(shown.parent) + ", not " +
           node_text(parent);
  Ids slots;
  for (auto page = pages.rbegin(); page != pages.rend(); ++page)
    std::ranges::copy(at(*page).slots, std::back_inserter(slots));
  if (shown.slots != slots) return node_text(shown.node) + " has other slots than were put";
  if (shown.lock != at(end->second).locks)
    return node_text(shown.node) + " has " + std::to_string(shown.lock) + " locks, not " +
           std::to_string(at(end->second).locks);
  const auto word = [](const Nullable<std::string>& space) {
    return space.has_value() ? std::optional<std::string>(*space) : std::nullopt;
  };
  Content content =
      above == kNoContent ? contents.start({word(shown.extra), word(shown.salt)}) : above;
  const std::size_t known = pairs && above != kNoContent ? 1 : 0;
  for (std::size_t i = known; i < shown.tokens.size(); ++i)
    content = contents.after(content, shown.tokens[i]);
  if (content != end->second) return node_text(shown.node) + " has other tokens than were put";
  return std::nullopt;
}

TreeAccounts::Words TreeAccounts::compare(const ShowTree::Returns& shown, Contents& contents,
                                          bool pairs) const {
  if (shown.nodes.size() != ends_.size())
    return std::to_string(shown.nodes.size()) + " nodes are shown, there are " +
           std::to_string(ends_.size());
  for (const ShownNode& node : shown.nodes)
    if (auto words = compare_node(node, contents, pairs)) return words;
  if (shown.total != units()) return "the total is not that of what was put";
  if (shown.protected_ != locked_units()) return "units that are locked are not those protected";
  if (shown.evictable != units() - locked_units()) return "evictable and protected are not all";
  std::set<std::int64_t> leaves;
  for (const auto& [node, end] : ends_)
    if (is_leaf(end) && at(end).locks == 0) leaves.insert(node);
  if (shown.leaves.size() != leaves.size() ||
      leaves != std::set(shown.leaves.begin(), shown.leaves.end()))
    return "the evictable leaves are not the leaves without a lock";
  return std::nullopt;
}

// ---- The slots ----

SlotAccounts::Words SlotAccounts::grow(std::int64_t from, std::int64_t last, IdsView slots) {
  for (const std::int64_t slot : slots) {
    const bool opens = from++ % page_size_ == 0;
    const std::int64_t page = slot / page_size_;
    if (!opens && slot != last + 1)
      return "slot " + std::to_string(slot) + " does not go on behind " + std::to_string(last);
    if (opens && (slot % page_size_ != 0 || page < 1 || page > pages_))
      return "slot " + std::to_string(slot) + " does not begin a page";
    if (opens && (held_back_.contains(page) || !out_.insert(page).second))
      return "slot " + std::to_string(slot) + " is handed out, and is not free";
    last = slot;
  }
  return std::nullopt;
}

bool SlotAccounts::give_back(const Ids& pages) {
  return std::ranges::all_of(pages, [&](std::int64_t page) {
    if (out_.erase(page) == 0) return false;
    if (in_group_) held_back_.insert(page);
    return true;
  });
}

Ids SlotAccounts::pages_of(const Ids& slots) const {
  std::set<std::int64_t> pages;
  Ids all;
  for (const std::int64_t slot : slots)
    if (pages.insert(slot / page_size_).second || page_size_ == 1) all.push_back(slot / page_size_);
  return all;
}

Ids SlotAccounts::pages_of_segment(IdsView slots) const {
  Ids pages;
  for (std::size_t i = 0; i < slots.size(); i += static_cast<std::size_t>(page_size_))
    pages.push_back(slots[i] / page_size_);
  return pages;
}

void SlotAccounts::end_group() {
  in_group_ = false;
  held_back_.clear();
}

void SlotAccounts::clear() {
  out_.clear();
  end_group();
}

SlotAccounts::Words SlotAccounts::compare(const ShowTree::Returns& shown) const {
  if (shown.available != available())
    return std::to_string(shown.available) + " slots are available, not " +
           std::to_string(available());
  std::unordered_set<std::int64_t> free;
  for (const Ids* list : {&shown.free, &shown.staged})
    for (const std::int64_t page : *list)
      if (page < 1 || page > pages_ || out_.contains(page) || held_back_.contains(page) ||
          !free.insert(page).second)
        return "page " + std::to_string(page) + " is listed as free, and is not, or twice";
  if (std::ssize(free) * page_size_ != available())
    return "slots that are neither free nor handed out";
  return std::nullopt;
}

}  // namespace kvo::prefix
