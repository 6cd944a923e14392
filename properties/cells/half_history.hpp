// properties/cells/half_history.hpp: what a history knows of the tables and rows of a cache's half.
//
// Which cells a batch gets is taken from the answers, if they may be had. Where that is not told
// (a load into a sequence), the next `state` tells, and must show what was loaded beside what was
// there. A stream of which nothing is known is learnt from the next `state` and `rows`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/cells/operations.hpp"

namespace kvo::cells {

/// The row of a cell (LC-46).
struct KnownRow {
  std::int64_t k = 0;
  std::int64_t rot = 0;  ///< position that the key is turned to
  std::int64_t v = 0;
  friend bool operator==(const KnownRow&, const KnownRow&) = default;
};

struct KnownCell {
  bool used = false;
  std::int64_t pos = -1;
  std::int64_t shift = 0;
  std::set<std::int32_t> owners = {};
  std::optional<KnownRow> row = KnownRow();  ///< none: not known

  [[nodiscard]] bool has(std::int32_t seq) const { return used && owners.contains(seq); }
  /// Empties the cell; its row stays.
  void empty();
};

/// A token of a batch.
struct KnownToken {
  std::int64_t pos = 0;
  std::set<std::int32_t> seqs = {};
  std::int32_t primary = 0;  ///< whose cells it sees (LC-38)
};

/// Cells of a stream as they were saved; none: not known.
using KnownSaved = std::optional<std::vector<KnownCell>>;

class HalfHistory {
 public:
  using Words = std::optional<std::string>;

  HalfHistory(const KvOptions& options, std::int64_t size, const Window& window);

  // ---- Sequences (LC-40 to LC-47, LC-66) ----

  void remove(std::int32_t seq, const Range& range);
  void share(std::int32_t src, std::int32_t dst, const Range& range);
  void copy(std::int32_t src, std::int32_t dst);
  void keep(std::int32_t seq);
  void move(std::int32_t seq, const Range& range, std::int64_t delta);
  void divide(std::int32_t seq, const Range& range, std::int64_t d);
  void clear(bool data);
  /// Whether anything was pending; nothing: not known.
  std::optional<bool> update();

  // ---- Saved states (LC-70 to LC-76) ----

  [[nodiscard]] std::vector<KnownSaved> save(std::int32_t seq) const;
  void load(const std::vector<KnownSaved>& saved, std::int32_t seq);
  /// Nothing is known any more of a sequence's stream, or with -1 of any.
  void forget(std::int32_t seq);

  // ---- Batches ----

  /// Cells that a token of a stream may get (LC-35); nothing: not known.
  [[nodiscard]] std::optional<std::int64_t> usable(std::int32_t seq) const;
  /// Words where a slot may not be had, or twice.
  [[nodiscard]] Words wrong_slots(const std::vector<KnownToken>& tokens,
                                  const std::vector<std::int32_t>& rows,
                                  const std::vector<std::int32_t>& slots) const;
  /// Requires  the slots are not wrong.
  void place(const std::vector<KnownToken>& tokens, const std::vector<std::int32_t>& rows,
             const std::vector<std::int32_t>& slots);
  void write(const std::vector<KnownToken>& tokens, const std::vector<std::int32_t>& rows,
             const std::vector<std::int32_t>& slots, std::int64_t first_tag);
  /// Words where a token sees other cells than it must (LC-50 to LC-58).
  [[nodiscard]] Words wrong_mask(const std::vector<KnownToken>& tokens,
                                 const std::vector<std::int32_t>& rows, bool causal,
                                 std::int64_t n_kv, const std::optional<Tensor>& mask,
                                 const std::optional<ShownUbatch::Visible>& visible) const;

  // ---- Figures ----

  /// LC-4; nothing: not known.
  [[nodiscard]] std::optional<Extremes> extremes(std::int32_t seq) const;
  [[nodiscard]] Words compare(const std::vector<ShownTable>& shown);
  [[nodiscard]] Words compare(const std::vector<StreamRows>& shown);
  /// "cell 0 (position 0 of sequences 0, 1)", with the window where there is one.
  [[nodiscard]] std::string held_text(std::int32_t seq, std::int32_t cell) const;
  [[nodiscard]] bool is_used(std::int32_t seq, std::int32_t cell) const;
  [[nodiscard]] bool has_window() const { return window_.type != WindowType::kNone; }
  /// Words where shown tables contradict themselves or the extremes (LC-3, LC-4).
  [[nodiscard]] static Words wrong_figures(const std::vector<ShownTable>& shown);

 private:
  struct Stream {
    bool known = true;
    bool has_shift = false;
    std::vector<KnownCell> cells = {};
    /// Cells of a sequence that lie somewhere.
    std::optional<std::pair<std::int32_t, std::vector<KnownCell>>> loaded = std::nullopt;
  };

  [[nodiscard]] std::size_t number_of(std::int32_t seq) const {
    return options_.unified ? 0 : static_cast<std::size_t>(seq);
  }
  [[nodiscard]] bool is_settled(const Stream& stream) const {
    return stream.known && !stream.loaded;
  }
  /// The stream of a sequence, if it is known; what is not is forgotten.
  [[nodiscard]] Stream* settled(std::size_t number);
  void forget(Stream& stream);
  [[nodiscard]] static Extremes extremes(const Stream& stream, std::int32_t seq);
  [[nodiscard]] bool masks(std::int64_t p0, std::int64_t p1) const;
  [[nodiscard]] bool is_usable(const Stream& stream, const KnownCell& cell,
                               std::map<std::int32_t, std::int64_t>& next) const;
  void remove(Stream& stream, std::int32_t seq, std::int64_t begin, std::int64_t end);
  void each_cell(std::int32_t seq, const Range& range,
                 const std::function<void(Stream&, KnownCell&)>& change);
  [[nodiscard]] Words compare_known(Stream& stream, const std::map<std::int64_t, ShownCell>& shown);
  [[nodiscard]] Words compare_loaded(Stream& stream,
                                     const std::map<std::int64_t, ShownCell>& shown);
  void adopt(Stream& stream, const std::map<std::int64_t, ShownCell>& shown);

  KvOptions options_;
  std::int64_t size_;
  Window window_;
  std::vector<Stream> streams_;
  std::vector<std::pair<std::size_t, std::size_t>> copies_ = {};  ///< whose rows follow (LC-66)
};

}  // namespace kvo::cells
