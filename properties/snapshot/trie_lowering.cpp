// Requests as the sessions of snapshot.trie, one after another: its layers hold one sequence.
//
// Policy. A request's prompt has tokens by its block ids (properties/replay/prompt_tokens.hpp),
// so that it begins like earlier ones where the trace says so. begin looks it up; what remains is
// fed in the schedule's chunks, which also end where a snapshot is asked for, and before the last
// token of the prompt, as the runner does; then every decoded token is told and fed. There are no
// drafts: a trie takes nothing back. Every eighth session keeps its prompt for a user. A cancelled
// request is closed after the first chunk behind what was restored. The limit is pool_percent of
// what all requests of the case would take without one. After a begin that brought something back
// all layers are looked at, and where the rules say which rows must be there, every look is judged
// by them, too: for `kv` always, but in profile original only until the first eviction (MR-74).
// `mixed` also has a ring of half a mean prompt and a recurrent state, which can go back to where
// they have a snapshot only. Every eighth session asks for its prompt before it begins; the case
// ends with the whole tree.

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "properties/replay/engine.hpp"
#include "properties/replay/prompt_tokens.hpp"
#include "properties/snapshot/lowering.hpp"
#include "properties/snapshot/model_rows.hpp"
#include "reference/contract/describe/difference.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {
namespace {

using replay::Lowering;
using replay::LoweringInput;
using replay::PromptTokens;
using replay::Step;
using replay::Turn;
using traces::Request;

constexpr std::string_view kRestored = "beginning of a prompt restored";
constexpr std::string_view kLost = "known beginning not restored in full";
constexpr std::string_view kAsked = "snapshot taken where it was asked for";
constexpr std::string_view kUser = "prompt kept for a user";
constexpr std::string_view kCancelled = "session closed amid its prompt";
constexpr std::string_view kEvicted = "node evicted";
constexpr std::string_view kPagedIn = "layer restored from a snapshot";

TrieConfig config_of(const LoweringInput& input, bool mixed) {
  constexpr std::int64_t kPercent = 100;
  PromptTokens prompts(input.requests, input.schedule.scale);
  std::int64_t tokens = 0;
  for (const Request& request : input.requests) {
    tokens += input.whole(request) - prompts.known(request);
    prompts.learn(request, input.prompt(request));
  }
  TrieConfig config{.layers = {}};
  std::int64_t bytes = tokens * kRowBytes;
  if (mixed) {
    const std::int64_t window = ring_window(input);
    config.layers = {"kv", "rotating:" + std::to_string(window), "recurrent"};
    bytes += std::ssize(input.requests) * (window * kRowBytes + kStateBytes);
  } else {
    config.layers.resize(static_cast<std::size_t>(input.policy.num_layers), "kv");
    bytes *= input.policy.num_layers;
  }
  config.limit_bytes = bytes / kPercent * input.policy.pool_percent;
  return config;
}

LayerState layer_state(std::int64_t held, std::pair<Tensor, Tensor> state) {
  return {held, std::vector<Nullable<Tensor>>{std::move(state.first), std::move(state.second)}};
}

// What a layer holds once the first tokens of a sequence were fed to it (MR-68).
LayerState rows_of(const Tokens& sequence, std::int64_t held) {
  const std::vector<float> keys(sequence.begin(), sequence.begin() + held);
  std::vector<float> values(keys.size());
  std::iota(values.begin(), values.end(), 1.0F);
  const Shape shape{1, 1, held, 1};
  return layer_state(held, {tensor_of(shape, keys), tensor_of(shape, values)});
}

// The same of a recurrent layer.
LayerState state_of(const Tokens& sequence, std::int64_t held) {
  return layer_state(held, state_after(std::span(sequence).first(static_cast<std::size_t>(held))));
}

class TrieStream final : public replay::Engine {
 public:
  TrieStream(const LoweringInput& input, bool mixed)
      : Engine(input.with_slots(1).without_drafts()),
        config_(config_of(input, mixed)),
        mixed_(mixed),
        documented_(input.profile == Profile::kDocumented),
        left_(std::ssize(input.requests)),
        prompts_(input.requests, input.schedule.scale) {
    emit(NewTrie{});
  }

  [[nodiscard]] std::vector<Figure> figures() const override {
    const std::string name = mixed_ ? "mixed: " : "kv: ";
    const std::string asked = name + "prompt tokens";
    const std::string begun = name + "sessions";
    return {
        {begun, sessions_},
        {name + "sessions with a beginning restored", restored_sessions_, Fold::kSum, begun},
        {name + "sessions with another conversation's rows", foreign_, Fold::kSum, begun},
        {asked, prompt_tokens_},
        {name + "tokens restored", restored_tokens_, Fold::kSum, asked},
        {name + "tokens restored at best", known_tokens_, Fold::kSum, asked},
        {name + "restores of a layer", usage_.page_ins},
        {name + "evictions", usage_.evictions},
        {name + "limit of paged-out bytes", config_.limit_bytes, Fold::kMost},
        {name + "paged-out bytes at most", most_bytes_, Fold::kMost},
        {name + "paged-out bytes at the end", usage_.paged_out_bytes, Fold::kMost},
    };
  }

 protected:
  // A begin alone: what it restores decides what is fed.
  void lower(Step& step) override {
    if (!step.begins.empty()) {
      slot_ = step.begins.front();
      step.begins.pop_front();
      return begin();
    }
    const Turn turn = step.turns.front();
    step.turns.pop_front();
    if (turn.append > 0) append(turn.append);
    if (turn.read) look();
    if (turn.end) end(!turn.read);
  }

 private:
  static constexpr std::int64_t kSpecialEvery = 8;  ///< sessions

  // ---- Results ----

  void begun(std::int64_t remaining, std::int64_t asked) {
    fed_ = begun_ = std::clamp<std::int64_t>(prompt_ - remaining, 0, prompt_);
    asked_ = asked;
    restored_tokens_ += fed_;
    if (fed_ < known_) reach(kLost);
    if (fed_ > 0) {
      reach(kRestored);
      ++restored_sessions_;
      if (fed_ < prompt_) schedule().skip(slot_, fed_);
      look(true);
    }
    show_usage();
  }
  // Another conversation's rows, in what begin restored?
  void compare(const std::vector<Nullable<LayerState>>& layers) {
    const auto foreign = [&](std::size_t layer, const LayerState& want) {
      return layer >= layers.size() ||
             first_difference(Nullable<LayerState>(want), layers[layer]).has_value();
    };
    if (foreign(0, rows_of(sequence_, fed_)) ||
        (mixed_ && foreign(layers.size() - 1, state_of(sequence_, fed_))))
      ++foreign_;
  }
  void show_usage() {
    emit_then(ShowUsage{}, [this](const Observation& seen) {
      if (seen.error) return;
      usage_ = seen.as<ShowUsage::Returns>();
      most_bytes_ = std::max(most_bytes_, usage_.paged_out_bytes);
      if (usage_.evictions > 0) reach(kEvicted);
      if (usage_.page_ins > 0) reach(kPagedIn);
    });
  }

  // ---- One session ----

  void begin() {
    request_ = &schedule().running(slot_);
    sequence_ = prompts_.prompt(*request_);
    prompt_ = std::ssize(sequence_);
    fed_ = begun_ = asked_ = 0;
    known_ = std::max<std::int64_t>(0, std::min(prompts_.known(*request_), prompt_ - 1));
    known_tokens_ += known_;
    prompt_tokens_ += prompt_;
    ++sessions_;
    sure_ = !mixed_ && (documented_ || usage_.evictions == 0);
    if (special()) emit(Find{sequence_});
    emit_then(Begin{sequence_}, [this](const Observation& seen) {
      if (seen.error) return;
      const auto& result = seen.as<Begin::Returns>();
      begun(std::ssize(result.remaining), result.snapshot_offset);
    });
  }

  [[nodiscard]] bool special() const { return sessions_ % kSpecialEvery == 0; }

  void append(std::int64_t tokens) {
    const std::int64_t end = fed_ + tokens;
    while (fed_ < std::min(end, prompt_)) {
      feed(next_stop(std::min(end, prompt_)));
      if (fed_ == asked_) keep(false);
      if (fed_ == prompt_ && special()) keep(true);
    }
    while (fed_ < end) {
      const Tokens token = prompts_.fresh(1);
      sequence_.push_back(token.front());
      emit(Output{token});
      feed(fed_ + 1);
    }
  }
  // Where a chunk that could go to `end` ends.
  [[nodiscard]] std::int64_t next_stop(std::int64_t end) const {
    for (const std::int64_t stop : {asked_, prompt_ - 1})
      if (stop > fed_) end = std::min(end, stop);
    return end;
  }
  void feed(std::int64_t end) {
    emit(Feed{Tokens(sequence_.begin() + fed_, sequence_.begin() + end)},
         OffsetsOnly{Offsets(config_.layers.size(), Nullable(end))});
    fed_ = end;
  }
  void keep(bool user) {
    emit_then(Keep{user}, [this, user](const Observation& seen) {
      if (!seen.error) reach(user ? kUser : kAsked);
    });
    show_usage();
  }

  void look(bool after_begin = false) {
    const auto then = [this, after_begin](const Observation& seen) {
      if (after_begin && !seen.error) compare(seen.as<LayerStates::Returns>().layers);
    };
    if (!sure_ || fed_ == 0) return emit_then(LayerStates{}, then);
    emit_then(LayerStates{}, then,
              {std::vector<Nullable<LayerState>>(config_.layers.size(), rows_of(sequence_, fed_))});
  }

  // What a trie without a limit would know does not depend on what this one restored.
  void end(bool cancelled) {
    const std::int64_t chunk = schedule().policy().chunk_tokens;
    if (cancelled && fed_ == begun_) append(std::min(chunk, prompt_ - fed_));
    prompts_.learn(*request_, cancelled ? std::min(prompt_, known_ + chunk) : prompt_);
    emit_then(CloseSession{}, [this](const Observation& seen) {
      if (!seen.error && fed_ < prompt_) reach(kCancelled);
    });
    if (--left_ > 0) return;
    show_usage();
    emit(Tree{});
  }

  TrieConfig config_;
  bool mixed_;
  bool documented_;
  std::int64_t left_;  ///< requests that have not ended
  PromptTokens prompts_;

  std::int64_t slot_ = 0;
  const Request* request_ = nullptr;
  Tokens sequence_ = {};     ///< of the session: its prompt and what was decoded
  std::int64_t prompt_ = 0;  ///< tokens
  std::int64_t fed_ = 0;     ///< tokens of the sequence that the layers hold
  std::int64_t begun_ = 0;   ///< of these what begin restored
  std::int64_t asked_ = 0;   ///< where a snapshot is asked for; 0: nowhere
  std::int64_t known_ = 0;   ///< tokens that a trie without a limit would restore
  bool sure_ = false;        ///< the rules say what the layers hold

  ShowUsage::Returns usage_ = {};
  std::int64_t most_bytes_ = 0;
  std::int64_t sessions_ = 0;
  std::int64_t restored_sessions_ = 0;
  std::int64_t foreign_ = 0;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t restored_tokens_ = 0;
  std::int64_t known_tokens_ = 0;
};

Lowering lowering(std::string_view name, Setup (*setup)(const LoweringInput& input),
                  std::unique_ptr<OpStream> (*lower)(const LoweringInput& input)) {
  return {.kind = &trie_kind(),
          .setup = setup,
          .lower = lower,
          .cost = replay::cost_by(6, 3e4),
          .name = name,
          .windows = 16};
}

}  // namespace

std::vector<Lowering> trie_lowerings() {
  using replay::lower_by;
  using replay::setup_by;
  return {lowering("kv", setup_by<config_of, false>, lower_by<TrieStream, false>),
          lowering("mixed", setup_by<config_of, true>, lower_by<TrieStream, true>)};
}

}  // namespace kvo::snapshot
