#include "optimized/snapshot/token_slice.hpp"

#include <algorithm>
#include <utility>

namespace kvo::optimized {
namespace {

constexpr std::size_t kSlack = 8;  // one part in so many may be unused

}  // namespace

TokenSlice::TokenSlice(std::span<const std::int32_t> tokens) : run_(new Run), size_(tokens.size()) {
  run_->tokens.assign(tokens.begin(), tokens.end());
}

TokenSlice TokenSlice::cut_front(std::int64_t count) {
  TokenSlice front = *this;
  front.size_ = static_cast<std::size_t>(count);
  begin_ += front.size_;
  size_ -= front.size_;
  return front;
}

void TokenSlice::append(std::span<const std::int32_t> more) {
  if (run_ && !ends_run()) {
    TokenSlice copy;
    copy.run_ = new Run;
    copy.run_->tokens.reserve(size_ + more.size());
    copy.append(tokens());
    *this = std::move(copy);
  }
  if (run_) {
    std::vector<std::int32_t>& all = run_->tokens;
    if (all.capacity() < all.size() + more.size())
      all.reserve(std::max(all.size() + more.size(), all.size() + all.size() / kSlack));
    all.insert(all.end(), more.begin(), more.end());
  }
  size_ += more.size();
}

void TokenSlice::append(const TokenSlice& behind) {
  if (run_ && run_ == behind.run_ && begin_ + size_ == behind.begin_)
    size_ += behind.size_;
  else
    append(behind.tokens());
}

void TokenSlice::give_up() {
  if (ends_run() && run_->use_count() > 1) {
    std::vector<std::int32_t>& all = run_->tokens;
    all.resize(begin_);
    if (all.capacity() > all.size() + all.size() / kSlack) all.shrink_to_fit();
  }
  *this = TokenSlice();
}

std::size_t TokenSlice::share_of_storage() const {
  if (!run_) return 0;
  return (sizeof(Run) + run_->tokens.capacity() * sizeof(std::int32_t)) / run_->use_count();
}

}  // namespace kvo::optimized
