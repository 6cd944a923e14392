// reference/mlx_lm/prompt_store.hpp: stores of caches of earlier prompts, found by their tokens.
//
// Words    entry   a cache with the tokens that it holds.
// Source   rules ML-70 and ML-71.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <boost/describe/enum.hpp>

#include "reference/mlx_lm/cache.hpp"

namespace kvo::mlx_lm {

/// The queue of an entry (ML-71).
enum class Role : std::uint8_t { kAssistant, kUser, kSystem };
BOOST_DESCRIBE_ENUM(Role, kAssistant, kUser, kSystem)

/// What is found for a prompt.
struct Found {
  std::shared_ptr<const Cache> cache = nullptr;  ///< null: nothing
  std::vector<std::int64_t> rest = {};           ///< tokens that it does not hold
};
/// Entries, and bytes of their arrays.
struct Totals {
  std::int64_t len = 0;
  std::int64_t nbytes = 0;
};

/// A store of prompt caches. Errors change nothing.
class PromptStore {
 public:
  virtual ~PromptStore() = default;
  /// A copy of the entry that serves a prompt best (ML-70).
  [[nodiscard]] virtual Found fetch(const std::vector<std::int64_t>& tokens) = 0;
  /// Adds an entry in the place of one with the same tokens (ML-71).
  /// Errors  kPrecondition: the cache does not know its bytes.
  [[nodiscard]] virtual Result<Totals> insert(const std::vector<std::int64_t>& tokens,
                                              std::unique_ptr<Cache> cache, Role role) = 0;
  /// Evicts while there are more entries or bytes; nothing: any number.
  [[nodiscard]] virtual Totals trim_to(std::optional<std::int64_t> entries,
                                       std::optional<std::int64_t> bytes) = 0;
};

/// Makes a store of at most so many entries and bytes.
using MakePromptStore = std::function<std::unique_ptr<PromptStore>(
    std::int64_t max_entries, std::optional<std::int64_t> max_bytes, QuirkSet<Quirk> quirks)>;

}  // namespace kvo::mlx_lm
