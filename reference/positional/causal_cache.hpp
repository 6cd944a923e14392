// reference/positional/causal_cache.hpp: the causal caches, cell by cell.
//
// What may fail half-way works on a copy of the state, which takes the state's place at the end. So
// an allocation that fails has changed nothing, nor has an error, unless a quirk keeps what was
// done.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <boost/container/flat_set.hpp>
#include <boost/container/small_vector.hpp>

#include "reference/positional/cache.hpp"

namespace kvo::positional {

/// One machine with three numbers (OK-7).
class CausalCache : public Cache {  // NOLINT(bugprone-exception-escape): as Tensor
 public:
  using Owners = boost::container::flat_set<std::int64_t, std::less<>,
                                            boost::container::small_vector<std::int64_t, 2>>;
  /// Free if and only if nobody owns it (OK-2).
  struct Cell {  // NOLINT(bugprone-exception-escape): as Tensor
    std::int32_t position = 0;
    Owners owners = {};
  };
  /// Cells from low to high, both included; empty for low > high.
  struct CellRange {
    std::int64_t low = std::numeric_limits<std::int64_t>::max();
    std::int64_t high = -1;
    void extend(std::int64_t cell);
    [[nodiscard]] bool empty() const { return low > high; }
    [[nodiscard]] std::int64_t size() const { return empty() ? 0 : high - low + 1; }
  };

  /// Errors  kPrecondition: window or memory below 0.
  [[nodiscard]] static Result<std::unique_ptr<Cache>> make(const CacheOptions& options);
  /// Of the options's members, `member` is this cache.
  CausalCache(const CacheOptions& options, MemberOptions member);

  Status do_set_config(const BackendConfig& config, std::optional<std::int64_t> member) override;
  Status do_init(const InitOptions& arguments) override;
  Status do_start_forward(const Batch& batch) override;
  Status do_set_layer(std::int64_t layer) override;
  Status do_put(const Rows& k, const Rows& v) override;
  Result<Shown> do_get() override;
  Status do_set_causal(std::span<const std::int64_t> except, bool with_context) override;
  Status do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) override;
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t sequence,
                                           std::int32_t position) const override;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override;
  using Cache::do_encoder_cached;  // which only an encoder has: a wrapper may ask

  // For those who look on.
  /// The pool, cell by cell; none before init. Valid until the next call.
  [[nodiscard]] const std::vector<Cell>& cells() const { return state_.cells; }
  /// What get shows of it: the visible range of the last pass (OK-25).
  [[nodiscard]] CellRange visible() const { return state_.pass.range; }
  /// Positions before a token that it sees, and before a batch that stay; kMaxPosition: all.
  [[nodiscard]] std::int64_t window() const { return window_; }
  [[nodiscard]] std::int64_t memory() const { return memory_; }

 private:
  /// What the last start_forward left (OK-5).
  struct Pass {
    std::vector<std::int32_t> positions = {};
    std::vector<std::int64_t> sequences = {};
    bool reserve = false;
    std::vector<std::size_t> targets = {};  ///< cell of each token
    CellRange range = {};
    std::vector<std::int64_t> except = {};       ///< the list given last
    std::vector<std::int64_t> mask_except = {};  ///< the list that the mask was built with
    std::shared_ptr<const Tensor> mask = std::make_shared<Tensor>();  ///< [token][cell of range]
  };
  /// Rows of a layer; copies of a state share them.
  struct Layer {
    std::shared_ptr<Tensor> k;  ///< [cell][kv_head][k_head_dim]
    std::shared_ptr<Tensor> v;  ///< [cell][kv_head][v_head_dim]; get permutes
  };
  /// Cells that follow one another and whose positions do, too.
  struct Run {
    std::int64_t cell = 0;      ///< the first
    std::int64_t position = 0;  ///< its position
    std::int64_t length = 0;
  };
  /// All that an operation may have to put back.
  struct State {
    std::vector<Cell> cells = {};
    std::map<std::int64_t, CellRange> ranges = {};  ///< of sequences that own a cell (OK-3)
    Pass pass = {};
    std::map<std::int64_t, Layer> layers = {};

    [[nodiscard]] bool owns(std::int64_t sequence, std::size_t cell) const;
    /// The largest position that a sequence owns; -1 if it owns nothing.
    [[nodiscard]] std::int32_t last_position(std::int64_t sequence) const;
    /// The cells of a range that a sequence owns, ascending: a token sees an interval of each run.
    [[nodiscard]] std::vector<Run> runs(std::int64_t sequence, const CellRange& range) const;
    /// Sets a recorded range anew: the hull of what the sequence owns.
    void record(std::int64_t sequence);
  };
  /// The smallest position that a batch has of each of its sequences.
  using Lows = std::map<std::int64_t, std::int32_t>;

  [[nodiscard]] bool bounded() const { return memory_ != kMaxPosition; }
  [[nodiscard]] BackendConfig effective() const;
  // Each changes `next`, a copy of the state.
  [[nodiscard]] Status start(State& next, const Batch& batch) const;
  void evict(State& next, const Lows& lows) const;
  static void insert(State& next, Pass& pass);
  [[nodiscard]] static Status cut(State& next, std::int64_t sequence, std::int32_t begin,
                                  std::int32_t end);
  [[nodiscard]] Status shift_keys(State& next, std::int64_t sequence, std::int32_t begin,
                                  std::int32_t end) const;

  /// The visible range before the batch is inserted (OK-17, OK-20).
  [[nodiscard]] CellRange provisional_range(const State& state, const Lows& lows) const;
  [[nodiscard]] std::shared_ptr<const Tensor> mask(const State& state, const Pass& pass,
                                                   const std::vector<std::int64_t>& except) const;
  /// Whether a token of `sequence` at `position` would find what it must see (OK-55 to OK-58).
  [[nodiscard]] bool resumable(const State& state, std::int64_t sequence,
                               std::int64_t position) const;

  MemberOptions options_;
  BackendConfig backend_;
  std::optional<BackendConfig> config_;
  std::int64_t window_ = kMaxPosition;
  std::int64_t memory_ = kMaxPosition;
  std::int64_t max_batch_ = 1;
  StorageFormat storage_;
  std::int64_t layer_ = 0;
  State state_;
};

}  // namespace kvo::positional
