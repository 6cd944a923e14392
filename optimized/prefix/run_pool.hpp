// optimized/prefix/run_pool.hpp: memory for the tokens and slots of nodes.
//
// Words    run   units with a slot each: what a node of the tree holds. Of `n` units there are n
//                tokens, or n + 1 where units are pairs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reference/prefix/cache.hpp"

namespace kvo::optimized {

/// A part of a piece of memory that one run owns.
struct Run {
  std::byte* memory = nullptr;
  std::size_t from = 0;  ///< unit of the memory that is the run's first
  std::size_t units = 0;
  std::uint8_t size_log = 0;  ///< the memory has room for two to this units

  [[nodiscard]] std::size_t room() const { return std::size_t{1} << size_log; }
  [[nodiscard]] std::int64_t* slots() const {
    return reinterpret_cast<std::int64_t*>(memory) + from;
  }
  [[nodiscard]] prefix::Token* tokens() const {
    return reinterpret_cast<prefix::Token*>(memory + room() * sizeof(std::int64_t)) + from;
  }
};

/// Keeps what runs give back, by size, so that a tree that is as full as it was before asks for
/// no memory.
class RunPool {
 public:
  RunPool() = default;
  ~RunPool();
  RunPool(const RunPool&) = delete;
  RunPool& operator=(const RunPool&) = delete;

  /// Memory for a run. A larger piece that was given back serves where no other is to be had.
  /// Throws std::bad_alloc.
  [[nodiscard]] Run take(std::size_t units);
  void give(Run& run) noexcept;

 private:
  static constexpr std::size_t kSizes = 40;
  [[nodiscard]] Run kept(std::size_t size_log, std::size_t units) noexcept;

  std::array<std::byte*, kSizes> kept_ = {};  ///< each begins with the address of the next
};

/// Runs that a caller has ready; they go back with it.
class SpareRun {
 public:
  SpareRun(RunPool& pool, std::size_t units) : pool_(pool), run_(pool.take(units)) {}
  ~SpareRun() { give(); }
  SpareRun(SpareRun&& from) noexcept : pool_(from.pool_), run_(from.release()) {}
  SpareRun& operator=(SpareRun&&) = delete;
  void give() noexcept { pool_.give(run_); }
  /// The caller's from now on.
  [[nodiscard]] Run release() noexcept {
    const Run run = run_;
    run_ = {};
    return run;
  }
  [[nodiscard]] const Run& run() const { return run_; }

 private:
  RunPool& pool_;
  Run run_;
};

}  // namespace kvo::optimized
