// Serves `views.paged`: each sequence is a cache of its own in blocks of one pool.
#include "reference/views/operations.hpp"
#include "tools/probe/serve/slots.hpp"

namespace kvo::tools {
namespace {

constexpr std::size_t kChannels = probe::Shape::kHeads * kCellElements;

class ServedViews final : public SlotCache {
 public:
  ServedViews(std::unique_ptr<CalledCache> cache, const ServedSize& size)
      : cache_(std::move(cache)), size_(size) {}

  [[nodiscard]] Status start(std::int64_t sequence, std::span<const probe::Token> tokens,
                             std::size_t first) override {
    sequence_ = sequence;
    tokens_ = tokens.size();
    first_ = first;
    return {};
  }
  [[nodiscard]] Status put(std::size_t layer, std::span<const HeadCells> rows) override {
    const kvo::Shape shape{static_cast<std::int64_t>(rows.size()),
                           static_cast<std::int64_t>(kChannels)};
    views::Append append{.cache = sequence_,
                         .layer = static_cast<std::int64_t>(layer),
                         .k = make_tensor(shape),
                         .v = make_tensor(shape)};
    std::size_t at = 0;
    for (const HeadCells& row : rows)
      for (const ServedCell& cell : row) {
        write_cell(cell, append.k.floats().subspan(at, kCellElements),
                   append.v.floats().subspan(at, kCellElements));
        at += kCellElements;
      }
    return status_of(with_space([&] { return (*cache_)(append); }));
  }
  // Single tokens read packed rows, as attention on a CPU does.
  [[nodiscard]] Result<SeenRows> get(std::size_t layer) override {
    SeenRows seen;
    std::vector<std::size_t> positions;  // [row]
    const auto add = [&](const auto& view, std::size_t to_row, std::size_t to_head) {
      const auto k = view.k.floats();
      const auto v = view.v.floats();
      const auto elements = static_cast<std::size_t>(view.length) * kChannels;
      if (view.start < 0 || k.size() != elements || v.size() != elements) return false;
      for (std::size_t row = 0; row < static_cast<std::size_t>(view.length); ++row) {
        HeadCells& cells = seen.rows.emplace_back();
        positions.push_back(static_cast<std::size_t>(view.start) + row);
        for (std::size_t head = 0; head < probe::Shape::kHeads; ++head) {
          const std::size_t at = row * to_row + head * to_head;
          cells[head] = cell_of(k[at], k[at + 1], {v[at], v[at + 1]});
        }
      }
      return true;
    };
    bool fits = true;
    const auto number = static_cast<std::int64_t>(layer);
    if (tokens_ > 1) {
      const auto shown = (*cache_)(views::ShowViews{.cache = sequence_, .layer = number});
      if (!shown) return shown.error();
      for (const views::ShownView& view : shown->views)
        fits = fits && add(view, kChannels, kCellElements);
    } else {
      const auto shown = (*cache_)(views::ShowPacked{.cache = sequence_, .layer = number});
      if (!shown) return shown.error();
      for (const auto& view : shown->views)
        fits =
            fits && add(view, kCellElements, static_cast<std::size_t>(view.length) * kCellElements);
    }
    if (!fits) return fail(Code::kOther, "views: sizes that do not fit");
    for (std::size_t token = 0; token < tokens_; ++token)
      for (const std::size_t position : positions)
        seen.sees.push_back(size_.sees(first_ + token, position) ? 1 : 0);
    return seen;
  }
  [[nodiscard]] Status finish() override {
    return status_of(
        (*cache_)(views::Commit{.cache = sequence_, .n = static_cast<std::int64_t>(tokens_)}));
  }

 protected:
  [[nodiscard]] Status copy(std::int64_t source, std::int64_t target, std::size_t rows) override {
    return status_of((*cache_)(
        views::Fork{.cache = target, .from = source, .tokens = static_cast<std::int64_t>(rows)}));
  }
  [[nodiscard]] Status cut(std::int64_t sequence, std::size_t rows) override {
    return status_of(
        (*cache_)(views::Truncate{.cache = sequence, .n = static_cast<std::int64_t>(rows)}));
  }

 private:
  std::unique_ptr<CalledCache> cache_;
  ServedSize size_;
  std::int64_t sequence_ = 0;  // of the pass
  std::size_t tokens_ = 0;     // of the pass
  std::size_t first_ = 0;      // position of the pass
};

}  // namespace

Result<std::unique_ptr<ServedCache>> open_served_views(const Subject& subject,
                                                       const ServedSize& size) {
  const auto layers = static_cast<std::int64_t>(probe::Shape::kLayers);
  const views::Config config{.num_layers = layers,
                             .block_size = ServedCache::kBlock,
                             .num_kv_heads = static_cast<std::int64_t>(probe::Shape::kHeads),
                             .head_dim = static_cast<std::int64_t>(kCellElements),
                             .max_seq_len = size.rows,
                             .blocks = layers * size.rows / ServedCache::kBlock};
  auto cache = CalledCache::open(subject, Record::of(config));
  if (!cache) return cache.error();
  for (std::size_t sequence = 0; sequence < ServedCache::kSequences; ++sequence) {
    const auto made = (**cache)(views::New{static_cast<std::int64_t>(sequence)});
    if (!made) return made.error();
  }
  return std::make_unique<ServedViews>(*std::move(cache), size);
}

}  // namespace kvo::tools
