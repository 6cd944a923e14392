#include "optimized/snapshot/prefix_node.hpp"

#include <algorithm>
#include <utility>

namespace kvo::optimized {

PrefixNode* PrefixChildren::find(std::int32_t token) const {
  if (many_) {
    const auto found = many_->find(token);
    return found != many_->end() ? found->second : nullptr;
  }
  for (std::size_t i = 0; i < size_; ++i)
    if (tokens_[i] == token) return few_[i];
  return nullptr;
}

void PrefixChildren::put(std::int32_t token, PrefixNode& child) {
  if (!many_ && size_ == kFew) {
    auto many = std::make_unique<Many>();
    for (std::size_t i = 0; i < size_; ++i) many->emplace(tokens_[i], few_[i]);
    many->emplace(token, &child);
    many_ = std::move(many);
  } else if (many_) {
    many_->emplace(token, &child);
  } else {
    tokens_[size_] = token;
    few_[size_] = &child;
  }
  ++size_;
}

void PrefixChildren::push_back(PrefixNode& child, std::int32_t token) {
  put(token, child);
  child.previous = last_;
  child.next = nullptr;
  child.rank = last_ != nullptr ? last_->rank + 1 : 0;
  (last_ != nullptr ? last_->next : first_) = &child;
  last_ = &child;
}

void PrefixChildren::replace(PrefixNode& child, PrefixNode& by, std::int32_t token) {
  if (many_)
    many_->at(token) = &by;
  else
    *std::ranges::find(few_, &child) = &by;
  by.previous = child.previous;
  by.next = child.next;
  by.rank = child.rank;
  (by.previous != nullptr ? by.previous->next : first_) = &by;
  (by.next != nullptr ? by.next->previous : last_) = &by;
}

void PrefixChildren::erase(PrefixNode& child, std::int32_t token) {
  --size_;
  if (many_) {
    many_->erase(token);
  } else {
    const auto at = static_cast<std::size_t>(std::ranges::find(few_, &child) - few_.begin());
    tokens_[at] = tokens_[size_];
    few_[at] = few_[size_];
  }
  (child.previous != nullptr ? child.previous->next : first_) = child.next;
  (child.next != nullptr ? child.next->previous : last_) = child.previous;
}

std::size_t PrefixChildren::storage() const {
  // A slot holds a token and a pointer; 15 share 16 bytes of hashes.
  const std::size_t many =
      many_ ? sizeof(Many) + many_->bucket_count() * (sizeof(Many::value_type) + 2) : 0;
  return sizeof(*this) + many;
}

KeptSnapshots::KeptSnapshots(std::vector<snapshot::SnapshotPtr> snapshots)
    : list(std::move(snapshots)) {
  for (const snapshot::SnapshotPtr& one : list) {
    bytes += snapshot::size_of(one);
    any = any || one != nullptr;
  }
}

// The deeper one goes up until they meet. Ends tell which is deeper, because they fall on the way
// up; a count of nodes would change below each split and merge.
bool stands_before(const PrefixNode& a, const PrefixNode& b) {
  const PrefixNode* one = &a;
  const PrefixNode* other = &b;
  const PrefixNode* below_one = nullptr;  // where it came from
  const PrefixNode* below_other = nullptr;
  while (one != other) {
    if (one->end < other->end)
      below_other = std::exchange(other, other->parent);
    else
      below_one = std::exchange(one, one->parent);
  }
  if (below_one == nullptr || below_other == nullptr) return below_other != nullptr;
  return below_one->rank < below_other->rank;
}

}  // namespace kvo::optimized
