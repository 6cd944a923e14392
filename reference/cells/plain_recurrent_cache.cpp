#include <algorithm>
#include <set>
#include <utility>

#include "reference/cells/batch_tokens.hpp"
#include "reference/cells/plain_caches.hpp"
#include "reference/contract/values/mark.hpp"

namespace kvo::cells {
namespace {

constexpr Range kAllPositions{0, kMaxPosition};

// The sequences of an ubatch, in its order.
std::vector<std::int32_t> sequences_of(const std::vector<Token>& tokens, const Ubatch& ubatch) {
  std::vector<std::int32_t> seqs;
  for (const std::int32_t row : ubatch) {
    const std::int32_t seq = tokens[static_cast<std::size_t>(row)].primary;
    if (seqs.empty() || seqs.back() != seq) seqs.push_back(seq);
  }
  return seqs;
}

/// A list of cells, looked through each time.
class PlainRecurrent final : public RecurrentMemory {
 public:
  explicit PlainRecurrent(const RecurrentOptions& options)
      : RecurrentMemory(options), memory_(fresh(options.n_seq_max)) {}

  [[nodiscard]] Extremes seq_pos(std::int64_t seq) const override {
    Extremes found;
    bool any = false;
    for (const Cell& cell : memory_.cells) {
      if (seq < 0 || seq >= kSequences || !cell.owners.contains(static_cast<std::int32_t>(seq)))
        continue;
      found.min = any ? std::min<std::int64_t>(found.min, cell.pos) : cell.pos;
      found.max = std::max<std::int64_t>(found.max, cell.pos);
      any = true;
    }
    return found;
  }
  void clear(bool /*data*/) override {
    if (memory_.used > 0) KVO_MARK("cells.recurrent", "forgotten");
    memory_ = fresh(options().n_seq_max);
  }
  [[nodiscard]] ShownStates shown() const override {
    ShownStates states{.head = memory_.head, .used = memory_.used, .rollback = memory_.rollback};
    for (std::int64_t i = 0; i < memory_.size(); ++i) {
      const Cell& cell = memory_.at(i);
      states.cells.push_back({.cell = i,
                              .pos = cell.pos,
                              .seqs = {cell.owners.begin(), cell.owners.end()},
                              .src = cell.src,
                              .tail = memory_.tails[static_cast<std::size_t>(i)]});
    }
    return states;
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    for (std::int32_t seq = 0; seq < memory_.size(); ++seq) {
      const std::int64_t tail = memory_.tails[static_cast<std::size_t>(seq)];
      for (std::int64_t i = 0; i < memory_.size(); ++i)
        if (memory_.at(i).owners.contains(seq) != (i == tail))
          return "a sequence does not own its tail, or owns another cell";
    }
    return std::nullopt;
  }

 protected:
  Status do_decode(const Batch& batch, const SeeStates& see) override {
    const auto tokens = tokens_of(batch, options().n_seq_max, options().quirks,
                                  [&](std::int32_t seq) { return seq_pos(seq); });
    if (!tokens) return tokens.error();
    for (const Token& token : *tokens)
      if (token.pos < 0) return refused("a position below 0");
    const std::int64_t tail = options().n_rs_seq > 0 ? options().n_rs_seq + 1 : 0;
    const auto ubatches = split_equal(*tokens, {.n_ubatch = batch.n_ubatch,
                                                .sequential = true,
                                                .one_too_many = has(Quirk::kUbatchTooLarge),
                                                .keep_tail = tail});
    if (!ubatches) return ubatches.error();
    Memory next = memory_;
    for (const Ubatch& ubatch : *ubatches) next.place(*tokens, ubatch, see);
    memory_ = std::move(next);
    return {};
  }
  bool do_seq_rm(std::int32_t seq, const Range& range) override {
    const std::int64_t tail = memory_.tail(seq);
    if (range.begin == 0 && range.end == kMaxPosition) memory_.back(seq) = 0;
    if (Cell* cell = tail_in(seq, range); cell != nullptr && range.begin > 0) {
      const std::int64_t back = cell->pos - (range.begin - 1);
      if (memory_.back(seq) != 0 || back > options().n_rs_seq) {
        KVO_MARK("cells.recurrent", "went back too far");
        return false;
      }
      KVO_MARK("cells.recurrent", "went back");
      cell->pos = range.begin - 1;
      memory_.back(seq) = back;
      if (!has(Quirk::kOthersStayAhead))
        for (const std::int32_t other : cell->owners) memory_.back(other) = back;
      return true;
    }
    if (tail >= 0 && !has(Quirk::kOlderStayUnsaid) && range.begin < range.end &&
        range.end <= memory_.at(tail).pos)
      return false;
    if (tail_in(seq, range) == nullptr) return true;
    KVO_MARK("cells.recurrent", "state removed");
    memory_.tail(seq) = -1;
    if (memory_.leave(tail, seq)) memory_.head = std::min(memory_.head, tail);
    return true;
  }
  void do_seq_cp(std::int32_t src, std::int32_t dst) override {
    Memory next = memory_;
    if (next.tail(dst) >= 0) next.leave(next.tail(dst), dst);
    next.tail(dst) = next.tail(src);
    if (next.tail(src) >= 0) next.at(next.tail(src)).owners.insert(dst);
    if (!has(Quirk::kCopyIsAhead)) next.back(dst) = next.back(src);
    memory_ = std::move(next);
  }
  void do_seq_keep(std::int32_t seq) override {
    Memory next = memory_;
    for (std::int32_t other = 0; other < next.size(); ++other)
      if (other != seq && std::exchange(next.tail(other), -1) >= 0)
        KVO_MARK("cells.recurrent", "one state kept");
    for (std::int64_t i = next.size(); i-- > 0;) {
      Cell& cell = next.at(i);
      if (cell.owners.contains(seq)) {
        cell.owners = {seq};
        continue;
      }
      if (cell.pos >= 0) --next.used;
      cell = {};
      next.head = std::min(next.head, i);
    }
    memory_ = std::move(next);
  }
  Status do_seq_add(std::int32_t seq, const Range& range, std::int32_t delta) override {
    Cell* cell = tail_in(seq, range);
    if (cell == nullptr) return {};
    if (const Status checked = check_alone(*cell); !checked) return checked;
    const std::int64_t pos = std::int64_t{cell->pos} + delta;
    if (pos > kMaxPosition) return refused("the position overflows");
    KVO_MARK("cells.recurrent", "state moved");
    if (pos < -1 && has(Quirk::kStateBelowZero))
      KVO_MARK_IN(Profile::kOriginal, "cells.recurrent", "below zero");
    if (pos < 0 && !has(Quirk::kStateBelowZero))
      do_seq_rm(seq, kAllPositions);
    else
      cell->pos = static_cast<std::int32_t>(pos);
    return {};
  }
  Status do_seq_div(std::int32_t seq, const Range& range, std::int32_t d) override {
    Cell* cell = tail_in(seq, range);
    if (cell == nullptr) return {};
    if (const Status checked = check_alone(*cell); !checked) return checked;
    if (d < 1) return refused("d is below 1");
    if (cell->pos > 0) KVO_MARK("cells.recurrent", "state divided");
    cell->pos /= d;
    return {};
  }

 private:
  struct Cell {
    std::int32_t pos = -1;
    std::set<std::int32_t> owners = {};
    std::int64_t src = -1;
  };

  /// What LC-90 lists.
  struct Memory {
    std::vector<Cell> cells = {};
    std::vector<std::int64_t> tails = {};     ///< [sequence], its cell or -1
    std::vector<std::int64_t> rollback = {};  ///< [sequence]
    std::int64_t head = 0;
    std::int64_t used = 0;

    [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(cells.size()); }
    [[nodiscard]] Cell& at(std::int64_t i) { return cells[static_cast<std::size_t>(i)]; }
    [[nodiscard]] const Cell& at(std::int64_t i) const {
      return cells[static_cast<std::size_t>(i)];
    }
    [[nodiscard]] std::int64_t& tail(std::int32_t seq) {
      return tails[static_cast<std::size_t>(seq)];
    }
    [[nodiscard]] std::int64_t& back(std::int32_t seq) {
      return rollback[static_cast<std::size_t>(seq)];
    }
    /// The first cell without owners from there on, cyclic.
    [[nodiscard]] std::int64_t free_from(std::int64_t begin) const {
      for (std::int64_t i = 0; i < size(); ++i)
        if (at((begin + i) % size()).owners.empty()) return (begin + i) % size();
      return begin % size();
    }
    /// Gives each sequence a tail that it alone owns; the smallest and largest (LC-93).
    std::pair<std::int64_t, std::int64_t> find_tails(const std::vector<std::int32_t>& seqs) {
      const auto k = static_cast<std::int64_t>(seqs.size());
      if (head > used + 2 * k) head = 0;
      std::int64_t free = free_from(head);
      std::int64_t low = size();
      std::int64_t high = -1;
      for (const std::int32_t seq : seqs) {
        const std::int64_t old = tail(seq);
        if (old < 0 || at(old).owners.size() > 1) {
          tail(seq) = free;
          if (old >= 0) {
            KVO_MARK("cells.recurrent", "tail left");
            at(free) = {at(old).pos, {seq}, at(old).src};
            at(old).owners.erase(seq);
          }
          if (seq != seqs.back()) free = free_from(free + 1);
        }
        low = std::min(low, tail(seq));
        high = std::max(high, tail(seq));
      }
      return {low, high};
    }
    /// Exchanges two cells, and the tails that name them (LC-94).
    void exchange(std::int64_t a, std::int64_t b) {
      if (a == b) return;
      std::swap(at(a), at(b));
      for (std::int64_t& one : tails) {
        if (one == a)
          one = b;
        else if (one == b)
          one = a;
      }
    }
    /// A cell gives its owner up; whether it was emptied.
    bool leave(std::int64_t i, std::int32_t seq) {
      at(i).owners.erase(seq);
      if (!at(i).owners.empty()) return false;
      at(i) = {};
      --used;
      return true;
    }
    /// Places an ubatch and says what becomes of the rows (LC-93, LC-94).
    void place(const std::vector<Token>& tokens, const Ubatch& ubatch, const SeeStates& see) {
      const std::vector<std::int32_t> seqs = sequences_of(tokens, ubatch);
      const auto [low, high] = find_tails(seqs);
      for (std::size_t x = 0; x < seqs.size(); ++x)
        exchange(low + static_cast<std::int64_t>(x), tail(seqs[x]));
      for (const std::int32_t row : ubatch) {
        const auto& [pos, its_seqs, seq] = tokens[static_cast<std::size_t>(row)];
        at(tail(seq)).pos = pos;
        at(tail(seq)).owners = {seq};
      }
      std::set<std::int64_t> sources;
      for (const Cell& cell : cells) sources.insert(cell.src);
      std::int64_t zero = low;
      while (zero <= high && sources.contains(zero)) ++zero;
      if (zero > high) zero = -1;
      std::vector<std::int64_t> copy;
      for (std::int64_t i = low; i <= high; ++i) {
        Cell& cell = at(i);
        if (cell.src >= 0 && cell.src != i) KVO_MARK("cells.recurrent", "rows exchanged");
        copy.push_back(cell.src < 0 ? zero : cell.src);
        cell.src = i;
        if (!cell.owners.empty())
          copy.back() += size() * std::exchange(back(*cell.owners.begin()), 0);
      }
      head = low;
      used = std::ranges::count_if(cells, [](const Cell& cell) { return !cell.owners.empty(); });
      see({.rows = ubatch, .head = low, .n = high - low + 1, .zero = zero, .copy = copy});
    }
  };

  [[nodiscard]] static Memory fresh(std::int64_t n) {
    const auto size = static_cast<std::size_t>(n);
    return {.cells = std::vector<Cell>(size),
            .tails = std::vector<std::int64_t>(size, -1),
            .rollback = std::vector<std::int64_t>(size)};
  }
  /// Errors  kNotSupported: the state is shared (LC-98).
  [[nodiscard]] Status check_alone(const Cell& cell) const {
    if (cell.owners.size() <= 1 || has(Quirk::kSharedStateMoves)) return {};
    KVO_MARK_IN(Profile::kDocumented, "cells.recurrent", "shared state stays");
    return fail(Code::kNotSupported, "the state is shared");
  }
  /// The tail of seq, if its position is in range; or null.
  [[nodiscard]] Cell* tail_in(std::int32_t seq, const Range& range) {
    const std::int64_t tail = memory_.tail(seq);
    return tail >= 0 && range.has(memory_.at(tail).pos) ? &memory_.at(tail) : nullptr;
  }

  Memory memory_;
};

}  // namespace

Result<std::unique_ptr<RecurrentMemory>> make_plain_recurrent(const RecurrentOptions& options) {
  return std::make_unique<PlainRecurrent>(options);
}

}  // namespace kvo::cells
