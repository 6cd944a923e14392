
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "properties/arenas/arena_mutants.hpp"
#include "properties/contract_parts.hpp"
#include "reference/block_pool/stack_pool.hpp"
#include "reference/provider/contiguous_cache.hpp"
#include "reference/provider/contiguous_operations.hpp"
#include "reference/provider/paged_cache.hpp"
#include "reference/provider/paged_operations.hpp"

namespace kvo::provider {
namespace {

/// A mutant whose caches are `Faulty`, a ContiguousCache with one method done wrong.
template <class Faulty>
Mutant contiguous_mutant(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const ContiguousOptions& options,
                       QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<Contiguous>> {
    const auto sound = ContiguousCache::make(options, quirks);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(options, quirks);
  };
  return {.subject = make_contiguous_subject("mutant:" + name, std::string(fault), make),
          .fault = std::string(fault),
          .origin = std::string(origin)};
}

/// A mutant whose caches are `Faulty`, a PagedCache with one method done wrong, over sound pools.
template <class Faulty>
Mutant paged_mutant(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const PagedOptions& options,
                       QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<Paged>> {
    const auto sound = PagedCache::make(options, quirks);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(options, quirks);
  };
  return {.subject = make_paged_subject("mutant:" + name, std::string(fault),
                                        block_pool::StackPool::make, make),
          .fault = std::string(fault),
          .origin = std::string(origin)};
}

/// Rows [a][b][dim] whose cells are taken for [b][a][dim], put in the order of their shape.
Tensor swapped_axes(const Tensor& rows) {
  Tensor swapped = rows;
  const auto width = static_cast<std::size_t>(rows.shape[2]);
  const auto outer = static_cast<std::size_t>(rows.shape[0]);
  const auto inner = static_cast<std::size_t>(rows.shape[1]);
  for (std::size_t a = 0; a < outer; ++a)
    for (std::size_t b = 0; b < inner; ++b)
      for (std::size_t d = 0; d < width; ++d)
        swapped.floats()[(a * inner + b) * width + d] = rows.floats()[(b * outer + a) * width + d];
  return swapped;
}

// ---- provider.contiguous ----

/// Takes 0 for "nothing to do".
class TruncateZeroIgnored final : public ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    if (n == 0) return {};
    return ContiguousCache::truncate(n);
  }
};

/// Has a bound that is off by one.
class ExactlyFullRefused final : public ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (has(layer) && rows.k != nullptr && rows.k->shape.size() == 3) {
      const Layer& to = layers_[static_cast<std::size_t>(layer)];
      if (to.k && rows.k->shape[1] > 0 && to.cursor + rows.k->shape[1] == max_seq_len_)
        return fail(Code::kFull);
    }
    return ContiguousCache::update(layer, rows);
  }
};

/// Counts positions that a V which is refused has kept from being stored.
class CursorRunsAhead final : public ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    const Status done = ContiguousCache::update(layer, rows);
    if (done || !done.error().detail.starts_with("v")) return done;
    Layer& to = layers_[static_cast<std::size_t>(layer)];
    if (to.k && to.cursor >= 0) to.cursor += rows.k->shape[1];
    return done;
  }
};

/// Shows the buffers themselves, uncompacted.
class BatchAsView final : public ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    auto pair = ContiguousCache::get(layer);
    if (!pair || !*pair) return pair;
    const Layer& from = layers_[static_cast<std::size_t>(layer)];
    return KvPair{{(*pair)->k.shape, from.k}, {(*pair)->v.shape, from.v}};
  }
};

/// Keeps the physical end apart from the length.
class AppendsBehindCut final : public ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    ends_.resize(layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i)
      ends_[i] = std::max(ends_[i], layers_[i].cursor);
    return ContiguousCache::truncate(n);
  }
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (!has(layer) || ends_.empty()) return ContiguousCache::update(layer, rows);
    const auto i = static_cast<std::size_t>(layer);
    const std::int64_t length = layers_[i].cursor;
    if (length < 0) return ContiguousCache::update(layer, rows);
    layers_[i].cursor = std::max(length, ends_[i]);
    const Status done = ContiguousCache::update(layer, rows);
    if (done) ends_[i] = layers_[i].cursor;
    layers_[i].cursor = done ? length + rows.k->shape[1] : length;
    return done;
  }

 private:
  std::vector<std::int64_t> ends_;  // [layer], behind the last row ever written
};

/// Guesses the order of the axes from their sizes.
class AxesSwapped final : public ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (rows.k == nullptr || rows.v == nullptr || rows.k->shape.size() != 3 ||
        rows.k->shape[0] != rows.k->shape[1] || rows.v->shape != rows.k->shape)
      return ContiguousCache::update(layer, rows);
    const Tensor k = swapped_axes(*rows.k);
    const Tensor v = swapped_axes(*rows.v);
    return ContiguousCache::update(layer, {.k = &k, .v = &v});
  }
};

/// Keeps f16 as other narrow types are kept: limited.
class LargeHalvesLimited final : public ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (storage_.type != StorageType::kF16 || rows.k == nullptr)
      return ContiguousCache::update(layer, rows);
    constexpr float kMost = 65'504;
    Tensor k = *rows.k;
    for (float& key : k.floats())
      if (std::abs(key) > kMost) key = std::copysign(kMost, key);
    return ContiguousCache::update(layer, {.k = &k, .v = rows.v});
  }
};

/// Rounds V by magnitude and puts the sign of what is left on it.
class NarrowMinusZeroLost final : public ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (storage_.type == StorageType::kF32 || rows.v == nullptr)
      return ContiguousCache::update(layer, rows);
    Tensor v = *rows.v;
    for (float& value : v.floats())
      if (value == 0) value = 0;
    return ContiguousCache::update(layer, {.k = rows.k, .v = &v});
  }
};

// ---- provider.paged ----

/// Reads through a table that counts on from its first entry.
class TableTakenForRun final : public PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    const BlockTable table = table_;
    for (std::int64_t i = 1; i < table_.size; ++i)
      if (table_[i].has_value() && table_[0].has_value())
        table_[i] = std::min(*table_[0] + i, pool_->cap() - 1);
    auto pair = PagedCache::get(layer);
    table_ = table;
    return pair;
  }
};

/// Writes all positions of a call through the table's entry of the first.
class PageLookedUpOnce final : public PagedCache {
 public:
  using PagedCache::PagedCache;

 protected:
  void copy_position(std::int64_t layer, const Rows& rows, std::int64_t p) override {
    const std::int64_t start = cursors_[static_cast<std::size_t>(layer)];
    auto& entry = table_[(start + p) / geometry_.block_size];
    const auto own = std::exchange(entry, table_[start / geometry_.block_size]);
    PagedCache::copy_position(layer, rows, p);
    entry = own;
  }
};

/// Counts the blocks of n positions as n / block_size + 1.
class KeepsBlockAtBoundary final : public PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const std::int64_t needed = n / geometry_.block_size + 1;
    if (n > 0 && n % geometry_.block_size == 0 && needed <= table_.size) return cut(n, needed);
    return PagedCache::truncate(n);
  }
};

/// Forgets the last block before all are freed.
class PartialBlockLeaks final : public PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status free() override {
    const bool partial = std::ranges::any_of(
        cursors_, [&](std::int64_t cursor) { return cursor % geometry_.block_size != 0; });
    if (partial && table_.size > 0) --table_.size;
    return PagedCache::free();
  }
  [[nodiscard]] Status reset() override { return free(); }
};

/// Gives a block back before the table is.
class BlockFreedTwice final : public PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status free() override {
    if (table_.size > 1 && table_[0].has_value()) pool_->free(owner_, {&*table_[0], 1});
    return PagedCache::free();
  }
  [[nodiscard]] Status reset() override { return free(); }
};

/// Reads up to the end of the last block.
class ReadsWholeBlocks final : public PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    if (!has(layer)) return std::nullopt;
    std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
    const std::int64_t length = cursor;
    cursor = blocks_of(length) * geometry_.block_size;
    auto pair = PagedCache::get(layer);
    cursor = length;
    return pair;
  }
};

/// Exchanges two axes of V.
class ValuesChannelMinor final : public PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (rows.k == nullptr || rows.v == nullptr || rows.k->shape.size() != 3 ||
        rows.v->shape != rows.k->shape)
      return PagedCache::update(layer, rows);
    const Tensor v = swapped_axes(*rows.v);
    return PagedCache::update(layer, {.k = rows.k, .v = &v});
  }
};

/// Takes blocks first and makes room in the table second.
class FailedAppendLosesBlocks final : public PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (!check_k(layer, rows)) return PagedCache::update(layer, rows);
    const std::int64_t end = cursors_[static_cast<std::size_t>(layer)] + rows.k->shape[1];
    std::vector<std::int64_t> blocks(
        static_cast<std::size_t>(std::max<std::int64_t>(0, blocks_of(end) - table_.size)));
    if (!pool_->alloc(owner_, blocks)) return PagedCache::update(layer, rows);
    BlockTable grown = table_;  // when this throws, nobody gives the blocks back
    grown.reserve(blocks_of(end));
    std::ranges::reverse(blocks);
    pool_->free(owner_, blocks);
    return PagedCache::update(layer, rows);
  }
};

/// Has one scale a block, of its first position.
class ScaleOfTheBlock final : public PagedCache {
 public:
  using PagedCache::PagedCache;

 protected:
  void copy_position(std::int64_t layer, const Rows& rows, std::int64_t p) override {
    PagedCache::copy_position(layer, rows, p);
    const std::int64_t position = cursors_[static_cast<std::size_t>(layer)] + p;
    const std::int64_t slot = position % geometry_.block_size;
    if (!in_groups(geometry_.storage.type) || slot == 0) return;
    const std::int64_t block = *table_[position / geometry_.block_size];
    const std::int64_t width = geometry_.head_dim;
    const std::int64_t first = layer * geometry_.block_size * width;
    for (const block_pool::Side side : {block_pool::Side::kK, block_pool::Side::kV})
      std::ranges::copy(pool_->stored(block, side, first, width).first(2),
                        pool_->stored(block, side, first + slot * width, width).begin());
  }
};

/// Moves the cursor to the end of what the table holds.
class DryAppendCounts final : public PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    const Status done = PagedCache::update(layer, rows);
    if (!done && done.error().code == Code::kExhausted) {
      std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
      cursor = std::max(cursor, table_.size * geometry_.block_size);
    }
    return done;
  }
};

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> made{
      contiguous_mutant<TruncateZeroIgnored>(
          "truncate_zero_ignored", "truncate(0) returns early",
          "B026, F04: transformers took a crop to 0 for no crop at all"),
      contiguous_mutant<ExactlyFullRefused>(
          "exactly_full_refused", "rows that fill a layer to the last position are refused",
          "B037, F04: onnxruntime-genai refused rewinds that the full window still allowed"),
      contiguous_mutant<CursorRunsAhead>(
          "cursor_runs_ahead", "the cursor moves before V is looked at",
          "B035, F04: Ollama counted inputs as cached before they were decoded"),
      contiguous_mutant<BatchAsView>(
          "batch_as_view", "several rows are shown as if they lay end to end in the buffer",
          "B081, F09: a kernel of zerfoo read heads packed in a row with the wrong stride"),
      contiguous_mutant<AppendsBehindCut>(
          "appends_behind_cut",
          "after a truncate rows are stored behind the ones that were cut off",
          "B030, F04: a cancel left Ollama's cache ahead of its log of tokens"),
      contiguous_mutant<AxesSwapped>(
          "axes_swapped",
          "rows whose batch equals their positions are taken for [position, batch, dim]",
          "B086, F09: LMCache is reported to have read one layout as another of the same shape"),
      contiguous_mutant<LargeHalvesLimited>(
          "large_halves_limited", "f16 keys beyond 65504 become that, not infinity",
          "B095, F11: mlxcel floored the scale of its int8 keys and values at 1"),
      contiguous_mutant<NarrowMinusZeroLost>(
          "narrow_minus_zero_lost", "V loses the sign of zero where it is not stored in f32",
          "B095, F11: mlxcel stored small rows by a scale that was at least 1"),
      paged_mutant<ScaleOfTheBlock>(
          "scale_of_the_block",
          "codes are kept with the scale of the first position of their block",
          "B102, F11: InfiniLM moved the codes of V and left their scales where they were"),
      paged_mutant<TableTakenForRun>(
          "table_taken_for_run",
          "get takes the blocks that follow the first one instead of those in the table",
          "B087, F09: text-generation-inference counted on from the first slot instead of reading "
          "the table"),
      paged_mutant<PageLookedUpOnce>(
          "page_looked_up_once",
          "rows that cross a block boundary all go to the block of the first one",
          "B082, F09: FlashInfer read V from the wrong page when a tile spans two"),
      paged_mutant<KeepsBlockAtBoundary>(
          "keeps_block_at_boundary", "truncate at a block boundary keeps one block too many",
          "Z5, F05: zerfoo's truncate slices the block table beyond its length"),
      paged_mutant<PartialBlockLeaks>("partial_block_leaks",
                                      "a last block that is not full is never given back",
                                      "B042, F05: TensorRT-LLM is reported to have removed a "
                                      "sequence and left its blocks behind"),
      paged_mutant<BlockFreedTwice>(
          "block_freed_twice", "free gives the first of several blocks back twice",
          "B039, F05: vLLM freed a block twice that stood twice in one release"),
      paged_mutant<ReadsWholeBlocks>(
          "reads_whole_blocks", "get is bounded in blocks, so the stale end of the last one shows",
          "B083, F09: FlashInfer bounded reads in pages, so stale rows of the last one were "
          "loaded"),
      paged_mutant<ValuesChannelMinor>(
          "values_channel_minor", "V is read with the strides of [position, channel, dim]",
          "B081, F09: a kernel of zerfoo read heads packed in a row with the wrong stride"),
      paged_mutant<FailedAppendLosesBlocks>(
          "failed_append_loses_blocks",
          "blocks are taken before the table has room for them, and lost when it cannot grow",
          "B050, F05: Mooncake left a reference counted when a copy failed half way"),
      paged_mutant<DryAppendCounts>(
          "dry_append_counts",
          "the rows stored before the pool ran dry count, though the append failed",
          "B035, F04: Ollama counted inputs as cached before they were decoded"),
  };
  for (const auto& more : {tensor_mutants(), device_mutants(), arenas::mutants_of("provider")})
    made.insert(made.end(), more.begin(), more.end());
  return made;
}

}  // namespace kvo::provider
