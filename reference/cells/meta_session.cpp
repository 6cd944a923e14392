// The kind `cells.meta`. Its session numbers copies of cells.
#include <algorithm>
#include <numeric>

#include "reference/cells/meta_operations.hpp"
#include "reference/cells/session.hpp"

namespace kvo::cells {
namespace {

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

class MetaSession final : public OneCacheSession<MetaSession, MetaOps, CellTable, TableOptions> {
 public:
  using OneCacheSession::OneCacheSession;

  Status operator()(const NewTable& /*op*/) {
    if (const Status made = make_cache(); !made) return made;
    copies_.clear();
    return {};
  }
  Status operator()(const ExtSet& op) {
    return probe()([&] { return cache().ext_set(op.cell, {op.x, op.y, op.token}); });
  }
  Result<CopyCells::Returns> operator()(const CopyCells& op) {
    if (op.cells.has_value() == (op.begin.has_value() && op.n.has_value()))
      return refused("either begin and n, or cells");
    const auto cells = op.cells ? *op.cells : run(*op.begin, *op.n);
    if (!cells) return refused(fmt::format("begin {}, n {}", *op.begin, *op.n));
    if (const Status space = copies_.has_space(); !space) return space.error();
    auto copy = probe()([&] { return cache().copy(*cells); });
    if (!copy) return copy.error();
    return CopyCells::Returns{copies_.add(std::move(*copy))};
  }
  Status operator()(const PasteCells& op) {
    const auto copy = copies_.find(op.handle);
    if (!copy) return copy.error();
    if (op.cells.has_value() == op.begin.has_value()) return refused("either begin or cells");
    const auto cells = op.cells ? *op.cells : run(*op.begin, std::ssize((*copy)->cells));
    if (!cells) return refused(fmt::format("begin {}", *op.begin));
    return probe()([&] { return cache().paste(**copy, *cells); });
  }
  Result<ShownTable> operator()(const RereadCopy& op) {
    const auto copy = copies_.find(op.handle);
    if (!copy) return copy.error();
    return table_of(**copy);
  }
  template <OneOf<SeqPosMin, SeqPosMax> T>
  Result<Value> operator()(const T& op) {
    const auto extremes = probe()([&] { return cache().seq_pos(op.seq); });
    if (!extremes) return extremes.error();
    return Value{std::is_same_v<T, SeqPosMin> ? extremes->min : extremes->max};
  }
  Result<ShowTable::Returns> operator()(const ShowTable& /*op*/) {
    return ShowTable::Returns{
        cache().shown(), sequences_shown([&](std::int64_t seq) { return *cache().seq_pos(seq); })};
  }

 private:
  /// n cells from there on; nothing if they are not all in the table.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> run(std::int64_t begin, std::int64_t n) {
    const std::int64_t size = cache().size();
    if (begin < 0 || n < 0 || begin > size || n > size - begin) return std::nullopt;
    std::vector<std::int64_t> cells(static_cast<std::size_t>(n));
    std::iota(cells.begin(), cells.end(), begin);
    return cells;
  }

  NumberedCells<CellCopy> copies_;
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
  return subject_of<MetaSession>(
      meta_kind(), std::move(variant), std::move(doc), std::move(make),
      [](const Setup& setup, QuirkSet<Quirk> quirks) {
        const auto& config = setup.config_as<MetaConfig>();
        return TableOptions{quirks, config.build.value_or(Build::kRelease), config.size};
      });
}

}  // namespace kvo::cells

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_CELLS_META_OPERATIONS)
}  // namespace kvo
