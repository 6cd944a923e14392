// The oracle of contract `dynamic`: the tokens that each layer was given say what it may return.
//
// Judged   what update returns, token by token; what a layer stores; lengths, masks, maxima and the
//          number of layers; that a pair that a growing layer returned never changes.
// Skipped  a layer after something that the rules leave to what happened before (after a refused
//          operation in profile original, tokens that serve several rows, a crop to tokens that are
//          evicted, codes of 8 bits), until it is reset.
// Unseen   errors; linear states.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/dynamic/operations.hpp"
#include "reference/dynamic/tensors.hpp"

namespace kvo::dynamic {
namespace {

using Words = std::optional<std::string>;

/// How a layer must return and store its tokens.
enum class Way : std::uint8_t { kNone, kFull, kSliding, kStatic, kStaticSliding, kQuantized };

struct Token {  // NOLINT(bugprone-exception-escape): as Tensor
  Tensor k;     ///< [batch, head, 1, dim]
  Tensor v;
};

struct History {
  Way way = Way::kNone;
  std::int64_t size = 0;  ///< the window, or the slots
  std::vector<Token> tokens = {};
  std::int64_t stored = 0;  ///< tokens of a sliding layer that are stored, the last ones
  bool recording = false;
  bool lost = false;

  [[nodiscard]] std::int64_t length() const { return std::ssize(tokens); }
};

/// The last `count` tokens of keys or values, joined.
Tensor joined(const std::vector<Token>& tokens, std::int64_t count, Tensor Token::*side) {
  Tensor all = empty();
  for (auto at = tokens.end() - count; at != tokens.end(); ++at)
    all = *concat(all, (*at).*side, kTokenAxis);
  return all;
}

class HistoryOracle final : public Oracle {
 public:
  HistoryOracle(Form form, CacheOptions options)
      : form_(form), options_(std::move(options)), original_(!options_.quirks.empty()) {
    lists_.push_back(histories(options_.self));
    if (options_.cross) lists_.push_back(histories(*options_.cross));
  }

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    if (seen.unsupported) return words;
    visit_op(Ops(), op, [&]<class T>(const T& operation) {
      if (seen.error)
        refused(operation);
      else if constexpr (requires { note(operation, seen.as<typename T::Returns>()); })
        words = note(operation, seen.as<typename T::Returns>());
      else
        skip();
    });
    return words;
  }

 private:
  using Layers = std::vector<History>;

  [[nodiscard]] static History history_of(LayerType type, const ListOptions& list) {
    const bool is_static = list.storing == Storing::kStatic;
    const auto sliding = [&](std::int64_t window) {
      return is_static ? History{Way::kStaticSliding, std::min(window, list.max_cache_len)}
                       : History{Way::kSliding, window};
    };
    switch (type) {
      case LayerType::kFullAttention:
      case LayerType::kIndexedAttention:
      case LayerType::kHybrid:
        if (is_static) return {Way::kStatic, list.max_cache_len};
        return {list.storing == Storing::kDynamic ? Way::kFull : Way::kQuantized};
      case LayerType::kSlidingAttention:
      case LayerType::kHybridSliding:
        return sliding(list.sliding_window);
      case LayerType::kChunkedAttention:
        return sliding(list.chunk);
      default:
        return {};
    }
  }
  [[nodiscard]] static Layers histories(const ListOptions& list) {
    Layers all;
    for (const LayerType type : list.layers) all.push_back(history_of(type, list));
    return all;
  }

  // ---- What failed ----

  template <OneOf<Crop, ReorderCache, BatchRepeatInterleave, BatchSelectIndices> T>
  void refused(const T& /*op*/) {
    if (original_) lose_all();
  }
  void refused(const Update& op) {
    History* const layer = original_ ? find(op.side, op.layer) : nullptr;
    if (layer != nullptr) layer->lost = true;
  }
  template <class T>
  void refused(const T& /*op*/) {}

  // ---- What succeeded ----

  Words note(const Update& op, const UpdateReturns& returns) {
    Layers& list = list_of(op.side);
    if (lazy(op.side))
      while (std::ssize(list) <= op.layer) list.push_back({Way::kFull});
    History* const layer = find(op.side, op.layer);
    if (layer == nullptr) return "an update of a layer that there is not";
    if (!op.k.has_value()) return skip();
    if (layer->way == Way::kNone) return "an update of a layer without keys";
    remember(op, returns, *layer);
    if (layer->lost || !fits(*layer, op) || form_ == Form::kQuantizedFp8) {
      layer->lost = true;
      return skip();
    }
    const std::int64_t added = op.k->shape[2];
    for (std::int64_t at = 0; at < added; ++at)
      layer->tokens.push_back(
          {slice(*op.k, kTokenAxis, at, at + 1), slice(*op.v, kTokenAxis, at, at + 1)});
    if (layer->way == Way::kSliding && layer->size == 1 && original_) layer->lost = true;
    // Keys without elements, as of a batch of no rows, count as no tokens (HF-12).
    if (layer->way == Way::kFull && added > 0 && op.k->elements() == 0) layer->lost = true;
    // No tokens, joined with a full buffer, are too few for it.
    if (layer->way == Way::kStaticSliding && added == 0 && layer->length() >= layer->size)
      layer->lost = true;
    layer->stored =
        layer->recording ? layer->stored + added : std::min(layer->size - 1, layer->stored + added);
    if (layer->lost || layer->tokens.empty()) return skip();
    return returned(*layer, added, returns);
  }
  Words note(const ShowState& op, const ShowStateReturns& returns) {
    const History* const layer = find(op.side, op.layer);
    if (layer == nullptr) return "the state of a layer that there is not";
    if (layer->lost || layer->tokens.empty() || layer->way == Way::kNone ||
        layer->way == Way::kQuantized)
      return skip();
    if (layer->way == Way::kFull) return shows(*layer, layer->length(), returns.k, returns.v);
    if (layer->way == Way::kStaticSliding && original_ && returns.k.has_value() &&
        !alike(layer->tokens.back().k, *returns.k))
      return skip();  // the first tokens serve all rows of buffers that were there before
    if (layer->way != Way::kSliding) return shows_buffers(*layer, returns.k, returns.v);
    if (layer->stored == 0) return skip();
    return shows(*layer, layer->stored, returns.k, returns.v);
  }
  Words note(const GetSeqLength& op, const SeqLength& returns) {
    const History* const layer = counted(op.layer);
    if (layer == nullptr || layer->lost) return skip();
    return equals(returns.seq_length, layer->length(), "seq_length");
  }
  Words note(const GetMaskSizes& op, const GetMaskSizesReturns& returns) {
    const History* const layer = counted(op.layer);
    if (layer == nullptr || layer->lost) return skip();
    const std::int64_t length = layer->length();
    const bool slides = layer->way == Way::kSliding || layer->way == Way::kStaticSliding;
    const std::int64_t offset = slides ? std::max<std::int64_t>(length - layer->size + 1, 0) : 0;
    std::int64_t want = length - offset + op.query_length;
    if (layer->way == Way::kStatic) want = layer->size;
    if (layer->way == Way::kStaticSliding && length < layer->size)
      want = std::max(want, layer->size);
    if (Words words = equals(returns.kv_offset, offset, "kv_offset")) return words;
    return equals(returns.kv_length, want, "kv_length");
  }
  Words note(const GetMaxLength& op, const GetMaxLengthReturns& returns) {
    if (!op.layer.has_value() || *op.layer < 0) return skip();
    const History* const layer = find(first_side(), *op.layer);
    if (layer == nullptr) return equals(returns.max_length, -1, "max_length");
    if (is_hybrid(*op.layer)) return skip();
    const bool bounded =
        layer->way != Way::kNone && layer->way != Way::kFull && layer->way != Way::kQuantized;
    return equals(returns.max_length, bounded ? layer->size : -1, "max_length");
  }
  Words note(const NumLayers& /*op*/, const NumLayersReturns& returns) {
    return equals(returns.num_layers, std::ssize(lists_.front()), "num_layers");
  }
  Words note(const Reread& op, const RereadReturns& returns) {
    const auto pair = pairs_.find(op.handle);
    if (pair == pairs_.end()) return skip();
    if (returns.k.value != pair->second.k || returns.v.value != pair->second.v)
      return judged("a pair that was returned has changed");
    return judged();
  }
  Words note(const Crop& op, const Nothing& /*returns*/) {
    for (std::size_t list = 0; list < (form_ == Form::kEncoderDecoder ? 1 : lists_.size()); ++list)
      for (History& layer : lists_[list]) crop(layer, -op.tokens_to_remove);
    return skip();
  }
  Words note(const ReorderCache& op, const Nothing& /*returns*/) {
    return change_rows([&](const Tensor& tensor) { return select_rows(tensor, op.beam_idx); },
                       false);
  }
  Words note(const BatchRepeatInterleave& op, const Nothing& /*returns*/) {
    return change_rows([&](const Tensor& tensor) { return repeat_rows(tensor, op.repeats); }, true);
  }
  Words note(const BatchSelectIndices& op, const Nothing& /*returns*/) {
    return change_rows([&](const Tensor& tensor) { return index_rows(tensor, op.indices); }, true);
  }
  Words note(const Reset& /*op*/, const Nothing& /*returns*/) {
    for (Layers& list : lists_)
      for (History& layer : list)
        layer = {.way = layer.way, .size = layer.size, .recording = layer.recording};
    return skip();
  }
  Words note(const ActivatePastRecording& /*op*/, const Nothing& /*returns*/) {
    for (History& layer : lists_.front()) layer.recording = true;
    return skip();
  }

  // ---- Layers ----

  [[nodiscard]] Layers& list_of(std::optional<Side> side) {
    return side == Side::kCross ? lists_.back() : lists_.front();
  }
  [[nodiscard]] bool lazy(std::optional<Side> side) const {
    return side == Side::kCross ? options_.cross->lazy : options_.self.lazy;
  }
  [[nodiscard]] std::optional<Side> first_side() const {
    return options_.cross ? std::optional(Side::kSelf) : std::nullopt;
  }
  History* find(std::optional<Side> side, std::int64_t layer) {
    Layers& list = list_of(side);
    if (layer < 0) layer += std::ssize(list);
    if (layer < 0 || layer >= std::ssize(list)) return nullptr;
    return &list[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool is_hybrid(std::int64_t layer) const {
    if (options_.self.lazy) return false;
    const LayerType type = options_.self.layers[static_cast<std::size_t>(layer)];
    return type == LayerType::kHybrid || type == LayerType::kHybridSliding;
  }
  /// The layer that a query is about; null: none, or the layer of another one.
  History* counted(std::int64_t layer) {
    History* const found = find(first_side(), layer);
    return found == nullptr || found->way == Way::kNone ? nullptr : found;
  }
  void lose_all() {
    for (Layers& list : lists_)
      for (History& layer : list) layer.lost = true;
  }
  /// Whether two tensors differ in tokens only.
  [[nodiscard]] static bool alike(const Tensor& one, const Tensor& other) {
    Shape shape = one.shape;
    shape[2] = other.shape[2];
    return shape == other.shape;
  }
  /// Whether tokens have the sizes of those before.
  [[nodiscard]] static bool fits(const History& layer, const Update& op) {
    return layer.tokens.empty() ||
           (alike(layer.tokens.back().k, *op.k) && alike(layer.tokens.back().v, *op.v));
  }
  void crop(History& layer, std::int64_t removed) {
    if (layer.way == Way::kNone || layer.lost) return;
    if (layer.way == Way::kStatic || layer.way == Way::kStaticSliding) return;
    if (layer.way == Way::kQuantized && original_) {
      layer.lost = true;
      return;
    }
    const bool passed = layer.way == Way::kSliding && layer.length() >= layer.size;
    if (original_ && removed > layer.length()) layer.lost = passed;
    removed = std::min(removed, layer.length());
    layer.tokens.resize(static_cast<std::size_t>(layer.length() - removed));
    if (!passed) {
      layer.stored = std::max<std::int64_t>(layer.stored - removed, 0);
      return;
    }
    const std::int64_t needed = std::min(layer.size - 1, layer.length());
    layer.stored = std::min(std::max<std::int64_t>(layer.stored - removed, 0), layer.size - 1);
    if (layer.stored < needed) layer.lost = true;
  }
  template <class Change>
  Words change_rows(Change change, bool repeats) {
    for (Layers& list : lists_)
      for (History& layer : list) {
        if (layer.way == Way::kQuantized && original_ && repeats) layer.lost = true;
        for (Token& token : layer.tokens)
          for (Tensor* side : {&token.k, &token.v}) {
            if (layer.lost) break;
            auto changed = change(*side);
            if (!changed) layer.lost = true;
            if (changed) *side = *std::move(changed);
          }
        // Rows of no tokens are gone, and so is what their number was.
        if (!layer.tokens.empty() && layer.tokens.back().k.shape[0] == 0) layer.lost = true;
      }
    return skip();
  }

  // ---- What is shown ----

  Words equals(std::int64_t got, std::int64_t want, const char* what) {
    if (got == want) return judged();
    return judged(std::string(what) + " is " + std::to_string(got) + ", not " +
                  std::to_string(want));
  }
  Words agrees(const Nullable<Tensor>& got, const Tensor& want, const char* what) {
    if (got.has_value() && *got == want) return judged();
    return judged(std::string(what) + " are not the tokens that the layer was given");
  }
  Words shows(const History& layer, std::int64_t count, const Nullable<Tensor>& k,
              const Nullable<Tensor>& v) {
    if (Words words = agrees(k, joined(layer.tokens, count, &Token::k), "keys")) return words;
    return agrees(v, joined(layer.tokens, count, &Token::v), "values");
  }
  /// The last tokens, and zeros in slots without one.
  Words shows_buffers(const History& layer, const Nullable<Tensor>& k, const Nullable<Tensor>& v) {
    const std::int64_t count = std::min(layer.length(), layer.size);
    const auto filled = [&](Tensor Token::*side) {
      Tensor rows = joined(layer.tokens, count, side);
      Shape rest = rows.shape;
      rest[2] = layer.size - count;
      return *concat(rows, make_tensor(rest), kTokenAxis);
    };
    if (Words words = agrees(k, filled(&Token::k), "keys")) return words;
    return agrees(v, filled(&Token::v), "values");
  }
  Words returned(const History& layer, std::int64_t added, const UpdateReturns& returns) {
    const std::int64_t length = layer.length();
    const std::int64_t before = length - added;
    switch (layer.way) {
      case Way::kSliding: {
        const std::int64_t visible = std::min(before, layer.size - 1) + added;
        return visible == 0 ? skip() : shows(layer, visible, returns.k, returns.v);
      }
      case Way::kStatic:
        return shows_buffers(layer, returns.k, returns.v);
      case Way::kStaticSliding:
        if (length <= layer.size || (before >= layer.size && added == 1))
          return shows_buffers(layer, returns.k, returns.v);
        return shows(layer, std::min(before, layer.size - 1) + added, returns.k, returns.v);
      default:
        return shows(layer, length, returns.k, returns.v);
    }
  }
  /// What a layer without buffers returned stays.
  void remember(const Update& op, const UpdateReturns& returns, const History& layer) {
    if (!op.keep.value_or(false) || !returns.handle) return;
    if (layer.way == Way::kStatic || layer.way == Way::kStaticSliding) return;
    pairs_[*returns.handle] = {*returns.k, *returns.v};
  }

  Form form_;
  CacheOptions options_;
  bool original_;
  std::vector<Layers> lists_;
  std::map<std::int64_t, Token> pairs_;
};

}  // namespace

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  for (const Form form : kForms) {
    if (&kind != &kind_of(form)) continue;
    auto options = options_of(form, setup.config_as<Config>(), QuirkSet<Quirk>(setup.profile));
    if (!options) options = CacheOptions();
    return std::make_unique<HistoryOracle>(form, *std::move(options));
  }
  return nullptr;
}

}  // namespace kvo::dynamic
