#include "properties/positional_history.hpp"

#include <map>
#include <utility>
#include <vector>

#include "reference/positional/shift.hpp"

namespace kvo::positional {
namespace {

std::int32_t number(const boost::json::object& config, std::string_view name) {
  const boost::json::value* found = config.if_contains(name);
  std::int32_t read = 0;
  JsonFault fault;
  return found != nullptr && read_json(*found, read, fault) ? read : 0;
}

MemberSetup member_setup(const boost::json::object& config) {
  MemberSetup member{.window = number(config, "window"),
                     .memory = number(config, "memory"),
                     .chunk = number(config, "chunk")};
  const boost::json::value* shift = config.if_contains("shift");
  ShiftConfig read;
  JsonFault fault;
  if (shift != nullptr && !shift->is_null() && read_json(*shift, read, fault))
    member.shift = make_shift(read);
  return member;
}

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
  [[nodiscard]] const RowCounts& counts() const { return counts_; }

 private:
  bool reserve_ = false;
  std::map<std::int64_t, std::optional<Put>> layers_;  // none: reserve puts only
  RowCounts counts_;
};

struct Member {
  bool encoder = false;
  bool permuted_v = false;
  MemberTokens tokens;
  EncoderLayers layers = {};
};

class History final : public CountingWatch {
 public:
  History(const CacheKind& kind, const Setup& setup)
      : documented_(setup.profile == Profile::kDocumented) {
    bool permuted = false;
    if (const auto* backend = setup.config.if_contains("backend");
        backend != nullptr && backend->is_object())
      if (const auto* found = backend->get_object().if_contains("permuted_v"))
        permuted = found->is_bool() && found->get_bool();
    const auto add = [&](const boost::json::object& config, bool encoder) {
      members_.push_back({.encoder = encoder,
                          .permuted_v = permuted,
                          .tokens = MemberTokens(member_setup(config), documented_)});
    };
    if (&kind != &wrapper_kind()) {
      add(setup.config, &kind == &kind_of(Flavour::kEncoder));
      return;
    }
    const auto* caches = setup.config.if_contains("caches");
    if (caches == nullptr || !caches->is_array()) return;
    for (const boost::json::value& cache : caches->get_array())
      if (cache.is_object()) {
        const boost::json::value* flavour = cache.get_object().if_contains("cache");
        add(cache.get_object(), flavour != nullptr && *flavour == boost::json::value("encoder"));
      }
  }

  [[nodiscard]] std::optional<std::string> saw(const Op& op, const Observation& seen) override {
    if (seen.error) {
      note_error(op, *seen.error);
      return std::nullopt;
    }
    note_pass(op);
    note_sequences(op);
    const auto member = static_cast<std::size_t>(member_);
    if (member_ < 0 || member >= members_.size()) return std::nullopt;
    Member& chosen = members_[member];
    if (const auto* put = op.as<Put>())
      chosen.encoder ? chosen.layers.put(layer_, *put) : chosen.tokens.put(layer_, *put);
    if (const auto* call = op.as<SetCausal>()) chosen.tokens.set_causal(*call);
    if (op.as<Get>() == nullptr) return std::nullopt;
    const auto& shown = seen.as<Get::Returns>();
    return chosen.encoder ? chosen.layers.shown(layer_, shown, chosen.permuted_v)
                          : chosen.tokens.shown(layer_, shown, chosen.permuted_v);
  }

  [[nodiscard]] RowCounts counts() const override {
    RowCounts sum;
    for (const Member& member : members_) {
      const RowCounts& own = member.encoder ? member.layers.counts() : member.tokens.counts();
      sum.judged += own.judged;
      sum.skipped += own.skipped;
    }
    return sum;
  }

 private:
  void note_error(const Op& op, const Error& error) {
    const bool changes = error.code == Code::kFull || error.code == Code::kNotSupported ||
                         error.code == Code::kOther;
    if (documented_ || !changes) return;
    for (Member& member : members_) {
      if (const auto* pass = op.as<StartForward>())
        member.tokens.failed(*pass, members_.size() > 1);
      if (const auto* remove = op.as<Remove>()) member.tokens.remove_failed(*remove);
    }
  }

  void note_pass(const Op& op) {
    if (const auto* layer = op.as<SetLayer>()) layer_ = layer->layer;
    if (const auto* type = op.as<SetLayerType>()) member_ = type->type;
    const auto* config = op.as<SetConfig>();
    const auto* init = op.as<Init>();
    const auto* pass = op.as<StartForward>();
    if (pass != nullptr) member_ = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      const auto own = static_cast<std::int64_t>(i);
      if (config != nullptr && config->target.value_or(own) == own)
        member.permuted_v = config->permuted_v;
      if (init != nullptr) member.tokens.init(*init);
      if (pass == nullptr) continue;
      member.tokens.started(*pass);
      member.layers.started(pass->reserve);
    }
  }

  void note_sequences(const Op& op) {
    for (Member& member : members_) {
      if (const auto* copy = op.as<CopyPrefix>()) member.tokens.copy_prefix(*copy);
      if (const auto* remove = op.as<Remove>()) member.tokens.removed(*remove);
    }
  }

  bool documented_;
  std::vector<Member> members_;
  std::int64_t member_ = 0;  // chosen
  std::int64_t layer_ = 0;
};

}  // namespace

std::unique_ptr<CountingWatch> counting_watch(const CacheKind& kind, const Setup& setup) {
  if (kind.contract != wrapper_kind().contract) return nullptr;
  return std::make_unique<History>(kind, setup);
}

std::unique_ptr<Watch> watch_history(const CacheKind& kind, const Setup& setup) {
  return counting_watch(kind, setup);
}

}  // namespace kvo::positional
