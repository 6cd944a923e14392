// The kind `cells.meta`. Its session numbers copies of cells.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "reference/cells/meta_operations.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::cells {
namespace {

constexpr std::size_t kMostCopies = 4096;            // of a case
constexpr std::size_t kMostCopiedCells = 1U << 20U;  // of all of them together

Error no_table() {
  return fail(Code::kPrecondition, "no table");
}

// A copy as a table; it has no shifts.
ShownTable table_of(const CellCopy& copy) {
  ShownTable table{.used = copy.used, .used_min = copy.used_min, .used_end = copy.used_end};
  for (std::size_t i = 0; i < copy.cells.size(); ++i)
    if (copy.cells[i].pos >= 0)
      table.cells.push_back({.cell = static_cast<std::int64_t>(i),
                             .pos = copy.cells[i].pos,
                             .seqs = copy.cells[i].seqs});
  return table;
}

class MetaSession final : public DispatchSession<MetaSession, MetaOps> {
 public:
  MetaSession(MakeTable make, const TableOptions& options)
      : make_(std::move(make)), options_(options) {}

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return table_ ? table_->broken_invariant() : std::nullopt;
  }

  template <class T>
  [[nodiscard]] Result<CellTable*> cache_of(const T& /*op*/) const {
    if (!table_) return no_table();
    return table_.get();
  }
  Status operator()(const NewTable& /*op*/) {
    if (options_.size < 1 || options_.size > kMostCells)
      return fail(Code::kOutOfRange,
                  fmt::format("size {} is not in [1, {}]", options_.size, kMostCells));
    auto made = probe()([&] { return make_(options_); });
    if (!made) return made.error();
    table_ = std::move(*made);
    copies_.clear();
    return {};
  }
  Status operator()(const ExtSet& op) {
    if (!table_) return no_table();
    return probe()([&] { return table_->ext_set(op.cell, {op.x, op.y, op.token}); });
  }
  Result<CopyCells::Returns> operator()(const CopyCells& op) {
    if (!table_) return no_table();
    if (op.cells.has_value() == (op.begin.has_value() && op.n.has_value()))
      return refused("either begin and n, or cells");
    const auto cells = op.cells ? *op.cells : run(*op.begin, *op.n);
    if (!cells) return refused(fmt::format("begin {}, n {}", *op.begin, *op.n));
    std::size_t held = 0;
    for (const CellCopy& copy : copies_) held += copy.cells.size();
    if (copies_.size() == kMostCopies || held > kMostCopiedCells) return refused("too many copies");
    auto copy = probe()([&] { return table_->copy(*cells); });
    if (!copy) return copy.error();
    copies_.push_back(std::move(*copy));
    return CopyCells::Returns{std::ssize(copies_) - 1};
  }
  Status operator()(const PasteCells& op) {
    if (!table_) return no_table();
    const CellCopy* copy = find(op.handle);
    if (copy == nullptr) return no_copy(op.handle);
    if (op.cells.has_value() == op.begin.has_value()) return refused("either begin or cells");
    const auto cells = op.cells ? *op.cells : run(*op.begin, std::ssize(copy->cells));
    if (!cells) return refused(fmt::format("begin {}", *op.begin));
    return probe()([&] { return table_->paste(*copy, *cells); });
  }
  Result<ShownTable> operator()(const RereadCopy& op) {
    if (!table_) return no_table();
    const CellCopy* copy = find(op.handle);
    if (copy == nullptr) return no_copy(op.handle);
    return table_of(*copy);
  }
  template <OneOf<SeqPosMin, SeqPosMax> T>
  Result<Value> operator()(const T& op) {
    if (!table_) return no_table();
    const auto extremes = probe()([&] { return table_->seq_pos(op.seq); });
    if (!extremes) return extremes.error();
    return Value{std::is_same_v<T, SeqPosMin> ? extremes->min : extremes->max};
  }
  Result<ShowTable::Returns> operator()(const ShowTable& /*op*/) {
    if (!table_) return no_table();
    ShownTable table = table_->shown();
    auto seqs = sequences_shown([&](std::int64_t seq) { return *table_->seq_pos(seq); });
    return ShowTable::Returns{std::move(table.cells), table.used,      table.used_min,
                              table.used_end,         table.has_shift, std::move(seqs)};
  }

 private:
  /// n cells from there on; nothing if they are not all in the table.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> run(std::int64_t begin,
                                                             std::int64_t n) const {
    const std::int64_t size = table_->size();
    if (begin < 0 || n < 0 || begin > size || n > size - begin) return std::nullopt;
    std::vector<std::int64_t> cells(static_cast<std::size_t>(n));
    std::iota(cells.begin(), cells.end(), begin);
    return cells;
  }
  [[nodiscard]] const CellCopy* find(std::int64_t handle) const {
    if (handle < 0 || handle >= std::ssize(copies_)) return nullptr;
    return &copies_[static_cast<std::size_t>(handle)];
  }
  static Error no_copy(std::int64_t handle) { return refused(fmt::format("no copy {}", handle)); }

  MakeTable make_;
  TableOptions options_;
  std::unique_ptr<CellTable> table_;
  std::vector<CellCopy> copies_;  // [handle]
};

}  // namespace

const CacheKind& meta_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kMetaQuirks);
  static const CacheKind kKind{.contract = "cells",
                               .cache = "meta",
                               .doc = "one table of cells (llama.cpp llama_kv_cells)",
                               .operations = op_kinds(MetaOps()),
                               .config = &type_of<MetaConfig>(),
                               .quirks = kRows};
  return kKind;
}

Subject make_meta_subject(std::string variant, std::string doc, MakeTable make) {
  return {.kind = &meta_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            const auto config = setup.config_as<MetaConfig>();
            return std::make_unique<MetaSession>(
                make, TableOptions{*quirks, config.build.value_or(Build::kRelease), config.size});
          }};
}

}  // namespace kvo::cells

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_CELLS_META_OPERATIONS)
}  // namespace kvo
