// reference/mlx_lm/prompt_lru.hpp: the reference of `mlx_lm.prompt_lru`: a tree of tokens.
//
// Source   rules ML-70 and ML-71.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reference/mlx_lm/prompt_store.hpp"

namespace kvo::mlx_lm {

class PromptLru final : public PromptStore {
 public:
  PromptLru(std::int64_t max_entries, std::optional<std::int64_t> max_bytes, QuirkSet<Quirk> quirks)
      : max_entries_(max_entries), max_bytes_(max_bytes), quirks_(quirks) {}

  [[nodiscard]] Found fetch(const std::vector<std::int64_t>& tokens) override;
  [[nodiscard]] Result<Totals> insert(const std::vector<std::int64_t>& tokens,
                                      std::unique_ptr<Cache> cache, Role role) override;
  [[nodiscard]] Totals trim_to(std::optional<std::int64_t> entries,
                               std::optional<std::int64_t> bytes) override;

 private:
  static constexpr std::size_t kRoles = 3;
  using Tokens = std::vector<std::int64_t>;
  struct Entry {
    std::shared_ptr<const Cache> cache;
    std::int64_t nbytes;
  };
  /// A token after those of the nodes above; children in the order in which they came.
  struct Node {
    std::int64_t token = 0;
    std::vector<Node> children = {};
    std::optional<Entry> entry = std::nullopt;

    [[nodiscard]] Node* child(std::int64_t of);
  };
  struct Store {
    Node root = {};
    std::array<std::vector<Tokens>, kRoles> queues = {};  ///< oldest first
    std::int64_t nbytes = 0;

    /// Takes the entry out of the tree, with the nodes that lead to no other.
    void drop(const Tokens& tokens);
    /// Takes the tokens out of the first queue that has them.
    void leave_queue(const Tokens& tokens);
    void evict_one();
    [[nodiscard]] std::int64_t entries() const;
    [[nodiscard]] Totals totals() const { return {entries(), nbytes}; }
  };
  /// The shortest entry at or below a node; of several the first that the search comes to (ML-70).
  [[nodiscard]] static std::pair<Tokens, const Entry*> shortest_below(const Node& from);

  std::int64_t max_entries_;
  std::optional<std::int64_t> max_bytes_;
  QuirkSet<Quirk> quirks_;
  Store store_ = {};
};

}  // namespace kvo::mlx_lm
