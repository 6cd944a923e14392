// reference/cells/plain_half_cache.hpp: a cache of cells and rows, or one half of a pair, looked
// through cell by cell.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "reference/cells/batch_tokens.hpp"
#include "reference/cells/cache.hpp"
#include "reference/cells/plain_cells.hpp"

namespace kvo::cells {

/// The tags of a row, and the position that its key is turned to.
struct PlainRow {
  std::int64_t k = 0;
  std::int64_t rot = 0;
  std::int64_t v = 0;
};

struct PlainStream {
  PlainCells table = {};
  std::int64_t head = 0;
  std::vector<PlainRow> rows = {};  ///< [cell]
};

/// A cell for each token of an ubatch, in the stream of its sequence.
using Slots = std::vector<std::int32_t>;

/// A row that a loaded cell is to get.
struct LoadedRow {
  std::size_t stream = 0;
  std::int64_t cell = 0;
  PlainRow row = {};
};

/// Sequences and cells that calls name must exist.
class PlainHalf {
 public:
  PlainHalf(const KvOptions& options, std::int64_t size, const Window& window);

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] Extremes extremes(std::int32_t seq) const;

  /// The first n usable cells of a sequence's stream, in the order of the search (LC-35).
  [[nodiscard]] std::optional<Slots> find(std::int32_t seq, std::int64_t n) const;
  /// The first n usable cells that are adjacent (LC-39).
  [[nodiscard]] std::optional<Slots> find_adjacent(std::int32_t seq, std::int64_t n) const;
  /// The slots of all ubatches, each placed behind the earlier ones; all is taken back (LC-37).
  std::optional<std::vector<Slots>> rehearse(const std::vector<Token>& tokens,
                                             const std::vector<Ubatch>& ubatches);
  /// LC-36, LC-61.
  void place(const std::vector<Token>& tokens, const Ubatch& ubatch, const Slots& slots);
  /// LC-46: the token of batch row r has tag first_tag + r.
  void write_rows(const std::vector<Token>& tokens, const Ubatch& ubatch, const Slots& slots,
                  std::int64_t first_tag);
  /// LC-56.
  [[nodiscard]] std::int64_t n_kv(const std::vector<Token>& tokens, const Ubatch& ubatch) const;
  /// [token of the ubatch][n_kv] (LC-50 to LC-58).
  void mask(const std::vector<Token>& tokens, const Ubatch& ubatch, bool causal,
            std::span<float> out) const;

  /// LC-40; seq -1: any.
  void remove(std::int32_t seq, const Range& range);
  /// Whether a cell of src in range has dst, too.
  [[nodiscard]] bool shares(std::int32_t src, std::int32_t dst, const Range& range) const;
  /// LC-41.
  void share(std::int32_t src, std::int32_t dst, const Range& range);
  /// Whether a cell would have been below 0 before its pending shift (LC-66).
  [[nodiscard]] bool shifted_from_below(std::int32_t seq) const;
  /// LC-66.
  void copy(std::int32_t src, std::int32_t dst);
  /// LC-42.
  void keep(std::int32_t seq);
  /// Whether a cell of seq in range has other owners.
  [[nodiscard]] bool has_shared(std::int32_t seq, const Range& range) const;
  /// Whether all cells of seq in range can be moved, or divided. @{
  [[nodiscard]] bool can_move(std::int32_t seq, const Range& range, std::int32_t delta) const;
  [[nodiscard]] bool can_divide(std::int32_t seq, const Range& range, std::int32_t d) const;
  /// @}
  /// LC-43.
  void move(std::int32_t seq, const Range& range, std::int32_t delta);
  /// LC-44.
  void divide(std::int32_t seq, const Range& range, std::int32_t d);
  /// LC-45; whether anything was pending.
  bool update();
  /// LC-47.
  void clear(bool data);

  /// LC-70 to LC-72; seq -1: all.
  [[nodiscard]] std::vector<SavedStream> save(std::int32_t seq) const;
  /// Places saved cells for a sequence, or with -1 for all (LC-73 to LC-75). The rows are still to
  /// be written. Nothing: it failed.
  std::optional<std::vector<LoadedRow>> load(const std::vector<SavedStream>& saved,
                                             std::int32_t seq);
  void write_loaded(const std::vector<LoadedRow>& rows);

  [[nodiscard]] std::vector<ShownTable> tables() const;
  [[nodiscard]] std::vector<StreamRows> rows() const;

 private:
  [[nodiscard]] bool has(Quirk quirk) const { return options_.quirks.has(quirk); }
  [[nodiscard]] std::size_t stream_number(std::int32_t seq) const {
    return options_.unified ? 0 : static_cast<std::size_t>(seq);
  }
  [[nodiscard]] PlainStream& stream_of(std::int32_t seq) { return streams_[stream_number(seq)]; }
  [[nodiscard]] const PlainStream& stream_of(std::int32_t seq) const {
    return streams_[stream_number(seq)];
  }
  /// The cells of seq in range, ascending.
  [[nodiscard]] std::vector<std::int64_t> cells_of(std::int32_t seq, const Range& range) const;
  /// Where a search for n cells begins (LC-35).
  [[nodiscard]] std::int64_t search_begin(const PlainStream& stream, std::int64_t n) const;
  /// By cell: whether a search may take it.
  [[nodiscard]] std::vector<bool> usable(const PlainStream& stream) const;
  [[nodiscard]] std::optional<Slots> search(const std::vector<Token>& tokens,
                                            const Ubatch& ubatch) const;
  std::optional<std::vector<LoadedRow>> load_sequence(const std::vector<SavedStream>& saved,
                                                      std::int32_t seq);
  std::optional<std::vector<LoadedRow>> load_whole(const std::vector<SavedStream>& saved);

  KvOptions options_;
  std::int64_t size_;
  Window window_;
  std::vector<PlainStream> streams_;
  std::vector<std::pair<std::size_t, std::size_t>> copies_;  ///< pending: streams, from and to
};

}  // namespace kvo::cells
