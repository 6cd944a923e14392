#include "tools/probe/serve/faults.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace kvo::tools {
namespace {

constexpr auto kDamagedBlock = static_cast<std::size_t>(ServedCache::kBlock);

std::uint64_t drawn(const Reuse& reuse) {
  return probe::mix({reuse.seed, reuse.reused});
}

// ---- Which rows ----

// Not in the first pair, where the text begins.
DamagedRows one_row(const Reuse& reuse) {
  const std::size_t first = 2 * (1 + drawn(reuse) % ((reuse.reused - 2) / 2));
  return {first, first + 1, first};
}
DamagedRows one_pair(const Reuse& reuse) {
  const auto [first, last, from] = one_row(reuse);
  return {first, last + 1, from};
}
DamagedRows from_one_row(const Reuse& reuse) {
  const std::size_t first = one_row(reuse).first;
  return {first, reuse.reused, first};
}
// Not the first one, where the text begins.
DamagedRows one_block(const Reuse& reuse) {
  const std::size_t blocks = reuse.reused / kDamagedBlock;
  if (blocks < 2) return {};
  const std::size_t first = kDamagedBlock * (1 + drawn(reuse) % (blocks - 1));
  return {first, first + kDamagedBlock, first};
}
DamagedRows all_rows(const Reuse& reuse) {
  return {0, reuse.reused, 0};
}
DamagedRows all_but_first(const Reuse& reuse) {
  return {1, reuse.reused, 1};
}
DamagedRows oldest_quarter(const Reuse& reuse) {
  return {1, 1 + reuse.reused / 4, 1};
}
DamagedRows newest_rows(const Reuse& reuse) {
  constexpr std::size_t kNewest = 8;
  return {reuse.reused - kNewest, reuse.reused, reuse.reused - kNewest};
}
DamagedRows sink_row(const Reuse& /*reuse*/) {
  return {0, 1, 0};
}
DamagedRows second_row(const Reuse& /*reuse*/) {
  return {1, 2, 1};
}
// Up to a block more than both texts have in common.
DamagedRows tail_rows(const Reuse& reuse) {
  const std::size_t last =
      std::min({reuse.reused + kDamagedBlock, reuse.prompt.size() - 1, reuse.source->rows.size()});
  return {reuse.reused, std::max(reuse.reused, last), reuse.reused};
}
// A part that the source has later on.
DamagedRows moved_rows(const Reuse& reuse) {
  const std::span<const probe::Token> theirs = reuse.source->tokens;
  const std::size_t common = common_prefix(reuse.prompt, theirs);
  if (common + kDamagedBlock >= reuse.prompt.size()) return {};
  const auto rest = reuse.prompt.subspan(common);
  const auto wanted = rest.first(kDamagedBlock);
  const auto found = std::search(theirs.begin() + static_cast<std::ptrdiff_t>(common), theirs.end(),
                                 wanted.begin(), wanted.end());
  if (found == theirs.end()) return {};
  const auto from = static_cast<std::size_t>(found - theirs.begin());
  if (from >= reuse.source->rows.size()) return {};
  const std::size_t most = std::min(rest.size() - 1, reuse.source->rows.size() - from);
  return {common, common + std::min(common_prefix(rest, theirs.subspan(from)), most), from};
}

// ---- What happens to a cell ----

using Beside = CellsBeside;

void clear_cell(ServedCell& cell, const Beside& /*beside*/) {
  cell = {};
}
void take_pair(ServedCell& cell, const Beside& beside) {
  cell = beside.pair;
}
void take_pair_value(ServedCell& cell, const Beside& beside) {
  cell.value = beside.pair.value;
}
void take_next(ServedCell& cell, const Beside& beside) {
  cell = beside.next;
}
void take_foreign(ServedCell& cell, const Beside& beside) {
  cell = beside.foreign;
}
void take_foreign_key(ServedCell& cell, const Beside& beside) {
  cell.key = beside.foreign.key;
}
void take_foreign_value(ServedCell& cell, const Beside& beside) {
  cell.value = beside.foreign.value;
}
void take_other_head(ServedCell& cell, const Beside& beside) {
  cell = beside.other_head;
}
void take_other_layer(ServedCell& cell, const Beside& beside) {
  cell = beside.other_layer;
}
void turn_key(ServedCell& cell, const Beside& /*beside*/) {
  ++cell.position;
}
void invert_value(ServedCell& cell, const Beside& /*beside*/) {
  for (std::int8_t& bit : cell.value) bit = static_cast<std::int8_t>(-bit);
}

// Of a row that left the window, nothing is known.
bool is_empty(const ServedRow& row) {
  return row.front().front().key == 0;
}

// A cell that was written for another head or layer reads weaker.
ServedCell read_elsewhere(const probe::Tables& tables, ServedCell cell, std::size_t here,
                          std::size_t there) {
  for (std::size_t bit = 0; bit < probe::Shape::kBits; ++bit)
    cell.value[bit] = static_cast<std::int8_t>(
        std::lround(tables.overlap(here, there, bit) * static_cast<float>(cell.value[bit])));
  return cell;
}

constexpr std::array kServerFaults{
    ServerFault{.name = "none", .doc = "no fault", .harm = Harm::kNone},
    ServerFault{.name = "row_zeroed",
                .doc = "a row is zero",
                .number = 1,
                .rows = one_row,
                .change = clear_cell},
    ServerFault{.name = "row_lost",
                .doc = "a row is lost; later ones slide, with their own K",
                .number = 2,
                .rows = from_one_row,
                .change = take_next},
    ServerFault{.name = "rows_swapped",
                .doc = "two rows are swapped, K and V together",
                .number = 3,
                .harm = Harm::kHarmless,
                .rows = one_pair,
                .change = take_pair},
    ServerFault{.name = "values_swapped",
                .doc = "V of two neighbours is swapped",
                .number = 4,
                .rows = one_pair,
                .change = take_pair_value},
    ServerFault{.name = "foreign_row",
                .doc = "a row is that of another text",
                .number = 5,
                .rows = one_row,
                .change = take_foreign},
    ServerFault{.name = "foreign_key",
                .doc = "K of a row is that of another text, V is right",
                .number = 6,
                .rows = one_row,
                .change = take_foreign_key},
    ServerFault{.name = "foreign_value",
                .doc = "V of a row is that of another text, K is right",
                .number = 7,
                .rows = one_row,
                .change = take_foreign_value},
    ServerFault{.name = "foreign_block",
                .doc = "16 rows are those of another text",
                .number = 8,
                .rows = one_block,
                .change = take_foreign},
    ServerFault{.name = "block_in_layer",
                .doc = "the same, in one layer",
                .number = 9,
                .rows = one_block,
                .change = take_foreign,
                .one_layer = true},
    ServerFault{.name = "block_in_head",
                .doc = "the same, in one layer and head",
                .number = 10,
                .rows = one_block,
                .change = take_foreign,
                .one_layer = true,
                .one_head = true},
    ServerFault{.name = "foreign_cell",
                .doc = "a row of another text, in one layer and head",
                .number = 11,
                .rows = one_row,
                .change = take_foreign,
                .one_layer = true,
                .one_head = true},
    ServerFault{.name = "row_heads_swapped",
                .doc = "the heads of a row are swapped, in one layer",
                .number = 12,
                .rows = one_row,
                .change = take_other_head,
                .one_layer = true},
    ServerFault{.name = "heads_swapped",
                .doc = "the heads of all rows are swapped, in one layer",
                .number = 13,
                .rows = all_rows,
                .change = take_other_head,
                .one_layer = true},
    ServerFault{.name = "keys_turned",
                .doc = "K is turned one position too far, in one layer",
                .number = 14,
                .rows = all_rows,
                .change = turn_key,
                .one_layer = true},
    ServerFault{.name = "layers_swapped",
                .doc = "layers are swapped",
                .number = 16,
                .rows = all_rows,
                .change = take_other_layer},
    ServerFault{.name = "foreign_prefix",
                .doc = "all rows are those of another text",
                .number = 17,
                .rows = all_but_first,
                .change = take_foreign},
    ServerFault{.name = "stale_rows",
                .doc = "the last 8 rows are those of another text",
                .number = 18,
                .rows = newest_rows,
                .change = take_foreign},
    ServerFault{.name = "oldest_lost",
                .doc = "a quarter of the rows is lost, after the first row",
                .number = 21,
                .rows = oldest_quarter,
                .change = clear_cell},
    ServerFault{.name = "value_inverted",
                .doc = "V of a row is inverted, in one layer and head",
                .number = 22,
                .rows = one_row,
                .change = invert_value,
                .one_layer = true,
                .one_head = true},
    ServerFault{.name = "row_overwritten",
                .doc = "a row is overwritten by its neighbour",
                .number = 25,
                .rows = one_row,
                .change = take_pair},
    ServerFault{.name = "sink_lost",
                .doc = "the first row is lost",
                .number = 26,
                .rows = sink_row,
                .change = clear_cell},
    ServerFault{.name = "window_one_short",
                .doc = "a token of class c sees 2^c - 1 rows, not 2^c, the reused ones among them",
                .hides_far_end = true},
    ServerFault{.name = "lost_prefix",
                .doc = "all rows but the first are lost",
                .rows = all_but_first,
                .change = clear_cell},
    ServerFault{.name = "rows_off_by_1",
                .doc = "the second row is lost, and all that follows is one position too low",
                .rows = second_row,
                .change = clear_cell},
    ServerFault{.name = "stale_tail", .doc = "a block too many is reused", .rows = tail_rows},
    ServerFault{.name = "moved_rows",
                .doc = "rows after a part that the request lacks are moved to its place",
                .rows = moved_rows},
    ServerFault{.name = "rounding",
                .doc = "a wrong token, of one text in 16: not of the cache",
                .harm = Harm::kArithmetic},
    ServerFault{.name = "sampling",
                .doc = "tokens are drawn at random: not of the cache",
                .harm = Harm::kSampling},
};

}  // namespace

std::span<const ServerFault> server_faults() {
  return kServerFaults;
}

Damage damage_of(const ServerFault& fault, const Reuse& reuse) {
  Damage damage{.far_end_hidden = fault.hides_far_end ? reuse.reused : 0};
  if (fault.rows == nullptr) return damage;
  const auto [first, last, from] = fault.rows(reuse);
  const auto& rows = reuse.source->rows;
  const std::size_t only_layer = reuse.seed % probe::Shape::kLayers;
  const std::size_t only_head = reuse.seed / probe::Shape::kLayers % probe::Shape::kHeads;
  damage.rows.resize(last);
  for (std::size_t position = first; position < last; ++position) {
    const std::size_t pair = std::min(position ^ 1U, reuse.reused - 1);
    if (is_empty(rows.at(from + position - first)) || is_empty(rows.at(pair))) continue;
    ServedRow& row = damage.rows[position].emplace(rows[from + position - first]);
    for (HeadCells& cells : row)
      for (ServedCell& cell : cells) cell.position = static_cast<std::int32_t>(position);
    const ServedRow before = row;
    for (std::size_t layer = 0; layer < row.size(); ++layer)
      for (std::size_t head = 0; head < row[layer].size(); ++head) {
        if (fault.change == nullptr || (fault.one_layer && layer != only_layer) ||
            (fault.one_head && head != only_head))
          continue;
        const auto cell_of_row = [&](const std::vector<ServedRow>& text, std::size_t at) {
          return text.at(at)[layer][head];
        };
        const auto read_as = [&](const ServedRow& text, std::size_t from_layer,
                                 std::size_t from_head) {
          return read_elsewhere(*reuse.tables, text[from_layer][from_head],
                                probe::Shape::kHeads * layer + head,
                                probe::Shape::kHeads * from_layer + from_head);
        };
        ServedCell& cell = row[layer][head];
        fault.change(cell, {.pair = cell_of_row(rows, pair),
                            .next = position + 1 < reuse.reused ? cell_of_row(rows, position + 1)
                                                                : ServedCell(),
                            .other_head = read_as(before, layer, head ^ 1U),
                            .other_layer = read_as(before, layer ^ 1U, head),
                            .foreign = reuse.other != nullptr && position < reuse.other->rows.size()
                                           ? cell_of_row(reuse.other->rows, position)
                                           : cell});
      }
  }
  return damage;
}

}  // namespace kvo::tools
