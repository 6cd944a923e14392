#include <algorithm>
#include <array>

#include "optimized/cells/caches.hpp"
#include "optimized/cells/stream_table.hpp"

namespace kvo::optimized {
namespace {

// Tables take 32-bit cells, as there are at most kMostCells.
std::int32_t number_of(std::int64_t cell) {
  return static_cast<std::int32_t>(cell);
}

/// Each sequence's cells by position; one owner is a number, several are a set.
class CellsMetaTable final : public cells::CellTable {
 public:
  /// Throws std::bad_alloc.
  explicit CellsMetaTable(const cells::TableOptions& options)
      : CellTable(options),
        table_(options.size, {}, {}),
        extras_(static_cast<std::size_t>(options.size)) {}

  [[nodiscard]] std::int64_t size() const override { return table_.size(); }
  void reset() override {
    table_.reset();
    std::ranges::fill(extras_, cells::Extra());
  }
  void reset_shift() override { table_.reset_shift(); }
  [[nodiscard]] cells::ShownTable shown() const override { return table_.shown(); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return table_.broken();
  }

 protected:
  void do_resize(std::int64_t n) override {
    if (n == size()) return reset();
    StreamTable table(n, {}, {});
    extras_ = std::vector<cells::Extra>(static_cast<std::size_t>(n));
    table_ = std::move(table);
  }
  void do_pos_set(std::int64_t cell, std::int32_t pos) override {
    table_.set_pos(number_of(cell), pos);
  }
  void do_seq_add(std::int64_t cell, std::int32_t seq) override {
    table_.reserve(seq, 1);
    table_.add_owner(number_of(cell), seq);
  }
  bool do_seq_rm(std::int64_t cell, std::int32_t seq) override {
    const bool emptied = table_.remove_owner(number_of(cell), seq);
    if (emptied) extra(cell) = {};
    return emptied;
  }
  bool do_seq_keep(std::int64_t cell, std::int32_t seq) override {
    const OwnerSet owners = table_.owners(cell);
    if (owners == OwnerSet()) return false;
    if (!owners.has(seq)) {
      do_rm(cell);
      return true;
    }
    owners.each([&](std::int32_t other) {
      if (other != seq) table_.remove_owner(number_of(cell), other);
    });
    return false;
  }
  void do_rm(std::int64_t cell) override {
    table_.remove(number_of(cell));
    extra(cell) = {};
  }
  bool do_pos_add(std::int64_t cell, std::int32_t delta) override {
    const std::int32_t pos = table_.pos(cell) + delta;
    if (pos >= 0) {
      table_.move(number_of(cell), pos, table_.shift(cell) + delta);
      return false;
    }
    table_.drop_below_zero(number_of(cell));
    if (!has(cells::Quirk::kExtraOutlivesPosition)) extra(cell) = {};
    return true;
  }
  void do_pos_div(std::int64_t cell, std::int32_t d) override {
    const std::int32_t pos = table_.pos(cell);
    const std::int32_t fall = pos - pos / d;
    const std::int32_t shift = table_.shift(cell);
    table_.move(number_of(cell), pos / d,
                has(cells::Quirk::kDivisionTurnsBack) ? shift + fall : shift - fall);
  }
  void do_ext_set(std::int64_t cell, const cells::Extra& data) override { extra(cell) = data; }
  [[nodiscard]] std::int32_t do_pos(std::int64_t cell) const override { return table_.pos(cell); }
  [[nodiscard]] std::int32_t do_shift(std::int64_t cell) const override {
    return table_.shift(cell);
  }
  [[nodiscard]] cells::Extra do_ext(std::int64_t cell) const override {
    return extras_[static_cast<std::size_t>(cell)];
  }
  [[nodiscard]] bool do_seq_has(std::int64_t cell, std::int32_t seq) const override {
    return table_.owns(cell, seq);
  }
  [[nodiscard]] std::int64_t do_seq_count(std::int64_t cell) const override {
    return table_.owners(cell).count();
  }
  [[nodiscard]] std::int32_t do_seq_get(std::int64_t cell) const override {
    return table_.sole_owner(cell);
  }
  [[nodiscard]] cells::Extremes do_seq_pos(std::int32_t seq) const override {
    return table_.extremes(seq);
  }
  [[nodiscard]] std::vector<cells::PositionEntry> do_seq_pos_get(std::int32_t seq) const override {
    const auto held = table_.of(seq).all();
    std::vector<cells::PositionEntry> entries(held.size());
    std::ranges::transform(held, entries.begin(), [](const CellAt& each) {
      return cells::PositionEntry{.pos = each.pos, .cell = each.cell};
    });
    return entries;
  }
  [[nodiscard]] std::int32_t do_token_at_or_before(std::int32_t seq,
                                                   std::int32_t pos) const override {
    const OwnedCells& its = table_.of(seq);
    const std::size_t behind = its.index_of(std::int64_t{pos} + 1);
    return behind == 0 ? -1 : do_ext(its.all()[behind - 1].cell).token;
  }
  [[nodiscard]] cells::CellCopy do_copy(std::span<const std::int64_t> numbers) const override {
    cells::CellCopy copy;
    copy.cells.reserve(numbers.size());
    for (const std::int64_t cell : numbers) {
      const auto place = std::ssize(copy.cells);
      cells::CopiedCell& copied = copy.cells.emplace_back();
      copied.pos = table_.pos(cell);
      table_.owners(cell).each([&](std::int32_t seq) { copied.seqs.push_back(seq); });
      copied.extra = do_ext(cell);
      if (copied.pos < 0) continue;
      if (copy.used++ == 0) copy.used_min = place;
      copy.used_end = place + 1;
    }
    return copy;
  }
  void do_paste(const cells::CellCopy& from, std::span<const std::int64_t> numbers) override {
    OwnerSet owners;
    std::array<std::size_t, cells::kSequences> more;  // NOLINT: of `owners` only
    for (const cells::CopiedCell& saved : from.cells)
      for (const std::int32_t seq : saved.seqs) {
        std::size_t& count = more[static_cast<std::size_t>(seq)];
        count = owners.has(seq) ? count + 1 : 1;
        owners.insert(seq);
      }
    owners.each(
        [&](std::int32_t seq) { table_.reserve(seq, more[static_cast<std::size_t>(seq)]); });
    for (std::size_t j = 0; j < numbers.size(); ++j) {
      const cells::CopiedCell& saved = from.cells[j];
      const std::int32_t cell = number_of(numbers[j]);
      table_.vacate(cell);
      extra(cell) = saved.extra;
      if (saved.pos < 0) continue;
      table_.set_pos(cell, saved.pos);
      for (const std::int32_t seq : saved.seqs) table_.add_owner(cell, seq);
    }
  }

 private:
  [[nodiscard]] cells::Extra& extra(std::int64_t cell) {
    return extras_[static_cast<std::size_t>(cell)];
  }

  StreamTable table_;
  std::vector<cells::Extra> extras_;
};

}  // namespace

Result<std::unique_ptr<cells::CellTable>> make_cells_table(const cells::TableOptions& options) {
  return std::make_unique<CellsMetaTable>(options);
}

}  // namespace kvo::optimized
