#include "optimized/cells/meta_table.hpp"

#include <algorithm>
#include <array>

namespace kvo::optimized {
namespace {

// Tables take 32-bit cells, as there are at most kMostCells.
std::int32_t number_of(std::int64_t cell) {
  return static_cast<std::int32_t>(cell);
}

}  // namespace

Result<std::unique_ptr<cells::CellTable>> CellsMetaTable::make(const cells::TableOptions& options) {
  return std::make_unique<CellsMetaTable>(options);
}

CellsMetaTable::CellsMetaTable(const cells::TableOptions& options)
    : CellTable(options),
      table_(options.size, {}, {}),
      extras_(static_cast<std::size_t>(options.size)) {}

void CellsMetaTable::reset() {
  table_.reset();
  std::ranges::fill(extras_, cells::Extra());
}

void CellsMetaTable::do_resize(std::int64_t n) {
  if (n == size()) return reset();
  StreamTable table(n, {}, {});
  extras_ = std::vector<cells::Extra>(static_cast<std::size_t>(n));
  table_ = std::move(table);
}

void CellsMetaTable::do_pos_set(std::int64_t cell, std::int32_t pos) {
  table_.set_pos(number_of(cell), pos);
}

void CellsMetaTable::do_seq_add(std::int64_t cell, std::int32_t seq) {
  table_.reserve(seq, 1);
  table_.add_owner(number_of(cell), seq);
}

bool CellsMetaTable::do_seq_rm(std::int64_t cell, std::int32_t seq) {
  const bool emptied = table_.remove_owner(number_of(cell), seq);
  if (emptied) extra(cell) = {};
  return emptied;
}

bool CellsMetaTable::do_seq_keep(std::int64_t cell, std::int32_t seq) {
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

void CellsMetaTable::do_rm(std::int64_t cell) {
  table_.remove(number_of(cell));
  extra(cell) = {};
}

bool CellsMetaTable::do_pos_add(std::int64_t cell, std::int32_t delta) {
  const std::int32_t pos = table_.pos(cell) + delta;
  if (pos >= 0) {
    table_.move(number_of(cell), pos, table_.shift(cell) + delta);
    return false;
  }
  table_.drop_below_zero(number_of(cell));
  if (!has(cells::Quirk::kExtraOutlivesPosition)) extra(cell) = {};
  return true;
}

void CellsMetaTable::do_pos_div(std::int64_t cell, std::int32_t d) {
  const std::int32_t pos = table_.pos(cell);
  const std::int32_t fall = pos - pos / d;
  const std::int32_t shift = table_.shift(cell);
  table_.move(number_of(cell), pos / d,
              has(cells::Quirk::kDivisionTurnsBack) ? shift + fall : shift - fall);
}

void CellsMetaTable::do_ext_set(std::int64_t cell, const cells::Extra& data) {
  extra(cell) = data;
}

cells::Extra CellsMetaTable::do_ext(std::int64_t cell) const {
  return extras_[static_cast<std::size_t>(cell)];
}

std::int64_t CellsMetaTable::do_seq_count(std::int64_t cell) const {
  return table_.owners(cell).count();
}

std::int32_t CellsMetaTable::do_seq_get(std::int64_t cell) const {
  return table_.sole_owner(cell);
}

std::vector<cells::PositionEntry> CellsMetaTable::do_seq_pos_get(std::int32_t seq) const {
  const auto held = table_.of(seq).all();
  std::vector<cells::PositionEntry> entries(held.size());
  std::ranges::transform(held, entries.begin(), [](const CellAt& each) {
    return cells::PositionEntry{.pos = each.pos, .cell = each.cell};
  });
  return entries;
}

std::int32_t CellsMetaTable::do_token_at_or_before(std::int32_t seq, std::int32_t pos) const {
  const OwnedCells& its = table_.of(seq);
  const std::size_t behind = its.index_of(std::int64_t{pos} + 1);
  return behind == 0 ? -1 : do_ext(its.all()[behind - 1].cell).token;
}

cells::CellCopy CellsMetaTable::do_copy(std::span<const std::int64_t> numbers) const {
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

void CellsMetaTable::do_paste(const cells::CellCopy& from, std::span<const std::int64_t> numbers) {
  OwnerSet owners;
  std::array<std::size_t, cells::kSequences> more;  // NOLINT: of `owners` only
  for (const cells::CopiedCell& saved : from.cells)
    for (const std::int32_t seq : saved.seqs) {
      std::size_t& count = more[static_cast<std::size_t>(seq)];
      count = owners.has(seq) ? count + 1 : 1;
      owners.insert(seq);
    }
  owners.each([&](std::int32_t seq) { table_.reserve(seq, more[static_cast<std::size_t>(seq)]); });
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

}  // namespace kvo::optimized
