// The kinds of contract `dynamic`. Sessions number what an operation returned, to show it again.
#include <algorithm>
#include <utility>

#include <boost/json/value.hpp>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/dynamic/operations.hpp"

namespace kvo::dynamic {

boost::json::value Flag::to_json() const {
  return value;
}

bool Flag::from_json(const boost::json::value& in) {
  if (in.is_bool()) value = in.get_bool();
  return in.is_bool();
}

namespace {

constexpr std::size_t kMostHandles = std::size_t{1} << 20U;

Nullable<Tensor> shown(const Rows& rows) {
  if (rows == nullptr) return std::nullopt;
  return *rows;
}

const Tensor* given(const Nullable<Tensor>& tensor) {
  return tensor.has_value() ? &*tensor : nullptr;
}

/// Keys and values are f32 and have four axes; both are there or none.
Status check(const Update& op) {
  if (op.k.has_value() != op.v.has_value())
    return fail(Code::kPrecondition, "k, v: one of them is null");
  if (!op.k.has_value()) return {};
  for (const Nullable<Tensor>* tensor : {&op.k, &op.v})
    if ((*tensor)->dtype != DType::kF32 || (*tensor)->shape.size() != kTokenAxes.size())
      return fail(Code::kPrecondition, "k, v: f32 with the axes batch, head, token, dim");
  if (op.k->shape[2] != op.v->shape[2])
    return fail(Code::kPrecondition, "k, v: different numbers of tokens");
  return {};
}

Status check_state(const Tensor& state) {
  if (state.dtype == DType::kF32 && state.shape.size() >= 2) return {};
  return fail(Code::kPrecondition, "state: f32 with at least two axes");
}

template <class T>
Result<T*> numbered(std::vector<T>& all, std::int64_t handle) {
  if (handle < 0 || handle >= std::ssize(all))
    return fail(Code::kPrecondition, "handle: no " + std::to_string(handle));
  return &all[static_cast<std::size_t>(handle)];
}

class DynamicSession final : public DispatchSession<DynamicSession, Ops>, public CacheOfCase {
 public:
  DynamicSession(const MakeCache& make, CacheOptions asked)
      : CacheOfCase{make(asked), asked, {}, {}} {}

  template <class T>
  [[nodiscard]] Result<Cache*> cache_of(const T& /*op*/) const {
    return cache.get();
  }

  Result<UpdateReturns> operator()(const Update& op) {
    if (const Status checked = check(op); !checked) return checked.error();
    const bool keep = op.keep.value_or(false);
    if (keep && pairs.size() >= kMostHandles) return too_many();
    const auto returned =
        probe()([&] { return cache->update(op.side, op.layer, given(op.k), given(op.v)); });
    if (!returned) return returned.error();
    UpdateReturns seen{shown(returned->k), shown(returned->v), std::nullopt};
    if (!keep) return seen;
    seen.handle = std::ssize(pairs);
    pairs.push_back(*returned);
    return seen;
  }
  Result<SeqLength> operator()(const GetSeqLength& op) {
    const auto length = probe()([&] { return cache->length(op.layer); });
    if (!length) return length.error();
    return SeqLength{**length};
  }
  Result<ShowStateReturns> operator()(const ShowState& op) {
    const auto state = probe()([&] { return cache->state(op.side, op.layer); });
    if (!state) return state.error();
    return ShowStateReturns{state->initialized, shown(state->k), shown(state->v)};
  }
  Result<GetMaxLengthReturns> operator()(const GetMaxLength& op) {
    const auto length = probe()([&] { return cache->get_max_length(op.layer.value); });
    if (!length) return length.error();
    return GetMaxLengthReturns{*length};
  }
  Result<RereadReturns> operator()(const Reread& op) {
    const auto pair = numbered(pairs, op.handle);
    if (!pair) return pair.error();
    return RereadReturns{shown((*pair)->k), shown((*pair)->v)};
  }
  Result<HoldSeqLengthReturns> operator()(const HoldSeqLength& op) {
    if (lengths.size() >= kMostHandles) return too_many();
    const auto length = probe()([&] { return cache->length(op.layer); });
    if (!length) return length.error();
    lengths.push_back(*length);
    return HoldSeqLengthReturns{**length, std::ssize(lengths) - 1};
  }
  Result<SeqLength> operator()(const RereadSeqLength& op) {
    const auto length = numbered(lengths, op.handle);
    if (!length) return length.error();
    return SeqLength{***length};
  }
  Result<StateReturns> operator()(const UpdateConvState& op) {
    if (const Status checked = check_state(op.state); !checked) return checked.error();
    if (op.conv_kernel_size && (*op.conv_kernel_size < 1 || *op.conv_kernel_size > kMostCount))
      return fail(Code::kPrecondition, "conv_kernel_size: at least 1");
    return shown_state(
        [&] { return cache->update_conv_state(op.layer, op.state, op.conv_kernel_size); });
  }
  Result<StateReturns> operator()(const GetConvState& op) {
    return shown_state([&] { return cache->get_conv_state(op.layer); });
  }
  Result<StateReturns> operator()(const UpdateRecurrentState& op) {
    if (const Status checked = check_state(op.state); !checked) return checked.error();
    return shown_state([&] { return cache->update_recurrent_state(op.layer, op.state); });
  }
  Result<StateReturns> operator()(const GetRecurrentState& op) {
    return shown_state([&] { return cache->get_recurrent_state(op.layer); });
  }
  Result<HasPreviousStateReturns> operator()(const HasPreviousState& op) {
    const auto has = probe()([&] { return cache->has_previous_state(op.layer.value); });
    if (!has) return has.error();
    return HasPreviousStateReturns{*has};
  }

 private:
  static Error too_many() { return fail(Code::kPrecondition, "too many handles in a case"); }
  template <class Call>
  Result<StateReturns> shown_state(Call call) {
    const Result<Rows> state = probe()(call);
    if (!state) return state.error();
    return StateReturns{shown(*state)};
  }
};

template <class... Without>
CacheKind kind(std::string_view cache, std::string_view doc,
               boost::mp11::mp_list<Without...> /*without*/) {
  CacheKind made{.contract = "dynamic",
                 .cache = cache,
                 .doc = doc,
                 .operations = {},
                 .config = &type_of<Config>(),
                 .quirks = kQuirkRows};
  for (const OpKind* op : op_kinds(Ops()))
    if (((op != &op_kind<Without>()) && ...)) made.operations.push_back(op);
  return made;
}

// ---- Options ----

constexpr std::int64_t kMostSize = std::int64_t{1} << 24U;
constexpr std::int64_t kMostLayersOfConfig = 4096;

Error refused(std::string_view member) {
  return fail(Code::kNotSupported, std::string(member) + ": missing, below 1 or too large");
}

/// A size that a config must have if `needed`.
Status read_size(std::string_view name, std::optional<std::int64_t> size, bool needed,
                 std::int64_t& to) {
  if (!size && !needed) return {};
  if (!size || *size < 1 || *size > kMostSize) return refused(name);
  to = *size;
  return {};
}

Result<ListOptions> list_of(Storing storing, const Config& config) {
  ListOptions list{.storing = storing};
  const bool is_static = storing == Storing::kStatic;
  if (config.layer_types.has_value()) {
    list.layers = *config.layer_types;
  } else if (config.num_layers || is_static || config.sliding_window.has_value() ||
             config.attention_chunk_size.has_value() || storing != Storing::kDynamic) {
    const std::int64_t layers = config.num_layers.value_or(1);
    if (layers < 0 || layers > kMostLayersOfConfig) return refused("num_layers");
    const LayerType all = config.sliding_window.has_value()         ? LayerType::kSlidingAttention
                          : config.attention_chunk_size.has_value() ? LayerType::kChunkedAttention
                                                                    : LayerType::kFullAttention;
    list.layers.assign(static_cast<std::size_t>(layers), all);
  }
  if (std::ssize(list.layers) > kMostLayersOfConfig) return refused("layer_types");
  const std::int64_t reusing = config.num_kv_shared_layers.value_or(0);
  if (reusing < 0) return fail(Code::kNotSupported, "num_kv_shared_layers: below 0");
  std::fill_n(list.layers.rbegin(), std::min(reusing, std::ssize(list.layers)), LayerType::kDummy);
  list.lazy = storing == Storing::kDynamic && list.layers.empty();
  const auto has = [&](LayerType type) {
    return std::ranges::find(list.layers, type) != list.layers.end();
  };
  if (storing != Storing::kDynamic && !is_static &&
      std::ranges::any_of(list.layers,
                          [](LayerType type) { return type != LayerType::kFullAttention; }))
    return fail(Code::kNotSupported, "layer_types: a quantized cache takes full attention only");
  const bool sliding = has(LayerType::kSlidingAttention) || has(LayerType::kHybridSliding);
  if (Status read =
          read_size("sliding_window", config.sliding_window.value, sliding, list.sliding_window);
      !read)
    return std::move(read).error();
  if (Status read = read_size("attention_chunk_size", config.attention_chunk_size.value,
                              has(LayerType::kChunkedAttention), list.chunk);
      !read)
    return std::move(read).error();
  if (Status read =
          read_size("max_cache_len", config.max_cache_len.value, is_static, list.max_cache_len);
      !read)
    return std::move(read).error();
  constexpr std::int64_t kResidualLength = 128;
  if (Status read = read_size("residual_length", config.residual_length.value_or(kResidualLength),
                              true, list.residual_length);
      !read)
    return std::move(read).error();
  return list;
}

Storing storing_of(const std::optional<Member>& member) {
  return member == Member::kStatic ? Storing::kStatic : Storing::kDynamic;
}

}  // namespace

Result<CacheOptions> options_of(Form form, const Config& config, QuirkSet<Quirk> quirks) {
  CacheOptions options{.quirks = quirks};
  const bool pair = form == Form::kEncoderDecoder;
  auto self = list_of(pair ? storing_of(config.self) : static_cast<Storing>(form), config);
  if (!self) return std::move(self).error();
  options.self = *std::move(self);
  if (!pair) return options;
  auto cross = list_of(storing_of(config.cross), config);
  if (!cross) return std::move(cross).error();
  options.cross = *std::move(cross);
  return options;
}

const CacheKind& kind_of(Form form) {
  using boost::mp11::mp_list;
  using Initialized = mp_list<EarlyInitialization, IsUpdated>;
  using OfLists = mp_list<LayerOffload, LayerPrefetch, UpdateConvState, GetConvState,
                          UpdateRecurrentState, GetRecurrentState, HasPreviousState>;
  static const std::array<CacheKind, kForms.size()> kKinds{
      kind("dynamic", "layers that grow, slide or carry a state (transformers' DynamicCache)",
           mp_list<IsUpdated>()),
      kind("static", "layers in buffers of fixed size (transformers' StaticCache)",
           mp_list<IsUpdated>()),
      kind("quantized_identity",
           "a quantized and a residual part a layer (transformers' QuantizedCache)", Initialized()),
      kind("quantized_fp8", "codes of 8 bits with one scale a layer (transformers' QuantizedCache)",
           Initialized()),
      kind("encoder_decoder", "a cache of a decoder and a second one (EncoderDecoderCache)",
           OfLists())};
  return kKinds.at(static_cast<std::size_t>(form));
}

Form form_of(const CacheKind& kind) {
  for (const Form form : kForms)
    if (&kind_of(form) == &kind) return form;
  KVO_CHECK(false);
  return Form::kDynamic;
}

Subject make_subject(const CacheKind& kind, std::string variant, std::string doc, MakeCache make) {
  return {.kind = &kind,
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [&kind,
                   make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            auto options = options_of(form_of(kind), setup.config_as<Config>(), *quirks);
            if (!options) return options.error();
            return std::unique_ptr<Session>(std::make_unique<DynamicSession>(make, *options));
          }};
}

}  // namespace kvo::dynamic

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_DYNAMIC_OPERATIONS)
}  // namespace kvo
