// Random scripts for provider.contiguous.
#include <limits>
#include <span>

#include "properties/provider/provider_script.hpp"
#include "reference/provider/contiguous.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    ContiguousLabel, std::uint8_t, kCacheFullExactly, kFirstUpdateFullPinsTheShape,
    kFirstUpdateFullPinsNothing, kGetIsAView, kGetIsCompacted, kViewShowsALaterOverwrite,
    kCellWrittenThroughAView, kPoisonedRowTruncatedAndOverwritten, kLayersAtDifferentLengths,
    kVRefused, kNullTensor, kNegativeTruncate, kNegativeCursor, kTruncateBeyondTheLength,
    kTruncatedBetweenRows, kResetThenUpdateWithOtherDimRefused, kResultReadAfterItsCacheWasReplaced,
    kUpdateWithoutPositions, kSizeProductOverflows, kLayerOutOfRange, kBeyondAThousandPositions,
    kPositionsOfAThousandCells, kBatchBeyondSixtyFour, kRowsOfACommonHeadSize, kFiveLayers,
    kBeyondSixteenCaches, kResultsBeyondOneByte, kEmptiedBeyondOneByte, kCountedBeyondTwoBytes,
    kWriteIntoCodesRefused, kCellRoundedThroughAResult)

struct ContiguousLayer : KnownLayer {
  // Batch and dim of a first update that was too long.
  std::optional<std::pair<std::int64_t, std::int64_t>> refused_full = std::nullopt;
};

struct ContiguousKnown {
  std::int64_t max_seq_len = 0;
  std::vector<ContiguousLayer> layers = {};
  bool was_reset = false;
};

class ContiguousScript final
    : public ProviderScript<ContiguousScript, ContiguousOps, ContiguousLabel, ContiguousKnown> {
  using S = ContiguousScript;

 public:
  ContiguousScript(const CaseTerms& terms, const CaseStorage& storage)
      : ProviderScript(terms, storage), batch_(some_batch(9)), dim_(some_dim(9, batch_)) {
    if (!storage.wide) return;
    batch_ = std::min<std::int64_t>(batch_, 3);
    dim_ = draw().between(33, storage.format.group + 36);
  }

  // Steps.
  Op make(std::int64_t cache) {
    std::int64_t layers = some_layers();
    std::int64_t positions = some_room(batch_ * dim_);
    if (draw().percent(3)) layers = draw().between(-1, 0);
    if (draw().percent(3)) positions = draw().between(-2, 0);
    // So many that two cells a position overflow; with one they would only ask for memory.
    if (draw().percent(1) && batch_ * dim_ > 1)
      positions = std::numeric_limits<std::int64_t>::max();
    return Op::of(NewContiguous{cache, layers, positions});
  }
  Op update() {
    const std::int64_t cache = number();
    const std::int64_t to = layer(cache);
    Shape shape{draw().percent(90) ? batch_ : draw().between(0, 3), 0,
                draw().percent(90) ? dim_ : draw().between(0, 3)};
    std::int64_t room = 3;
    if (const ContiguousLayer* there = known(cache, to)) {
      if (there->pinned() && draw().percent(92)) {
        shape.front() = there->batch;
        shape.back() = there->dim;
      }
      constexpr std::int64_t kFar = std::int64_t{1} << 62U;  // a length may be below 0
      room = std::min(known(cache)->max_seq_len, kFar) - there->length;
    }
    if (is_long() && room <= 0 && draw().percent(95))
      return draw().percent(70) ? Op::of(Reset{cache}) : Op::of(Truncate{cache, end(cache)});
    shape[1] = some_positions(room);
    RowPair pair = rows().rows(shape);
    return Op::of(Update{cache, to, std::move(pair.k), std::move(pair.v)});
  }

  // Rows of the shape that a layer is pinned to, without a fault.
  Op rows_for(std::int64_t cache, std::int64_t to, std::int64_t positions) {
    const ContiguousLayer& layer = *known(cache, to);
    RowPair pair = rows().sound_rows({layer.batch, positions, layer.dim});
    return Op::of(Update{cache, to, std::move(pair.k), std::move(pair.v)});
  }

  static const CacheKind& order_kind() { return contiguous_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = S::layer_words();
    return kWords;
  }
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {50, "update", &S::update, true},
      {25, "get", &S::get, true},
      {8, "reread", &S::reread},
      {8, "poke", &S::poke},
      {12, "truncate", &S::truncate},
      {3, "reset", &S::of_cache<Reset>},
      {4, "seq_len", &S::of_cache<SeqLen>},
      {1, "num_layers", &S::of_cache<NumLayers>},
      {2, "new", &S::again},
  });

  // What became of an operation.
  using ProviderScript::observe;
  void observe(const NewContiguous& made, const Observation& seen) {
    if (seen.error) return;
    remember(made.cache,
             {.max_seq_len = made.max_seq_len,
              .layers = std::vector<ContiguousLayer>(static_cast<std::size_t>(made.num_layers))});
  }
  void observe(const Update& update, const Observation& seen) {
    ContiguousLayer* layer = updated(update);
    if (layer == nullptr) return;
    const ContiguousKnown& there = *known(update.cache);
    if (!layer->pinned()) spend_on_buffers(update.k->shape, there.max_seq_len);
    if (seen.error) return saw_refusal(there, *layer, update, *seen.error);
    const Shape& shape = update.k->shape;
    if (layer->refused_full && *layer->refused_full != std::pair{shape[0], shape[2]} &&
        documented())
      reach(ContiguousLabel::kFirstUpdateFullPinsNothing);
    layer->pin(shape);
    added(there, *layer, *update.k);
    stored(*update.k);
    if (shape[1] == 0) reach(ContiguousLabel::kUpdateWithoutPositions);
    if (layer->length == there.max_seq_len) reach(ContiguousLabel::kCacheFullExactly);
  }
  void observe(const Get& get, const Observation& seen) {
    if (seen.error) return reach(ContiguousLabel::kNegativeCursor);
    const auto& found = seen.as<Found>();
    if (!found.found) return;
    const bool view = found.k->shape[0] == 1 || found.k->shape[1] == known(get.cache)->max_seq_len;
    reach(view ? ContiguousLabel::kGetIsAView : ContiguousLabel::kGetIsCompacted);
    keep(get.cache, get.layer, found);
  }
  void observe(const Reread& reread, const Observation& seen) {
    if (seen.error) return;
    const Handle& handle = handles()[static_cast<std::size_t>(reread.handle)];
    spend_on(handle);
    if (handle.orphan) reach(ContiguousLabel::kResultReadAfterItsCacheWasReplaced);
    if (!handle.poked && *seen.as<Again>().k != handle.k)
      reach(ContiguousLabel::kViewShowsALaterOverwrite);
  }
  void observe(const Poke& poke, const Observation& seen) {
    if (!seen.error) reach(ContiguousLabel::kCellWrittenThroughAView);
    saw_poke(seen);
    ProviderScript::observe(poke, seen);
  }
  void observe(const Truncate& truncate, const Observation& seen) {
    if (seen.error) return;
    const std::int64_t n = documented() ? std::max<std::int64_t>(truncate.n, 0) : truncate.n;
    bool longer = false;
    for (ContiguousLayer& layer : known(truncate.cache)->layers) {
      longer = longer || layer.length > n;
      if (n > 0 && n < layer.length) reach(ContiguousLabel::kTruncatedBetweenRows);
      layer.cut(n);
    }
    if (!longer) reach(ContiguousLabel::kTruncateBeyondTheLength);
    if (truncate.n < 0) reach(ContiguousLabel::kNegativeTruncate);
  }
  void observe(const Reset& reset, const Observation& seen) {
    if (seen.error) return;
    emptied();
    ContiguousKnown& there = *known(reset.cache);
    for (ContiguousLayer& layer : there.layers) {
      layer.cut(0);
      layer.length = 0;  // it may have been negative
    }
    there.was_reset = true;
  }

 private:
  void saw_refusal(const ContiguousKnown& there, ContiguousLayer& layer, const Update& update,
                   const Error& error) {
    const Shape& shape = update.k->shape;
    if (error.code == Code::kFull && !layer.pinned() && !layer.refused_full)
      layer.refused_full = {shape[0], shape[2]};
    if (error.code == Code::kBadShape && layer.refused_full && !layer.pinned() && !documented())
      reach(ContiguousLabel::kFirstUpdateFullPinsTheShape);
    if (error.code == Code::kBadShape && there.was_reset && layer.pinned() && shape[2] != layer.dim)
      reach(ContiguousLabel::kResetThenUpdateWithOtherDimRefused);
    if (error.detail == "max_seq_len" || error.detail == "seq")
      reach(ContiguousLabel::kSizeProductOverflows);
    if (layer.length < 0) reach(ContiguousLabel::kNegativeCursor);
    if (layer.length >= 0 && update.v.has_value() && update.v->shape != shape &&
        error.code != Code::kFull)
      reach(ContiguousLabel::kVRefused);
  }

  std::int64_t batch_;  // what most layers of the case are pinned to
  std::int64_t dim_;
};

}  // namespace

Generator contiguous_generator() {
  return with_storage_labels(with_orders<ContiguousScript>(script_generator<ContiguousLabel>(
      contiguous_kind(), stored_case<ContiguousConfig, ContiguousScript>,
      {ContiguousLabel::kFirstUpdateFullPinsTheShape, ContiguousLabel::kNegativeCursor},
      {ContiguousLabel::kFirstUpdateFullPinsNothing})));
}

}  // namespace kvo::provider
