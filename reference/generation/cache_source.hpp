// reference/generation/cache_source.hpp: where a generator gets the cache of a call from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "reference/contract/values/result.hpp"
#include "reference/provider/cache.hpp"

namespace kvo::generation {

/// What a pool of blocks holds.
struct PoolState {
  std::int64_t free = 0;
  std::int64_t cap = 0;
};

/// Makes the caches of one generator. Caches live no longer than their source.
class CacheSource {
 public:
  virtual ~CacheSource() = default;

  /// A fresh cache of the generator's layers and positions.
  /// Errors  as of the cache's construction.
  [[nodiscard]] virtual Result<std::unique_ptr<provider::Provider>> make() = 0;
  /// Gives what a cache holds back to where it came from. Errors  as of the cache.
  [[nodiscard]] virtual Status give_back(provider::Provider& /*cache*/) { return {}; }
  /// Positions that a cache takes at most, whoever else has a part of its pool.
  [[nodiscard]] virtual std::int64_t most_positions() const = 0;
  /// The pool behind the caches, or nothing where there is none. Errors  as of the pool.
  [[nodiscard]] virtual Result<std::optional<PoolState>> pool() {
    return std::optional<PoolState>();
  }
  /// Takes and keeps blocks until `leave` are free; returns how many it took.
  /// Errors  kPrecondition: there is no pool.
  [[nodiscard]] virtual Result<std::int64_t> drain(std::int64_t /*leave*/) {
    return fail(Code::kPrecondition, "no pool");
  }
  /// Of the caches; nothing, or the first broken invariant in words.
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const { return std::nullopt; }
};

}  // namespace kvo::generation
