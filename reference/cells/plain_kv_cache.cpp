#include "reference/cells/plain_kv_cache.hpp"

#include <algorithm>
#include <utility>

namespace kvo::cells {
namespace {

class PlainUbatch final : public PlacedUbatch {
 public:
  PlainUbatch(const std::vector<PlainHalf>& halves, const std::vector<Token>& tokens,
              const Ubatch& ubatch, std::vector<const Slots*> slots, bool causal)
      : halves_(halves),
        tokens_(tokens),
        ubatch_(ubatch),
        slots_(std::move(slots)),
        causal_(causal) {}

  [[nodiscard]] std::span<const std::int32_t> rows() const override { return ubatch_; }
  [[nodiscard]] std::span<const std::int32_t> slots(Half half) const override {
    return half == Half::kBase ? *slots_.front() : *slots_.back();
  }
  [[nodiscard]] std::int64_t n_kv(Half half) const override {
    return half_of(half).n_kv(tokens_, ubatch_);
  }
  void mask(Half half, std::span<float> out) const override {
    half_of(half).mask(tokens_, ubatch_, causal_, out);
  }

 private:
  [[nodiscard]] const PlainHalf& half_of(Half half) const {
    return half == Half::kBase ? halves_.front() : halves_.back();
  }

  const std::vector<PlainHalf>& halves_;
  const std::vector<Token>& tokens_;
  const Ubatch& ubatch_;
  std::vector<const Slots*> slots_;
  bool causal_;
};

}  // namespace

Result<std::unique_ptr<KvCache>> PlainKv::make(const KvOptions& options) {
  return std::make_unique<PlainKv>(options);
}

PlainKv::PlainKv(const KvOptions& options) : KvCache(options) {
  halves_.emplace_back(options, options.size, is_pair() ? Window() : options.window);
  if (is_pair()) halves_.emplace_back(options, *options.size_window, options.window);
}

Status PlainKv::do_decode(const Batch& batch, const SeeUbatch& see) {
  const auto tokens = tokens_of(batch, options().n_seq_max, options().quirks,
                                [&](std::int32_t seq) { return do_seq_pos(seq); });
  if (!tokens) return tokens.error();
  for (const Token& token : *tokens)
    if (token.pos < -1 || (token.pos < 0 && debug())) return refused("a position below 0");
  if (!batch.causal && static_cast<std::int64_t>(tokens->size()) > batch.n_ubatch)
    return refused("more tokens than n_ubatch, and not causal");
  Halves next = halves_;
  Status done = decode_tokens(next, *tokens, batch, see);
  halves_ = std::move(next);
  if (done) tags_ += static_cast<std::int64_t>(tokens->size());
  return done;
}

Status PlainKv::decode_tokens(Halves& halves, const std::vector<Token>& tokens, const Batch& batch,
                              const SeeUbatch& see) const {
  for (PlainHalf& half : halves) half.update();
  const auto planned = plan(halves, tokens, batch.n_ubatch);
  if (!planned) return planned.error();
  for (std::size_t u = 0; u < planned->ubatches.size(); ++u) {
    const Ubatch& ubatch = planned->ubatches[u];
    std::vector<const Slots*> slots;
    for (std::size_t h = 0; h < halves.size(); ++h) {
      slots.push_back(&planned->slots[h][u]);
      halves[h].place(tokens, ubatch, *slots.back());
    }
    if (batch.abort_at && std::cmp_equal(*batch.abort_at, u)) {
      for (PlainHalf& half : halves) take_out(half, tokens, ubatch);
      return fail_other("aborted");
    }
    see(PlainUbatch(halves, tokens, ubatch, slots, batch.causal));
    for (std::size_t h = 0; h < halves.size(); ++h)
      halves[h].write_rows(tokens, ubatch, *slots[h], tags_ + 1);
  }
  return {};
}

Result<PlainKv::Plan> PlainKv::plan(Halves& halves, const std::vector<Token>& tokens,
                                    std::int64_t n_ubatch) const {
  const auto rehearse = [&](const std::vector<Ubatch>& ubatches) -> Result<Plan> {
    Plan plan{.ubatches = ubatches};
    for (PlainHalf& half : halves) {
      auto slots = half.rehearse(tokens, ubatches);
      if (!slots) return fail(Code::kFull);
      plan.slots.push_back(std::move(*slots));
    }
    return plan;
  };
  if (options().unified) {
    auto planned = rehearse(split_in_order(tokens.size(), n_ubatch));
    if (planned || !is_pair()) return planned;
  }
  const auto ubatches = split_equal(tokens, {.n_ubatch = n_ubatch,
                                             .sequential = !options().unified,
                                             .one_too_many = has(Quirk::kUbatchTooLarge)});
  if (!ubatches) return ubatches.error();
  return rehearse(*ubatches);
}

void PlainKv::take_out(PlainHalf& half, const std::vector<Token>& tokens,
                       const Ubatch& ubatch) const {
  std::map<std::int32_t, std::int32_t> first;  // by sequence, its smallest position
  for (const std::int32_t row : ubatch) {
    const auto& [pos, seqs, primary] = tokens[static_cast<std::size_t>(row)];
    for (const std::int32_t seq : seqs)
      if (seq == primary || !has(Quirk::kAbortedStays))
        first[seq] = std::min(first.try_emplace(seq, pos).first->second, pos);
  }
  for (const auto& [seq, pos] : first) half.remove(seq, range_of(pos, -1));
}

Result<std::vector<std::int32_t>> PlainKv::do_find_slot(const Batch& batch, Half half,
                                                        bool adjacent) const {
  const auto tokens = tokens_of(batch, options().n_seq_max, options().quirks,
                                [](std::int32_t /*seq*/) { return Extremes(); });
  if (!tokens) return tokens.error();
  const auto n = static_cast<std::int64_t>(tokens->size());
  const std::int32_t seq = tokens->front().primary;
  auto slots = adjacent ? half_of(half).find_adjacent(seq, n) : half_of(half).find(seq, n);
  if (!slots) return fail(Code::kFull);
  return std::move(*slots);
}

void PlainKv::do_seq_rm(std::int32_t seq, const Range& range) {
  for (PlainHalf& half : halves_) half.remove(seq, range);
}

Status PlainKv::do_seq_share(std::int32_t src, std::int32_t dst, const Range& range) {
  for (const PlainHalf& half : halves_)
    if (debug() && half.shares(src, dst, range)) return refused("a cell has dst already");
  for (PlainHalf& half : halves_) half.share(src, dst, range);
  return {};
}

Status PlainKv::do_seq_copy(std::int32_t src, std::int32_t dst) {
  for (const PlainHalf& half : halves_)
    if (debug() && half.shifted_from_below(src)) return refused("a position below 0 was shifted");
  Halves next = halves_;
  for (PlainHalf& half : next) half.copy(src, dst);
  halves_ = std::move(next);
  return {};
}

bool PlainKv::covers(std::int32_t seq, std::int32_t end) const {
  return std::ranges::all_of(halves_,
                             [&](const PlainHalf& half) { return half.extremes(seq).max < end; });
}

void PlainKv::do_seq_keep(std::int32_t seq) {
  for (PlainHalf& half : halves_) half.keep(seq);
}

Status PlainKv::do_seq_add(std::int32_t seq, const Range& range, std::int32_t delta) {
  for (const PlainHalf& half : halves_)
    if (half.has_shared(seq, range) && !has(Quirk::kOthersMoveAlong))
      return fail(Code::kNotSupported, "a cell in range has other owners");
  for (const PlainHalf& half : halves_)
    if (!half.can_move(seq, range, delta)) return refused("a position or shift overflows");
  for (PlainHalf& half : halves_) half.move(seq, range, delta);
  return {};
}

Status PlainKv::do_seq_div(std::int32_t seq, const Range& range, std::int32_t d) {
  for (const PlainHalf& half : halves_)
    if (half.has_shared(seq, range) && !has(Quirk::kOthersMoveAlong))
      return fail(Code::kNotSupported, "a cell in range has other owners");
  for (const PlainHalf& half : halves_)
    if (!half.can_divide(seq, range, d)) return refused("d is below 1, or a shift overflows");
  for (PlainHalf& half : halves_) half.divide(seq, range, d);
  return {};
}

Extremes PlainKv::do_seq_pos(std::int32_t seq) const {
  return halves_.back().extremes(seq);
}

void PlainKv::clear(bool data) {
  for (PlainHalf& half : halves_) half.clear(data);
}

bool PlainKv::update() {
  bool updated = false;
  for (PlainHalf& half : halves_) updated |= half.update();
  return updated;
}

SavedState PlainKv::do_state_save(std::int32_t seq, bool partial) {
  Halves next = halves_;
  if (!has(Quirk::kSavedBeforeUpdate))
    for (PlainHalf& half : next) half.update();
  SavedState state{.partial = partial};
  if (!partial) state.base = next.front().save(seq);
  if (is_pair()) state.window = next.back().save(seq);
  halves_ = std::move(next);
  return state;
}

Status PlainKv::do_state_load(const SavedState& state, std::int32_t seq) {
  Halves next = halves_;
  std::vector<std::vector<LoadedRow>> rows(next.size());
  for (std::size_t h = state.partial ? 1 : 0; h < next.size(); ++h) {
    auto loaded = next[h].load(h == 0 ? state.base : state.window, seq);
    if (loaded) {
      rows[h] = std::move(*loaded);
      continue;
    }
    if (!has(Quirk::kFailedLoadRemoves)) next[h] = halves_[h];
    if (!has(Quirk::kHalfLoaded)) std::copy_n(halves_.begin(), h, next.begin());
    halves_ = std::move(next);
    return fail_other("restore_failed");
  }
  for (std::size_t h = 0; h < next.size(); ++h) next[h].write_loaded(rows[h]);
  halves_ = std::move(next);
  return {};
}

std::vector<ShownTable> PlainKv::tables(Half half) const {
  return half_of(half).tables();
}

std::vector<StreamRows> PlainKv::rows(Half half) const {
  return half_of(half).rows();
}

}  // namespace kvo::cells
