#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/snapshot/session.hpp"
#include "reference/snapshot/trie_operations.hpp"

namespace kvo::snapshot {
namespace {

constexpr std::size_t kMostLayers = 1024;
// What the model makes of a recurrent layer.
constexpr StateSizes kStateSizes{2, 1, 1, 1, 2};

// "rotating:4" is a ring of 4 tokens.
Result<std::unique_ptr<Cache>> layer_of(const std::string& word, const MakeCaches& make,
                                        const StorageFormat& storage, QuirkSet<Quirk> quirks) {
  constexpr std::string_view kRing = "rotating:";
  if (word == "none") return std::unique_ptr<Cache>();
  if (word == "kv") return make_kv(make, storage, quirks);
  if (word == "recurrent") return std::unique_ptr<Cache>(make.recurrent(kStateSizes, quirks));
  std::int64_t window = 0;
  const char* end = word.data() + word.size();
  if (!word.starts_with(kRing) ||
      std::from_chars(word.data() + kRing.size(), end, window).ptr != end ||
      word.size() == kRing.size())
    return fail(Code::kNotSupported, "layer " + word);
  return make_ring(make, window, storage, quirks);
}

Array values(const Shape& shape, const std::vector<float>& numbers) {
  return array_of(tensor_of(shape, numbers));
}

// The model's rows: keys are tokens, values positions from `first` on.
std::pair<Array, Array> rows(const Tokens& tokens, std::int64_t first) {
  std::vector<float> k(tokens.begin(), tokens.end());
  std::vector<float> v;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    v.push_back(static_cast<float>(first + static_cast<std::int64_t>(i) + 1));
  const Shape shape{1, 1, std::ssize(tokens), 1};
  return {values(shape, k), values(shape, v)};
}

// What the model makes of a recurrent state: the last two tokens, their sum and number.
Status feed_state(StateCache& layer, const Tokens& tokens) {
  const auto conv = layer.conv_state(1, DType::kF32);
  if (!conv) return conv.error();
  const auto delta = layer.delta_state(1, DType::kF32);
  if (!delta) return delta.error();
  const Tensor last = materialize(conv->view);
  const Tensor sums = materialize(delta->view);
  std::array<float, 2> tail{last.floats()[0], last.floats()[1]};
  std::array<float, 2> sum{sums.floats()[0], sums.floats()[1]};
  for (const std::int32_t token : tokens) {
    tail = {tail[1], static_cast<float>(token)};
    sum = {sum[0] + static_cast<float>(token), sum[1] + 1};
  }
  if (Status done = layer.set_conv_state(values({1, 2, 1}, {tail[0], tail[1]})); !done) return done;
  if (Status done = layer.set_delta_state(values({1, 1, 1, 2}, {sum[0], sum[1]})); !done)
    return done;
  return layer.advance(std::ssize(tokens));
}

class TrieSession final : public DispatchSession<TrieSession, TrieOps> {
 public:
  TrieSession(TrieConfig config, MakeCaches make, MakeTrie make_trie, QuirkSet<Quirk> quirks)
      : config_(std::move(config)),
        make_(std::move(make)),
        make_trie_(std::move(make_trie)),
        quirks_(quirks) {}

  template <class T>
  [[nodiscard]] Result<PrefixTrie*> cache_of(const T& /*op*/) const {
    if (!trie_) return no_trie();
    return trie_.get();
  }
  Status operator()(const NewTrie& /*op*/) {
    if (config_.layers.size() > kMostLayers) return fail(Code::kPrecondition, "layers");
    const StorageFormat storage = config_.rows.format();
    if (const Status can = can_store(make_, storage); !can) return can.error();
    Layers layers;
    for (const std::string& word : config_.layers) {
      auto layer = probe()([&] { return layer_of(word, make_, storage, quirks_); });
      if (!layer) return layer.error();
      layers.push_back(std::move(*layer));
    }
    trie_ = probe()([&] { return make_trie_(std::move(layers), config_.limit_bytes, quirks_); });
    return {};
  }
  Result<Begin::Returns> operator()(const Begin& op) {
    if (!trie_) return no_trie();
    auto begun = probe()([&] { return trie_->begin(op.inputs); });
    if (!begun) return begun.error();
    return Begin::Returns{std::move(begun->remaining), begun->snapshot_offset, offsets()};
  }
  Result<OffsetsOnly> operator()(const Feed& op) {
    if (!trie_) return no_trie();
    for (const auto& layer : trie_->layers()) {
      if (!layer) continue;
      if (auto* state = dynamic_cast<StateCache*>(layer.get())) {
        if (const Status done = probe()([&] { return feed_state(*state, op.tokens); }); !done)
          return done.error();
        continue;
      }
      const auto made = rows(op.tokens, layer->offset());
      const auto done = probe()([&] { return layer->update(made.first, made.second); });
      if (!done) return done.error();
    }
    return OffsetsOnly{offsets()};
  }
  Result<OffsetsOnly> operator()(const CloseSession& /*op*/) {
    if (!trie_) return no_trie();
    if (const Status done = probe()([&] { return trie_->close(); }); !done) return done.error();
    return OffsetsOnly{offsets()};
  }
  Result<LayerStates::Returns> operator()(const LayerStates& /*op*/) {
    if (!trie_) return no_trie();
    LayerStates::Returns returns;
    for (const auto& layer : trie_->layers()) {
      if (layer)
        returns.layers.emplace_back(LayerState{layer->offset(), shown(layer->state())});
      else
        returns.layers.emplace_back(std::nullopt);
    }
    return returns;
  }
  Result<Tree::Returns> operator()(const Tree& /*op*/) {
    if (!trie_) return no_trie();
    TreeView view = probe()([&] { return trie_->tree(); });
    Tree::Returns returns{
        .nodes = {}, .active = std::move(view.active), .paged_out_bytes = view.paged_out_bytes};
    for (NodeView& node : view.nodes)
      returns.nodes.push_back({.parent = node.parent,
                               .tokens = std::move(node.tokens),
                               .end = node.end,
                               .user = node.user,
                               .last_used = node.last_used,
                               .snapshots = contents(node.snapshots)});
    return returns;
  }

 private:
  [[nodiscard]] static Error no_trie() { return fail(Code::kPrecondition, "no trie"); }
  [[nodiscard]] Offsets offsets() const {
    Offsets all;
    for (const auto& layer : trie_->layers()) {
      if (layer)
        all.emplace_back(layer->offset());
      else
        all.emplace_back(std::nullopt);
    }
    return all;
  }
  static Nullable<std::vector<Nullable<Contents>>> contents(
      const std::optional<std::vector<SnapshotPtr>>& snapshots) {
    if (!snapshots) return std::nullopt;
    std::vector<Nullable<Contents>> all;
    for (const SnapshotPtr& one : *snapshots) {
      if (one)
        all.emplace_back(shown(one->content()));
      else
        all.emplace_back(std::nullopt);
    }
    return all;
  }

  TrieConfig config_;
  MakeCaches make_;
  MakeTrie make_trie_;
  QuirkSet<Quirk> quirks_;
  std::unique_ptr<PrefixTrie> trie_ = nullptr;
};

}  // namespace

const CacheKind& trie_kind() {
  static const CacheKind kKind{.contract = "snapshot",
                               .cache = "trie",
                               .doc = "prefixes of a group of layers (mlxrunner's prefix trie)",
                               .operations = op_kinds(TrieOps()),
                               .config = &type_of<TrieConfig>(),
                               .quirks = kQuirkRows,
                               .repeatable = false};
  return kKind;
}

Subject make_trie_subject(const std::string& variant, const std::string& doc,
                          const MakeCaches& make, const MakeTrie& make_trie) {
  return {.kind = &trie_kind(),
          .variant = variant,
          .doc = doc,
          .open = [make, make_trie](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            return std::make_unique<TrieSession>(setup.config_as<TrieConfig>(), make, make_trie,
                                                 *quirks);
          }};
}

}  // namespace kvo::snapshot

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_SNAPSHOT_TRIE_OPERATIONS)
}  // namespace kvo
