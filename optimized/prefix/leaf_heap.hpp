// optimized/prefix/leaf_heap.hpp: nodes that may be evicted, the first to go on top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "optimized/memory/growth.hpp"

namespace kvo::optimized {

/// A binary heap of numbers, each of which knows its place: what is renewed or locked is found
/// without a search. `Nodes` says `before(a, b)`, and keeps a place for each (`place(a)`).
template <class Nodes>
class LeafHeap {
 public:
  using Id = std::uint32_t;
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  void reserve(std::size_t more) { make_room(leaves_, more); }
  [[nodiscard]] bool empty() const { return leaves_.empty(); }
  [[nodiscard]] const std::vector<Id>& leaves() const { return leaves_; }
  [[nodiscard]] Id top() const { return leaves_.front(); }
  void clear() noexcept { leaves_.clear(); }

  /// Requires  room, and that it is not there.
  void add(Nodes& nodes, Id leaf) noexcept {
    leaves_.push_back(leaf);
    nodes.place(leaf) = static_cast<std::uint32_t>(leaves_.size() - 1);
    renew(nodes, leaf);
  }
  /// Requires  that it is there.
  void remove(Nodes& nodes, Id leaf) noexcept {
    const std::uint32_t at = std::exchange(nodes.place(leaf), kNowhere);
    const Id last = leaves_.back();
    leaves_.pop_back();
    if (last == leaf) return;
    put(nodes, at, last);
    renew(nodes, last);
  }
  /// Puts it where it belongs now. Requires  that it is there.
  void renew(Nodes& nodes, Id leaf) noexcept {
    std::size_t at = nodes.place(leaf);
    while (at > 0 && nodes.before(leaf, leaves_[(at - 1) / 2])) {
      put(nodes, at, leaves_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= leaves_.size()) break;
      if (child + 1 < leaves_.size() && nodes.before(leaves_[child + 1], leaves_[child])) ++child;
      if (!nodes.before(leaves_[child], leaf)) break;
      put(nodes, at, leaves_[child]);
      at = child;
    }
    put(nodes, at, leaf);
  }

 private:
  void put(Nodes& nodes, std::size_t at, Id leaf) noexcept {
    leaves_[at] = leaf;
    nodes.place(leaf) = static_cast<std::uint32_t>(at);
  }
  std::vector<Id> leaves_;
};

}  // namespace kvo::optimized
