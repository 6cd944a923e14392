// Random scripts for provider.tracing.
#include <set>

#include "properties/provider/provider_script.hpp"
#include "reference/provider/tracing_operations.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(TracingLabel, std::uint8_t, kTracedOverAContiguousCache,
                              kTracedOverAPagedCache, kTracedOverATensorCache,
                              kTracedTensorSeenTwice, kKAndVAreTheSameObject, kFrozenTensorAppended,
                              kRefusedUpdateLeftNoTrace, kTensorOfARefusedUpdateTracedLater,
                              kQueryThatFoundNothingLeftNoTrace, kSecondQueryIsTwoMoreTensors,
                              kTensorSeenAgainWithAnotherShape, kPoolOfTheRealCacheExhausted,
                              kResetAndTruncateForwardedUntraced, kTracerReplaced, kNullTensor,
                              kLayerOutOfRange, kRealCacheRefused, kBeyondAThousandTensorsTraced,
                              kResultsBeyondOneByte, kEmptiedBeyondOneByte, kCountedBeyondTwoBytes)

// What the script knows of a tracer.
struct TracingKnown {
  std::vector<KnownLayer> layers = {};
  std::map<std::int64_t, Shape> traced = {};  // objects with the shape that was seen first
  std::set<std::int64_t> refused = {};        // objects of refused updates
  std::int64_t frozen = 0;
  std::int64_t ops = 0;  // what the log must hold
  std::int64_t gets = 0;
  bool missed = false;  // since the last trace
  bool failed = false;
  bool forwarded = false;
};

TracingConfig random_real(Draw& draw, Scale scale) {
  TracingConfig real{.real = draw.one_of({Real::kKv, Real::kPaged, Real::kTensor}),
                     .num_layers = draw.percent(60) ? draw.between(1, 2) : draw.size(1, 9)};
  if (draw.percent(2)) real.num_layers = draw.between(-1, 0);
  const bool large = scale == Scale::kLarge;
  if (large && draw.percent(30)) real.num_layers = draw.edge(5, 65);
  if (scale == Scale::kLong) real.num_layers = draw.between(1, 2);
  if (real.real != Real::kPaged) {
    real.max_seq_len = large && draw.percent(50) ? draw.edge(33, 1'025) : draw.size(1, 33);
    if (scale == Scale::kLong) real.max_seq_len = draw.between(8, 33);
    return real;
  }
  // Many pool layers make few blocks, which are quickly made.
  real.pool = block_pool::New{.num_layers = draw.one_of<std::int64_t>({1024, 2048}),
                              .block_size = draw.between(1, 3),
                              .head_dim = draw.one_of<std::int64_t>({1, 2, 4}),
                              .max_memory_mb = 1};
  if (draw.percent(30)) {  // a pool of two blocks
    real.pool->num_layers = 4096;
    real.pool->block_size = 4;
    real.pool->head_dim = 4;
  }
  return real;
}

class TracingScript final
    : public ProviderScript<TracingScript, TracingOps, TracingLabel, TracingKnown> {
  using S = TracingScript;

 public:
  TracingScript(const CaseTerms& terms, const TracingConfig& real)
      : ProviderScript(terms),
        real_(real),
        batch_(real_.pool ? 1 : some_batch(5)),
        dim_(real_.pool ? real_.pool->head_dim : some_dim(9, batch_)) {}

  // Steps.
  Op make(std::int64_t cache) {
    NewTracing made{.cache = cache, .frozen_shapes = {}};
    const std::int64_t frozen = draw().percent(60) ? draw().between(0, 2) : draw().size(0, 9);
    while (std::ssize(made.frozen_shapes) < frozen)
      made.frozen_shapes.push_back({draw().between(1, 2), draw().between(0, 2), dim_});
    return Op::of(std::move(made));
  }
  Op update() {
    const std::int64_t cache = number();
    const std::int64_t to = std::max<std::int64_t>(layer(cache), 0);
    const KnownLayer* there = known(cache, to);
    const bool limited = there != nullptr && real_.max_seq_len;
    constexpr std::int64_t kLong = 8;
    if (is_long() && there != nullptr && there->length >= kLong && draw().percent(95))
      return Op::of(Reset{cache});
    const std::int64_t positions = some_positions(limited ? *real_.max_seq_len - there->length : 3);
    RowPair pair = rows().rows({batch_, positions, dim_});
    UpdateTraced made{.cache = cache, .layer = to, .k = std::move(pair.k), .v = std::move(pair.v)};
    made.k_id = object();
    made.v_id = draw().percent(5) ? made.k_id : object();
    return Op::of(std::move(made));
  }
  Op trace() {
    // In a long life hardly ever: all that was traced is shown.
    return is_long() && draw().below(400) > 0 ? update() : Op::of(Trace{number()});
  }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {50, "update", &S::update, true},
      {24, "get", &S::get, true},
      {14, "trace", &S::trace, true},
      {6, "reread", &S::reread},
      {2, "poke", &S::poke},
      {8, "truncate", &S::truncate},
      {3, "reset", &S::of_cache<Reset>},
      {3, "seq_len", &S::of_cache<SeqLen>},
      {2, "new", &S::again},
  });

  // What became of an operation.
  using ProviderScript::observe;
  void observe(const NewTracing& made, const Observation& seen) {
    if (seen.error) return reach(TracingLabel::kRealCacheRefused);
    TracingKnown fresh{
        .layers = std::vector<KnownLayer>(static_cast<std::size_t>(real_.num_layers)),
        .frozen = std::ssize(made.frozen_shapes)};
    for (std::int64_t id = 0; id < fresh.frozen; ++id) {
      const auto& shape = made.frozen_shapes[static_cast<std::size_t>(id)];
      fresh.traced[id].assign(shape.begin(), shape.end());
    }
    if (real_.pool) spend(kPoolCost);
    next_object_ = std::max(next_object_, fresh.frozen);
    if (known(made.cache) != nullptr) reach(TracingLabel::kTracerReplaced);
    remember(made.cache, std::move(fresh));
    reach(real_.real == Real::kKv      ? TracingLabel::kTracedOverAContiguousCache
          : real_.real == Real::kPaged ? TracingLabel::kTracedOverAPagedCache
                                       : TracingLabel::kTracedOverATensorCache);
  }
  void observe(const UpdateTraced& update, const Observation& seen) {
    TracingKnown* there = known(update.cache);
    if (there == nullptr) return;
    KnownLayer* layer = updated(update);
    if (seen.error) {
      if (seen.error->code == Code::kExhausted) reach(TracingLabel::kPoolOfTheRealCacheExhausted);
      there->failed = true;
      there->refused.insert({update.k_id, update.v_id});
      return;
    }
    there->ops += 2;
    if (layer != nullptr) layer->length += update.k->shape[1];
    if (update.k_id == update.v_id) reach(TracingLabel::kKAndVAreTheSameObject);
    see(*there, update.k_id, update.k->shape);
    if (update.k_id != update.v_id) see(*there, update.v_id, update.v->shape);
  }
  void observe(const Get& get, const Observation& seen) {
    TracingKnown* there = known(get.cache);
    if (there == nullptr || seen.error) return;
    const auto& found = seen.as<Found>();
    keep(get.cache, get.layer, found);
    there->missed = there->missed || !found.found;
    if (!found.found) return;
    there->ops += 2;
    if (++there->gets > 1) reach(TracingLabel::kSecondQueryIsTwoMoreTensors);
  }
  void observe(const Trace& trace, const Observation& seen) {
    TracingKnown* there = known(trace.cache);
    if (there == nullptr || seen.error) return;
    constexpr std::int64_t kThousand = 1'024;
    const std::int64_t traced = std::ssize(seen.as<TraceLog>().ops);
    spend(static_cast<std::uint64_t>(traced) * kTracedCost);
    if (traced > kThousand) reach(TracingLabel::kBeyondAThousandTensorsTraced);
    if (traced == there->ops) {
      if (there->failed) reach(TracingLabel::kRefusedUpdateLeftNoTrace);
      if (there->missed) reach(TracingLabel::kQueryThatFoundNothingLeftNoTrace);
      if (there->forwarded) reach(TracingLabel::kResetAndTruncateForwardedUntraced);
    }
    there->failed = there->missed = there->forwarded = false;
  }
  void observe(const Truncate& truncate, const Observation& seen) {
    if (!seen.error) cut(*known(truncate.cache), std::max<std::int64_t>(truncate.n, 0));
  }
  void observe(const Reset& reset, const Observation& seen) {
    if (seen.error) return;
    emptied();
    cut(*known(reset.cache), 0);
  }
  void observe(const Reread& reread, const Observation& seen) {
    if (!seen.error) spend_on(handles()[static_cast<std::size_t>(reread.handle)]);
  }

 private:
  static constexpr std::uint64_t kPoolCost = 100'000;  // a mebibyte is cleared
  static constexpr std::uint64_t kTracedCost = 64;     // of one tensor in a shown trace

  // An object number: usually that of a tensor which was not seen before.
  std::int64_t object() {
    return next_object_ > 0 && draw().percent(15) ? draw().between(0, next_object_ - 1)
                                                  : next_object_++;
  }
  // An object that a successful update has shown to the tracer.
  void see(TracingKnown& there, std::int64_t id, const Shape& shape) {
    const auto seen = there.traced.find(id);
    if (id < there.frozen) reach(TracingLabel::kFrozenTensorAppended);
    if (seen != there.traced.end()) {
      reach(TracingLabel::kTracedTensorSeenTwice);
      if (seen->second != shape) reach(TracingLabel::kTensorSeenAgainWithAnotherShape);
      return;
    }
    there.traced[id] = shape;
    if (there.refused.contains(id)) reach(TracingLabel::kTensorOfARefusedUpdateTracedLater);
  }
  static void cut(TracingKnown& there, std::int64_t n) {
    for (KnownLayer& layer : there.layers) layer.cut(n);
    there.forwarded = true;
  }

  TracingConfig real_;
  std::int64_t batch_;
  std::int64_t dim_;
  std::int64_t next_object_ = 0;
};

GeneratedCase make_case(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  TracingConfig real = random_real(draw, terms.scale);
  return {.setup = {.profile = terms.profile, .config = Record::of(real)},
          .ops = std::make_unique<TracingScript>(terms, real)};
}

}  // namespace

Generator tracing_generator() {
  return script_generator<TracingLabel>(tracing_kind(), make_case, {}, {});
}

}  // namespace kvo::provider
