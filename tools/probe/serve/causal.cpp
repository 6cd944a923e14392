// Serves `positional.causal`: cells in one pool, with a mask.
#include <array>

#include "reference/contract/values/numeric.hpp"
#include "reference/positional/operations.hpp"
#include "tools/probe/serve/slots.hpp"

namespace kvo::tools {
namespace {

constexpr auto kHeadsOfCausal = static_cast<std::int64_t>(probe::Shape::kHeads);
constexpr auto kElementsOfCausal = static_cast<std::int64_t>(kCellElements);

class ServedCausal final : public SlotCache {
 public:
  explicit ServedCausal(std::unique_ptr<CalledCache> cache) : cache_(std::move(cache)) {}

  [[nodiscard]] Status start(std::int64_t sequence, std::span<const probe::Token> tokens,
                             std::size_t first) override {
    positional::StartForward pass;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      pass.positions.push_back(static_cast<std::int32_t>(first + i));
    pass.seqs.assign(tokens.size(), sequence);
    return status_of(with_space([&] { return (*cache_)(pass); }));
  }
  [[nodiscard]] Status put(std::size_t layer, std::span<const HeadCells> rows) override {
    const auto tokens = static_cast<std::int64_t>(rows.size());
    positional::Put put{.k = make_tensor({tokens, kHeadsOfCausal, kElementsOfCausal}),
                        .v = make_tensor({tokens, kHeadsOfCausal, kElementsOfCausal})};
    std::size_t at = 0;
    for (const HeadCells& row : rows)
      for (const ServedCell& cell : row) {
        write_cell(cell, put.k.floats().subspan(at, kCellElements),
                   put.v.floats().subspan(at, kCellElements));
        at += kCellElements;
      }
    const auto chosen = (*cache_)(positional::SetLayer{static_cast<std::int64_t>(layer)});
    if (!chosen) return chosen.error();
    return status_of((*cache_)(std::move(put)));
  }
  [[nodiscard]] Result<SeenRows> get(std::size_t layer) override {
    const auto chosen = (*cache_)(positional::SetLayer{static_cast<std::int64_t>(layer)});
    if (!chosen) return chosen.error();
    const auto shown = (*cache_)(positional::Get{});
    if (!shown) return shown.error();
    if (!shown->k.has_value() || !shown->v.has_value() || !shown->mask.has_value())
      return fail(Code::kOther, "get: no rows");
    const auto k = shown->k->floats();
    const auto v = shown->v->floats();
    const auto mask = shown->mask->floats();
    const std::size_t cells = k.size() / (probe::Shape::kHeads * kCellElements);
    if (v.size() != k.size() || cells == 0 || mask.size() % cells != 0)
      return fail(Code::kOther, "get: sizes that do not fit");
    SeenRows seen;
    seen.rows.resize(cells);
    for (std::size_t cell = 0; cell < cells; ++cell)
      for (std::size_t head = 0; head < probe::Shape::kHeads; ++head) {
        const std::size_t key = (cell * probe::Shape::kHeads + head) * kCellElements;
        const std::size_t value = head * kCellElements * cells + cell;  // V is permuted
        seen.rows[cell][head] = cell_of(k[key], k[key + 1], {v[value], v[value + cells]});
      }
    seen.sees.reserve(mask.size());
    for (const float entry : mask) seen.sees.push_back(entry == 0 ? 1 : 0);
    return seen;
  }

 protected:
  [[nodiscard]] Status copy(std::int64_t source, std::int64_t target, std::size_t rows) override {
    const auto length = static_cast<std::int32_t>(rows);
    const auto copied = (*cache_)(positional::CopyPrefix{source, target, length});
    if (!copied) return copied.error();
    return resumes(target, length);
  }
  [[nodiscard]] Status cut(std::int64_t sequence, std::size_t rows) override {
    const auto length = static_cast<std::int32_t>(rows);
    const auto removed = (*cache_)(positional::Remove{sequence, length, positional::kMaxPosition});
    if (!removed) return removed.error();
    return rows == 0 ? Status() : resumes(sequence, length);
  }
  [[nodiscard]] bool moves() const override { return true; }
  [[nodiscard]] Status close_gap(std::int64_t sequence, std::size_t count) override {
    return status_of(
        (*cache_)(positional::Remove{sequence, 1, static_cast<std::int32_t>(1 + count)}));
  }

 private:
  [[nodiscard]] Status resumes(std::int64_t sequence, std::int32_t position) {
    const auto can = (*cache_)(positional::CanResume{sequence, position});
    if (!can) return can.error();
    return can->value ? Status() : Status(fail(Code::kOther, "can_resume: false"));
  }

  std::unique_ptr<CalledCache> cache_;
};

}  // namespace

Result<std::unique_ptr<ServedCache>> open_served_causal(const Subject& subject,
                                                        const ServedSize& size) {
  constexpr std::int64_t kPaddedTo = 32;
  positional::CacheConfig config{
      .shift = positional::ShiftConfig{.kind = positional::ShiftKind::kAdd},
      .backend = positional::BackendConfig{.cache_padding = kPaddedTo, .permuted_v = true}};
  if (size.window) config.window = static_cast<std::int32_t>(*size.window - 1);
  auto cache = CalledCache::open(subject, Record::of(config));
  if (!cache) return cache.error();
  const auto sequences = static_cast<std::int64_t>(ServedCache::kSequences);
  const auto made = (**cache)(positional::Init{
      .max_sequences = sequences, .capacity = size.rows / sequences, .max_batch = size.rows});
  if (!made) return made.error();
  return std::make_unique<ServedCausal>(*std::move(cache));
}

}  // namespace kvo::tools
