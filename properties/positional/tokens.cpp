#include "properties/positional/tokens.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/contract/values/attention.hpp"

namespace kvo::positional {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kQueriesPerHead = 2;

// The n-th element of every query: in [-1, 1), without a pattern that rows could share.
double query_element(std::size_t n) {
  constexpr std::uint32_t kMultiplier = 2'654'435'761U;
  constexpr std::uint32_t kHalf = 0x8000U;
  const std::uint32_t mixed = (static_cast<std::uint32_t>(n) + 1U) * kMultiplier;
  return static_cast<double>(mixed >> 16U) / kHalf - 1.0;
}

// Keys that were never moved are copies, and only sums in another order differ. Each move rounds.
// A group with an offset may be rounded anew when it is stored anew beside one that moves (OK-65).
double tolerance(const StorageFormat& storage, std::uint64_t shifts) {
  constexpr double kSums = 1e-9;
  constexpr double kMovedF32 = 1e-5;
  constexpr double kRoundings = 4;
  // By type: of f16, bf16 and f8 the distance between neighbours of 1, of q8 and q4 more than that
  // of two codes where the largest element is 1.
  constexpr std::array kEpsilons{kMovedF32, 0x1p-10, 0x1p-7, 0x1p-3, 0x1p-2, 0x1p-6, 0x1p-2};
  if (shifts == 0 && !storage.offset) return kSums;
  if (storage.type == StorageType::kF32) return kMovedF32;
  const double epsilon = kEpsilons.at(static_cast<std::size_t>(storage.type));
  return kRoundings * epsilon * static_cast<double>(1 + shifts);
}

float largest(std::span<const float> values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

// [cell][kv_head][head_dim], whatever the order in memory (OK-48).
StridedView values_by_cell(const Tensor& v, bool permuted) {
  StridedView view = view_of(v);
  if (!permuted) return view;
  return {{v.shape[2], v.shape[0], v.shape[1]},
          {view.strides[2], view.strides[0], view.strides[1]},
          v.dtype,
          v.bytes.data()};
}

std::string numbers_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text + "]";
}

}  // namespace

MemberTokens::MemberTokens(MemberOptions member, bool documented)
    : member_(std::move(member)), documented_(documented) {}

void MemberTokens::init(const Init& init) {
  storage_ = storage_of(init);
  if (member_.window == 0) member_.window = kMaxPosition;
  if (member_.memory == 0) member_.memory = member_.window;
  if (member_.memory != kMaxPosition && init.max_sequences > 1 && member_.window != kMaxPosition)
    member_.memory = std::max(member_.memory, member_.window + 1);
  if (member_.memory >= init.capacity) member_.memory = kMaxPosition;
}

void MemberTokens::give_up(const StartForward& pass) {
  if (member_.memory == kMaxPosition) return;
  std::map<std::int64_t, std::int64_t> lowest;
  for (std::size_t i = 0; i < pass.positions.size(); ++i) {
    const std::int64_t position = pass.positions[i];
    const auto [at, is_new] = lowest.try_emplace(pass.seqs[i], position);
    if (!is_new) at->second = std::min(at->second, position);
  }
  for (auto& [number, sequence] : sequences_) {
    std::int64_t next = 0;
    for (const Held& held : sequence.tokens)
      next = std::max<std::int64_t>(next, held.token->position);
    const auto in_batch = lowest.find(number);
    const std::int64_t low = in_batch != lowest.end() ? in_batch->second : next + 1;
    for (Held& held : sequence.tokens)
      if (held.token->position < low - member_.memory) held.maybe_lost = true;
  }
}

void MemberTokens::started(const StartForward& pass) {
  targets_.clear();
  if (!pass.reserve) {
    give_up(pass);
    for (std::size_t i = 0; i < pass.positions.size(); ++i) {
      targets_.push_back(std::make_shared<Token>(Token{.position = pass.positions[i]}));
      sequences_[pass.seqs[i]].tokens.push_back({targets_.back()});
    }
  }
  rows_.clear();
  for (std::size_t i = 0; i < pass.positions.size(); ++i)
    rows_.push_back({.sequence = pass.seqs[i], .position = pass.positions[i]});
  except_.clear();
  built_with_.clear();
  disturbed_ = unknown_ = false;
  rebuild();
}

void MemberTokens::failed(const StartForward& pass, bool unwound) {
  give_up(pass);
  disturbed_ = true;
  if (!unwound) return;
  for (const std::int64_t number : pass.seqs) {
    const auto found = sequences_.find(number);
    if (found != sequences_.end()) found->second.unknown = true;
  }
}

bool MemberTokens::sees(std::size_t row, std::int32_t position) const {
  const std::int32_t own = rows_[row].position;
  const bool ahead = std::ranges::find(except_, static_cast<std::int64_t>(row)) != except_.end();
  if (position > own && !ahead) return false;
  if (member_.chunk > 0 && position < own - own % member_.chunk) return false;
  return std::int64_t{position} >= std::int64_t{own} - member_.window;
}

void MemberTokens::rebuild() {
  unknown_ = disturbed_;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    BatchRow& row = rows_[i];
    row.sees.clear();
    const Sequence& sequence = sequences_[row.sequence];
    row.unknown = sequence.unknown;
    for (const Held& held : sequence.tokens) {
      if (!sees(i, held.token->position)) continue;
      row.sees.push_back(held.token);
      row.unknown = row.unknown || held.maybe_lost;
    }
  }
}

std::vector<float> MemberTokens::stored(std::span<const float> row, std::int64_t heads) const {
  const std::size_t dim = row.size() / static_cast<std::size_t>(heads);
  std::vector<float> shown(row.size());
  std::vector<std::byte> bytes(stored_bytes(storage_, dim));
  for (std::size_t i = 0; i < row.size(); i += dim) {
    encode(storage_, row.subspan(i, dim), bytes.data());
    decode(storage_, bytes.data(), std::span(shown).subspan(i, dim));
  }
  return shown;
}

void MemberTokens::put(std::int64_t layer, const Put& rows) {
  const std::span<const float> k = rows.k.floats();
  const std::span<const float> v = rows.v.floats();
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    TokenRows put{.heads = rows.k.shape[1], .put_at = targets_[i]->position};
    const std::size_t k_size = k.size() / targets_.size();
    const std::size_t v_size = v.size() / targets_.size();
    put.k = stored(k.subspan(i * k_size, k_size), put.heads);
    put.v = stored(v.subspan(i * v_size, v_size), put.heads);
    targets_[i]->layers[layer] = std::move(put);
  }
}

void MemberTokens::set_causal(const SetCausal& call) {
  const bool with_context = call.ctx.value_or(true);
  if (documented_) {
    if (!with_context || call.except == built_with_) return;
    except_ = built_with_ = call.except;
    rebuild();
    return;
  }
  if (call.except == except_) return;
  except_ = call.except;
  if (with_context) rebuild();
}

void MemberTokens::copy_prefix(const CopyPrefix& copy) {
  disturbed_ = true;
  Sequence gained;
  if (const auto source = sequences_.find(copy.src); source != sequences_.end()) {
    gained.unknown = source->second.unknown && copy.len > 0;
    for (const Held& held : source->second.tokens)
      if (held.token->position < copy.len) gained.tokens.push_back(held);
  }
  if (copy.src == copy.dst && !documented_) gained = {};
  sequences_[copy.dst] = std::move(gained);
}

bool MemberTokens::shared(const Token* token, std::int64_t but) const {
  return std::ranges::any_of(sequences_, [&](const auto& other) {
    return other.first != but && !other.second.unknown &&
           std::ranges::any_of(other.second.tokens, [&](const Held& held) {
             return held.token.get() == token && !held.maybe_lost;
           });
  });
}

void MemberTokens::removed(const Remove& remove) {
  disturbed_ = true;
  if (remove.begin <= 0 && remove.end == kMaxPosition) {
    sequences_.erase(remove.seq);
    return;
  }
  const auto found = sequences_.find(remove.seq);
  if (found == sequences_.end()) return;
  std::erase_if(found->second.tokens, [&](const Held& held) {
    return held.token->position >= remove.begin && held.token->position < remove.end;
  });
  const std::int32_t offset = remove.end == kMaxPosition ? 0 : remove.begin - remove.end;
  if (offset == 0) return;
  for (Held& held : found->second.tokens) {
    if (held.token->position < remove.end) continue;
    // What this sequence may no longer own, or must not move (OK-67), stays where it is for others.
    if (held.maybe_lost || shared(held.token.get(), remove.seq))
      held.token = std::make_shared<Token>(*held.token);
    held.token->position += offset;
    for (auto& [layer, rows] : held.token->layers) ++rows.shifts;
  }
}

void MemberTokens::remove_failed(const Remove& remove) {
  disturbed_ = true;
  const auto found = sequences_.find(remove.seq);
  if (found == sequences_.end()) return;
  found->second.unknown = true;
  for (const Held& held : found->second.tokens) held.token->doubtful = true;
}

std::optional<std::vector<float>> MemberTokens::keys_now(const Token& token,
                                                         std::int64_t layer) const {
  const TokenRows& rows = token.layers.at(layer);
  std::vector<float> keys = rows.k;
  const std::array<std::int32_t, 1> offset{token.position - rows.put_at};
  if (offset[0] == 0 && rows.shifts == 0) return keys;
  const Shape shape{1, rows.heads, std::ssize(keys) / rows.heads};
  if (member_.shift == nullptr || !member_.shift(layer, shape, keys, offset)) return std::nullopt;
  return stored(keys, rows.heads);
}

std::optional<MemberTokens::History> MemberTokens::history(const BatchRow& row,
                                                           std::int64_t layer) const {
  if (row.unknown) return std::nullopt;
  History history;
  std::vector<float> k;
  std::vector<float> v;
  Shape one{0, 0, 0};  // heads, elements of k, elements of v: those of the first token
  for (const auto& token : row.sees) {
    const auto rows = token->layers.find(layer);
    if (token->doubtful || rows == token->layers.end()) return std::nullopt;
    const TokenRows& put = rows->second;
    const Shape own{put.heads, std::ssize(put.k), std::ssize(put.v)};
    if (k.empty()) one = own;
    const auto keys = keys_now(*token, layer);
    if (own != one || !keys) return std::nullopt;
    k.insert(k.end(), keys->begin(), keys->end());
    v.insert(v.end(), put.v.begin(), put.v.end());
    history.shifts = std::max(history.shifts, put.shifts);
  }
  if (row.sees.empty()) return history;
  const std::int64_t tokens = std::ssize(row.sees);
  history.k = tensor_of({tokens, one[0], one[1] / one[0]}, k);
  history.v = tensor_of({tokens, one[0], one[2] / one[0]}, v);
  history.largest_k = largest(k);
  history.largest_v = largest(v);
  // Overflowed in the storage type, as far moves do in f16: attention says nothing then.
  const auto overflowed = [](float value) { return !std::isfinite(value); };
  if (std::ranges::any_of(k, overflowed) || std::ranges::any_of(v, overflowed)) return std::nullopt;
  return history;
}

std::optional<std::string> MemberTokens::judge(const BatchRow& row, const History& history,
                                               const Get::Returns& shown,
                                               std::span<const double> mask, bool permuted_v) {
  const StridedView k = view_of(*shown.k);
  const StridedView v = values_by_cell(*shown.v, permuted_v);
  std::vector<double> query(static_cast<std::size_t>(kQueriesPerHead * k.shape[1] * k.shape[2]));
  // Logits of the order of 1, so that every row has its share in what comes out.
  const double scale = history.largest_k > 0 ? 1.0 / double{history.largest_k} : 1.0;
  for (std::size_t i = 0; i < query.size(); ++i) query[i] = query_element(i) * scale;

  const std::vector<double> got = attention({query, k, v, mask});
  std::vector<double> want(got.size());
  if (!row.sees.empty()) {
    const Shape one_k{history.k.shape[1], history.k.shape[2]};
    const Shape one_v{history.v.shape[1], history.v.shape[2]};
    if (one_k != Shape{k.shape[1], k.shape[2]} || one_v != Shape{v.shape[1], v.shape[2]})
      return "shows rows of k " + numbers_text({k.shape[1], k.shape[2]}) + " and v " +
             numbers_text({v.shape[1], v.shape[2]}) + ", put were " + numbers_text(one_k) +
             " and " + numbers_text(one_v);
    const std::vector<double> all(row.sees.size(), 0.0);
    want = attention({query, view_of(history.k), view_of(history.v), all});
  }
  const double allowed = tolerance(storage_, history.shifts) * double{history.largest_v};
  for (std::size_t i = 0; i < want.size(); ++i) {
    // Not <=: a NaN that was shown is a difference, too.
    if (std::abs(got[i] - want[i]) <= allowed) continue;
    const auto visible =
        std::ranges::count_if(mask, [](double element) { return element != kUnseen; });
    return "sequence " + std::to_string(row.sequence) + " at position " +
           std::to_string(row.position) + ": attention over the " + std::to_string(visible) +
           " rows shown gives " + std::to_string(got[i]) + ", over the " +
           std::to_string(row.sees.size()) + " of its history " + std::to_string(want[i]) +
           " (element " + std::to_string(i) + ")";
  }
  return std::nullopt;
}

std::optional<std::string> MemberTokens::shown(std::int64_t layer, const Get::Returns& shown,
                                               bool permuted_v) {
  if (rows_.empty()) return std::nullopt;
  if (!shown.k.has_value() || !shown.v.has_value() || !shown.mask.has_value())
    return "shows no rows or no mask";
  const Shape& mask = shown.mask->shape;
  const Shape& k = shown.k->shape;
  const Shape& v = shown.v->shape;
  if (mask.size() != 2 || k.size() != 3 || v.size() != 3 || mask[0] != std::ssize(rows_) ||
      mask[1] != k[0] || v[permuted_v ? 2 : 0] != k[0] || v[permuted_v ? 0 : 1] != k[1] ||
      k[1] < 1 || k[2] < 1)
    return "shows k " + numbers_text(k) + ", v " + numbers_text(v) + ", mask " +
           numbers_text(mask) + " for " + std::to_string(rows_.size()) + " tokens";
  const auto cells = static_cast<std::size_t>(mask[1]);
  const std::size_t bytes = dtype_bytes(shown.mask->dtype);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto past = unknown_ ? std::nullopt : history(rows_[i], layer);
    ++(past ? counts_.judged : counts_.skipped);
    if (!past) continue;
    std::vector<double> row;
    for (std::size_t cell = 0; cell < cells; ++cell)
      row.push_back(double{
          load_element(shown.mask->dtype, shown.mask->bytes.data() + (i * cells + cell) * bytes)});
    if (auto words = judge(rows_[i], *past, shown, row, permuted_v))
      return "layer " + std::to_string(layer) + ", row " + std::to_string(i) + ": " + *words;
  }
  return std::nullopt;
}

}  // namespace kvo::positional
