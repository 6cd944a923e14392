// optimized/snapshot/token_slice.hpp: tokens of an edge, as a part of storage that edges share.
//
// Cutting an edge in two leaves its tokens where they are. The parts of one run of tokens are the
// edges of nodes one below the other, so the last part can grow, and gives back what it held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

namespace kvo::optimized {

/// A part of a run of tokens.
class TokenSlice {
 public:
  TokenSlice() = default;
  /// A run of its own, of just this length.
  explicit TokenSlice(std::span<const std::int32_t> tokens);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(size_); }
  /// Requires  its tokens are not forgotten.
  [[nodiscard]] std::span<const std::int32_t> tokens() const {
    return run_ ? std::span(run_->tokens).subspan(begin_, size_) : std::span<const std::int32_t>();
  }

  /// Takes off the first `count` tokens. Returns  them, in the same storage.
  [[nodiscard]] TokenSlice cut_front(std::int64_t count);
  /// Adds tokens; copies its own only where another part of the run follows, or to grow the run,
  /// whose slack is an eighth at most.
  void append(std::span<const std::int32_t> more);
  /// Adds the tokens of another; copies nothing where it lies right behind.
  void append(const TokenSlice& behind);
  /// Becomes empty. The end of the run that nobody uses now is given back.
  void give_up();
  /// Its size is all that is kept.
  void forget() { run_.reset(); }

  /// Bytes of the run, shared evenly among its parts.
  [[nodiscard]] std::size_t share_of_storage() const;

 private:
  struct Run : boost::intrusive_ref_counter<Run, boost::thread_unsafe_counter> {
    std::vector<std::int32_t> tokens;
  };
  [[nodiscard]] bool ends_run() const { return run_ && begin_ + size_ == run_->tokens.size(); }

  boost::intrusive_ptr<Run> run_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace kvo::optimized
