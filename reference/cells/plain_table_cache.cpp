#include <algorithm>

#include "reference/cells/plain_caches.hpp"
#include "reference/cells/plain_cells.hpp"
#include "reference/contract/values/mark.hpp"

namespace kvo::cells {
namespace {

/// A list of cells, looked through each time.
class PlainTable final : public CellTable {
 public:
  explicit PlainTable(const TableOptions& options)
      : CellTable(options),
        table_{std::vector<PlainCell>(static_cast<std::size_t>(options.size))} {}

  [[nodiscard]] std::int64_t size() const override { return table_.size(); }
  void reset() override { table_.reset(); }
  void reset_shift() override { table_.reset_shift(); }
  [[nodiscard]] ShownTable shown() const override { return table_.shown(); }

 protected:
  void do_resize(std::int64_t n) override {
    table_ = {std::vector<PlainCell>(static_cast<std::size_t>(n))};
  }
  void do_pos_set(std::int64_t cell, std::int32_t pos) override {
    table_.at(cell).used = true;
    table_.at(cell).pos = pos;
  }
  void do_seq_add(std::int64_t cell, std::int32_t seq) override {
    table_.at(cell).owners |= owner(seq);
  }
  bool do_seq_rm(std::int64_t cell, std::int32_t seq) override {
    return table_.remove_owner(cell, seq);
  }
  bool do_seq_keep(std::int64_t cell, std::int32_t seq) override {
    return table_.keep_owner(cell, seq);
  }
  void do_rm(std::int64_t cell) override {
    if (table_.at(cell).owners.none()) KVO_MARK("cells.meta", "ownerless");
    table_.remove(cell);
  }
  bool do_pos_add(std::int64_t cell, std::int32_t delta) override {
    if (table_.move(cell, delta, has(Quirk::kExtraOutlivesPosition))) return true;
    if (table_.at(cell).shift != delta) KVO_MARK("cells.meta", "shifted twice");
    return false;
  }
  void do_pos_div(std::int64_t cell, std::int32_t d) override {
    if (d > 1 && table_.at(cell).pos > 0) KVO_MARK("cells.meta", "divided");
    table_.divide(cell, d, has(Quirk::kDivisionTurnsBack));
  }
  void do_ext_set(std::int64_t cell, const Extra& extra) override { table_.at(cell).extra = extra; }
  [[nodiscard]] std::int32_t do_pos(std::int64_t cell) const override {
    return table_.at(cell).pos;
  }
  [[nodiscard]] std::int32_t do_shift(std::int64_t cell) const override {
    return table_.at(cell).shift;
  }
  [[nodiscard]] Extra do_ext(std::int64_t cell) const override { return table_.at(cell).extra; }
  [[nodiscard]] bool do_seq_has(std::int64_t cell, std::int32_t seq) const override {
    return table_.at(cell).has(seq);
  }
  [[nodiscard]] std::int64_t do_seq_count(std::int64_t cell) const override {
    return static_cast<std::int64_t>(table_.at(cell).owners.count());
  }
  [[nodiscard]] std::int32_t do_seq_get(std::int64_t cell) const override {
    return list_of(table_.at(cell).owners).front();
  }
  [[nodiscard]] Extremes do_seq_pos(std::int32_t seq) const override {
    return table_.extremes(seq);
  }
  [[nodiscard]] std::vector<PositionEntry> do_seq_pos_get(std::int32_t seq) const override {
    std::vector<PositionEntry> entries;
    for (std::int64_t i = 0; i < table_.size(); ++i)
      if (table_.at(i).has(seq)) entries.push_back({table_.at(i).pos, i});
    std::ranges::stable_sort(entries, {}, &PositionEntry::pos);
    return entries;
  }
  [[nodiscard]] std::int32_t do_token_at_or_before(std::int32_t seq,
                                                   std::int32_t pos) const override {
    std::int32_t token = -1;
    for (const PositionEntry& entry : do_seq_pos_get(seq))
      if (entry.pos <= pos) token = table_.at(entry.cell).extra.token;
    return token;
  }
  [[nodiscard]] CellCopy do_copy(std::span<const std::int64_t> cells) const override {
    CellCopy copy;
    PlainCells copied;
    for (const std::int64_t i : cells) {
      const PlainCell& cell = table_.at(i);
      copy.cells.push_back({cell.pos, list_of(cell.owners), cell.extra});
      copied.cells.push_back(cell);
    }
    const ShownTable numbers = copied.shown();
    copy.used = numbers.used;
    copy.used_min = numbers.used_min;
    copy.used_end = numbers.used_end;
    return copy;
  }
  void do_paste(const CellCopy& from, std::span<const std::int64_t> cells) override {
    for (std::size_t j = 0; j < cells.size(); ++j) {
      const CopiedCell& saved = from.cells[j];
      PlainCell& cell = table_.at(cells[j]);
      if (cell.used) KVO_MARK("cells.meta", "pasted over used");
      if (cell.used && saved.pos < 0) KVO_MARK("cells.meta", "empty pasted over used");
      cell.used = saved.pos >= 0;
      cell.pos = saved.pos;
      cell.extra = saved.extra;
      cell.owners = {};
      for (const std::int32_t seq : saved.seqs) cell.owners |= owner(seq);
    }
  }

 private:
  PlainCells table_;
};

}  // namespace

Result<std::unique_ptr<CellTable>> make_plain_table(const TableOptions& options) {
  return std::make_unique<PlainTable>(options);
}

}  // namespace kvo::cells
