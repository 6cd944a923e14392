// reference/cells/plain_table_cache.hpp: the reference of `cells.meta`.
#pragma once

#include "reference/cells/plain_cells.hpp"

namespace kvo::cells {

/// A list of cells, looked through each time.
class PlainTable final : public CellTable {
 public:
  static Result<std::unique_ptr<CellTable>> make(const TableOptions& options);
  explicit PlainTable(const TableOptions& options);

  [[nodiscard]] std::int64_t size() const override { return table_.size(); }
  void reset() override { table_.reset(); }
  void reset_shift() override { table_.reset_shift(); }
  [[nodiscard]] ShownTable shown() const override { return table_.shown(); }

 protected:
  void do_resize(std::int64_t n) override;
  void do_pos_set(std::int64_t cell, std::int32_t pos) override;
  void do_seq_add(std::int64_t cell, std::int32_t seq) override;
  bool do_seq_rm(std::int64_t cell, std::int32_t seq) override;
  bool do_seq_keep(std::int64_t cell, std::int32_t seq) override;
  void do_rm(std::int64_t cell) override;
  bool do_pos_add(std::int64_t cell, std::int32_t delta) override;
  void do_pos_div(std::int64_t cell, std::int32_t d) override;
  void do_ext_set(std::int64_t cell, const Extra& extra) override;
  [[nodiscard]] std::int32_t do_pos(std::int64_t cell) const override;
  [[nodiscard]] std::int32_t do_shift(std::int64_t cell) const override;
  [[nodiscard]] Extra do_ext(std::int64_t cell) const override;
  [[nodiscard]] bool do_seq_has(std::int64_t cell, std::int32_t seq) const override;
  [[nodiscard]] std::int64_t do_seq_count(std::int64_t cell) const override;
  [[nodiscard]] std::int32_t do_seq_get(std::int64_t cell) const override;
  [[nodiscard]] Extremes do_seq_pos(std::int32_t seq) const override;
  [[nodiscard]] std::vector<PositionEntry> do_seq_pos_get(std::int32_t seq) const override;
  [[nodiscard]] std::int32_t do_token_at_or_before(std::int32_t seq,
                                                   std::int32_t pos) const override;
  [[nodiscard]] CellCopy do_copy(std::span<const std::int64_t> cells) const override;
  void do_paste(const CellCopy& from, std::span<const std::int64_t> cells) override;

 private:
  PlainCells table_;
};

}  // namespace kvo::cells
