// Each clause of the history can fail: an answer of the reference is changed before the oracle gets
// it.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/judged_cases.hpp"
#include "properties/campaign/rules_case.hpp"
#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {
namespace {

// Calls changed(where) for each single change of a value, while it has it: other numbers and flags,
// other elements of tensors, elements of lists and values of optionals that are missing or too
// many.
void each_change(const Type& type, void* value, const std::string& where,
                 const std::function<void(const std::string&)>& changed) {
  const auto before = type.copy_of(value);
  const auto with = [&](const std::string& what, const auto& change) {
    change();
    changed(where + what);
    type.assign(value, before.get());
  };
  switch (type.type_class) {
    case TypeClass::kBool:
      return with("", [&] { *static_cast<bool*>(value) ^= true; });
    case TypeClass::kInteger:
      for (const int by : {1, -1})
        with(by > 0 ? "+1" : "-1", [&] { set_integer(type, value, integer_at(type, value) + by); });
      return;
    case TypeClass::kTensor:
      if (auto& bytes = static_cast<Tensor*>(value)->bytes; !bytes.empty())
        for (std::byte* at : {&bytes[0], &bytes[bytes.size() / 2]})
          with("", [&] { *at ^= std::byte{1}; });
      return;
    case TypeClass::kRecord:
      for (const Field& field : type.fields)
        each_change(*field.type, field.of(value), where + "." + std::string(field.name), changed);
      return;
    case TypeClass::kList:
      for (std::size_t i = 0; i < type.length(value); ++i)
        each_change(*type.element, type.at(value, i), where + "[" + std::to_string(i) + "]",
                    changed);
      if (type.length(value) > 0)
        with(" short", [&] { type.resize(value, type.length(value) - 1); });
      return with(" long", [&] { type.resize(value, type.length(value) + 1); });
    case TypeClass::kOptional:
    case TypeClass::kNullable:
      if (type.held(value) == nullptr) return with(" there", [&] { type.emplace(value); });
      each_change(*type.element, type.held(value), where, changed);
      return with(" absent", [&] { type.reset(value); });
    default:
      FAIL() << where;
  }
}

// Operations that a reference answers. The oracle accepts every answer but the last, which a test
// changes.
class Script {
 public:
  explicit Script(const CacheKind& kind, Record config = {}, Profile profile = Profile::kDocumented)
      : kind_(&kind), setup_{.profile = profile, .config = std::move(config)} {}

  template <class... T>
  [[nodiscard]] Script then(T... operations) const {
    Script more = *this;
    (more.operations_.push_back(Op::of(std::move(operations))), ...);
    return more;
  }
  [[nodiscard]] OracleCounts counts() const { return played().oracle->counts(); }

  // Each single change of an answer is refused.
  template <class... T>
  void refuses_changes_of(T... operations) const {
    (refuses_each_change(Op::of(std::move(operations))), ...);
  }
  // The same without changes of a member that the oracle does not see in all details.
  template <class T>
  void refuses_changes_without(std::string_view member, T operation) const {
    refuses_each_change(Op::of(std::move(operation)), member);
  }
  // An answer that is changed is refused.
  template <class T, class Spoil>
  void refuses(T operation, Spoil spoil) const {
    refuses_instead(Op::of(std::move(operation)), [&](const Observation& seen) -> Observation {
      EXPECT_FALSE(seen.error);
      auto shown = seen.as<typename T::Returns>();
      spoil(shown);
      return {.returns = Record::of(std::move(shown))};
    });
  }
  // So is an error in its place, or success in the place of one.
  template <class T>
  void refuses_error(T operation) const {
    refuses_instead(Op::of(std::move(operation)), [](const Observation& /*seen*/) -> Observation {
      return {.error = fail(Code::kOther)};
    });
  }
  template <class T>
  void refuses_success(T operation, typename T::Returns shown = {}) const {
    refuses_instead(Op::of(std::move(operation)), [&](const Observation& seen) -> Observation {
      EXPECT_TRUE(seen.error);
      return {.returns = Record::of(shown)};
    });
  }

 private:
  struct Played {
    std::unique_ptr<Session> session;
    std::unique_ptr<Oracle> oracle;
  };
  [[nodiscard]] Played played() const {
    Played now{contracts().reference_of(*kind_).open(setup_).value(),
               history_oracle(*kind_, setup_)};
    for (const Op& op : operations_)
      EXPECT_EQ(now.oracle->check(op, answer(now, op)), std::nullopt) << op_text(op);
    return now;
  }
  static Observation answer(const Played& now, const Op& op) {
    Probe probe;
    return now.session->apply(op, probe);
  }
  [[nodiscard]] bool accepts(const Op& op, const Observation& instead) const {
    const Played now = played();
    (void)answer(now, op);
    return !now.oracle->check(op, instead);
  }
  template <class Change>
  void refuses_instead(const Op& op, const Change& change) const {
    EXPECT_FALSE(accepts(op, change(answer(played(), op)))) << op_text(op);
  }
  void refuses_each_change(const Op& op, std::string_view without = "no member") const {
    const Observation seen = answer(played(), op);
    ASSERT_TRUE(accepts(op, seen)) << op_text(op);
    const Type& type = seen.returns.type();
    const auto copy = type.copy_of(seen.returns.get());
    each_change(type, copy.get(), "", [&](const std::string& where) {
      if (where.find(without) != std::string::npos) return;
      EXPECT_FALSE(accepts(op, {.returns = {type, type.copy_of(copy.get())}}))
          << op_text(op) << where;
    });
  }

  const CacheKind* kind_;
  Setup setup_;
  std::vector<Op> operations_ = {};
};

Update tokens(float first, std::int64_t count) {
  return {counting({1, 1, count, 1}, first), counting({1, 1, count, 1}, -first)};
}

// ---- kv ----

// Five tokens, snapshot 1 of [0, 5) and snapshot 2 of [3, 5).
const Script& five_tokens() {
  static const Script kScript = Script(kv_kind()).then(New{}, tokens(1, 5), Take{0}, Take{3});
  return kScript;
}

TEST(SnapshotHistory, SeesAnyChangeOfKv) {
  five_tokens().refuses_changes_of(tokens(9, 1), ShowState{}, Offset{}, Take{1}, Reread{2},
                                   Split{1, 2}, Split{1, 5}, Merge{std::nullopt, 1}, Restore{1, 4},
                                   Restore{2, 2}, Restore{std::nullopt, 6});
  five_tokens().then(Split{1, 2}).refuses_changes_of(Merge{3, 4});
  five_tokens()
      .then(Restore{std::nullopt, 3}, tokens(50, 2), Restore{2, 4})
      .refuses_changes_of(ShowState{});
}

TEST(SnapshotHistory, SeesWhatShouldHaveFailed) {
  const Script closed = five_tokens().then(Close{1});
  closed.refuses_success(Close{1});
  closed.refuses_success(Reread{1});
  closed.refuses_success(Restore{1, 5}, {true, 5});
  closed.refuses_success(Merge{2, 2});
  closed.refuses_success(Split{7, 1});
  closed.refuses_error(ShowState{});
  closed.refuses_error(New{});
  const Tensor wide = counting({1, 1, 1, 2}, 1);
  const Tensor row = counting({1, 1, 1, 1}, 1);
  five_tokens().refuses_success(Update{wide, row}, {wide, row, std::nullopt});
}

// A snapshot that is empty can adjoin itself.
TEST(SnapshotHistory, RefusesAnEmptySnapshotMergedWithItself) {
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
    const Script taken = Script(kv_kind(), {}, profile)
                             .then(New{}, tokens(1, 2), Restore{std::nullopt, 0}, Take{-1});
    taken.refuses_success(Merge{1, 1}, {.handle = 2});
    taken.then(Merge{1, 1}).refuses_changes_of(Reread{1});
  }
}

// ---- rotating ----

// Six single tokens, or more or fewer, in a ring of four; snapshot 1 is of the wrapped ring.
Script wrapped_ring(Profile profile = Profile::kDocumented, int last = 6) {
  Script script =
      Script(rotating_kind(), Record::of(RowsConfig{.max_size = 4}), profile).then(New{});
  for (int token = 1; token <= last; ++token)
    script = script.then(tokens(static_cast<float>(token), 1));
  return script.then(Take{0});
}

TEST(SnapshotHistory, SeesAnyChangeOfAWindow) {
  wrapped_ring().refuses_changes_of(tokens(7, 1), tokens(7, 2), ShowState{}, Take{0}, Offset{},
                                    Restore{std::nullopt, 5}, Restore{1, 6});
  wrapped_ring().refuses(tokens(7, 1), [](auto& shown) {
    for (Tensor* side : {&shown.k, &shown.v}) std::swap(side->floats()[0], side->floats()[1]);
  });
  wrapped_ring().then(tokens(50, 3), Restore{1, 6}).refuses_changes_of(ShowState{});
  wrapped_ring().then(New{5}).refuses_changes_of(Restore{1, 6});
  wrapped_ring().then(New{5}).refuses(Restore{1, 6}, [](auto& shown) { shown = {true, 6}; });
}

TEST(SnapshotHistory, AWindowMayGoRoundButNotBeforeItWraps) {
  const auto round = [](auto& shown) {
    for (Tensor* side : {&shown.k, &shown.v})
      std::rotate(side->floats().begin(), side->floats().begin() + 1, side->floats().end());
  };
  Script(rotating_kind(), Record::of(RowsConfig{.max_size = 4}))
      .then(New{}, tokens(1, 3))
      .refuses(tokens(4, 1), round);
  wrapped_ring().refuses(tokens(7, 3), round);
}

TEST(SnapshotHistory, ARingOfOriginalIsFollowedAgainOnceItIsFull) {
  // What is left of the older ones is a quirk's.
  const Script doubtful = wrapped_ring(Profile::kOriginal, 5).then(tokens(7, 2), tokens(9, 1));
  EXPECT_EQ(doubtful.counts().skipped, 1U);
  const Script full = doubtful.then(tokens(10, 5), tokens(15, 1));
  EXPECT_EQ(full.counts().skipped, 1U);
  full.refuses_changes_of(ShowState{});
}

TEST(SnapshotHistory, ANewTokenMissedByAChunkIsSeenInOriginal) {
  wrapped_ring(Profile::kOriginal).refuses(tokens(7, 2), [](auto& shown) {
    shown.k.floats().back() += 1;
  });
}

TEST(SnapshotHistory, SeesRowsThatAreNotAsTheyAreStored) {
  for (const CacheKind* kind : {&kv_kind(), &rotating_kind()}) {
    const RowsConfig config{.max_size = 4, .rows = {.storage = StorageType::kQ8}};
    const Script fresh = Script(*kind, Record::of(config)).then(New{});
    const Update given = tokens(9.7F, 2);
    fresh.then(given).refuses_changes_of(Take{0});
    fresh.refuses(given, [&](auto& shown) { shown.k = given.k; });
    const Tensor halves = make_tensor({1, 1, 1, 1}, DType::kF16);
    fresh.refuses_success(Update{halves, halves}, {halves, halves});
  }
}

// ---- recurrent ----

TEST(SnapshotHistory, SeesAnyChangeOfAState) {
  const RecurrentConfig config{
      .sizes = {.conv_tail = 1, .conv_dim = 2, .num_v_heads = 1, .head_v_dim = 1, .head_k_dim = 2}};
  const Script three_tokens =
      Script(recurrent_kind(), Record::of(config))
          .then(New{}, ConvState{}, SetConvState{counting({1, 1, 2}, 5)}, Advance{3}, Take{0});
  three_tokens.refuses_changes_of(ConvState{}, DeltaState{}, ShowState{}, Take{0}, Advance{1},
                                  Restore{1, 2}, Restore{std::nullopt, 2});
  three_tokens.refuses_success(Advance{-1}, {2});
  three_tokens.refuses_success(SetDeltaState{counting({1, 2}, 1)});
  three_tokens.then(SetConvState{counting({1, 1, 2}, 9)}, Restore{1, 3})
      .refuses_changes_of(ShowState{}, Merge{1, std::nullopt}, Split{1, 1});
}

// ---- trie ----

// One session is filed, [1, 2, 3, 4] with the mark of a user, and one that parts from it: [1, 2,
// 9].
Script two_sessions(std::vector<std::string> layers = {"kv", "rotating:3", "recurrent", "none"}) {
  return Script(trie_kind(), Record::of(TrieConfig{.layers = std::move(layers)}))
      .then(NewTrie{}, Begin{{1, 2, 3}}, Feed{{1, 2}}, Keep{true}, Feed{{3}}, Output{{4}},
            Feed{{4}}, Keep{true}, CloseSession{}, Begin{{1, 2, 9}}, Feed{{9}}, CloseSession{});
}

TEST(SnapshotHistory, SeesAWrongBegin) {
  const Begin begin{{1, 2, 9, 5, 6}};
  two_sessions().refuses_changes_of(begin);
  // More than is known is held, or less than the session before has in common.
  two_sessions().refuses(begin, [](auto& shown) {
    shown.remaining = {6};
    for (std::size_t layer = 0; layer < 3; ++layer) shown.offsets[layer] = 4;
  });
  two_sessions({"kv"}).refuses(begin, [](auto& shown) {
    shown = {.remaining = {1, 2, 9, 5, 6}, .snapshot_offset = 3, .offsets = {0}};
  });
  two_sessions().refuses_error(Begin{{1}});
}

TEST(SnapshotHistory, SeesLayersWithRowsOfAnotherSession) {
  two_sessions().refuses_changes_of(LayerStates{});
  two_sessions().refuses(LayerStates{}, [](auto& shown) {
    for (Nullable<Tensor>& side : *shown.layers[1].value->state.value) {  // a token is missing
      const auto rows = side.value->floats();
      side = tensor_of({1, 1, 2, 1}, std::vector<float>(rows.begin() + 1, rows.end()));
    }
  });
}

TEST(SnapshotHistory, SeesAnotherPrefix) {
  two_sessions().refuses(Find{{1, 2, 3}}, [](auto& shown) { shown.path.clear(); });
  two_sessions().refuses_changes_without(".path", Find{{1, 2, 3, 4, 5}});
  two_sessions().then(Tree{}).refuses(Find{{1, 2, 9}}, [](auto& shown) { shown.path.pop_back(); });
}

using TreeSpoilt = std::function<void(Tree::Returns&)>;

TreeSpoilt with_path(std::vector<std::int64_t> path) {
  return [path = std::move(path)](auto& tree) { tree.active = path; };
}
// A change of what node 2 shows of a layer.
TreeSpoilt with_snapshot(std::size_t layer, const std::function<void(Contents&)>& change) {
  return [=](auto& tree) { change(*(*tree.nodes[2].snapshots.value)[layer].value); };
}
// What was left is not kept, or not all of it.
TreeSpoilt without_snapshot(std::size_t node, std::size_t layer) {
  return [=](auto& tree) {
    auto& one = (*tree.nodes[node].snapshots.value)[layer];
    tree.paged_out_bytes -= *one.value->size;
    one = std::nullopt;
  };
}

// Nodes are root, [1, 2], [3, 4] and [9]; the last is the frontier.
TEST(SnapshotHistory, SeesAWrongTree) {
  two_sessions().refuses_changes_without(".snapshots[", Tree{});
  const std::vector<TreeSpoilt> spoils = {
      with_snapshot(0, [](Contents& one) { one.k->floats().front() += 1; }),
      with_snapshot(0, [](Contents& one) { one.v->floats().front() += 1; }),
      with_snapshot(1, [](Contents& one) { one.k->floats().front() += 1; }),
      with_snapshot(2, [](Contents& one) { one.delta->floats().front() += 1; }),
      with_snapshot(1, [](Contents& one) { one.idx = 3; }),
      with_snapshot(0, [](Contents& one) { --*one.size; }),
      with_path({0, 1}),
      with_path({0, 1, 2}),
      with_path({0, 3}),
      with_path({0, 1, -1}),
      with_path({}),
      without_snapshot(2, 1),
      without_snapshot(1, 0),
      [](auto& tree) { tree.nodes[3].tokens = {3}; },
      [](auto& tree) {
        tree.nodes.pop_back();
        tree.active.pop_back();
      },
      [](auto& tree) {
        for (auto& node : tree.nodes) ++node.last_used;
      },
      [](auto& tree) {
        for (auto& node : tree.nodes) node.last_used = node.parent.has_value() ? 0 : 1;
      },
      [](auto& tree) { (*tree.nodes[2].snapshots.value)[3] = (*tree.nodes[2].snapshots.value)[0]; },
      [](auto& tree) { tree = {}; }};
  for (const TreeSpoilt& spoil : spoils) two_sessions().refuses(Tree{}, spoil);
}

TEST(SnapshotHistory, SeesALimitThatWasNotKept) {
  const Script lowered = two_sessions().then(SetLimit{0});
  EXPECT_EQ(lowered.then(Tree{}).counts().skipped, 0U);  // it takes effect with the next eviction
  // The same tree after an eviction has not kept it.
  Tree::Returns before;
  two_sessions().refuses(Tree{}, [&](auto& tree) {
    before = tree;
    tree.nodes[0].end = 1;
  });
  lowered.then(Enforce{}).refuses(Tree{}, [&](auto& tree) { tree = before; });
}

TEST(SnapshotHistory, SeesWrongAnswersOfASession) {
  two_sessions().refuses_changes_of(Feed{{5}}, CloseSession{}, Keep{});
  two_sessions().refuses_error(Enforce{});
  two_sessions().refuses_error(Output{{1}});
  two_sessions().then(Feed{{5}}).refuses_success(CloseSession{});
}

TEST(SnapshotHistory, SkipsWhatFollowsFromTokensOfNoSession) {
  const Script strayed = two_sessions().then(Output{{5}}, Feed{{6}}, CloseSession{}, Tree{});
  EXPECT_EQ(strayed.counts().skipped, 2U);
  EXPECT_EQ(strayed.then(NewTrie{}, Tree{}).counts().skipped, 2U);
}

// ---- How much is judged ----

TEST(SnapshotHistory, JudgesMostAnswersOfRandomCases) {
  constexpr std::uint64_t kCases = 240;
  constexpr int kOperations = 80;
  for (const CacheKind* kind : contracts().kinds()) {
    if (kind->contract != "snapshot") continue;
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const OracleCounts sum =
          judged_in_random_cases(contracts(), *kind, profile, 3, kCases, kOperations);
      EXPECT_GT(sum.judged, 2 * sum.skipped) << kind->name();
      if (profile == Profile::kOriginal) continue;
      // Whoever feeds tokens without recording them has no known place in a trie.
      const std::uint64_t most = kind->cache == "trie" ? sum.judged / 20 : 0;
      EXPECT_LE(sum.skipped, most) << kind->name();
    }
  }
}

// Sessions of one token each, one after the other.
TEST(SnapshotHistory, JudgesATrieOfHundredsOfBranches) {
  constexpr std::uint64_t kCases = 300;
  constexpr int kOperations = 1'500;
  std::size_t most = 0;
  for (std::uint64_t index = 0; index < kCases && most < 200; ++index) {
    const GeneratedCase made =
        contracts().generator_of(trie_kind())->make({case_seed(5, index), Profile::kDocumented});
    const auto session = contracts().reference_of(trie_kind()).open(made.setup).value();
    const auto oracle = history_oracle(trie_kind(), made.setup);
    Probe probe;
    Labels labels;
    for (int i = 0; i < kOperations && (i < 160 || labels.contains("ten branches")); ++i) {
      const Op op = made.ops->next().value();
      const Observation seen = session->apply(op, probe);
      ASSERT_EQ(oracle->check(op, seen), std::nullopt) << "case " << index << " op " << i;
      made.ops->observe(op, seen, labels);
      if (op.as<Tree>() == nullptr) continue;
      const auto& nodes = seen.as<Tree::Returns>().nodes;
      most = std::max(
          most, static_cast<std::size_t>(std::ranges::count_if(nodes, [](const TreeNode& node) {
            return node.parent == Nullable<std::int64_t>(0);
          })));
    }
  }
  EXPECT_GE(most, 200U) << "branches of the root";
}

TEST(SnapshotHistory, IsForSnapshotKindsOnly) {
  for (const CacheKind* kind : contracts().kinds())
    EXPECT_EQ(history_oracle(*kind, {}) != nullptr, kind->contract == "snapshot") << kind->name();
}

}  // namespace
}  // namespace kvo::snapshot
