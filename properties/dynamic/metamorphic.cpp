// The metamorphic laws of contract `dynamic`.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/dynamic/operations.hpp"
#include "reference/dynamic/tensors.hpp"

namespace kvo::dynamic {
namespace {

bool is_form(const CacheKind& kind, std::initializer_list<Form> forms) {
  return std::ranges::any_of(forms, [&](Form form) { return &kind == &kind_of(form); });
}

ListOptions list_of(const Drawn& drawn) {
  const auto options = options_of(form_of(drawn.kind), drawn.setup.config_as<Config>(),
                                  QuirkSet<Quirk>(drawn.setup.profile));
  return options ? options->self : ListOptions();
}

bool is_full(LayerType type) {
  return type == LayerType::kFullAttention || type == LayerType::kIndexedAttention;
}

// ---- prefill_in_chunks ----

Update part_of(const Update& whole, std::int64_t begin, std::int64_t end) {
  Update part = whole;
  part.k = slice(*whole.k, kTokenAxis, begin, end);
  part.v = slice(*whole.v, kTokenAxis, begin, end);
  return part;
}

// Only a full layer returns of the second part what it returns of the whole. Where a refused update
// has counted, slots and lengths may differ: nothing after it is cut.
Variation in_chunks(const Drawn& drawn) {
  const ListOptions list = list_of(drawn);
  Variation varied;
  bool any = false;
  bool cuts = true;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const auto* update = op.as<Update>();
    if (update != nullptr && !drawn.succeeded(at)) cuts = false;
    if (update == nullptr) {
      if (op.as<Reread>() != nullptr)
        varied.insert(op);  // a window returns the tokens of the second part
      else
        varied.pair(at, op);
      continue;
    }
    const bool cut =
        cuts && drawn.succeeded(at) && update->k.has_value() && update->k->shape[2] > 1;
    const bool full = list.lazy || (update->layer >= 0 && update->layer < std::ssize(list.layers) &&
                                    is_full(list.layers[static_cast<std::size_t>(update->layer)]));
    if (!cut) {
      varied.pair(at, op);
      continue;
    }
    any = true;
    const std::int64_t tokens = update->k->shape[2];
    const std::int64_t first = cut_of(at, tokens);
    Update begin = part_of(*update, 0, first);
    begin.keep = std::nullopt;
    varied.insert(Op::of(std::move(begin)));
    Op rest = Op::of(part_of(*update, first, tokens));
    if (full)
      varied.pair(at, std::move(rest));
    else
      varied.insert(std::move(rest));
  }
  return any ? std::move(varied) : Variation();
}

// ---- a_b_a ----

// After each update of the only layer one token more, and a crop of it.
Variation added_and_cropped(const Drawn& drawn) {
  const ListOptions list = list_of(drawn);
  const bool one_full = list.layers.size() == 1 && is_full(list.layers.front());
  if (!one_full) return {};
  Variation varied;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    varied.pair(at, op);
    const auto* update = op.as<Update>();
    if (update == nullptr || !drawn.succeeded(at) || update->k->shape[2] == 0) continue;
    any = true;
    Update more = part_of(*update, 0, 1);
    more.keep = std::nullopt;
    varied.insert(Op::of(std::move(more)));
    varied.insert(Op::of(Crop{-1}));
  }
  return any ? std::move(varied) : Variation();
}

// ---- order_of_independent_sequences ----

Observation without_handle(const Observation& seen) {
  const auto* returned = seen.returns.get_if<UpdateReturns>();
  if (returned == nullptr) return seen;
  UpdateReturns rest = *returned;
  rest.handle = std::nullopt;
  return {.error = seen.error, .returns = Record::of(std::move(rest))};
}

// The layer that an operation is about, and its side; nothing: it is about several.
std::optional<std::pair<Side, std::int64_t>> layer_of(const Op& op, std::int64_t count) {
  Side side = Side::kSelf;
  if (const auto* update = op.as<Update>()) side = update->side.value_or(Side::kSelf);
  if (const auto* state = op.as<ShowState>()) side = state->side.value_or(Side::kSelf);
  const auto layer = integer_of(op, "layer");
  if (!layer) return std::nullopt;
  const std::int64_t index = *layer < 0 ? *layer + count : *layer;
  if (index < 0 || index >= count) return std::nullopt;
  // Layer 0 may be asked for the first layer that has a length.
  const bool asks = op.as<GetSeqLength>() != nullptr || op.as<GetMaskSizes>() != nullptr ||
                    op.as<HoldSeqLength>() != nullptr;
  if (asks && *layer == 0) return std::nullopt;
  return std::pair{side, index};
}

// Between operations on the whole cache, the operations of each layer, the last layer first.
Variation layer_by_layer(const Drawn& drawn) {
  const ListOptions list = list_of(drawn);
  if (list.lazy || list.layers.size() < 2) return {};
  Variation varied;
  std::map<std::pair<Side, std::int64_t>, std::vector<std::size_t>> waiting;
  bool any = false;
  const auto add = [&](std::size_t at) {
    const Op& op = drawn.script[at];
    if (op.as<Reread>() != nullptr || op.as<RereadSeqLength>() != nullptr) return;
    if (op.as<HoldSeqLength>() != nullptr) return;
    varied.pair(at, op, op.as<Update>() != nullptr ? Canonical(without_handle) : nullptr);
  };
  const auto flush = [&] {
    any = any || waiting.size() > 1;
    for (auto each = waiting.rbegin(); each != waiting.rend(); ++each)
      for (const std::size_t at : each->second) add(at);
    waiting.clear();
  };
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    if (const auto layer = layer_of(drawn.script[at], std::ssize(list.layers))) {
      waiting[*layer].push_back(at);
    } else {
      flush();
      add(at);
    }
  }
  flush();
  return any ? std::move(varied) : Variation();
}

}  // namespace

std::vector<const Law*> laws() {
  static const MetamorphicLaw kChunks(
      "prefill_in_chunks", "rows that are given in two parts show the same as given at once",
      kLongScript,
      {.how = "tokens updated in two parts",
       .applies =
           [](const CacheKind& kind) {
             return is_form(kind, {Form::kDynamic, Form::kStatic});
           },
       .transformation = in_chunks});
  static const MetamorphicLaw kBack(
      "a_b_a", "what is added and taken back again leaves no trace", kLongScript,
      {.how = "with an update and a crop inserted",
       .applies = [](const CacheKind& kind) { return is_form(kind, {Form::kDynamic}); },
       .transformation = added_and_cropped});
  static const MetamorphicLaw kOrder(
      "order_of_independent_sequences",
      "what is done to one cache or sequence does not depend on when others are used, or on names",
      kLongScript,
      {.how = "one layer after the other",
       .applies =
           [](const CacheKind& kind) {
             return is_form(kind, {Form::kDynamic, Form::kStatic, Form::kQuantizedIdentity,
                                   Form::kQuantizedFp8, Form::kEncoderDecoder});
           },
       .transformation = layer_by_layer});
  return {&kChunks, &kBack, &kOrder};
}

}  // namespace kvo::dynamic
