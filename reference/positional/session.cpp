// The kinds of contract `positional`. Sessions show rows and note calls of the shift function.
#include <algorithm>
#include <utility>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/positional/operations.hpp"
#include "reference/positional/visible_rows.hpp"

namespace kvo::positional {
namespace {

constexpr std::size_t kMostMembers = 64;

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

class PositionalSession final : public DispatchSession<PositionalSession, Ops>, public CacheOfCase {
 public:
  PositionalSession(const CacheKind& kind, const Setup& setup, QuirkSet<Quirk> quirks) {
    options_.quirks = quirks;
    options_.backend = backend_of(kind, setup);
    for (const CacheConfig& member : members_of(kind, setup)) {
      options_.members.push_back(member_options(member));
      if (options_.members.back().shift)
        note_shift(options_.members.size() - 1, !member_kind_of(kind));
    }
  }

  /// Errors as `make`.
  Status open(const MakeCache& make) {
    auto made = make(options_);
    if (!made) return made.error();
    cache = std::move(*made);
    return {};
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache->broken_invariant();
  }

  /// A cache need not store rows in every type.
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    Observation seen = DispatchSession::apply(op, probe);
    seen.unsupported |= op.as<Init>() != nullptr && seen.failed_with(Code::kNotSupported);
    return seen;
  }

  template <class T>
  [[nodiscard]] Result<Cache*> cache_of(const T& /*op*/) const {
    return cache.get();
  }
  Status operator()(const SetConfig& op) {
    const BackendConfig config{op.cache_padding, op.permuted_v, op.mask_dtype};
    return probe()([&] { return cache->set_config(config, op.target); });
  }
  Status operator()(const Init& op) {
    const InitOptions arguments{op.max_sequences, op.capacity, op.max_batch, storage_of(op)};
    return probe()([&] { return cache->init(arguments); });
  }
  Status operator()(const StartForward& op) {
    Batch batch{.positions = op.positions, .sequences = op.seqs, .reserve = op.reserve};
    if (op.multimodal) batch.multimodal = *op.multimodal;
    return probe()([&] { return cache->start_forward(batch); });
  }
  Status operator()(const Put& op) {
    const auto k = rows_of(op.k);
    const auto v = rows_of(op.v);
    if (!k) return k.error();
    if (!v) return v.error();
    return probe()([&] { return cache->put(*k, *v); });
  }
  Result<Get::Returns> operator()(const Get& /*op*/) {
    const auto seen = probe()([&] { return cache->get(); });
    if (!seen) return seen.error();
    return Get::Returns{shown(seen->k), shown(seen->v), shown(seen->mask)};
  }
  Status operator()(const SetCausal& op) {
    return probe()([&] { return cache->set_causal(op.except, op.ctx.value_or(true)); });
  }
  Answer<Remove::Returns> operator()(const Remove& op) {
    calls_.clear();
    const Status done = probe()([&] { return cache->remove(op.seq, op.begin, op.end); });
    Answer<Remove::Returns> answer;
    if (!done) answer.error = done.error();
    if (!calls_.empty()) answer.returns.shift_calls = calls_;
    return answer;
  }

 private:
  void note_shift(std::size_t member, bool wrapper) {
    const NoteShift note = [this, member, wrapper](std::int64_t layer, const Shape& shape,
                                                   std::span<const std::int32_t> offsets) {
      const HarnessWork work;
      ShiftCall call{.layer = layer,
                     .offsets = {offsets.begin(), offsets.end()},
                     .k_shape = {shape.begin(), shape.end()}};
      if (wrapper) call.cache = static_cast<std::int64_t>(member);
      calls_.push_back(std::move(call));
    };
    MemberOptions& noting = options_.members[member];
    noting.shift = noted(std::move(noting.shift), note);
    noting.begin_shift = noted(std::move(noting.begin_shift), note);
  }

  CacheOptions options_;
  std::vector<ShiftCall> calls_;
};

template <class... Names>
CacheKind kind(std::string_view cache, std::string_view doc, Names... without) {
  CacheKind made{.contract = "positional",
                 .cache = cache,
                 .doc = doc,
                 .operations = {},
                 .config = &type_of<CacheConfig>(),
                 .quirks = kQuirkRows};
  const std::array<std::string_view, sizeof...(Names)> names{without...};
  for (const OpKind* op : op_kinds(Ops()))
    if (std::ranges::find(names, op->name) == names.end()) made.operations.push_back(op);
  return made;
}

CacheKind causal_kind(std::string_view cache, std::string_view doc) {
  CacheKind made =
      kind(cache, doc, SetLayerType::kName, UnderlyingCache::kName, EncoderCached::kName);
  made.conventions = kOwnCells;
  return made;
}

}  // namespace

const CacheKind& kind_of(MemberKind member_kind) {
  static const std::array<CacheKind, 5> kKinds{
      causal_kind("causal", "every earlier token of the sequence (Ollama kvcache)"),
      causal_kind("swa", "a sliding window of positions (Ollama kvcache)"),
      causal_kind("swa_mem", "a sliding window that remembers more than it shows (Ollama kvcache)"),
      causal_kind("chunked", "tokens of the own chunk of positions (Ollama kvcache)"),
      kind("encoder", "one encoder result, replaced as a whole (Ollama kvcache)",
           SetLayerType::kName, UnderlyingCache::kName, SetCausal::kName)};
  return kKinds.at(static_cast<std::size_t>(member_kind));
}

const CacheKind& wrapper_kind() {
  static const CacheKind kKind = [] {
    CacheKind made = kind(
        "wrapper", "several caches that run in step, one for each type of layer (Ollama kvcache)");
    made.config = &type_of<WrapperConfig>();
    return made;
  }();
  return kKind;
}

Subject make_subject(const CacheKind& kind, std::string variant, std::string doc, MakeCache make) {
  return {.kind = &kind,
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [&kind,
                   make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            if (members_of(kind, setup).size() > kMostMembers)
              return fail(Code::kNotSupported, "caches: too many");
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            auto session = std::make_unique<PositionalSession>(kind, setup, *quirks);
            if (const Status made = session->open(make); !made) return made.error();
            return std::unique_ptr<Session>(std::move(session));
          }};
}

std::optional<MemberKind> member_kind_of(const CacheKind& kind) {
  for (const MemberKind member_kind : {MemberKind::kCausal, MemberKind::kSwa, MemberKind::kSwaMem,
                                       MemberKind::kChunked, MemberKind::kEncoder})
    if (&kind == &kind_of(member_kind)) return member_kind;
  return std::nullopt;
}

std::vector<CacheConfig> members_of(const CacheKind& kind, const Setup& setup) {
  if (const auto member_kind = member_kind_of(kind)) {
    auto only = setup.config_as<CacheConfig>();
    only.cache = member_kind;
    return {only};
  }
  std::vector<CacheConfig> members = setup.config_as<WrapperConfig>().caches;
  for (CacheConfig& member : members) member.cache = member.cache.value_or(MemberKind::kCausal);
  return members;
}

BackendConfig backend_of(const CacheKind& kind, const Setup& setup) {
  const auto backend = member_kind_of(kind) ? setup.config_as<CacheConfig>().backend
                                            : setup.config_as<WrapperConfig>().backend;
  return backend.value_or(BackendConfig());
}

MemberOptions member_options(const CacheConfig& config) {
  MemberOptions member{.kind = config.cache.value_or(MemberKind::kCausal),
                       .window = config.window.value_or(0),
                       .memory = config.memory.value_or(0),
                       .chunk = config.chunk.value_or(0)};
  if (config.shift && config.shift->has_value()) {
    member.shift = make_shift(**config.shift);
    member.begin_shift = make_begin_shift(**config.shift);
  }
  return member;
}

}  // namespace kvo::positional

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_POSITIONAL_OPERATIONS)
}  // namespace kvo
