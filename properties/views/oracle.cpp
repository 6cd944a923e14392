// The oracle of contract `views`: what each layer was given, token by
// token, says all that may be shown.
//
// Judged   every token of every view, packed view and contiguous piece, earlier views that are read
//          again included; where they begin and are cut; lengths, limits and places; and that
//          blocks come back: exactly while no cache was forked, afterwards within bounds.
// Skipped  earlier views that are stale (MK-24), and what is_on_gpu says of mixed layers (MK-27).
// Unseen   errors: what failed has changed nothing, but need not have failed.
#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

using Words = std::optional<std::string>;

// One token of a layer, as it is kept: the bytes of its row.
struct Token {
  std::vector<std::byte> k;
  std::vector<std::byte> v;
};

struct History {
  std::int64_t seq_len = 0;
  std::vector<std::vector<Token>> layers;  ///< committed tokens, and behind them pending ones
  bool closed = false;

  // Drops all tokens from `end` on.
  void cut(std::int64_t end) {
    for (auto& tokens : layers)
      tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(end)));
  }
};
using HistoryPtr = std::shared_ptr<History>;

class HistoryOracle final : public Oracle {
 public:
  explicit HistoryOracle(const Config& config)
      : options_(options_of(config)), layers_(static_cast<std::size_t>(options_.num_layers)) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    if (seen.error) return words;
    visit_op(Ops(), op, [&](const auto& operation) {
      using T = std::decay_t<decltype(operation)>;
      words = note(operation, seen.as<typename T::Returns>());
    });
    return words;
  }

 private:
  // ---- What succeeded: one overload an operation ----

  Words note(const New& op, const Nothing& /*returns*/) {
    caches_[op.cache.value_or(0)] =
        std::make_shared<History>(History{.layers = std::vector<std::vector<Token>>(layers_)});
    return {};
  }
  Words note(const Fork& op, const Nothing& /*returns*/) {
    const History& from = of(op.from);
    if (op.tokens < 0 || op.tokens > from.seq_len) return "a fork of tokens that are not there";
    auto made = std::make_shared<History>(from);
    made->seq_len = op.tokens;
    made->cut(op.tokens);
    caches_[op.cache.value_or(0)] = std::move(made);
    forked_ = true;
    return {};
  }
  Words note(const Append& op, const Append::Returns& returns) {
    History& cache = of(op.cache);
    if (cache.closed || !has(op.layer)) return "an append to nowhere";
    auto& tokens = cache.layers[static_cast<std::size_t>(op.layer)];
    const auto held = static_cast<std::int64_t>(tokens.size());
    const std::int64_t start = options_.append_stacks ? held : cache.seq_len;
    if (returns.start != start) return "start is " + std::to_string(returns.start);
    tokens.resize(static_cast<std::size_t>(start));
    for (std::int64_t i = 0; i < op.k.shape[0]; ++i)
      tokens.push_back({kept(op.k, i), kept(op.v, i)});
    const std::int64_t end = start + op.k.shape[0];
    if (end > options_.max_seq_len) return "more tokens than a sequence may have";
    const bool whole = options_.append_views_blocks && end > start;
    remember(op.cache, op.layer, returns.handle);
    return shown(tokens, op.layer, returns.views,
                 whole ? start / options_.block_size * options_.block_size : start, end);
  }
  Words note(const Commit& op, const Nothing& /*returns*/) {
    History& cache = of(op.cache);
    if (cache.closed) return {};
    for (const auto& tokens : cache.layers)
      if (op.n < 0 || cache.seq_len + op.n > std::ssize(tokens))
        return "a commit of tokens that are not there";
    cache.seq_len += op.n;
    if (!options_.commit_keeps_rest) cache.cut(cache.seq_len);
    return {};
  }
  Words note(const Truncate& op, const Nothing& /*returns*/) {
    History& cache = of(op.cache);
    cache.seq_len = std::min(cache.seq_len, std::max<std::int64_t>(op.n, 0));
    cache.cut(cache.seq_len);
    return {};
  }
  Words note(const Free& op, const Nothing& /*returns*/) {
    History& cache = of(op.cache);
    cache.seq_len = 0;
    cache.cut(0);
    cache.closed = true;
    return {};
  }
  Words note(const ShowViews& op, const ShowViews::Returns& returns) {
    remember(op.cache, op.layer, returns.handle);
    const History& cache = of(op.cache);
    if (!has(op.layer)) return nothing(returns.views.empty());
    const auto& tokens = cache.layers[static_cast<std::size_t>(op.layer)];
    const auto end = options_.views_committed_only ? cache.seq_len : std::ssize(tokens);
    return shown(tokens, op.layer, returns.views, 0, end);
  }
  Words note(const ShowPacked& op, const ShowPacked::Returns& returns) {
    const History& cache = of(op.cache);
    if (!has(op.layer) ||
        options_.devices[static_cast<std::size_t>(op.layer)].device == Device::kGpu)
      return nothing(returns.views.empty());
    const auto& tokens = cache.layers[static_cast<std::size_t>(op.layer)];
    const auto end = options_.views_committed_only ? cache.seq_len : std::ssize(tokens);
    std::int64_t at = 0;
    for (const ShowPacked::Shown& view : returns.views) {
      if (view.start != at || view.length != std::min(options_.block_size, end - at) ||
          view.block_size != options_.block_size)
        return "packed views do not cover the layer";
      for (std::int64_t i = 0; i < view.length; ++i) {
        const Token& token = tokens[static_cast<std::size_t>(at + i)];
        if (!shows(view, view.k, i, token.k) || !shows(view, view.v, i, token.v))
          return not_given(op.layer, at + i);
      }
      at += view.length;
    }
    if (at != end) return "packed views end at " + std::to_string(at);
    return {};
  }
  Words note(const ContiguousKv& op, const ContiguousKv::Returns& returns) {
    const History& cache = of(op.cache);
    if (cache.closed || !has(op.layer)) return "rows from nowhere";
    const auto& tokens = cache.layers[static_cast<std::size_t>(op.layer)];
    if (op.kv_len < 0 || op.kv_len > std::ssize(tokens)) return "more rows than the layer holds";
    if (returns.ok == Nullable<bool>(true)) return "several blocks in one piece";
    if (!returns.k.has_value()) return {};
    for (std::int64_t i = 0; i < op.kv_len; ++i) {
      const Token& token = tokens[static_cast<std::size_t>(i)];
      if (row(*returns.k, i) != token.k || row(*returns.v, i) != token.v)
        return not_given(op.layer, i);
      ++counts_.judged;
    }
    return {};
  }
  Words note(const Reread& op, const Reread::Returns& returns) {
    if (returns.stale) {
      ++counts_.skipped;
      return {};
    }
    const auto& [cache, layer] = handles_.at(op.handle);
    const auto& tokens = cache->layers[static_cast<std::size_t>(layer)];
    for (const ShownView& view : returns.views)
      if (Words words = shown(tokens, layer, view)) return words;
    return {};
  }
  Words note(const LayerDevice& op, const LayerDevice::Returns& returns) {
    ++counts_.judged;
    const Placement want = options_.devices[static_cast<std::size_t>(op.layer)];
    if (Placement{returns.device, returns.gpu} != want) return "the layer lies elsewhere";
    return {};
  }
  Words note(const IsOnGpu& /*op*/, const IsOnGpu::Returns& returns) {
    if (!returns.on_gpu.has_value()) ++counts_.skipped;
    if (!returns.on_gpu.has_value()) return {};
    ++counts_.judged;
    const bool want = options_.devices.front().device == Device::kGpu;
    if (*returns.on_gpu != want) return "the layers lie elsewhere";
    return {};
  }
  Words note(const MaxSeqLen& /*op*/, const Number& returns) {
    return equals(returns.n, options_.max_seq_len, "max_seq_len");
  }
  Words note(const SeqLen& op, const Number& returns) {
    return equals(returns.n, of(op.cache).seq_len, "seq_len");
  }
  Words note(const FreeBlocks& /*op*/, const Number& returns) {
    std::int64_t needed = 0;
    for (const auto& [number, cache] : caches_)
      for (const auto& tokens : cache->layers) needed += options_.blocks_of(std::ssize(tokens));
    // Forks hold some blocks together.
    if (!forked_ || needed == 0) return equals(returns.n, options_.blocks - needed, "free_blocks");
    ++counts_.judged;
    if (returns.n < options_.blocks - needed || returns.n >= options_.blocks)
      return "free_blocks is " + std::to_string(returns.n);
    return {};
  }

  // ---- Helpers ----

  [[nodiscard]] bool has(std::int64_t layer) const {
    return layer >= 0 && layer < options_.num_layers;
  }
  History& of(const std::optional<std::int64_t>& cache) { return *caches_.at(cache.value_or(0)); }
  void remember(const std::optional<std::int64_t>& cache, std::int64_t layer,
                const std::optional<std::int64_t>& handle) {
    if (handle) handles_[*handle] = {caches_.at(cache.value_or(0)), layer};
  }
  Words equals(std::int64_t got, std::int64_t want, const char* what) {
    ++counts_.judged;
    if (got == want) return {};
    return std::string(what) + " is " + std::to_string(got) + ", not " + std::to_string(want);
  }
  Words nothing(bool empty) {
    ++counts_.judged;
    if (empty) return {};
    return "there is nothing to show";
  }
  static std::string not_given(std::int64_t layer, std::int64_t position) {
    return "layer " + std::to_string(layer) + " was not given this at position " +
           std::to_string(position);
  }

  // Views must cover the tokens [begin, end), cut where blocks end.
  Words shown(const std::vector<Token>& tokens, std::int64_t layer,
              const std::vector<ShownView>& views, std::int64_t begin, std::int64_t end) {
    const std::int64_t size = options_.block_size;
    std::int64_t at = begin;
    for (const ShownView& view : views) {
      const std::int64_t next = std::min(end, (at / size + 1) * size);
      if (view.start != at || view.length != next - at || view.length == 0)
        return "views do not cover the tokens";
      if (Placement{view.device, view.gpu} != options_.devices[static_cast<std::size_t>(layer)])
        return "a view lies elsewhere than its layer";
      if (Words words = shown(tokens, layer, view)) return words;
      at = next;
    }
    if (at != end) return "views end at " + std::to_string(at);
    return {};
  }
  Words shown(const std::vector<Token>& tokens, std::int64_t layer, const ShownView& view) {
    if (view.start < 0 || view.start + view.length > std::ssize(tokens))
      return "a view of tokens that the layer does not hold";
    for (std::int64_t i = 0; i < view.length; ++i) {
      const Token& token = tokens[static_cast<std::size_t>(view.start + i)];
      if (row(view.k, i) != token.k || row(view.v, i) != token.v)
        return not_given(layer, view.start + i);
      ++counts_.judged;
    }
    return {};
  }

  static std::vector<std::byte> row(const Tensor& rows, std::int64_t i) {
    const auto bytes = static_cast<std::size_t>(rows.shape[1]) * dtype_bytes(rows.dtype);
    const auto from = rows.bytes.begin() + i * static_cast<std::int64_t>(bytes);
    return {from, from + static_cast<std::int64_t>(bytes)};
  }
  // A row that was given, as it is kept.
  [[nodiscard]] std::vector<std::byte> kept(const Tensor& rows, std::int64_t i) const {
    const auto width = static_cast<std::size_t>(options_.kv_dim());
    const auto dim = static_cast<std::size_t>(options_.head_dim);
    const std::size_t bytes = dtype_bytes(dtype_of(options_.storage.type));
    const std::span<const float> given = rows.floats().subspan(static_cast<std::size_t>(i) * width);
    std::vector<std::byte> shown(width * bytes);
    for (std::size_t head = 0; head < width; head += dim)
      show_stored(options_.storage, given.subspan(head, dim), &shown[head * bytes]);
    return shown;
  }
  // Whether token i of a packed view is that row.
  bool shows(const ShowPacked::Shown& view, const Tensor& cells, std::int64_t i,
             const std::vector<std::byte>& kept) {
    ++counts_.judged;
    for (std::int64_t c = 0; c < options_.kv_dim(); ++c) {
      const std::int64_t at = (c / view.head_dim * view.length + i) * view.head_dim;
      const float got = cells.floats()[static_cast<std::size_t>(at + c % view.head_dim)];
      const DType type = dtype_of(options_.storage.type);
      const auto from = static_cast<std::size_t>(c) * dtype_bytes(type);
      const float want = load_element(type, &kept[from]);
      if (std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(want)) return false;
    }
    return true;
  }

  Options options_;
  std::size_t layers_;
  std::map<std::int64_t, HistoryPtr> caches_;
  std::map<std::int64_t, std::pair<HistoryPtr, std::int64_t>> handles_;
  bool forked_ = false;
};

}  // namespace

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  if (&kind != &paged_kind()) return nullptr;
  return std::make_unique<HistoryOracle>(setup.config_as<Config>());
}

}  // namespace kvo::views
