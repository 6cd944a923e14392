// Random scripts for provider.tracing.
#include <algorithm>
#include <map>

#include "properties/generators/generators.hpp"
#include "properties/generators/provider_rows.hpp"
#include "reference/provider/contract_tracing.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
constexpr std::string_view kOverKv = "traced over a contiguous cache";
constexpr std::string_view kOverPaged = "traced over a paged cache";
constexpr std::string_view kOverTensor = "traced over a tensor cache";
constexpr std::string_view kSeenTwice = "traced tensor seen twice";
constexpr std::string_view kSameObject = "K and V are the same object";
constexpr std::string_view kFrozenAppended = "frozen tensor appended";
constexpr std::string_view kRefusedUntraced = "refused update left no trace";
constexpr std::string_view kSlotUnused = "tensor of a refused update traced later";
constexpr std::string_view kMissUntraced = "query that found nothing left no trace";
constexpr std::string_view kTwoGets = "second query is two more tensors";
constexpr std::string_view kOtherShape = "tensor seen again with another shape";
constexpr std::string_view kExhausted = "pool of the real cache exhausted";
constexpr std::string_view kForwarded = "reset and truncate forwarded untraced";
constexpr std::string_view kReplaced = "tracer replaced";
constexpr std::string_view kNullTensor = "null tensor";
constexpr std::string_view kLayerRefused = "layer out of range";
constexpr std::string_view kNewRefused = "real cache refused";

// What the generator knows of a tracer, from what was observed.
struct Known {
  std::vector<std::int64_t> lengths = {};
  std::map<std::int64_t, Shape> traced = {};  // objects with the shape that was seen first
  std::vector<std::int64_t> refused = {};     // objects of refused updates
  std::int64_t frozen = 0;
  std::int64_t ops = 0;  // what the log must hold
  std::int64_t gets = 0;
  bool missed = false;  // since the last trace
  bool failed = false;
  bool forwarded = false;
};

RealSetup random_real(Draw& draw) {
  RealSetup real{.real = draw.one_of({Real::kKv, Real::kPaged, Real::kTensor}),
                 .num_layers = draw.one_of<std::int64_t>({1, 1, 2, 3})};
  if (draw.percent(2)) real.num_layers = draw.between(-1, 0);
  if (real.real != Real::kPaged) {
    real.max_seq_len = draw.between(1, 8);
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

class TracingScript final : public OpStream {
 public:
  TracingScript(std::uint64_t seed, RealSetup real)
      : draw_(seed), rows_(draw_), real_(std::move(real)) {
    weights_ = swarm(draw_, {50, 24, 14, 6, 2, 8, 3, 3, 2}, 3);
    most_caches_ = draw_.one_of<std::uint64_t>({1, 1, 2});
    dim_ = real_.pool ? real_.pool->head_dim : draw_.between(1, 3);
    batch_ = real_.pool ? 1 : draw_.between(1, 2);
  }

  std::optional<Op> next() override {
    if (known_.size() < most_caches_ && (known_.empty() ? draw_.percent(95) : draw_.percent(15)))
      return make(static_cast<std::int64_t>(known_.size()));
    const std::int64_t cache = number();
    switch (draw_.weighted(weights_)) {
      case 0:
        return update(cache);
      case 1:
        return Op::of(Get{cache, layer(), draw_.percent(20) ? std::optional(false) : std::nullopt});
      case 2:
        return Op::of(Trace{cache});
      case 3:
        return Op::of(Reread{draw_.between(0, handles_)});
      case 4:
        return Op::of(Poke{draw_.between(0, handles_), draw_.percent(50) ? "k" : "v",
                           draw_.between(0, 4), rows_.cell()});
      case 5:
        return Op::of(Truncate{cache, draw_.percent(5) ? -1 : draw_.between(0, 6)});
      case 6:
        return Op::of(Reset{cache});
      case 7:
        return Op::of(SeqLen{cache});
      default:
        return make(cache);
    }
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    if (const auto* made = op.as<NewTracing>()) saw_new(*made, seen, labels);
    if (const auto* update = op.as<UpdateTraced>()) saw_update(*update, seen, labels);
    if (const auto* get = op.as<Get>()) saw_get(*get, seen, labels);
    if (const auto* trace = op.as<Trace>()) saw_trace(*trace, seen, labels);
    if (const auto* truncate = op.as<Truncate>(); truncate != nullptr && !seen.error)
      cut(known_.at(truncate->cache.value_or(0)), std::max<std::int64_t>(truncate->n, 0));
    if (const auto* reset = op.as<Reset>(); reset != nullptr && !seen.error)
      cut(known_.at(reset->cache.value_or(0)), 0);
  }

 private:
  std::int64_t number() {
    return draw_.percent(97) && !known_.empty() ? draw_.between(0, std::ssize(known_) - 1)
                                                : draw_.between(-1, 3);
  }
  Known* known(const std::optional<std::int64_t>& cache) {
    const auto found = known_.find(cache.value_or(0));
    return found == known_.end() ? nullptr : &found->second;
  }
  std::int64_t layer() {
    return real_.num_layers > 0 && draw_.percent(96) ? draw_.between(0, real_.num_layers - 1)
                                                     : std::max<std::int64_t>(real_.num_layers, 0);
  }

  Op make(std::int64_t cache) {
    NewTracing made{.cache = cache, .frozen_shapes = {}};
    const std::int64_t frozen = draw_.between(0, 2);
    while (std::ssize(made.frozen_shapes) < frozen)
      made.frozen_shapes.push_back({draw_.between(1, 2), draw_.between(0, 2), dim_});
    return Op::of(std::move(made));
  }

  // An object number: usually that of a tensor which was not seen before.
  std::int64_t object() {
    return next_object_ > 0 && draw_.percent(15) ? draw_.between(0, next_object_ - 1)
                                                 : next_object_++;
  }

  Op update(std::int64_t cache) {
    const Known* there = known(cache);
    const std::int64_t to = layer();
    std::int64_t positions = draw_.between(draw_.percent(5) ? 0 : 1, 3);
    if (there != nullptr && real_.max_seq_len && to < std::ssize(there->lengths) &&
        draw_.percent(80))
      positions = std::clamp<std::int64_t>(
          *real_.max_seq_len - there->lengths[static_cast<std::size_t>(to)], 0, positions);
    RowPair rows = rows_.rows({batch_, positions, dim_});
    UpdateTraced made{.cache = cache, .layer = to, .k = std::move(rows.k), .v = std::move(rows.v)};
    made.k_id = object();
    made.v_id = draw_.percent(5) ? made.k_id : object();
    return Op::of(std::move(made));
  }

  void saw_new(const NewTracing& made, const Observation& seen, Labels& labels) {
    if (seen.error) {
      labels.insert(kNewRefused);
      return;
    }
    Known fresh{.lengths = std::vector<std::int64_t>(static_cast<std::size_t>(real_.num_layers)),
                .frozen = std::ssize(made.frozen_shapes)};
    for (std::int64_t id = 0; id < fresh.frozen; ++id) {
      const auto& shape = made.frozen_shapes[static_cast<std::size_t>(id)];
      fresh.traced[id].assign(shape.begin(), shape.end());
    }
    next_object_ = std::max(next_object_, fresh.frozen);
    if (known(made.cache) != nullptr) labels.insert(kReplaced);
    known_[made.cache.value_or(0)] = std::move(fresh);
    labels.insert(real_.real == Real::kKv      ? kOverKv
                  : real_.real == Real::kPaged ? kOverPaged
                                               : kOverTensor);
  }

  void saw_update(const UpdateTraced& update, const Observation& seen, Labels& labels) {
    Known* there = known(update.cache);
    if (there == nullptr) return;
    if (update.layer >= std::ssize(there->lengths)) labels.insert(kLayerRefused);
    if (!update.k.has_value() || !update.v.has_value()) labels.insert(kNullTensor);
    if (seen.error) {
      if (seen.error->code == Code::kExhausted) labels.insert(kExhausted);
      there->failed = true;
      there->refused.insert(there->refused.end(), {update.k_id, update.v_id});
      return;
    }
    there->ops += 2;
    there->lengths[static_cast<std::size_t>(update.layer)] += update.k->shape[1];
    if (update.k_id == update.v_id) labels.insert(kSameObject);
    see(*there, update.k_id, update.k->shape, labels);
    if (update.k_id != update.v_id) see(*there, update.v_id, update.v->shape, labels);
  }

  // An object that a successful update has shown to the tracer.
  static void see(Known& there, std::int64_t id, const Shape& shape, Labels& labels) {
    const auto seen = there.traced.find(id);
    if (id < there.frozen) labels.insert(kFrozenAppended);
    if (seen != there.traced.end()) {
      labels.insert(kSeenTwice);
      if (seen->second != shape) labels.insert(kOtherShape);
      return;
    }
    there.traced[id] = shape;
    if (std::ranges::find(there.refused, id) != there.refused.end()) labels.insert(kSlotUnused);
  }

  void saw_get(const Get& get, const Observation& seen, Labels& labels) {
    Known* there = known(get.cache);
    if (there == nullptr || seen.error) return;
    const auto& found = seen.as<Found>();
    if (found.handle) ++handles_;
    there->missed = there->missed || !found.found;
    if (!found.found) return;
    there->ops += 2;
    if (++there->gets > 1) labels.insert(kTwoGets);
  }

  void saw_trace(const Trace& trace, const Observation& seen, Labels& labels) {
    Known* there = known(trace.cache);
    if (there == nullptr || seen.error) return;
    if (std::ssize(seen.as<TraceLog>().ops) == there->ops) {
      if (there->failed) labels.insert(kRefusedUntraced);
      if (there->missed) labels.insert(kMissUntraced);
      if (there->forwarded) labels.insert(kForwarded);
    }
    there->failed = there->missed = there->forwarded = false;
  }

  static void cut(Known& there, std::int64_t n) {
    for (std::int64_t& length : there.lengths) length = std::min(length, n);
    there.forwarded = true;
  }

  Draw draw_;
  RowDraw rows_;
  RealSetup real_;
  std::vector<std::uint64_t> weights_;
  std::uint64_t most_caches_ = 1;
  std::int64_t batch_ = 1;
  std::int64_t dim_ = 1;
  std::int64_t next_object_ = 0;
  std::int64_t handles_ = 0;
  std::map<std::int64_t, Known> known_;
};

GeneratedCase make_case(std::uint64_t seed, Profile profile) {
  Draw draw(seed);
  RealSetup real = random_real(draw);
  return {.setup = {.profile = profile, .config = write_json(real).as_object()},
          .ops = std::make_unique<TracingScript>(draw.below(~std::uint64_t{0}), std::move(real))};
}

Generator make_generator() {
  const std::vector<std::string_view> both{
      kOverKv,          kOverPaged,  kOverTensor,   kSeenTwice,    kSameObject, kFrozenAppended,
      kRefusedUntraced, kSlotUnused, kMissUntraced, kTwoGets,      kOtherShape, kExhausted,
      kForwarded,       kReplaced,   kNullTensor,   kLayerRefused, kNewRefused};
  return {.kind = &tracing_kind(),
          .make = make_case,
          .original_labels = both,
          .documented_labels = both};
}

}  // namespace
}  // namespace kvo::provider

namespace kvo {

Generator tracing_generator() {
  return provider::make_generator();
}

}  // namespace kvo
