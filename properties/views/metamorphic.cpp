// The metamorphic laws of contract `views`.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

bool is_paged(const CacheKind& kind) {
  return &kind == &paged_kind();
}

std::int64_t cache_of(const Op& op) {
  return integer_of(op, "cache").value_or(0);
}

Tensor filled(std::int64_t tokens, std::int64_t width, float value) {
  Tensor rows = make_tensor({tokens, width});
  std::ranges::fill(rows.floats(), value);
  return rows;
}

bool forks(const Drawn& drawn) {
  for (std::size_t at = 0; at < drawn.script.size(); ++at)
    if (drawn.script[at].as<Fork>() != nullptr && drawn.succeeded(at)) return true;
  return false;
}

// ---- prefill_in_chunks ----

// The second part of an append; the first one is inserted.
Op cut_append(const Append& whole, std::int64_t cut, Variation& varied) {
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    Append half = whole;
    half.k = axis_range(whole.k, 0, begin, end);
    half.v = axis_range(whole.v, 0, begin, end);
    return half;
  };
  Append first = part(0, cut);
  first.keep = std::nullopt;
  varied.insert(Op::of(std::move(first)));
  return Op::of(part(cut, whole.k.shape[0]));
}

// Appends of as many tokens to each layer, queries, and a commit of some.
struct Group {
  std::int64_t tokens = 0;
  std::size_t commit = 0;  // where it is; 0: there is no such group
};

Group group_at(const Drawn& drawn, std::size_t begin, std::int64_t num_layers) {
  const auto* first = drawn.script[begin].as<Append>();
  if (first == nullptr || !drawn.succeeded(begin) || first->k.shape[0] < 2) return {};
  std::set<std::int64_t> layers;
  for (std::size_t at = begin; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    if (cache_of(op) != cache_of(drawn.script[begin]) || !drawn.succeeded(at)) return {};
    if (const auto* append = op.as<Append>()) {
      if (append->k.shape != first->k.shape || !layers.insert(append->layer).second) return {};
    } else if (const auto* commit = op.as<Commit>()) {
      const bool whole = std::ssize(layers) == num_layers && commit->n > 0;
      return whole ? Group{first->k.shape[0], at} : Group{};
    } else if (op.as<ShowViews>() == nullptr && op.as<ShowPacked>() == nullptr) {
      return {};
    }
  }
  return {};
}

// Half of each append, half of the commit, and the rest of both.
void cut_group(const Drawn& drawn, std::size_t begin, const Group& group, bool shows_pending,
               Variation& varied) {
  const auto& commit = *drawn.script[group.commit].as<Commit>();
  const std::int64_t cut = std::min(commit.n, cut_of(begin, group.tokens));
  std::vector<Op> rest;
  for (std::size_t at = begin; at < group.commit; ++at)
    if (const auto* append = drawn.script[at].as<Append>())
      rest.push_back(cut_append(*append, cut, varied));
  varied.insert(Op::of(Commit{commit.cache, cut}));
  auto next = rest.begin();
  std::set<std::int64_t> appended;
  for (std::size_t at = begin; at < group.commit; ++at) {
    const Op& op = drawn.script[at];
    if (const auto* append = op.as<Append>()) appended.insert(append->layer);
    if (op.as<Append>() != nullptr)
      varied.insert(*next++);
    else if (shows_pending && appended.contains(*integer_of(op, "layer")))
      varied.pair(at, op);
    else
      varied.insert(op);
  }
  varied.pair(group.commit, Op::of(Commit{commit.cache, commit.n - cut}));
}

Variation in_chunks(const Drawn& drawn) {
  const Options options = options_of(drawn.setup.config_as<Config>());
  Variation varied;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const auto* append = op.as<Append>();
    if (options.append_stacks && append != nullptr && drawn.succeeded(at) &&
        append->k.shape[0] > 1) {
      varied.insert(cut_append(*append, cut_of(at, append->k.shape[0]), varied));
      any = true;
      continue;
    }
    const Group group = options.append_stacks ? Group() : group_at(drawn, at, options.num_layers);
    if (group.commit > 0) {
      cut_group(drawn, at, group, !options.views_committed_only, varied);
      at = group.commit;
      any = true;
    } else if (op.as<Reread>() != nullptr) {
      varied.insert(op);  // the views of an append are those of its second part
    } else {
      varied.pair(at, op);
    }
  }
  return any ? varied : Variation();
}

// ---- placement_does_not_show ----

std::int64_t unused_cache(const Script& script) {
  std::set<std::int64_t> used;
  for (const Op& op : script) {
    used.insert(cache_of(op));
    used.insert(integer_of(op, "from").value_or(0));
  }
  std::int64_t number = 4095;
  while (used.contains(number)) --number;
  return number;
}

// A cache of its own takes some blocks and gives them back: the next ones come in another order.
void mix_blocks(const Options& options, std::int64_t cache, std::size_t at, Variation& varied) {
  const Tensor rows =
      filled(std::min(options.max_seq_len, 2 * options.block_size + 1), options.kv_dim(), -9);
  varied.insert(Op::of(New{cache}));
  varied.insert(Op::of(Append{.cache = cache, .layer = 0, .k = rows, .v = rows}));
  varied.insert(at % 2 == 0 ? Op::of(Free{cache}) : Op::of(Truncate{cache, 0}));
}

Variation other_blocks(const Drawn& drawn) {
  constexpr std::int64_t kMostElements = 1 << 16;
  const Options options = options_of(drawn.setup.config_as<Config>());
  if (!check(options) || options.block_size * options.kv_dim() > kMostElements) return {};
  Variation varied;
  const std::int64_t dummy = unused_cache(drawn.script);
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    varied.pair(at, op);
    if (!drawn.succeeded(at)) continue;
    if (op.as<New>() == nullptr && op.as<Truncate>() == nullptr && op.as<Commit>() == nullptr)
      continue;
    mix_blocks(options, dummy, at, varied);
    any = true;
  }
  return any ? varied : Variation();
}

// ---- order_of_independent_sequences ----

std::optional<std::int64_t> handle_of(const Observation& seen) {
  if (const auto* append = seen.returns.get_if<Append::Returns>()) return append->handle;
  if (const auto* views = seen.returns.get_if<ShowViews::Returns>()) return views->handle;
  return std::nullopt;
}

Observation without_handle(const Observation& seen) {
  if (!handle_of(seen)) return seen;
  if (const auto* append = seen.returns.get_if<Append::Returns>()) {
    Append::Returns changed = *append;
    changed.handle.reset();
    return {.returns = Record::of(std::move(changed))};
  }
  ShowViews::Returns changed = seen.as<ShowViews::Returns>();
  changed.handle.reset();
  return {.returns = Record::of(std::move(changed))};
}

// Whether the pool has room for all that each cache ever held at once.
bool room_for_all(const Drawn& drawn) {
  const Options options = options_of(drawn.setup.config_as<Config>());
  std::map<std::int64_t, std::int64_t> longest;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    if (drawn.seen[at].failed_with(Code::kExhausted)) return false;
    const auto* append = drawn.script[at].as<Append>();
    if (append == nullptr || !drawn.succeeded(at)) continue;
    std::int64_t& most = longest[cache_of(drawn.script[at])];
    most = std::max(most, drawn.seen[at].as<Append::Returns>().start + append->k.shape[0]);
  }
  std::int64_t needed = 0;
  for (const auto& [cache, tokens] : longest)
    needed += options.num_layers * options.blocks_of(tokens);
  return needed <= options.blocks;
}

// Nothing for the pool, and for a fork, which failed here.
std::optional<std::int64_t> owner_of(const Op& op) {
  if (op.as<FreeBlocks>() != nullptr || op.as<Fork>() != nullptr) return std::nullopt;
  return cache_of(op);
}

Variation cache_by_cache(const Drawn& drawn) {
  if (forks(drawn) || !room_for_all(drawn)) return {};
  return owner_by_owner(
      drawn,
      {.of = owner_of, .handle = handle_of, .first_handle = 1, .without_handle = without_handle});
}

// ---- a_b_a ----

// Lengths of the caches, by what succeeded.
class Lengths {
 public:
  void follow(const Op& op) {
    std::int64_t& length = lengths_[cache_of(op)];
    if (const auto* commit = op.as<Commit>())
      length += closed_.contains(cache_of(op)) ? 0 : commit->n;
    if (const auto* cut = op.as<Truncate>())
      length = std::min(length, std::max<std::int64_t>(cut->n, 0));
    if (op.as<New>() != nullptr || op.as<Free>() != nullptr) length = 0;
    if (const auto* fork = op.as<Fork>()) length = fork->tokens;
    if (op.as<Free>() != nullptr) closed_.insert(cache_of(op));
    if (op.as<New>() != nullptr || op.as<Fork>() != nullptr) closed_.erase(cache_of(op));
  }
  [[nodiscard]] std::int64_t of(std::int64_t cache) { return lengths_[cache]; }

 private:
  std::map<std::int64_t, std::int64_t> lengths_;
  std::set<std::int64_t> closed_;
};

Variation appended_and_dropped(const Drawn& drawn) {
  constexpr std::int64_t kMostCells = 1 << 16;
  const Options options = options_of(drawn.setup.config_as<Config>());
  if (!check(options) || options.kv_dim() * (options.block_size + 3) > kMostCells) return {};
  const bool forked = forks(drawn);
  Variation varied;
  Lengths lengths;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const auto* append = op.as<Append>();
    // Rows in the place of which the real ones come (MK-11).
    if (append != nullptr && drawn.succeeded(at) && !options.append_stacks) {
      const Tensor rows = filled(append->k.shape[0], options.kv_dim(), -9);
      varied.insert(Op::of(Append{append->cache, append->layer, rows, rows}));
      any = any || append->k.shape[0] > 0;
    }
    varied.pair(at, op);
    if (!drawn.succeeded(at)) continue;
    lengths.follow(op);
    // Tokens that are committed, and taken back (MK-23). Writing leaves a block that forks share
    // for good, so that more blocks may be taken than before (MK-31).
    const bool nothing_pending = op.as<New>() != nullptr || op.as<Truncate>() != nullptr ||
                                 (op.as<Commit>() != nullptr && !options.commit_keeps_rest);
    if (!nothing_pending || forked) continue;
    const std::int64_t cache = cache_of(op);
    const Tensor rows = filled(1 + static_cast<std::int64_t>(at % 3) * options.block_size / 2,
                               options.kv_dim(), -9);
    for (std::int64_t layer = 0; layer < options.num_layers; ++layer)
      varied.insert(Op::of(Append{cache, layer, rows, rows}));
    varied.insert(Op::of(Commit{cache, rows.shape[0]}));
    varied.insert(Op::of(ShowPacked{cache, 0}));
    varied.insert(Op::of(Truncate{cache, lengths.of(cache)}));
    any = true;
  }
  return any ? varied : Variation();
}

constexpr std::int64_t kAll = std::int64_t{1} << 40U;

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

std::vector<const Law*> laws() {
  static const std::array kLaws{
      MetamorphicLaw(
          "prefill_in_chunks", "rows that are given in two parts show the same as given at once",
          kLongScript,
          {.how = "rows appended in two parts", .applies = is_paged, .transformation = in_chunks}),
      MetamorphicLaw("placement_does_not_show", "which blocks or cells hold the rows does not show",
                     kLongScript,
                     {.how = "blocks taken in another order",
                      .applies = is_paged,
                      .transformation = other_blocks}),
      MetamorphicLaw("order_of_independent_sequences",
                     "what is done to one cache or sequence does not depend on when others are "
                     "used, or on names",
                     kLongScript,
                     {.how = "one cache after the other",
                      .applies = is_paged,
                      .transformation = cache_by_cache}),
      MetamorphicLaw("a_b_a", "what is added and taken back again leaves no trace", kLongScript,
                     {.how = "with an append and a rollback inserted",
                      .applies = is_paged,
                      .transformation = appended_and_dropped}),
      MetamorphicLaw(
          "readings_agree",
          "views, packed views and contiguous rows of a layer show the same tokens", kLongScript,
          {.how = "read in another way", .applies = is_paged, .transformation = read_otherwise}),
      MetamorphicLaw(
          "paging_does_not_show", "a layer in one block shows what one in many blocks does",
          kLongScript,
          {.how = "all rows in one block", .applies = is_paged, .transformation = in_one_block})};
  return {&kLaws[0], &kLaws[1], &kLaws[2], &kLaws[3], &kLaws[4], &kLaws[5]};
}

}  // namespace kvo::views
