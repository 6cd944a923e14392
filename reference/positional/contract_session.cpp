// How a case's config becomes a cache, and how operations reach it: one overload an operation.
#include <algorithm>
#include <utility>

#include "reference/positional/contract.hpp"
#include "reference/positional/shift.hpp"

namespace kvo::positional {
namespace {

/// One cache in a config; absent numbers are 0.
struct MemberConfig {
  std::optional<Flavour> cache = std::nullopt;
  std::optional<std::int32_t> window = std::nullopt;
  std::optional<std::int32_t> memory = std::nullopt;
  std::optional<std::int32_t> chunk = std::nullopt;
  std::optional<Nullable<ShiftConfig>> shift = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(MemberConfig, (), (cache, window, memory, chunk, shift))

/// The "config" of a wrapper.
struct WrapperConfig {
  std::vector<MemberConfig> caches;
  std::optional<BackendConfig> backend = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(WrapperConfig, (), (caches, backend))

/// The "config" of one cache.
struct CacheConfig {
  std::optional<std::int32_t> window = std::nullopt;
  std::optional<std::int32_t> memory = std::nullopt;
  std::optional<std::int32_t> chunk = std::nullopt;
  std::optional<Nullable<ShiftConfig>> shift = std::nullopt;
  std::optional<BackendConfig> backend = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(CacheConfig, (), (window, memory, chunk, shift, backend))

constexpr std::size_t kMostMembers = 64;

MemberSetup member_of(const MemberConfig& config) {
  MemberSetup member{.flavour = config.cache.value_or(Flavour::kCausal),
                     .window = config.window.value_or(0),
                     .memory = config.memory.value_or(0),
                     .chunk = config.chunk.value_or(0)};
  if (config.shift && config.shift->has_value()) member.shift = make_shift(**config.shift);
  return member;
}

Result<WrapperConfig> read_config(const CacheKind& kind, const boost::json::object& config) {
  JsonFault fault;
  WrapperConfig read;
  if (&kind == &wrapper_kind()) {
    if (!read_json(config, read, fault)) return fail(Code::kNotSupported, fault.text());
    if (read.caches.size() > kMostMembers) return fail(Code::kNotSupported, "caches: too many");
    return read;
  }
  CacheConfig single;
  if (!read_json(config, single, fault)) return fail(Code::kNotSupported, fault.text());
  read.backend = single.backend;
  read.caches.push_back({std::nullopt, single.window, single.memory, single.chunk, single.shift});
  for (const Flavour flavour :
       {Flavour::kCausal, Flavour::kSwa, Flavour::kSwaMem, Flavour::kChunked, Flavour::kEncoder})
    if (&kind == &kind_of(flavour)) read.caches.front().cache = flavour;
  return read;
}

Result<std::vector<Quirk>> quirks_named(const std::vector<std::string_view>& names) {
  std::vector<Quirk> found;
  for (const std::string_view name : names) {
    const auto info = std::ranges::find(quirks(), name, &QuirkInfo::name);
    if (info == quirks().end()) return fail(Code::kNotSupported, "quirk " + std::string(name));
    found.push_back(static_cast<Quirk>(info - quirks().begin()));
  }
  return found;
}

/// Rows of a put, or why they are none.
Result<Rows> rows_of(const Tensor& tensor) {
  if (tensor.dtype != DType::kF32) return fail(Code::kPrecondition, "k, v: rows are put as f32");
  if (tensor.shape.size() != 3) return fail(Code::kPrecondition, "k, v: rows have three axes");
  return Rows{tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.floats()};
}

Nullable<Tensor> shown(const std::optional<StridedView>& view) {
  if (!view) return std::nullopt;
  return materialize(*view);
}

class PositionalSession final : public Session {
 public:
  PositionalSession(const WrapperConfig& config, bool wrapper, Profile profile,
                    std::vector<Quirk> quirks) {
    setup_.profile = profile;
    setup_.quirks = std::move(quirks);
    setup_.backend = config.backend.value_or(BackendConfig());
    for (const MemberConfig& member : config.caches) {
      setup_.members.push_back(member_of(member));
      if (setup_.members.back().shift) watch_shift(setup_.members.size() - 1, wrapper);
    }
  }

  /// Errors as `make`.
  Status open(const MakeCache& make) {
    auto made = make(setup_);
    if (!made) return made.error();
    cache_ = std::move(*made);
    return {};
  }

  Observation apply(const Op& op, Probe& probe) override {
    probe_ = &probe;
    return dispatch(Ops(), op, *this);
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache_->broken_invariant();
  }

  Status operator()(const SetConfig& op) {
    const BackendConfig config{op.cache_padding, op.permuted_v, op.mask_dtype};
    return probe()([&] { return cache_->set_config(config, op.target); });
  }
  Status operator()(const Init& op) {
    const InitArguments arguments{op.max_sequences, op.capacity, op.max_batch, dtype_of(op.dtype)};
    return probe()([&] { return cache_->init(arguments); });
  }
  Status operator()(const StartForward& op) {
    Batch batch{.positions = op.positions, .sequences = op.seqs, .reserve = op.reserve};
    if (op.multimodal) batch.multimodal = *op.multimodal;
    return probe()([&] { return cache_->start_forward(batch); });
  }
  Status operator()(const SetLayer& op) {
    return probe()([&] { return cache_->set_layer(op.layer); });
  }
  Status operator()(const SetLayerType& op) {
    return probe()([&] { return cache_->set_layer_type(op.type); });
  }
  Result<UnderlyingCache::Returns> operator()(const UnderlyingCache& /*op*/) {
    const auto index = probe()([&] { return cache_->underlying_cache(); });
    if (!index) return index.error();
    return UnderlyingCache::Returns{*index};
  }
  Status operator()(const Put& op) {
    const auto k = rows_of(op.k);
    const auto v = rows_of(op.v);
    if (!k) return k.error();
    if (!v) return v.error();
    return probe()([&] { return cache_->put(*k, *v); });
  }
  Result<Get::Returns> operator()(const Get& /*op*/) {
    const auto seen = probe()([&] { return cache_->get(); });
    if (!seen) return seen.error();
    return Get::Returns{shown(seen->k), shown(seen->v), shown(seen->mask)};
  }
  Status operator()(const SetCausal& op) {
    return probe()([&] { return cache_->set_causal(op.except, op.ctx.value_or(true)); });
  }
  Status operator()(const CopyPrefix& op) {
    return probe()([&] { return cache_->copy_prefix(op.src, op.dst, op.len); });
  }
  Result<CanResume::Returns> operator()(const CanResume& op) {
    const auto answer = probe()([&] { return cache_->can_resume(op.seq, op.pos); });
    if (!answer) return answer.error();
    return CanResume::Returns{*answer};
  }
  Answer<Remove::Returns> operator()(const Remove& op) {
    calls_.clear();
    const Status done = probe()([&] { return cache_->remove(op.seq, op.begin, op.end); });
    Answer<Remove::Returns> answer;
    if (!done) answer.error = done.error();
    if (!calls_.empty()) answer.returns.shift_calls = calls_;
    return answer;
  }
  Result<EncoderCached::Returns> operator()(const EncoderCached& /*op*/) {
    const auto answer = probe()([&] { return cache_->encoder_cached(); });
    if (!answer) return answer.error();
    return EncoderCached::Returns{*answer};
  }
  Status operator()(const Close& /*op*/) {
    return probe()([&] { return cache_->close(); });
  }

 private:
  Probe& probe() { return *probe_; }

  void watch_shift(std::size_t member, bool wrapper) {
    Shift& shift = setup_.members[member].shift;
    shift = noted(std::move(shift), [this, member, wrapper](std::int64_t layer, const Shape& shape,
                                                            std::span<const std::int32_t> offsets) {
      // The list is the harness's: it must not count, or fail, as an allocation of the cache.
      const bool open = std::exchange(allocation_gate.open, false);
      ShiftCall call{.layer = layer,
                     .offsets = {offsets.begin(), offsets.end()},
                     .k_shape = {shape.begin(), shape.end()}};
      if (wrapper) call.cache = static_cast<std::int64_t>(member);
      calls_.push_back(std::move(call));
      allocation_gate.open = open;
    });
  }

  CacheSetup setup_;
  std::unique_ptr<Cache> cache_;
  Probe* probe_ = nullptr;
  std::vector<ShiftCall> calls_;
};

}  // namespace

Subject make_subject(const CacheKind& kind, std::string engine, std::string doc, MakeCache make) {
  return {.kind = &kind,
          .engine = std::move(engine),
          .doc = std::move(doc),
          .open = [&kind,
                   make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto config = read_config(kind, setup.config);
            if (!config) return config.error();
            const auto quirks = quirks_named(setup.quirks);
            if (!quirks) return quirks.error();
            auto session = std::make_unique<PositionalSession>(*config, &kind == &wrapper_kind(),
                                                               setup.profile, *quirks);
            if (const Status made = session->open(make); !made) return made.error();
            return std::unique_ptr<Session>(std::move(session));
          }};
}

}  // namespace kvo::positional
