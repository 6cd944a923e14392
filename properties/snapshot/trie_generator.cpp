// Random scripts for snapshot.trie: sessions as an engine drives them.
#include <algorithm>
#include <memory>
#include <string>

#include <boost/describe/enum.hpp>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/snapshot/trie_operations.hpp"

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
                              kSnapshotAskedFor, kBranched, kPagedOut, kUserMarked, kCancelled,
                              kNotClosed, kLimitHit, kThreeBranches, kRestorePointLost,
                              kEmptyInputs, kBeforeAnySession, kTenBranches, kEvicted, kPagedIn,
                              kLimitBelowASnapshot, kAskedAfterEviction, k65Nodes,
                              kInputsOf1024Tokens, kSessionsBeyond16384, kRestoredAfterEviction,
                              kLongestOfABranch, kLimitLoweredInASession, kEvictedAboveSeveral,
                              kMergedAboveASplit, kFirstOfEqualsEvicted, kFedWithoutAnOutput,
                              kRowsOfCodes, kEightBitFloats)

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

  std::optional<Op> next() override {
    if (!begun_) return Op::of(NewTrie{});
    if (scale_ == Scale::kLong && !has_plan() && !draw().percent(1)) return session();
    return ScriptGenerator::next();
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

  // Planned orders.
  // All that a sequence left is evicted, and it comes again.
  std::optional<Op> restored_after_eviction(std::size_t number) {
    switch (number) {
      case 0:
        return begin(asked_ = some_tokens());
      case 1:
        return begin({one_token()});
      case 2:
        return Op::of(SetLimit{0});
      case 3:
        return Op::of(Enforce{});
      case 4:
        return Op::of(SetLimit{kPlenty});
      case 5:
        return begin(asked_);
      default:
        return tree();
    }
  }
  // Two sequences go on from one, and then it is asked for.
  std::optional<Op> longest_of_a_branch(std::size_t number) {
    switch (number) {
      case 0:
        return begin(asked_ = some_tokens());
      case 1:
      case 2:
        return begin(and_one(asked_));
      case 3:
        return Op::of(Find{asked_});
      case 4:
        return begin(asked_);
      default:
        return tree();
    }
  }
  std::optional<Op> limit_lowered_in_a_session(std::size_t number) {
    switch (number) {
      case 0:
        asked_ = some_tokens();
        return begin(asked_);
      case 1:
        left_open_next_ = true;
        return begin(and_one(asked_));
      case 2:
        return Op::of(SetLimit{draw().between(0, bytes_)});
      case 3:
        return Op::of(Enforce{});
      case 4:
        return Op::of(LayerStates{});
      case 5:
        return begin(asked_);
      default:
        return tree();
    }
  }
  // Two branches that a session which nobody closed has left without snapshots (MR-66, MR-67),
  // under a node that has some.
  std::optional<Op> evicted_above_several(std::size_t number) {
    switch (number) {
      case 0:
        return Op::of(SetLimit{kPlenty});
      case 1:
        return begin({new_token(), new_token()});
      case 2:
        asked_ = known_.back();
        return Op::of(Keep{true});
      case 3:
      case 6:
        return begin(with(asked_, 1));
      case 4:
      case 7:
        branch_ = known_.back();
        [[fallthrough]];
      case 5:
      case 8:
        left_open_next_ = ignores_next_ = true;
        return begin(with(branch_, 1));
      case 9:
        return begin({new_token()});
      case 10:
        return Op::of(SetLimit{0});
      case 11:
        return Op::of(Enforce{});
      default:
        return tree();
    }
  }
  // A node takes in the upper half of a split, of which some layers have no snapshot (MR-72): what
  // it has ends before it does.
  std::optional<Op> merged_above_a_split(std::size_t number) {
    switch (number) {
      case 0:
        asked_ = {new_token(), new_token()};
        split_ = with(asked_, 1);
        branch_ = with(split_, 2);
        return begin(branch_);
      case 1:
        return Op::of(SetLimit{0});
      case 2:
      case 10:
        return Op::of(Enforce{});
      case 3:
      case 11:
        return Op::of(SetLimit{kPlenty});
      case 4:
        return begin(with(asked_, 1));
      case 5:
        ignores_next_ = true;
        return begin(with(split_, 1));
      case 6:
        return begin(branch_);
      case 7:
        return begin({new_token()});
      case 9:
        return Op::of(SetLimit{std::max<std::int64_t>(bytes_ - 1, 0)});
      case 12:
        return begin(with(split_, 1));
      default:
        return tree();
    }
  }
  // Branches that agree in all that eviction looks at, but for their place (MR-74).
  std::optional<Op> first_of_equals_evicted(std::size_t number) {
    switch (number) {
      case 0:
        return begin({new_token(), new_token()});
      case 1:
        asked_ = known_.back();
        return Op::of(Keep{true});
      case 2:
        return Op::of(SetLimit{0});
      case 3:
      case 12:
        return Op::of(Enforce{});
      case 4:
        return Op::of(SetLimit{kPlenty});
      case 5:
      case 7:
        left_open_next_ = true;
        short_ = 1;
        return begin(with(asked_, 1));
      case 6:
      case 8:
        return Op::of(Keep{false});
      case 9:
        return begin({new_token()});
      case 11:
        return Op::of(SetLimit{std::max<std::int64_t>(bytes_ - 1, 0)});
      default:
        return tree();
    }
  }
  // More tokens were evaluated than recorded (MR-71).
  std::optional<Op> fed_without_an_output(std::size_t number) {
    switch (number) {
      case 0:
        asked_ = with(some_tokens(), 1);
        left_open_next_ = true;
        return begin(asked_);
      case 1:
        return Op::of(Feed{{new_token()}});
      case 2:
        return Op::of(Keep{false});
      case 3:
        return Op::of(CloseSession{});
      case 4:
        return begin(asked_);
      case 5:
        return Op::of(Output{{new_token(), new_token()}});
      case 6:
      case 8:
        return begin(asked_);
      case 7:  // behind the end of a session
        return Op::of(Feed{{new_token()}});
      default:
        return tree();
    }
  }

  using Plan = ScriptPlan<S, Label>;
  static constexpr std::array kPlans{
      Plan{1, Label::kRestoredAfterEviction, 7, &S::restored_after_eviction},
      Plan{1, Label::kLongestOfABranch, 6, &S::longest_of_a_branch},
      Plan{1, Label::kLimitLoweredInASession, 7, &S::limit_lowered_in_a_session},
      Plan{1, Label::kEvictedAboveSeveral, 13, &S::evicted_above_several},
      Plan{1, Label::kMergedAboveASplit, 14, &S::merged_above_a_split},
      Plan{1, Label::kFirstOfEqualsEvicted, 14, &S::first_of_equals_evicted},
      Plan{1, Label::kFedWithoutAnOutput, 10, &S::fed_without_an_output}};

  // What became of an operation.
  void saw(const NewTrie& /*op*/, const Observation& seen) { begun_ = begun_ || !seen.error; }
  void saw(const Begin& begin, const Observation& seen) {
    if (begin.inputs.empty()) reach(Label::kEmptyInputs);
    if (seen.error) return;
    if (++sessions_ > 16'384) reach(Label::kSessionsBeyond16384);
    if (begin.inputs.size() >= 1'024) reach(Label::kInputsOf1024Tokens);
    tokens_ += std::ssize(begin.inputs);
    pay();
    const auto& begun = seen.as<Begin::Returns>();
    const auto held = static_cast<std::int64_t>(begin.inputs.size() - begun.remaining.size());
    if (held > 0) reach(Label::kPrefixFound);
    const auto alike = std::ranges::mismatch(begin.inputs, live_).in1 - begin.inputs.begin();
    if (held > alike) reach(Label::kPagedIn);
    live_ = begin.inputs;
    if (held > 0 && begun.remaining.size() == 1) reach(Label::kWholeInputsFound);
    if (begun.snapshot_offset > 0) reach(Label::kSnapshotAskedFor);
    if (begun.snapshot_offset > 0 && held == 0) reach(Label::kRestorePointLost);
    plan_session(begun, held);
  }
  void saw(const Tree& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& tree = seen.as<Tree::Returns>();
    pay();
    if (tree.nodes.size() > 64) reach(Label::k65Nodes);
    std::map<std::int64_t, int> children;
    for (const TreeNode& node : tree.nodes) {
      if (node.parent.has_value()) ++children[*node.parent];
      if (node.user) reach(Label::kUserMarked);
    }
    for (const auto& [parent, count] : children) {
      if (count > 1) reach(Label::kBranched);
      if (count > 2) reach(Label::kThreeBranches);
      if (count > 9) reach(Label::kTenBranches);
    }
    bytes_ = tree.paged_out_bytes;
    if (tree.paged_out_bytes > 0) reach(Label::kPagedOut);
    if (tree.paged_out_bytes > 0 && in_groups(storage_.type)) reach(Label::kRowsOfCodes);
    if (tree.paged_out_bytes > 0 && dtype_bytes(dtype_of(storage_.type)) == 1)
      reach(Label::kEightBitFloats);
    if (tree.paged_out_bytes > limit_ / 2 && limit_ < kSmall) reach(Label::kLimitHit);
    if (limit_ < kOneSnapshot && tree.nodes.size() > 2) reach(Label::kLimitBelowASnapshot);
    if (tree.nodes.empty()) reach(Label::kBeforeAnySession);
  }
  void saw(const SetLimit& op, const Observation& /*seen*/) { limit_ = op.bytes; }
  void saw(const Enforce& /*op*/, const Observation& seen) {
    enforced_ = !seen.error && limit_ == 0;
    plan(ShowUsage{});
  }
  void saw(const Find& /*op*/, const Observation& seen) {
    if (std::exchange(enforced_, false) && !seen.error && seen.as<Find::Returns>().matched > 0)
      reach(Label::kAskedAfterEviction);
  }
  void saw(const CloseSession& /*op*/, const Observation& /*seen*/) {
    if (cancelled_) reach(Label::kCancelled);
  }
  void saw(const Feed& /*op*/, const Observation& /*seen*/) {
    if (left_open_) reach(Label::kNotClosed);
  }
  void saw(const ShowUsage& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& usage = seen.as<ShowUsage::Returns>();
    if (usage.evictions > 0) reach(Label::kEvicted);
    if (usage.page_ins > 0) reach(Label::kPagedIn);
  }
  template <OneOf<Keep, Output, LayerStates> T>
  void saw(const T& /*nothing to follow*/, const Observation& /*seen*/) {}

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
  // A session for a plan: the rest of it comes of itself.
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
  Tokens live_;                      // inputs of the session before
  std::vector<Tokens> known_;
  std::int64_t sessions_ = 0;
  std::int64_t tokens_ = 0;  // of all inputs
  // Of the plan that is followed.
  Tokens asked_;
  Tokens branch_;
  Tokens split_;
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
  Generator made = script_generator<TrieLabel>(trie_kind(), make_trie_case, {}, {});
  made.lives_long = true;
  return made;
}

}  // namespace kvo::snapshot
