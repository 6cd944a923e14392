// Serves `cells.kv`: cells that sequences share. The cache counts rows by tags, which name the rows
// that are stored here.
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "reference/cells/operations.hpp"
#include "tools/probe/serve/slots.hpp"

namespace kvo::tools {
namespace {

class ServedCells final : public SlotCache {
 public:
  ServedCells(std::unique_ptr<CalledCache> cache, const ServedSize& size)
      : cache_(std::move(cache)), size_(size) {}

  [[nodiscard]] Status start(std::int64_t sequence, std::span<const probe::Token> tokens,
                             std::size_t first) override {
    std::vector<std::int32_t> positions;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      positions.push_back(static_cast<std::int32_t>(first + i));
    const auto count = static_cast<std::int64_t>(tokens.size());
    const cells::Decode decode{.pos = std::move(positions),
                               .seqs = {tokens.size(), std::vector<std::int64_t>{sequence}},
                               .n_ubatch = count};
    auto placed = with_space([&] { return (*cache_)(decode); });
    if (!placed) return placed.error();
    if (!placed->ubatches || placed->ubatches->size() != 1)
      return fail(Code::kOther, "decode: not one ubatch");
    tags_.resize(tokens.size());
    for (std::int64_t& tag : tags_) tag = ++last_tag_;
    const auto shown = (*cache_)(cells::ShowRows{});
    if (!shown) return shown.error();
    if (shown->streams.size() != 1) return fail(Code::kOther, "rows: not one stream");
    shown_ = shown->streams.front();
    forget_old_tags();
    return follow(placed->ubatches->front());
  }
  [[nodiscard]] Status put(std::size_t layer, std::span<const HeadCells> rows) override {
    for (std::size_t i = 0; i < rows.size(); ++i) rows_[tags_[i]][layer] = rows[i];
    return {};
  }
  [[nodiscard]] Result<SeenRows> get(std::size_t layer) override {
    SeenRows seen{.rows = std::vector<HeadCells>(visible_cells_), .sees = sees_};
    for (std::size_t cell = 0; cell < visible_cells_; ++cell) {
      const auto key = rows_.find(shown_.k[cell]);
      const auto value = rows_.find(shown_.v[cell]);
      for (std::size_t head = 0; head < probe::Shape::kHeads; ++head) {
        ServedCell& to = seen.rows[cell][head];
        to.position = static_cast<std::int32_t>(shown_.rot[cell]);
        if (key != rows_.end()) to.key = key->second[layer][head].key;
        if (value != rows_.end()) to.value = value->second[layer][head].value;
      }
    }
    return seen;
  }

 protected:
  [[nodiscard]] Status copy(std::int64_t source, std::int64_t target, std::size_t rows) override {
    const auto copied = (*cache_)(
        cells::SeqCp{.src = source, .dst = target, .p0 = 0, .p1 = static_cast<std::int32_t>(rows)});
    return copied ? has_window(target, rows) : copied.error();
  }
  [[nodiscard]] Status cut(std::int64_t sequence, std::size_t rows) override {
    const auto removed =
        (*cache_)(cells::SeqRm{.seq = sequence, .p0 = static_cast<std::int32_t>(rows)});
    return removed ? has_window(sequence, rows) : removed.error();
  }
  [[nodiscard]] bool moves() const override { return true; }
  [[nodiscard]] Status close_gap(std::int64_t sequence, std::size_t count) override {
    const auto end = static_cast<std::int32_t>(1 + count);
    const auto removed = (*cache_)(cells::SeqRm{.seq = sequence, .p0 = 1, .p1 = end});
    if (!removed) return removed.error();
    return status_of((*cache_)(cells::SeqAdd{
        .seq = sequence, .p0 = end, .p1 = -1, .delta = -static_cast<std::int32_t>(count)}));
  }

 private:
  // Rows that left the window of the whole text may be missing, though a shorter one needs them.
  Status has_window(std::int64_t sequence, std::size_t rows) {
    if (!size_.window || rows == 0) return {};
    const auto positions = (*cache_)(cells::SeqPos{.seq = sequence});
    if (!positions) return positions.error();
    const auto first = static_cast<std::int64_t>(rows - std::min(rows, *size_.window - 1));
    if (positions->min >= 0 && positions->min <= first) return {};
    return fail(Code::kOther, "seq_pos: rows of the window are missing");
  }
  // Which cells the tokens of the pass see.
  Status follow(const cells::ShownUbatch& ubatch) {
    visible_cells_ = static_cast<std::size_t>(ubatch.n_kv);
    const bool fits =
        ubatch.n_kv >= 0 && visible_cells_ <= shown_.k.size() &&
        shown_.v.size() == shown_.k.size() && shown_.rot.size() == shown_.k.size() &&
        ubatch.rows.size() == tags_.size() &&
        (!ubatch.visible || ubatch.visible->size() == tags_.size()) &&
        (!ubatch.mask || ubatch.mask->floats().size() == tags_.size() * visible_cells_);
    if (!fits) return fail(Code::kOther, "decode: sizes that do not fit");
    sees_.assign(tags_.size() * visible_cells_, 0);
    for (std::size_t i = 0; i < ubatch.rows.size(); ++i) {
      const auto token = static_cast<std::size_t>(ubatch.rows[i]);
      if (token >= tags_.size()) return fail(Code::kOther, "decode: a row that is none");
      const auto begin = sees_.begin() + static_cast<std::ptrdiff_t>(token * visible_cells_);
      if (ubatch.mask) {
        const auto mask = ubatch.mask->floats().subspan(i * visible_cells_, visible_cells_);
        for (std::size_t cell = 0; cell < mask.size(); ++cell)
          begin[static_cast<std::ptrdiff_t>(cell)] = std::isfinite(mask[cell]) ? 1 : 0;
      } else if (ubatch.visible) {
        for (const std::int32_t cell : ubatch.visible->at(i))
          if (cell >= 0 && static_cast<std::size_t>(cell) < visible_cells_) begin[cell] = 1;
      }
    }
    return {};
  }
  void forget_old_tags() {
    if (rows_.size() < 4 * static_cast<std::size_t>(size_.rows)) return;
    std::unordered_set<std::int64_t> stored(shown_.k.begin(), shown_.k.end());
    stored.insert(shown_.v.begin(), shown_.v.end());
    std::erase_if(rows_, [&](const auto& row) { return !stored.contains(row.first); });
  }

  std::unique_ptr<CalledCache> cache_;
  ServedSize size_;
  std::unordered_map<std::int64_t, ServedRow> rows_;  // by tag
  std::int64_t last_tag_ = 0;
  // Of the pass:
  std::vector<std::int64_t> tags_;  // [token]
  cells::StreamRows shown_;
  std::size_t visible_cells_ = 0;
  std::vector<std::uint8_t> sees_;
};

}  // namespace

Result<std::unique_ptr<ServedCache>> open_served_cells(const Subject& subject,
                                                       const ServedSize& size) {
  cells::KvConfig config{.size = size.rows,
                         .n_seq_max = static_cast<std::int64_t>(ServedCache::kSequences)};
  if (size.window) {
    config.swa_type = cells::WindowType::kStandard;
    config.n_swa = static_cast<std::int32_t>(*size.window);
  }
  auto cache = CalledCache::open(subject, Record::of(config));
  if (!cache) return cache.error();
  const auto made = (**cache)(cells::New{});
  if (!made) return made.error();
  return std::make_unique<ServedCells>(*std::move(cache), size);
}

}  // namespace kvo::tools
