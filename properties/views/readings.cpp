#include "properties/views/readings.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "properties/campaign/laws.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

constexpr std::int64_t kAll = std::int64_t{1} << 40U;

bool is_kind_with_views(const CacheKind& kind) {
  return &kind == &paged_kind();
}

// Some tokens in one piece, f32, token by token.
struct Piece {
  std::int64_t start;
  std::int64_t tokens;
  std::int64_t width;
  std::vector<float> cells;
};

Piece piece_of(std::int64_t start, const Tensor& rows) {
  Piece piece{start, rows.shape[0], rows.shape[1], {}};
  const std::size_t bytes = dtype_bytes(rows.dtype);
  for (std::size_t at = 0; at < rows.bytes.size(); at += bytes)
    piece.cells.push_back(load_element(rows.dtype, &rows.bytes[at]));
  return piece;
}

Piece piece_of_heads(std::int64_t start, const Tensor& heads) {
  const Shape& shape = heads.shape;  // [head, token, dim]
  const StridedView by_token{{shape[1], shape[0], shape[2]},
                             {shape[2], shape[1] * shape[2], 1},
                             heads.dtype,
                             heads.bytes.data()};
  const Tensor turned = materialize(by_token);
  return {start, shape[1], shape[0] * shape[2], {turned.floats().begin(), turned.floats().end()}};
}

// The views that an observation has; null if it shows its rows otherwise.
const std::vector<ShownView>* views_in(const Observation& seen) {
  if (const auto* views = seen.returns.get_if<ShowViews::Returns>()) return &views->views;
  if (const auto* append = seen.returns.get_if<Append::Returns>()) return &append->views;
  if (const auto* again = seen.returns.get_if<Reread::Returns>()) return &again->views;
  return nullptr;
}

std::vector<Piece> pieces_of(const Observation& seen, bool keys) {
  std::vector<Piece> found;
  if (const auto* views = views_in(seen))
    for (const ShownView& view : *views)
      found.push_back(piece_of(view.start, keys ? view.k : view.v));
  if (const auto* views = seen.returns.get_if<ShowPacked::Returns>())
    for (const ShowPacked::Shown& view : views->views)
      found.push_back(piece_of_heads(view.start, keys ? view.k : view.v));
  if (const auto* rows = seen.returns.get_if<ContiguousKv::Returns>())
    if (rows->k.has_value()) found.push_back(piece_of(0, keys ? *rows->k : *rows->v));
  return found;
}

// The tokens of [begin, end) that an observation shows, however it shows them: f32, [token,
// channel] of K and of V.
class Tokens {
 public:
  Tokens(std::int64_t begin, std::int64_t end) : begin_(begin), end_(end) {}

  [[nodiscard]] Observation operator()(const Observation& seen) const {
    if (!seen.returns || seen.error) return seen;
    ContiguousKv::Returns all;
    all.k = rows(pieces_of(seen, true));
    all.v = rows(pieces_of(seen, false));
    return {.returns = Record::of(std::move(all))};
  }

 private:
  [[nodiscard]] Tensor rows(const std::vector<Piece>& pieces) const {
    std::vector<float> cells;
    std::int64_t width = 0;
    std::int64_t tokens = 0;
    for (const Piece& piece : pieces) {
      const std::int64_t from = std::max<std::int64_t>(begin_ - piece.start, 0);
      const std::int64_t to = std::min(end_ - piece.start, piece.tokens);
      if (from >= to) continue;
      width = piece.width;
      tokens += to - from;
      cells.insert(cells.end(), piece.cells.begin() + from * width,
                   piece.cells.begin() + to * width);
    }
    return tensor_of({tokens, width}, cells);
  }

  std::int64_t begin_;
  std::int64_t end_;
};

// ---- readings_agree ----

// What an operation showed of a layer.
struct Reading {
  std::optional<std::int64_t> cache;
  std::int64_t layer = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool whole = false;  // all that could be shown
};

template <class View>
std::int64_t end_of(const std::vector<View>& views) {
  return views.empty() ? 0 : views.back().start + views.back().length;
}

std::optional<Reading> reading_of(const Options& options, const Op& op, const Observation& seen) {
  if (const auto* views = op.as<ShowViews>())
    return Reading{views->cache, views->layer, 0, end_of(*views_in(seen)), true};
  if (const auto* packed = op.as<ShowPacked>())
    return Reading{packed->cache, packed->layer, 0, end_of(seen.as<ShowPacked::Returns>().views),
                   true};
  if (const auto* rows = op.as<ContiguousKv>())
    if (rows->kv_len > 0 && seen.as<ContiguousKv::Returns>().k.has_value())
      return Reading{rows->cache, rows->layer, 0, rows->kv_len};
  if (const auto* append = op.as<Append>()) {
    const std::int64_t start = seen.as<Append::Returns>().start;
    const std::int64_t tokens = append->k.shape[0];
    if (tokens > 0 && !options.views_committed_only)
      return Reading{append->cache, append->layer, start, start + tokens};
  }
  return std::nullopt;
}

Variation read_otherwise(const Drawn& drawn) {
  const Options options = options_of(drawn.setup.config_as<Config>());
  const auto on_gpu = [&](std::int64_t layer) {
    return layer >= 0 && layer < options.num_layers &&
           options.devices[static_cast<std::size_t>(layer)].device == Device::kGpu;
  };
  Variation varied;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    varied.insert(op);
    if (!drawn.succeeded(at)) continue;
    const auto found = reading_of(options, op, drawn.seen[at]);
    if (!found) continue;
    const auto& [cache, layer, begin, end, whole] = *found;
    if (on_gpu(layer) && op.as<ShowPacked>() != nullptr) continue;
    const Tokens shown(begin, whole ? kAll : end);
    if (op.as<ShowViews>() == nullptr) varied.pair(at, Op::of(ShowViews{cache, layer}), shown);
    if (op.as<ShowPacked>() == nullptr && !on_gpu(layer))
      varied.pair(at, Op::of(ShowPacked{cache, layer}), shown);
    // Of more than a block the rows are not offered (MK-22).
    const std::int64_t offered = std::min(end, options.block_size);
    if (op.as<ContiguousKv>() == nullptr && begin < offered)
      varied.pair(at, Op::of(ContiguousKv{cache, layer, offered, options.kv_dim()}),
                  Tokens(begin, offered));
  }
  return varied.pairs.empty() ? Variation() : varied;
}

// ---- paging_does_not_show ----

// The config of caches that have one block a layer, and as many as the script needs.
std::optional<Config> in_one_piece(const Drawn& drawn) {
  constexpr std::int64_t kMostCells = 1 << 18;
  auto config = drawn.setup.config_as<Config>();
  const Options options = options_of(config);
  if (!check(options) || options.block_size >= options.max_seq_len) return std::nullopt;
  if (options.max_seq_len > kMostCells / options.kv_dim()) return std::nullopt;
  std::int64_t caches = 1;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    if (drawn.seen[at].failed_with(Code::kExhausted)) return std::nullopt;
    if (op.as<New>() != nullptr || op.as<Fork>() != nullptr) ++caches;
  }
  config.block_size = options.max_seq_len;
  config.blocks = options.num_layers * caches;
  return config;
}

Variation in_one_block(const Drawn& drawn) {
  const auto config = in_one_piece(drawn);
  if (!config) return {};
  const Options options = options_of(*config);
  bool moves = false;  // Which block a fork moves, and when, hangs on their size (MK-31).
  Variation varied{.config = Record::of(*config)};
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const Observation& seen = drawn.seen[at];
    moves = moves || op.as<Fork>() != nullptr;
    if (const auto* views = op.as<ShowViews>(); views != nullptr && drawn.succeeded(at)) {
      varied.insert(op);
      const std::int64_t end = end_of(*views_in(seen));
      const ContiguousKv rows{views->cache, views->layer, end, options.kv_dim()};
      varied.pair(at, end > 0 ? Op::of(rows) : Op::of(ShowViews{views->cache, views->layer}),
                  Tokens(0, kAll));
    } else if (const auto* append = op.as<Append>(); append != nullptr && drawn.succeeded(at)) {
      const std::int64_t start = seen.as<Append::Returns>().start;
      varied.pair(at, op, Tokens(start, start + append->k.shape[0]));
    } else if (op.as<ShowPacked>() != nullptr) {
      varied.pair(at, op, Tokens(0, kAll));
    } else if (const auto* rows = op.as<ContiguousKv>(); rows != nullptr && drawn.succeeded(at)) {
      const bool offered = seen.as<ContiguousKv::Returns>().k.has_value();
      if (offered)
        varied.pair(at, op, Tokens(0, rows->kv_len));
      else
        varied.insert(op);
    } else if (op.as<FreeBlocks>() != nullptr ||
               (op.as<Reread>() != nullptr && (moves || options.append_views_blocks))) {
      varied.insert(op);
    } else {
      varied.pair(at, op, op.as<Reread>() != nullptr ? Canonical(Tokens(0, kAll)) : nullptr);
    }
  }
  return varied;
}

}  // namespace

const MetamorphicLaw& readings_agree() {
  static const MetamorphicLaw kLaw(
      "readings_agree", "views, packed views and contiguous rows of a layer show the same tokens",
      kLongScript,
      {.how = "read in another way",
       .applies = is_kind_with_views,
       .transformation = read_otherwise});
  return kLaw;
}

const MetamorphicLaw& paging_does_not_show() {
  static const MetamorphicLaw kLaw("paging_does_not_show",
                                   "a layer in one block shows what one in many blocks does",
                                   kLongScript,
                                   {.how = "all rows in one block",
                                    .applies = is_kind_with_views,
                                    .transformation = in_one_block});
  return kLaw;
}

}  // namespace kvo::views
