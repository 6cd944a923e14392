// optimized/cells/meta_table.hpp: `cells.meta`, fast.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optimized/cells/stream_table.hpp"
#include "reference/cells/table.hpp"

namespace kvo::optimized {

/// Each sequence's cells by position; one owner is a number, several are a set.
class CellsMetaTable final : public cells::CellTable {
 public:
  /// Throws std::bad_alloc.
  static Result<std::unique_ptr<cells::CellTable>> make(const cells::TableOptions& options);
  explicit CellsMetaTable(const cells::TableOptions& options);

  [[nodiscard]] std::int64_t size() const override { return table_.size(); }
  void reset() override;
  void reset_shift() override { table_.reset_shift(); }
  [[nodiscard]] cells::ShownTable shown() const override { return table_.shown(); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return table_.broken();
  }

 protected:
  void do_resize(std::int64_t n) override;
  void do_pos_set(std::int64_t cell, std::int32_t pos) override;
  void do_seq_add(std::int64_t cell, std::int32_t seq) override;
  bool do_seq_rm(std::int64_t cell, std::int32_t seq) override;
  bool do_seq_keep(std::int64_t cell, std::int32_t seq) override;
  void do_rm(std::int64_t cell) override;
  bool do_pos_add(std::int64_t cell, std::int32_t delta) override;
  void do_pos_div(std::int64_t cell, std::int32_t d) override;
  void do_ext_set(std::int64_t cell, const cells::Extra& extra) override;
  [[nodiscard]] std::int32_t do_pos(std::int64_t cell) const override { return table_.pos(cell); }
  [[nodiscard]] std::int32_t do_shift(std::int64_t cell) const override {
    return table_.shift(cell);
  }
  [[nodiscard]] cells::Extra do_ext(std::int64_t cell) const override;
  [[nodiscard]] bool do_seq_has(std::int64_t cell, std::int32_t seq) const override {
    return table_.owns(cell, seq);
  }
  [[nodiscard]] std::int64_t do_seq_count(std::int64_t cell) const override;
  [[nodiscard]] std::int32_t do_seq_get(std::int64_t cell) const override;
  [[nodiscard]] cells::Extremes do_seq_pos(std::int32_t seq) const override {
    return table_.extremes(seq);
  }
  [[nodiscard]] std::vector<cells::PositionEntry> do_seq_pos_get(std::int32_t seq) const override;
  [[nodiscard]] std::int32_t do_token_at_or_before(std::int32_t seq,
                                                   std::int32_t pos) const override;
  [[nodiscard]] cells::CellCopy do_copy(std::span<const std::int64_t> cells) const override;
  void do_paste(const cells::CellCopy& from, std::span<const std::int64_t> cells) override;

 private:
  [[nodiscard]] cells::Extra& extra(std::int64_t cell) {
    return extras_[static_cast<std::size_t>(cell)];
  }

  StreamTable table_;
  std::vector<cells::Extra> extras_;
};

}  // namespace kvo::optimized
