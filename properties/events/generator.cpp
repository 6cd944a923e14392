// Random cases of contract `events`: engines that serve drawn requests, a drawn channel, and
// questions about drawn prompts. What each engine holds is looked up in its own cache, and must be
// what its announcements say (EV-4, EV-14).
#include "properties/campaign/generator.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "properties/events/ledger.hpp"
#include "properties/events/producer.hpp"
#include "reference/events/operations.hpp"

namespace kvo::events {
namespace {

// States worth reaching. Those after a blank line are of some kinds only.
BOOST_DEFINE_FIXED_ENUM_CLASS(Label, std::uint8_t, kSecondCopy, kOneOfTwoCopiesRemoved,
                              kInnerBlockRemoved, kAnswerEndsBeforeAHeldBlock, kTwoWorkersDiffer,
                              kNamespaces, kPartOfABlock, kNothingAsked, kTreeOfPages,
                              kGuaranteesBroken,

                              kLeft, kSeveralRanks, kHandedOver, kLost, kRepeated, kSwapped,
                              kRestarted, kReplayed, kReplayTooShort, kSubscribedAgain,
                              kOtherGroups, kOtherTiers, kNeverPublished)

/// What one case draws on.
struct Plan {
  bool stream = false;
  bool pages = false;  ///< engines are trees of pages
  bool spaces = false;
  bool groups = false;
  bool tiers = false;
  bool own_names = false;  ///< engines name the same content differently
  bool rogue = false;      ///< there is one more, which breaks guarantees
  std::int64_t workers = 1;
  std::int64_t ranks = 1;
  bool loses = false;
  bool repeats = false;
  bool swaps = false;
  bool restarts = false;
};

struct DrawnEngine {
  std::unique_ptr<Producer> producer = {};
  std::shared_ptr<KeyNames> names = {};
  EngineLedger ledger = {};
  std::int64_t published = 0;
  std::int64_t next = 0;  ///< to be delivered
  std::vector<Event> on_host = {};
};

constexpr Engine kRogue{9, 0};

bool is_stream_kind(Form form) {
  return form >= Form::kDynamo;
}

class EventsScript final : public ScriptGenerator<EventsScript, Ops, Label> {
  using S = EventsScript;

 public:
  EventsScript(const CaseTerms& terms, Form form, const Config& config, Plan plan)
      : ScriptGenerator(terms), form_(form), config_(config), plan_(plan) {
    auto names = std::make_shared<KeyNames>();
    constexpr Key kApart = 100000;
    for (std::int64_t worker = 0; worker < plan_.workers; ++worker)
      for (std::int64_t rank = 0; rank < plan_.ranks; ++rank) {
        if (plan_.own_names) names = std::make_shared<KeyNames>(kApart * std::ssize(engines_));
        DrawnEngine& engine = engines_[{worker, rank}];
        engine.names = names;
        begin_life({worker, rank});
      }
  }

  // Steps.
  Op serve() {
    const Engine engine = any_engine();
    announce(engine, engines_[engine].producer->serve(drawn_prompt()));
    return next_or_query();
  }
  Op serve_again() {
    const Engine engine = any_engine();
    announce(engine, engines_[engine].producer->serve(whole_blocks(known_prompt())));
    return next_or_query();
  }
  Op finish() {
    const Engine engine = any_engine();
    announce(engine, engines_[engine].producer->finish(tokens(draw().between(0, 3))));
    return next_or_query();
  }
  Op evict() {
    const Engine engine = any_engine();
    announce(engine, engines_[engine].producer->evict(known_prompt(), draw().between(0, 2)));
    return next_or_query();
  }
  Op clear() {
    const Engine engine = any_engine();
    announce(engine, engines_[engine].producer->clear());
    return next_or_query();
  }
  Op query() {
    Prompt prompt = draw().percent(85) ? known_prompt() : drawn_prompt();
    const auto length = std::ssize(prompt.tokens);
    if (draw().percent(30))
      prompt.tokens.resize(static_cast<std::size_t>(draw().between(0, length)));
    if (draw().percent(20)) add(prompt.tokens, tokens(draw().between(1, 2 * config_.block_size)));
    if (plan_.spaces && draw().percent(15)) prompt.lora = prompt.lora.empty() ? "a" : "";
    return asked(prompt);
  }
  Op deliver() {
    const auto engine = late_engine();
    if (!engine) return serve();
    return delivered(*engine);
  }
  Op repeat() {
    const Engine engine = any_engine();
    const DrawnEngine& of = engines_[engine];
    if (!plan_.repeats || of.next == 0) return deliver();
    reach(Label::kRepeated);
    const std::int64_t seq = draw().percent(50) ? of.next - 1 : draw().between(0, of.next - 1);
    return Op::of(Deliver{engine.worker, engine.rank, seq});
  }
  Op lose() {
    const auto engine = late_engine();
    if (!plan_.loses || !engine) return deliver();
    reach(Label::kLost);
    DrawnEngine& of = engines_[*engine];
    of.next += draw().between(1, of.published - of.next);
    return of.next < of.published ? delivered(*engine) : query();
  }
  Op swap() {
    const auto engine = late_engine();
    if (!plan_.swaps || !engine) return deliver();
    DrawnEngine& of = engines_[*engine];
    if (of.published - of.next < 2) return deliver();
    reach(Label::kSwapped);
    of.next += 2;
    plan(Deliver{engine->worker, engine->rank, of.next - 2});
    return Op::of(Deliver{engine->worker, engine->rank, of.next - 1});
  }
  Op restart() {
    const Engine engine = any_engine();
    if (!plan_.restarts) return deliver();
    reach(Label::kRestarted);
    engines_[engine].published = engines_[engine].next = 0;
    Op op = Op::of(Restart{engine.worker, engine.rank});
    plan(std::move(op));
    begin_life(engine);
    return next_or_query();
  }
  Op subscribe_again() {
    const Engine engine = any_engine();
    if (draw().percent(70)) return deliver();
    reach(Label::kSubscribedAgain);
    return Op::of(Resubscribe{engine.worker, engine.rank});
  }
  Op never_published() {
    const Engine engine = any_engine();
    if (draw().percent(70)) return deliver();
    return Op::of(Deliver{engine.worker, engine.rank,
                          draw().percent(50) ? -1 : engines_[engine].published + 1});
  }
  Op leave() {
    const Engine engine = any_engine();
    plan(Leave{engine.worker, engine.rank});
    begin_life(engine);
    return next_or_query();
  }
  // An engine that breaks what EV-15 asks of it, in a space of its own (EV-45 to EV-58).
  Op rogue() {
    if (!plan_.rogue) return query();
    const auto key = [&] { return 900000 + draw().between(0, 5); };
    Event event{.kind = draw().percent(60) ? EventKind::kStored : EventKind::kRemoved};
    if (draw().percent(6)) event.kind = EventKind::kCleared;
    const std::int64_t count = event.kind == EventKind::kCleared ? 0 : draw().between(0, 3);
    for (std::int64_t i = 0; i < count; ++i) event.keys.push_back(key());
    if (event.kind == EventKind::kStored) {
      const bool wire = is_stream_kind(form_);
      event.block_size = config_.block_size * (wire && draw().percent(8) ? 2 : 1);
      for (std::int64_t i = 0; i < count * *event.block_size; ++i)
        event.tokens.push_back(1000 + draw().between(0, 1));
      if (wire && draw().percent(8)) event.tokens.resize(event.tokens.size() / 2);
      if (draw().percent(60)) event.parent = key();
      if (draw().percent(8)) event.salt = "y";
      const bool names_parent =
          event.parent && std::ranges::find(event.keys, *event.parent) != event.keys.end();
      if (names_parent && form_ != Form::kRadix && !wire) event.parent.reset();
      Prompt prompt{.tokens = event.tokens, .salt = event.salt.value_or("")};
      if (draw().percent(50)) add(prompt.tokens, {1000, 1001, 1000, 1001});
      rogue_prompt_ = prompt;
    }
    reach(Label::kGuaranteesBroken);
    if (!plan_.stream) {
      plan_event(kRogue, event);
    } else {
      plan(Publish{kRogue.worker, kRogue.rank, {std::move(event)}});
      plan(Deliver{kRogue.worker, kRogue.rank, rogue_published_++});
    }
    if (draw().percent(60)) plan(asked(rogue_prompt_));
    return next_or_query();
  }
  Op size() { return Op::of(Size{}); }
  Op handover() { return Op::of(Handover{}); }
  // A query in the place of a step that the kind has not.
  template <Op (S::*step)(), bool for_stream>
  Op if_any() {
    return for_stream == plan_.stream ? (this->*step)() : query();
  }
  Op size_if() { return kind_has<Size>() ? size() : query(); }
  Op handover_if() {
    const bool is_specified = kind_has<Handover>() && !plan_.rogue;  // EV-58
    return is_specified && draw().percent(30) ? handover() : query();
  }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {18, "serve", &S::serve, true},
      {10, "the same prompt again", &S::serve_again},
      {8, "finish", &S::finish, true},
      {5, "evict", &S::evict},
      {2, "clear", &S::clear},
      {26, "query", &S::query, true},
      {26, "deliver", &S::if_any<&S::deliver, true>, true},
      {5, "deliver again", &S::if_any<&S::repeat, true>},
      {4, "lose", &S::if_any<&S::lose, true>},
      {4, "swap", &S::if_any<&S::swap, true>},
      {1, "restart", &S::if_any<&S::restart, true>},
      {1, "resubscribe", &S::if_any<&S::subscribe_again, true>},
      {1, "never published", &S::if_any<&S::never_published, true>},
      {2, "leave", &S::if_any<&S::leave, false>},
      {2, "size", &S::size_if},
      {3, "handover", &S::handover_if},
      {6, "rogue", &S::rogue},
  });

  // Orders.
  static const CacheKind& order_kind() { return kind_of(Form::kChain); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::choose_engine>("choose_engine"),
        order_word<&S::choose_other>("choose_other"),
        order_word<&S::choose_first>("choose_first"),
        order_word<&S::new_text>("new_text"),
        order_word<&S::fork>("fork"),
        order_word<&S::serve_text>("serve"),
        order_word<&S::serve_trunk>("serve_trunk"),
        order_word<&S::end_all>("end_all"),
        order_word<&S::take_key>("take_key"),
        order_word<&S::ask>("ask"),
        order_word<&S::ask_fork>("ask_fork"),
        order_word<&S::is_blocks>("blocks"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const Query& op, const Observation& seen) {
    if (seen.error) return;
    const auto& matches = seen.as<QueryReturns>().matches;
    const auto length = std::ssize(op.tokens);
    if (length == 0) reach(Label::kNothingAsked);
    if (length % config_.block_size != 0) reach(Label::kPartOfABlock);
    if (matches.size() > 1 && matches[0].blocks != matches[1].blocks)
      reach(Label::kTwoWorkersDiffer);
    if (op.lora || op.salt) reach(Label::kNamespaces);
    spend(static_cast<std::uint64_t>(length + 8));
  }
  void observe(const Handover& /*op*/, const Observation& /*seen*/) { reach(Label::kHandedOver); }
  void observe(const Leave& /*op*/, const Observation& /*seen*/) { reach(Label::kLeft); }
  void observe(const Deliver& /*op*/, const Observation& seen) {
    if (seen.failed_with(Code::kOutOfRange)) reach(Label::kNeverPublished);
    if (seen.error) return;
    const auto& done = seen.as<Delivered>();
    if (!done.asked) return;
    reach(done.replayed->empty() || done.replayed->front() > *done.asked ? Label::kReplayTooShort
                                                                         : Label::kReplayed);
  }

 private:
  template <class T>
  [[nodiscard]] bool kind_has() const {
    return std::ranges::find(kind_of(form_).operations, &op_kind<T>()) !=
           kind_of(form_).operations.end();
  }
  Engine any_engine() {
    auto at = engines_.begin();
    std::advance(at, draw().below(engines_.size()));
    return at->first;
  }
  // One with batches that were not delivered.
  std::optional<Engine> late_engine() {
    std::vector<Engine> late;
    for (const auto& [engine, of] : engines_)
      if (of.next < of.published) late.push_back(engine);
    if (late.empty()) return std::nullopt;
    return late[draw().below(late.size())];
  }
  Op delivered(const Engine& engine) {
    return Op::of(Deliver{engine.worker, engine.rank, engines_[engine].next++});
  }
  Op next_or_query() {
    if (!has_plan()) return query();
    auto op = ScriptGenerator::choose();
    return op ? *op : query();
  }

  // ---- Engines ----

  void begin_life(const Engine& engine) {
    DrawnEngine& of = engines_[engine];
    const std::int64_t units = draw().percent(70) ? draw().between(6, 14) : draw().between(20, 60);
    // Two groups take two blocks where one takes one.
    of.producer = plan_.pages    ? make_radix_producer(of.names, config_.block_size, units)
                  : plan_.groups ? make_groups_producer(of.names, config_.block_size, 2 * units)
                                 : make_blocks_producer(of.names, config_.block_size, units);
    of.ledger = EngineLedger();
    of.on_host.clear();
    if (plan_.pages) {
      reach(Label::kTreeOfPages);
      announce(engine, of.producer->clear());
    }
    if (engine.rank > 0) reach(Label::kSeveralRanks);
  }

  // Plans what an engine announces: as events, or as a batch.
  void announce(const Engine& engine, Batch batch) {
    DrawnEngine& of = engines_[engine];
    batch = with_tiers(of, std::move(batch));
    if (batch.empty()) return;
    for (Event& event : batch) {
      // It takes its parent's (EV-68).
      if (form_ == Form::kDynamo && event.parent && draw().percent(30)) event.salt.reset();
      of.ledger.apply(contents_, config_.block_size, event,
                      [&](PrefixId prefix, std::int64_t before, std::int64_t after) {
                        if (after > before && before > 0) reach(Label::kSecondCopy);
                        if (event.kind != EventKind::kRemoved) return;
                        if (after > 0) reach(Label::kOneOfTwoCopiesRemoved);
                        if (after == 0 && has_child(of.ledger, prefix))
                          reach(Label::kInnerBlockRemoved);
                      });
      note_parents(event, of.ledger);
    }
    KVO_CHECK(of.ledger.broken().empty());
    if (plan_.stream) {
      plan(Publish{engine.worker, engine.rank, std::move(batch)});
      ++of.published;
      return;
    }
    for (const Event& event : batch) plan_event(engine, event);
  }
  void plan_event(const Engine& engine, const Event& event) {
    switch (event.kind) {
      case EventKind::kStored:
        return plan(Store{engine.worker, engine.rank, event.keys, event.parent, event.tokens,
                          *event.block_size, event.lora, event.salt, event.medium, event.group,
                          event.spec});
      case EventKind::kRemoved:
        return plan(Remove{engine.worker, engine.rank, event.keys, event.medium, event.group});
      case EventKind::kCleared:
        return plan(Clear{engine.worker, engine.rank});
    }
  }
  void note_parents(const Event& event, const EngineLedger& ledger) {
    if (event.kind != EventKind::kStored) return;
    std::optional<Key> before = event.parent;
    for (const Key key : event.keys) {
      const auto prefix = ledger.prefix_of(key);
      const auto parent = before ? ledger.prefix_of(*before) : std::nullopt;
      if (prefix && parent) children_.insert({*parent, *prefix});
      before = key;
    }
  }
  [[nodiscard]] bool has_child(const EngineLedger& ledger, PrefixId prefix) const {
    for (auto at = children_.lower_bound({prefix, kStart});
         at != children_.end() && at->first == prefix; ++at)
      if (ledger.holds(at->second)) return true;
    return false;
  }

  // Blocks go to the host before they leave the device (EV-7).
  Batch with_tiers(DrawnEngine& of, Batch batch) {
    Batch all;
    for (Event& event : batch) {
      if (event.group == 1) reach(Label::kOtherGroups);
      if (event.kind == EventKind::kCleared) of.on_host.clear();
      if (plan_.tiers && event.group != 1) to_host(of, event, all);
      all.push_back(std::move(event));
    }
    return all;
  }
  void to_host(DrawnEngine& of, const Event& event, Batch& all) {
    if (event.kind == EventKind::kStored && draw().percent(40)) {
      Event copy = event;
      copy.medium = "CPU";
      reach(Label::kOtherTiers);
      of.on_host.push_back(copy);
      all.push_back(std::move(copy));
    } else if (!of.on_host.empty() && draw().percent(25)) {
      const Event gone = of.on_host.back();
      of.on_host.pop_back();
      all.push_back(
          {.kind = EventKind::kRemoved, .keys = gone.keys, .medium = "CPU", .group = gone.group});
    }
  }

  // ---- Prompts ----

  static void add(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  std::vector<std::int64_t> tokens(std::int64_t count) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(draw().between(0, 250));
    return all;
  }
  // A new prompt, mostly behind the beginning of another.
  Prompt drawn_prompt() {
    Prompt prompt;
    if (!prompts_.empty() && draw().percent(65)) {
      prompt = known_prompt();
      const std::int64_t blocks = std::ssize(prompt.tokens) / config_.block_size;
      std::int64_t cut = draw().between(0, blocks) * config_.block_size;
      if (draw().percent(10)) cut = std::ssize(prompt.tokens);
      prompt.tokens.resize(static_cast<std::size_t>(cut));
    }
    if (plan_.spaces && prompt.tokens.empty() && draw().percent(50)) {
      if (draw().percent(60)) prompt.lora = draw().percent(50) ? "a" : "b";
      if (form_ != Form::kLlmd && draw().percent(40)) prompt.salt = "x";
    }
    const std::int64_t most = is_large() ? 20 : 5;
    std::int64_t more = draw().between(1, most) * config_.block_size;
    if (draw().percent(30)) more += draw().between(0, config_.block_size - 1);
    add(prompt.tokens, tokens(more));
    constexpr std::size_t kMostTokens = 64;
    const auto limit = kMostTokens * static_cast<std::size_t>(config_.block_size);
    if (prompt.tokens.size() > limit) prompt.tokens.resize(limit);
    constexpr std::size_t kMostPrompts = 24;
    if (prompts_.size() < kMostPrompts)
      prompts_.push_back(prompt);
    else
      prompts_[draw().below(kMostPrompts)] = prompt;
    return prompt;
  }
  Prompt known_prompt() {
    if (prompts_.empty()) return drawn_prompt();
    return prompts_[draw().below(prompts_.size())];
  }
  // All of its last token's block is computed again: a second copy on vLLM (EV-14).
  Prompt whole_blocks(Prompt prompt) const {
    const auto size = static_cast<std::size_t>(config_.block_size);
    prompt.tokens.resize(prompt.tokens.size() / size * size);
    return prompt;
  }

  Op asked(const Prompt& prompt) {
    const auto prefixes =
        contents_.prefixes(prompt.tokens, config_.block_size, {prompt.lora, prompt.salt});
    for (auto& [engine, of] : engines_) {
      const std::int64_t held = of.producer->held(prompt);
      KVO_CHECK(held == of.ledger.held(prefixes));
      for (std::int64_t at = held + 1; at < std::ssize(prefixes); ++at)
        if (of.ledger.holds(prefixes[static_cast<std::size_t>(at)]))
          reach(Label::kAnswerEndsBeforeAHeldBlock);
    }
    Query op{.tokens = prompt.tokens};
    if (!prompt.lora.empty()) op.lora = prompt.lora;
    if (!prompt.salt.empty()) op.salt = prompt.salt;
    return Op::of(std::move(op));
  }

  // ---- Words of orders ----

  void choose_engine() { first_ = chosen_ = any_engine(); }
  void choose_first() { chosen_ = first_; }
  bool choose_other() {
    if (engines_.size() < 2) return false;
    const Engine before = chosen_;
    while (chosen_ == before) chosen_ = any_engine();
    return true;
  }
  void new_text(std::int64_t blocks) {
    text_ = {.tokens = tokens(blocks * config_.block_size)};
    fork_ = text_;
  }
  // The text and its fork part behind what they are now.
  void fork(std::int64_t blocks) {
    trunk_ = text_;
    fork_ = text_;
    add(text_.tokens, tokens(blocks * config_.block_size));
    add(fork_.tokens, tokens(blocks * config_.block_size));
  }
  Op served(const Prompt& prompt) {
    announce(chosen_, engines_[chosen_].producer->serve(prompt));
    return delivered_or_query();
  }
  Op delivered_or_query() {
    if (plan_.stream)
      while (engines_[chosen_].next < engines_[chosen_].published) plan(delivered(chosen_));
    return next_or_query();
  }
  Op serve_text(std::int64_t forked) { return served(forked != 0 ? fork_ : text_); }
  Op serve_trunk() { return served(trunk_); }
  Op end_all() {
    for (int i = 0; i < 3; ++i) announce(chosen_, engines_[chosen_].producer->finish({}));
    return delivered_or_query();
  }
  // One copy of a block of the text loses its key.
  Op take_key(std::int64_t block) {
    announce(chosen_, engines_[chosen_].producer->evict(text_, block));
    return delivered_or_query();
  }
  Op ask() { return asked(text_); }
  Op ask_fork() { return asked(fork_); }
  [[nodiscard]] bool is_blocks() const { return !plan_.pages; }

  Form form_;
  Config config_;
  Plan plan_;
  Contents contents_;
  std::map<Engine, DrawnEngine> engines_;
  std::vector<Prompt> prompts_;
  std::set<std::pair<PrefixId, PrefixId>> children_;
  Engine chosen_;
  Engine first_;
  Prompt text_;
  Prompt fork_;
  Prompt trunk_;
  Prompt rogue_prompt_;
  std::int64_t rogue_published_ = 0;
};

Config draw_config(Draw& draw, Form form, Plan& plan) {
  Config config{.block_size = draw.one_of<std::int64_t>({1, 2, 2, 4, 4, 16})};
  plan.stream = form == Form::kDynamo || (is_stream_kind(form) && draw.percent(40));
  plan.pages = draw.percent(35);
  plan.spaces = draw.percent(30);
  plan.workers = draw.percent(15) ? 1 : draw.between(2, 4);
  plan.ranks = draw.percent(30) ? 2 : 1;
  if (plan.stream) {
    const bool faults = draw.percent(70);
    plan.loses = faults && draw.percent(50);
    plan.repeats = faults && draw.percent(50);
    plan.swaps = faults && draw.percent(50);
    plan.restarts = faults && draw.percent(30);
    if (draw.percent(50)) config.buffer = draw.between(1, 6);
    if (draw.percent(25)) config.replay = false;
  }
  plan.rogue = form != Form::kCrtc && draw.percent(25);  // EV-58
  plan.groups = is_stream_kind(form) && !plan.pages && draw.percent(25);
  plan.tiers =
      (form == Form::kDynamo && draw.percent(35)) || (form == Form::kInfera && draw.percent(15));
  if (form == Form::kPositional) {
    config.jump = draw.one_of<std::int64_t>({1, 2, 3, 4, 8, 32});
    if (draw.percent(40)) config.search = Search::kBinary;
    if (draw.percent(5)) config.hashes = Hashes::kEngine;
  }
  // Keys that are hashes of contents are the same for all.
  if (form != Form::kPositional || config.hashes == Hashes::kEngine)
    plan.own_names = draw.percent(6);
  if (form == Form::kLlmd) {
    if (draw.percent(30)) {
      config.identity = Identity::kEndpoint;
      config.asks = draw.percent(50);
    }
    if (draw.percent(20)) config.extra_keys = true;
    if (draw.percent(8)) config.pods_per_key = draw.between(1, 3);
    if (draw.percent(8)) config.size = draw.between(2, 12);
    if (draw.percent(10)) config.wire = Wire::kArray;
    if (draw.percent(10)) config.adapter = Dialect::kSglang;
  }
  if (form == Form::kInfera) {
    if (draw.percent(30)) config.multiplexed = true;
    if (draw.percent(6)) config.wire = Wire::kArray;
    if (draw.percent(10)) {
      config.engine = Dialect::kSglang;
      if (draw.percent(80)) config.wire = Wire::kArray;
    }
  }
  return config;
}

template <Form form>
GeneratedCase make_case(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  Plan plan;
  const Config config = draw_config(draw, form, plan);
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<EventsScript>(terms, form, config, plan)};
}

template <Form form>
Generator generator() {
  using L = Label;
  Generator made{.kind = &kind_of(form), .make = make_case<form>};
  std::vector<Label> labels{L::kSecondCopy,        L::kOneOfTwoCopiesRemoved,
                            L::kInnerBlockRemoved, L::kAnswerEndsBeforeAHeldBlock,
                            L::kTwoWorkersDiffer,  L::kNamespaces,
                            L::kPartOfABlock,      L::kNothingAsked,
                            L::kTreeOfPages,       L::kSeveralRanks};
  const auto add = [&](bool has, std::initializer_list<Label> some) {
    if (has) labels.insert(labels.end(), some);
  };
  add(form != Form::kDynamo, {L::kLeft});
  add(form != Form::kCrtc, {L::kGuaranteesBroken});
  add(form == Form::kRadix || form == Form::kCrtc || form == Form::kPositional, {L::kHandedOver});
  add(is_stream_kind(form), {L::kLost, L::kRepeated, L::kSwapped, L::kRestarted,
                             L::kSubscribedAgain, L::kOtherGroups, L::kNeverPublished});
  add(form == Form::kDynamo, {L::kReplayed, L::kReplayTooShort});
  add(form == Form::kDynamo || form == Form::kInfera, {L::kOtherTiers});
  for (const Label label : labels) {
    made.original_labels.push_back(label_text(label));
    made.documented_labels.push_back(label_text(label));
  }
  return with_orders<EventsScript>(std::move(made));
}

}  // namespace

std::vector<Generator> generators() {
  return {generator<Form::kChain>(),      generator<Form::kRadix>(),  generator<Form::kCrtc>(),
          generator<Form::kPositional>(), generator<Form::kDynamo>(), generator<Form::kLlmd>(),
          generator<Form::kInfera>()};
}

}  // namespace kvo::events
