// The oracle of the positional caches, from the
// definitions alone.
//
// For every sequence of every member it keeps the tokens with what was put for them, and at each
// get recomputes attention over what each row of the batch must see (OK-31), with keys moved by the
// shift function from where they were put to where they are. An encoder must show, bit by bit, what
// was put last (OK-73).
// Judged   every row of every get that succeeds, also in reserve passes, except
// Skipped  rows that may see a token which bounded memory may have given up (OK-18, OK-19), or one
//          whose rows were never put in that layer (OK-44); all rows of a pass whose mask was built
//          anew after a copy_prefix or remove (OK-41: the visible range is that of before); layers
//          of an encoder with reserve puts only (OK-76); rows that overflow their storage type. In
//          the original also what errors leave unknown until the sequence is cleared or copied
//          onto: after a remove (OK-66, OK-67), and in a wrapper after a start_forward (OK-83), for
//          the sequences of its batch.
// Unseen   by attention: keys where a token sees one row only, an equal change of all keys that it
//          sees, and moves below the tolerance: 1e-5 of the largest value in f32, in f16 and bf16
//          4 epsilon for the put and for each move. Rows that never moved have 1e-9.
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/positional/explanation.hpp"
#include "properties/positional/tokens.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/positional/config.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {
namespace {

// Elements in the order of the shape with its first axis last: [n][h][d] as [h][d][n] (OK-74).
Tensor tokens_last(const Tensor& v) {
  const StridedView view = view_of(v);
  return materialize({{v.shape[1], v.shape[2], v.shape[0]},
                      {view.strides[1], view.strides[2], view.strides[0]},
                      v.dtype,
                      v.bytes.data()});
}

// The layers of an encoder.
class EncoderLayers {
 public:
  void started(bool reserve) { reserve_ = reserve; }
  void put(std::int64_t layer, const Put& rows) {
    if (!reserve_) layers_[layer] = rows;
    if (reserve_) layers_.try_emplace(layer);
  }
  [[nodiscard]] std::optional<std::string> shown(std::int64_t layer, const Get::Returns& shown,
                                                 bool permuted_v) {
    const auto found = layers_.find(layer);
    if (found != layers_.end() && !found->second) return std::nullopt;
    ++counts_.judged;
    if (shown.mask.has_value()) return "an encoder shows a mask";
    if (found == layers_.end()) {
      if (!shown.k.has_value() && !shown.v.has_value()) return std::nullopt;
      return "layer " + std::to_string(layer) + " shows rows and has none";
    }
    const Put& put = *found->second;
    if (shown.k != Nullable<Tensor>(put.k) ||
        shown.v != Nullable<Tensor>(permuted_v ? tokens_last(put.v) : put.v))
      return "layer " + std::to_string(layer) + " does not show what was put last";
    return std::nullopt;
  }
  [[nodiscard]] const OracleCounts& counts() const { return counts_; }

 private:
  bool reserve_ = false;
  std::map<std::int64_t, std::optional<Put>> layers_;  // none: reserve puts only
  OracleCounts counts_;
};

struct Member {
  bool encoder = false;
  bool permuted_v = false;
  MemberTokens tokens;
  EncoderLayers layers = {};
};

class HistoryOracle final : public Oracle {
 public:
  HistoryOracle(const CacheKind& kind, const Setup& setup)
      : kind_(kind), setup_(setup), documented_(setup.profile == Profile::kDocumented) {
    const bool permuted = backend_of(kind, setup).permuted_v;
    for (const CacheConfig& config : members_of(kind, setup))
      members_.push_back({.encoder = config.cache == MemberKind::kEncoder,
                          .permuted_v = permuted,
                          .tokens = MemberTokens(member_options(config), documented_)});
  }

  [[nodiscard]] std::optional<std::string> check(const Op& op, const Observation& seen) override {
    std::optional<std::string> words;
    visit_op(Ops(), op, [&](const auto& operation) {
      if (seen.error)
        failed(operation, *seen.error);
      else if constexpr (std::is_same_v<decltype(operation), const Get&>)
        words = shown(seen.as<Get::Returns>());
      else
        note(operation);
    });
    return words;
  }

  [[nodiscard]] std::vector<std::string> explain(std::span<const Op> script,
                                                 const Observation& want,
                                                 const Observation& got) const override {
    const bool shown = script.back().as<Get>() != nullptr && !want.error && !got.error;
    return shown ? explain_get({kind_, setup_}, script, want.as<Get::Returns>(),
                               got.as<Get::Returns>())
                 : std::vector<std::string>();
  }

  [[nodiscard]] OracleCounts counts() const override {
    OracleCounts sum;
    for (const Member& member : members_) {
      const OracleCounts& own = member.encoder ? member.layers.counts() : member.tokens.counts();
      sum.judged += own.judged;
      sum.skipped += own.skipped;
    }
    return sum;
  }

 private:
  // ---- What succeeded: one overload an operation, but for get, which is judged ----

  void note(const SetConfig& config) {
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (config.target.value_or(static_cast<std::int64_t>(i)) == static_cast<std::int64_t>(i))
        members_[i].permuted_v = config.permuted_v;
  }
  void note(const Init& init) {
    for (Member& member : members_) member.tokens.init(init);
  }
  void note(const StartForward& pass) {
    member_ = 0;
    for (Member& member : members_) {
      member.tokens.started(pass);
      member.layers.started(pass.reserve);
    }
  }
  void note(const SetLayer& chosen) { layer_ = chosen.layer; }
  void note(const SetLayerType& chosen) { member_ = chosen.type; }
  void note(const Put& put) {
    Member* chosen = selected();
    if (chosen == nullptr) return;
    chosen->encoder ? chosen->layers.put(layer_, put) : chosen->tokens.put(layer_, put);
  }
  void note(const SetCausal& call) {
    if (Member* chosen = selected()) chosen->tokens.set_causal(call);
  }
  void note(const CopyPrefix& copy) {
    for (Member& member : members_) member.tokens.copy_prefix(copy);
  }
  void note(const Remove& remove) {
    for (Member& member : members_) member.tokens.removed(remove);
  }
  void note(const OneOf<UnderlyingCache, CanResume, EncoderCached, Close> auto& /*changes none*/) {}

  [[nodiscard]] std::optional<std::string> shown(const Get::Returns& shown) {
    Member* chosen = selected();
    if (chosen == nullptr) return std::nullopt;
    return chosen->encoder ? chosen->layers.shown(layer_, shown, chosen->permuted_v)
                           : chosen->tokens.shown(layer_, shown, chosen->permuted_v);
  }

  // ---- What failed ----

  void failed(const StartForward& pass, const Error& error) {
    if (!half_done(error)) return;
    for (Member& member : members_) member.tokens.failed(pass, members_.size() > 1);
  }
  void failed(const Remove& remove, const Error& error) {
    if (!half_done(error)) return;
    for (Member& member : members_) member.tokens.remove_failed(remove);
  }
  void failed(const OneOf<SetConfig, Init, SetLayer, SetLayerType, UnderlyingCache, Put, Get,
                          SetCausal, CopyPrefix, CanResume, EncoderCached, Close> auto& /*op*/,
              const Error& /*nothing has changed*/) {}

  /// Whether an error of start_forward or remove may have left some of it done (OK-22, OK-66).
  [[nodiscard]] bool half_done(const Error& error) const {
    return !documented_ && (error.code == Code::kFull || error.code == Code::kNotSupported ||
                            error.code == Code::kOther);
  }

  /// The member that put and get go to; null if its number is none.
  [[nodiscard]] Member* selected() {
    const bool exists = member_ >= 0 && member_ < std::ssize(members_);
    return exists ? &members_[static_cast<std::size_t>(member_)] : nullptr;
  }

  const CacheKind& kind_;
  Setup setup_;
  bool documented_;
  std::vector<Member> members_;
  std::int64_t member_ = 0;  // chosen
  std::int64_t layer_ = 0;
};

}  // namespace

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  if (kind.contract != wrapper_kind().contract) return nullptr;
  return std::make_unique<HistoryOracle>(kind, setup);
}

}  // namespace kvo::positional
