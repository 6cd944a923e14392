// Random scripts for snapshot.trie: sessions as an engine drives them.
#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <boost/describe/enum.hpp>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {

TrieConfig some_trie(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  TrieConfig config;
  for (std::int64_t layers = draw.between(1, 3); layers > 0; --layers) {
    const std::uint64_t kind = draw.below(10);
    if (kind < 5)
      config.layers.emplace_back("kv");
    else if (kind < 7)
      config.layers.push_back("rotating:" + std::to_string(draw.size(1, 9)));
    else if (kind < 9)
      config.layers.emplace_back("recurrent");
    else
      config.layers.emplace_back("none");
  }
  if (draw.percent(60))
    config.limit_bytes =
        draw.percent(10) ? draw.one_of<std::int64_t>({0, 1, 7}) : draw.between(20, 800);
  if (terms.scale == Scale::kLong) config.layers.resize(1);
  Draw apart = storage_draw(terms.seed);
  if (apart.percent(25)) set_storage(apart, config.rows, draw_narrow_storage(apart));
  return config;
}

namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(TrieLabel, std::uint8_t, kPrefixFound, kWholeInputsFound,
                              kSnapshotAskedFor, kPagedOut, kUserMarked, kCancelled, kNotClosed,
                              kLimitHit, kRestorePointLost, kEmptyInputs, kBeforeAnySession,
                              kLimitBelowASnapshot, kAskedAfterEviction, k65Nodes,
                              kInputsOf1024Tokens, kSessionsBeyond16384, kRowsOfCodes,
                              kEightBitFloats)

class TrieScript final : public ScriptGenerator<TrieScript, TrieOps, TrieLabel> {
  using S = TrieScript;
  using Label = TrieLabel;

 public:
  TrieScript(std::uint64_t seed, std::int64_t limit, const StorageFormat& storage, Scale scale)
      : ScriptGenerator(seed),
        storage_(storage),
        scale_(scale),
        limit_(limit),
        many_(scale_ != Scale::kSmall ? scale_ == Scale::kLong || draw().percent(40)
                                      : draw().percent(3)),
        alphabet_(scale_ == Scale::kLong ? 5
                  : many_                ? kManyTokens
                                         : draw().between(2, 5)) {
    if (scale_ == Scale::kLong) plan_often(0);
  }

  std::optional<Op> choose() override {
    if (!begun_) return Op::of(NewTrie{});
    if (scale_ == Scale::kLong && !has_plan() && !draw().percent(1)) return session();
    return ScriptGenerator::choose();
  }

  // Steps.
  Op session() {
    cancelled_ = draw().percent(10);
    left_open_ = !cancelled_ && draw().percent(5);
    inputs_ = next_inputs_.empty() ? some_tokens() : next_inputs_.back();
    if (!next_inputs_.empty()) next_inputs_.pop_back();
    return Op::of(Begin{inputs_});
  }
  // One sequence goes on, another one does, and the first again.
  Op back_and_forth() {
    if (known_.size() > 1) {
      const Tokens& one = known_[draw().below(known_.size())];
      next_inputs_ = {one, known_[draw().below(known_.size())], one};
      for (Tokens& inputs : next_inputs_) inputs.push_back(one_token());
    }
    return session();
  }
  // All that may be evicted is, or the part that was used first, and then it is asked for.
  Op evict_and_ask() {
    if (many_) return session();
    const Tokens asked = some_tokens();
    const std::int64_t limit = limit_;
    plan(Enforce{});
    plan(Find{asked});
    plan(Tree{});
    plan(SetLimit{limit});
    next_inputs_ = {asked};
    return Op::of(SetLimit{draw().percent(50) ? 0 : draw().between(0, bytes_)});
  }
  // Sessions of a token each, and room for some of them.
  Op short_sessions() {
    if (many_) return session();
    short_ = 3;
    for (int i = 0; i < short_; ++i) next_inputs_.push_back({one_token()});
    return Op::of(SetLimit{draw().between(8, 60)});
  }
  Op find() { return Op::of(Find{some_tokens()}); }
  Op tree() { return Op::of(Tree{}); }
  Op state() { return Op::of(LayerStates{}); }
  Op keep() { return Op::of(Keep{draw().percent(50)}); }
  Op set_limit() {
    if (many_) return session();
    return Op::of(SetLimit{draw().percent(20) ? 0 : draw().between(0, 900)});
  }
  Op enforce() { return Op::of(Enforce{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {20, "session", &S::session, true},
      {2, "back and forth", &S::back_and_forth},
      {1, "evict and ask", &S::evict_and_ask},
      {1, "short sessions", &S::short_sessions},
      {4, "find", &S::find},
      {8, "tree", &S::tree, true},
      {4, "state", &S::state, true},
      {1, "snapshot", &S::keep},
      {2, "limit", &S::set_limit},
      {2, "enforce", &S::enforce},
  });

  static const CacheKind& order_kind() { return trie_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::draw_tokens>("draw_tokens"),
        order_word<&S::new_tokens>("new_tokens"),
        order_word<&S::extend>("extend"),
        order_word<&S::remember>("remember"),
        order_word<&S::begin_of>("begin_of"),
        order_word<&S::begin_with>("begin_with"),
        order_word<&S::begin_and_one>("begin_and_one"),
        order_word<&S::begin_new>("begin_new"),
        order_word<&S::begin_one_token>("begin_one_token"),
        order_word<&S::feed_new>("feed_new"),
        order_word<&S::output_new>("output_new"),
        order_word<&S::leave_open>("leave_open"),
        order_word<&S::ignore_asked>("ignore_asked"),
        order_word<&S::shorten>("shorten"),
        order_word<&S::find_tokens>("find_tokens"),
        order_word<&S::bytes_>("bytes_held"),
        order_word<&S::plenty>("plenty"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const NewTrie& /*op*/, const Observation& seen) { begun_ = begun_ || !seen.error; }
  void observe(const Begin& begin, const Observation& seen) {
    if (begin.inputs.empty()) reach(Label::kEmptyInputs);
    if (seen.error) return;
    if (++sessions_ > 16'384) reach(Label::kSessionsBeyond16384);
    if (begin.inputs.size() >= 1'024) reach(Label::kInputsOf1024Tokens);
    tokens_ += std::ssize(begin.inputs);
    pay();
    const auto& begun = seen.as<Begin::Returns>();
    const auto held = static_cast<std::int64_t>(begin.inputs.size() - begun.remaining.size());
    if (held > 0) reach(Label::kPrefixFound);
    if (held > 0 && begun.remaining.size() == 1) reach(Label::kWholeInputsFound);
    if (begun.snapshot_offset > 0) reach(Label::kSnapshotAskedFor);
    if (begun.snapshot_offset > 0 && held == 0) reach(Label::kRestorePointLost);
    plan_session(begun, held);
  }
  void observe(const Tree& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& tree = seen.as<Tree::Returns>();
    pay();
    if (tree.nodes.size() > 64) reach(Label::k65Nodes);
    if (std::ranges::any_of(tree.nodes, &TreeNode::user)) reach(Label::kUserMarked);
    bytes_ = tree.paged_out_bytes;
    if (tree.paged_out_bytes > 0) reach(Label::kPagedOut);
    if (tree.paged_out_bytes > 0 && in_groups(storage_.type)) reach(Label::kRowsOfCodes);
    if (tree.paged_out_bytes > 0 && dtype_bytes(dtype_of(storage_.type)) == 1)
      reach(Label::kEightBitFloats);
    if (tree.paged_out_bytes > limit_ / 2 && limit_ < kSmall) reach(Label::kLimitHit);
    if (limit_ < kOneSnapshot && tree.nodes.size() > 2) reach(Label::kLimitBelowASnapshot);
    if (tree.nodes.empty()) reach(Label::kBeforeAnySession);
  }
  void observe(const SetLimit& op, const Observation& /*seen*/) { limit_ = op.bytes; }
  void observe(const Enforce& /*op*/, const Observation& seen) {
    enforced_ = !seen.error && limit_ == 0;
    plan(ShowUsage{});
  }
  void observe(const Find& /*op*/, const Observation& seen) {
    if (std::exchange(enforced_, false) && !seen.error && seen.as<Find::Returns>().matched > 0)
      reach(Label::kAskedAfterEviction);
  }
  void observe(const CloseSession& /*op*/, const Observation& /*seen*/) {
    if (cancelled_) reach(Label::kCancelled);
  }
  void observe(const Feed& /*op*/, const Observation& /*seen*/) {
    if (left_open_) reach(Label::kNotClosed);
  }

 private:
  static constexpr std::int64_t kSmall = 1 << 20;
  static constexpr std::int64_t kOneSnapshot = 8;  // of one token
  static constexpr std::int64_t kManyTokens = 1000;
  static constexpr std::int64_t kPlenty = 1 << 20;  // bytes that nothing needs

  // Prefill in chunks that end where a snapshot is asked for, all but the last token; then tokens
  // one by one, each evaluated before it is recorded.
  void plan_session(const Begin::Returns& begun, std::int64_t held) {
    const Tokens& rest = begun.remaining;
    const auto prefill = static_cast<std::int64_t>(rest.size()) - 1;
    std::int64_t at = 0;
    const bool keeps = !std::exchange(ignores_next_, false) && begun.snapshot_offset > 0;
    const std::int64_t most = prefill > 64 ? prefill : 12;
    while (at < prefill) {
      std::int64_t end = std::min(prefill, at + draw().size(1, most));
      const std::int64_t asked = begun.snapshot_offset - held;
      if (asked > at && asked < end) end = asked;
      plan(Feed{Tokens(rest.begin() + at, rest.begin() + end)});
      at = end;
      if (keeps && at == asked) plan(Keep{false});
      if (draw().percent(8)) plan(Keep{true});
      if (cancelled_ && draw().percent(40)) return plan(CloseSession{});
    }
    if (!rest.empty()) plan(Feed{Tokens{rest.back()}});
    Tokens whole = inputs_;
    const bool is_short = many_ || std::exchange(short_, std::max(short_ - 1, 0)) > 0;
    for (std::int64_t more = is_short ? 0 : draw().size(0, 6); more > 0; --more) {
      const Tokens token{one_token()};
      plan(Output{token});
      plan(Feed{token});
      whole.push_back(token.front());
      if (draw().percent(5)) plan(Keep{true});
    }
    if (scale_ != Scale::kLong || known_.size() < 8) known_.push_back(std::move(whole));
    if (left_open_) return;
    plan(CloseSession{});
    if (scale_ == Scale::kLong && !draw().percent(1)) return;
    if (!draw().percent(40)) return;
    plan(Tree{});
    plan(ShowUsage{});
  }
  // A session for an order: the rest of it comes of itself.
  Op begin(Tokens inputs) {
    cancelled_ = false;
    left_open_ = std::exchange(left_open_next_, false);
    inputs_ = std::move(inputs);
    return Op::of(Begin{inputs_});
  }
  Tokens and_one(Tokens tokens) {
    tokens.push_back(one_token());
    return tokens;
  }
  // Tokens that no sequence has had.
  std::int32_t new_token() { return static_cast<std::int32_t>(kManyTokens + ++new_tokens_); }
  Tokens with(Tokens tokens, int more) {
    for (; more > 0; --more) tokens.push_back(new_token());
    return tokens;
  }
  // Sequences of an order, by number.
  Tokens& numbered(std::int64_t number) { return sequences_[static_cast<std::size_t>(number)]; }
  void draw_tokens(std::int64_t number) { numbered(number) = some_tokens(); }
  void new_tokens(std::int64_t number, std::int64_t count) {
    numbered(number) = with({}, static_cast<int>(count));
  }
  // A sequence becomes another one and new tokens.
  void extend(std::int64_t number, std::int64_t from, std::int64_t more) {
    numbered(number) = with(numbered(from), static_cast<int>(more));
  }
  void remember(std::int64_t number) { numbered(number) = known_.back(); }
  Op begin_of(std::int64_t number) { return begin(numbered(number)); }
  Op begin_with(std::int64_t number, std::int64_t more) {
    return begin(with(numbered(number), static_cast<int>(more)));
  }
  Op begin_and_one(std::int64_t number) { return begin(and_one(numbered(number))); }
  Op begin_new(std::int64_t count) { return begin(with({}, static_cast<int>(count))); }
  Op begin_one_token() { return begin({one_token()}); }
  Op feed_new(std::int64_t count) { return Op::of(Feed{with({}, static_cast<int>(count))}); }
  Op output_new(std::int64_t count) { return Op::of(Output{with({}, static_cast<int>(count))}); }
  Op find_tokens(std::int64_t number) { return Op::of(Find{numbered(number)}); }
  void leave_open() { left_open_next_ = true; }
  void ignore_asked() { ignores_next_ = true; }
  void shorten() { short_ = 1; }
  [[nodiscard]] std::int64_t plenty() const { return kPlenty; }
  // All tokens of all sessions may be looked at, and each layer has rows.
  void pay() {
    constexpr std::int64_t kAnyCost = 20'000;
    if (scale_ == Scale::kLarge) spend(static_cast<std::uint64_t>(kAnyCost + 30 * tokens_));
  }
  std::int32_t one_token() { return static_cast<std::int32_t>(draw().between(1, alphabet_)); }
  // Mostly the beginning of an earlier sequence, and something else behind it.
  Tokens some_tokens() {
    if (many_) return {one_token()};
    Tokens tokens;
    if (!known_.empty() && draw().percent(75)) {
      tokens = known_[draw().below(known_.size())];
      tokens.resize(
          static_cast<std::size_t>(draw().between(0, static_cast<std::int64_t>(tokens.size()))));
    }
    const std::int64_t most =
        scale_ == Scale::kLarge && draw().percent(25) ? draw().edge(16, 1'025) : 0;
    for (std::int64_t more = std::max(most, draw().size(0, 9)); more > 0; --more)
      tokens.push_back(one_token());
    return tokens;
  }

  StorageFormat storage_;
  Scale scale_;
  std::int64_t limit_;
  bool many_;  // sessions of one token each
  std::int64_t alphabet_;
  std::int64_t bytes_ = 0;  // of snapshots, at the last look
  bool enforced_ = false;   // with a limit of 0
  bool begun_ = false;
  bool cancelled_ = false;
  bool left_open_ = false;
  int short_ = 0;  // sessions to come that are short
  Tokens inputs_;
  std::vector<Tokens> next_inputs_;  // the last one first
  std::vector<Tokens> known_;
  std::int64_t sessions_ = 0;
  std::int64_t tokens_ = 0;  // of all inputs
  // Of the order that is followed.
  std::array<Tokens, 3> sequences_;
  std::int64_t new_tokens_ = 0;
  bool left_open_next_ = false;
  bool ignores_next_ = false;  // that a snapshot is asked for
};

GeneratedCase make_trie_case(const CaseTerms& terms) {
  TrieConfig config = some_trie(terms);
  const std::int64_t limit = config.limit_bytes;
  const StorageFormat storage = config.rows.format();
  return {.setup = {.profile = terms.profile, .config = Record::of(std::move(config))},
          .ops = std::make_unique<TrieScript>(terms.seed, limit, storage, terms.scale)};
}

}  // namespace

Generator trie_generator() {
  Generator made =
      with_orders<TrieScript>(script_generator<TrieLabel>(trie_kind(), make_trie_case, {}, {}));
  made.lives_long = true;
  return made;
}

}  // namespace kvo::snapshot
