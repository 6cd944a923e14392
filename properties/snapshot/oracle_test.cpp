// Each clause of the history can fail: what a reference shows is spoilt before the oracle sees it.
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
#include "reference/snapshot/trie_operations.hpp"

namespace kvo::snapshot {
namespace {

// A script on a reference, judged.
class JudgedCase {
 public:
  explicit JudgedCase(const CacheKind& kind, Record config = {},
                      Profile profile = Profile::kDocumented)
      : setup_{.profile = profile, .config = std::move(config)},
        session_(contracts().reference_of(kind).open(setup_).value()),
        oracle_(history_oracle(kind, setup_)) {}

  template <class T>
  void accepts(T arguments) {
    const Op op = Op::of(std::move(arguments));
    const auto words = oracle_->check(op, session_->apply(op, probe_));
    EXPECT_EQ(words, std::nullopt) << op_text(op);
  }
  // An answer that is changed is refused.
  template <class T, class Spoil>
  void refuses(T arguments, Spoil spoil) {
    const Op op = Op::of(std::move(arguments));
    const Observation seen = session_->apply(op, probe_);
    ASSERT_FALSE(seen.error) << op_text(op);
    auto shown = seen.as<typename T::Returns>();
    spoil(shown);
    EXPECT_NE(oracle_->check(op, {.returns = Record::of(std::move(shown))}), std::nullopt)
        << op_text(op);
  }
  // So is an error in its place, or success in the place of one.
  template <class T>
  void refuses_error(T arguments) {
    const Op op = Op::of(std::move(arguments));
    (void)session_->apply(op, probe_);
    EXPECT_NE(oracle_->check(op, {.error = fail(Code::kOther)}), std::nullopt) << op_text(op);
  }
  template <class T>
  void refuses_success(T arguments, typename T::Returns shown = {}) {
    const Op op = Op::of(std::move(arguments));
    EXPECT_TRUE(session_->apply(op, probe_).error) << op_text(op);
    EXPECT_NE(oracle_->check(op, {.returns = Record::of(std::move(shown))}), std::nullopt)
        << op_text(op);
  }
  [[nodiscard]] OracleCounts counts() const { return oracle_->counts(); }

 private:
  Setup setup_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Oracle> oracle_;
  Probe probe_;
};

Update tokens(float first, std::int64_t count) {
  return {counting({1, 1, count, 1}, first), counting({1, 1, count, 1}, -first)};
}

void change(Tensor& tensor) {
  tensor.floats().front() += 1;
}

void change_first_state(ShowState::Returns& shown) {
  change(*(*shown.state.value)[0].value);
}

// ---- kv ----

// Five tokens, snapshot 1 of [0, 5) and snapshot 2 of [3, 5).
JudgedCase five_tokens() {
  JudgedCase judged(kv_kind());
  judged.accepts(New{});
  judged.accepts(tokens(1, 5));
  judged.accepts(Take{0});
  judged.accepts(Take{3});
  return judged;
}

TEST(SnapshotHistory, SeesAnotherRowOfKv) {
  five_tokens().refuses(tokens(9, 1), [](auto& shown) { change(shown.k); });
  five_tokens().refuses(tokens(9, 1), [](auto& shown) { change(shown.v); });
  five_tokens().refuses(ShowState{}, change_first_state);
  five_tokens().refuses(Offset{}, [](auto& shown) { ++shown.offset; });
  five_tokens().refuses(ShowState{}, [](auto& shown) { shown.state = std::nullopt; });
}

TEST(SnapshotHistory, SeesAnotherSnapshotOfKv) {
  five_tokens().refuses(Take{1}, [](auto& shown) { change(*shown.shown.k); });
  five_tokens().refuses(Take{1}, [](auto& shown) { shown.handle = 2; });
  five_tokens().refuses(Take{1}, [](auto& shown) { shown.shown.from = 2; });
  five_tokens().refuses(Take{1}, [](auto& shown) { --*shown.shown.size; });
  five_tokens().refuses(Reread{2}, [](auto& shown) { change(*shown.v); });
  five_tokens().refuses(Split{1, 2}, [](auto& shown) { change(*shown.child.value->shown.k); });
  five_tokens().refuses(Split{1, 5}, [](auto& shown) { std::swap(shown.parent, shown.child); });
  five_tokens().refuses(Merge{std::nullopt, 1}, [](auto& shown) { shown = Numbered(); });
  JudgedCase merged = five_tokens();
  merged.accepts(Split{1, 2});
  merged.refuses(Merge{3, 4}, [](auto& shown) { shown.shown.from = 2; });
}

TEST(SnapshotHistory, SeesAWrongRestoreOfKv) {
  five_tokens().refuses(Restore{1, 4}, [](auto& shown) { shown.offset = 5; });
  five_tokens().refuses(Restore{std::nullopt, 6}, [](auto& shown) { shown.ok = true; });
  five_tokens().refuses(Restore{2, 2}, [](auto& shown) { shown = {true, 2}; });
  JudgedCase judged = five_tokens();
  judged.accepts(Restore{std::nullopt, 3});
  judged.accepts(tokens(50, 2));
  judged.accepts(Restore{2, 4});
  judged.refuses(ShowState{}, change_first_state);
}

TEST(SnapshotHistory, SeesWhatShouldHaveFailed) {
  JudgedCase judged = five_tokens();
  judged.accepts(Close{1});
  judged.refuses_success(Close{1});
  judged.refuses_success(Reread{1});
  judged.refuses_success(Restore{1, 5}, {true, 5});
  judged.refuses_success(Merge{2, 2});
  judged.refuses_success(Split{7, 1});
  judged.refuses_error(ShowState{});
  judged.refuses_error(New{});
  five_tokens().refuses_success(
      Update{counting({1, 1, 1, 2}, 1), counting({1, 1, 1, 1}, 1)},
      {counting({1, 1, 1, 2}, 1), counting({1, 1, 1, 1}, 1), std::nullopt});
}

// A snapshot that is empty can adjoin itself.
TEST(SnapshotHistory, RefusesAnEmptySnapshotMergedWithItself) {
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
    JudgedCase judged(kv_kind(), {}, profile);
    judged.accepts(New{});
    judged.accepts(tokens(1, 2));
    judged.accepts(Restore{std::nullopt, 0});
    judged.accepts(Take{-1});
    judged.refuses_success(Merge{1, 1}, {.handle = 2});
    judged.accepts(Reread{1});
  }
}

// ---- rotating ----

// Six single tokens, or more or fewer, in a ring of four; snapshot 1 is of the wrapped ring.
JudgedCase wrapped_ring(Profile profile = Profile::kDocumented, float last = 6) {
  JudgedCase judged(rotating_kind(), Record::of(RowsConfig{.max_size = 4}), profile);
  judged.accepts(New{});
  for (float token = 1; token <= last; ++token) judged.accepts(tokens(token, 1));
  judged.accepts(Take{0});
  return judged;
}

TEST(SnapshotHistory, SeesAnotherWindow) {
  wrapped_ring().refuses(tokens(7, 1), [](auto& shown) { change(shown.k); });
  wrapped_ring().refuses(tokens(7, 1), [](auto& shown) {
    std::swap(shown.k.floats()[0], shown.k.floats()[1]);
    std::swap(shown.v.floats()[0], shown.v.floats()[1]);
  });
  wrapped_ring().refuses(tokens(7, 2), [](auto& shown) { change(shown.v); });
  wrapped_ring().refuses(ShowState{}, change_first_state);
  wrapped_ring().refuses(Take{0}, [](auto& shown) { shown.shown.idx = 3; });
  wrapped_ring().refuses(Take{0}, [](auto& shown) { change(*shown.shown.v); });
  wrapped_ring().refuses(Take{0}, [](auto& shown) { shown.shown.to = 5; });
  wrapped_ring().refuses(Offset{}, [](auto& shown) { shown.offset = 4; });
}

TEST(SnapshotHistory, AWindowMayGoRoundButNotBeforeItWraps) {
  const auto round = [](auto& shown) {
    for (Tensor* side : {&shown.k, &shown.v})
      std::ranges::rotate(side->floats(), side->floats().begin() + 1);
  };
  JudgedCase whole(rotating_kind(), Record::of(RowsConfig{.max_size = 4}));
  whole.accepts(New{});
  whole.accepts(tokens(1, 3));
  whole.refuses(tokens(4, 1), round);
  wrapped_ring().refuses(tokens(7, 3), round);
}

TEST(SnapshotHistory, SeesAWrongRestoreOfARing) {
  wrapped_ring().refuses(Restore{std::nullopt, 5}, [](auto& shown) { shown = {true, 5}; });
  wrapped_ring().refuses(Restore{1, 6}, [](auto& shown) { shown.ok = false; });
  JudgedCase judged = wrapped_ring();
  judged.accepts(tokens(50, 3));
  judged.accepts(Restore{1, 6});
  judged.refuses(ShowState{}, change_first_state);
  JudgedCase another = wrapped_ring();
  another.accepts(New{5});
  another.refuses(Restore{1, 6}, [](auto& shown) { shown = {true, 6}; });
}

TEST(SnapshotHistory, ARingOfOriginalIsFollowedAgainOnceItIsFull) {
  JudgedCase judged = wrapped_ring(Profile::kOriginal, 5);
  judged.accepts(tokens(7, 2));  // what is left of the older ones is a quirk's
  judged.accepts(tokens(9, 1));
  EXPECT_EQ(judged.counts().skipped, 1U);
  judged.accepts(tokens(10, 5));
  judged.accepts(tokens(15, 1));
  EXPECT_EQ(judged.counts().skipped, 1U);
  judged.refuses(ShowState{}, change_first_state);
}

TEST(SnapshotHistory, ANewTokenMissedByAChunkIsSeenInOriginal) {
  wrapped_ring(Profile::kOriginal).refuses(tokens(7, 2), [](auto& shown) {
    shown.k.floats().back() += 1;
  });
}

TEST(SnapshotHistory, SeesRowsThatAreNotAsTheyAreStored) {
  for (const CacheKind* kind : {&kv_kind(), &rotating_kind()}) {
    const auto fresh = [&] {
      JudgedCase judged(
          *kind, Record::of(RowsConfig{.max_size = 4, .rows = {.storage = StorageType::kQ8}}));
      judged.accepts(New{});
      return judged;
    };
    const Update given = tokens(9.7F, 2);
    JudgedCase judged = fresh();
    judged.accepts(given);
    judged.refuses(Take{0}, [](auto& shown) { *shown.shown.size = 2 * 2 * sizeof(float); });
    fresh().refuses(given, [&](auto& shown) { shown.k = given.k; });
    const Tensor halves = make_tensor({1, 1, 1, 1}, DType::kF16);
    fresh().refuses_success(Update{halves, halves}, {halves, halves});
  }
}

// ---- recurrent ----

JudgedCase state_of_three_tokens() {
  JudgedCase judged(
      recurrent_kind(),
      Record::of(RecurrentConfig{
          .conv_tail = 1, .conv_dim = 2, .num_v_heads = 1, .head_v_dim = 1, .head_k_dim = 2}));
  judged.accepts(New{});
  judged.accepts(ConvState{});
  judged.accepts(SetConvState{counting({1, 1, 2}, 5)});
  judged.accepts(Advance{3});
  judged.accepts(Take{0});
  return judged;
}

TEST(SnapshotHistory, SeesAnotherState) {
  state_of_three_tokens().refuses(ConvState{}, [](auto& shown) { change(shown.conv); });
  state_of_three_tokens().refuses(DeltaState{}, [](auto& shown) { change(shown.delta); });
  state_of_three_tokens().refuses(ShowState{}, change_first_state);
  state_of_three_tokens().refuses(Take{0}, [](auto& shown) { change(*shown.shown.conv); });
  state_of_three_tokens().refuses(Take{0}, [](auto& shown) { shown.shown.offset = 0; });
  state_of_three_tokens().refuses(Advance{1}, [](auto& shown) { shown.offset = 3; });
  state_of_three_tokens().refuses_success(Advance{-1}, {2});
  state_of_three_tokens().refuses_success(SetDeltaState{counting({1, 2}, 1)});
}

TEST(SnapshotHistory, SeesAStateRestoredElsewhere) {
  state_of_three_tokens().refuses(Restore{1, 2}, [](auto& shown) { shown = {true, 2}; });
  state_of_three_tokens().refuses(Restore{std::nullopt, 2}, [](auto& shown) { shown.ok = true; });
  JudgedCase judged = state_of_three_tokens();
  judged.accepts(SetConvState{counting({1, 1, 2}, 9)});
  judged.accepts(Restore{1, 3});
  judged.refuses(ShowState{}, change_first_state);
  judged.refuses(Merge{1, std::nullopt}, [](auto& shown) { shown = Numbered(); });
  judged.refuses(Split{1, 1}, [](auto& shown) { std::swap(shown.parent, shown.child); });
}

// ---- trie ----

// One session is filed, [1, 2, 3, 4] with the mark of a user, and one that parts from it: [1, 2,
// 9].
JudgedCase two_sessions(std::vector<std::string> layers = {"kv", "rotating:3", "recurrent",
                                                           "none"}) {
  JudgedCase judged(trie_kind(), Record::of(TrieConfig{.layers = std::move(layers)}));
  judged.accepts(NewTrie{});
  judged.accepts(Begin{{1, 2, 3}});
  judged.accepts(Feed{{1, 2}});
  judged.accepts(Keep{true});
  judged.accepts(Feed{{3}});
  judged.accepts(Output{{4}});
  judged.accepts(Feed{{4}});
  judged.accepts(Keep{true});
  judged.accepts(CloseSession{});
  judged.accepts(Begin{{1, 2, 9}});
  judged.accepts(Feed{{9}});
  judged.accepts(CloseSession{});
  return judged;
}

using BeginSpoilt = std::function<void(Begin::Returns&)>;

TEST(SnapshotHistory, SeesAWrongBegin) {
  const std::vector<BeginSpoilt> spoils = {
      [](auto& shown) { shown.remaining.pop_back(); },
      [](auto& shown) { shown.remaining.back() = 7; }, [](auto& shown) { shown.offsets[0] = 1; },
      [](auto& shown) { shown.snapshot_offset = 9; }, [](auto& shown) { shown.offsets[3] = 0; },
      // More than is known is held, or less than the session before has in common.
      [](auto& shown) {
        shown.remaining = {6};
        for (int layer = 0; layer < 3; ++layer) shown.offsets[static_cast<std::size_t>(layer)] = 4;
      }};
  for (const BeginSpoilt& spoil : spoils) two_sessions().refuses(Begin{{1, 2, 9, 5, 6}}, spoil);
  two_sessions({"kv"}).refuses(Begin{{1, 2, 9, 5, 6}}, [](auto& shown) {
    shown = {.remaining = {1, 2, 9, 5, 6}, .snapshot_offset = 3, .offsets = {0}};
  });
  two_sessions().refuses_error(Begin{{1}});
}

TEST(SnapshotHistory, SeesLayersWithRowsOfAnotherSession) {
  const auto spoilt_layer = [](std::size_t layer) {
    return [layer](LayerStates::Returns& shown) {
      change(*(*shown.layers[layer].value->state.value)[0].value);
    };
  };
  for (const std::size_t layer : {0U, 1U, 2U})
    two_sessions().refuses(LayerStates{}, spoilt_layer(layer));
  two_sessions().refuses(LayerStates{}, [](auto& shown) { shown.layers[0].value->offset = 2; });
  two_sessions().refuses(LayerStates{}, [](auto& shown) {
    for (int side = 0; side < 2; ++side) {  // a token of the window is missing
      Tensor& rows = *(*shown.layers[1].value->state.value)[static_cast<std::size_t>(side)].value;
      rows = tensor_of({1, 1, 2, 1},
                       std::vector<float>(rows.floats().begin() + 1, rows.floats().end()));
    }
  });
}

TEST(SnapshotHistory, SeesAnotherPrefix) {
  two_sessions().refuses(Find{{1, 2, 3, 4, 5}}, [](auto& shown) { --shown.matched; });
  two_sessions().refuses(Find{{1, 2, 3, 4, 5}}, [](auto& shown) { ++shown.matched; });
  two_sessions().refuses(Find{{1, 2, 3}}, [](auto& shown) { shown.path.clear(); });
  JudgedCase judged = two_sessions();
  judged.accepts(Tree{});
  judged.refuses(Find{{1, 2, 9}}, [](auto& shown) { shown.path.pop_back(); });
}

using TreeSpoilt = std::function<void(Tree::Returns&)>;

// Nodes are root, [1, 2], [3, 4] and [9]; the last is the frontier.
TEST(SnapshotHistory, SeesAWrongTree) {
  const std::vector<TreeSpoilt> spoils = {
      [](auto& tree) { tree.nodes[1].end = 3; }, [](auto& tree) { tree.nodes[0].tokens = {1}; },
      [](auto& tree) { tree.nodes[3].tokens = {3}; },
      [](auto& tree) {
        tree.nodes[2].tokens = {3, 5};
      },
      [](auto& tree) { tree.nodes[2].parent = 3; },
      [](auto& tree) {
        tree.nodes.pop_back();
        tree.active.pop_back();
      },
      [](auto& tree) {
        tree.active = {0, 1};
      },
      [](auto& tree) {
        tree.active = {0, 1, 2};
      },
      [](auto& tree) {
        tree.active = {0, 3};
      },
      [](auto& tree) {
        tree.active = {0, 1, -1};
      },
      [](auto& tree) { tree.active.clear(); }, [](auto& tree) { ++tree.paged_out_bytes; },
      [](auto& tree) { ++tree.nodes[2].last_used; },
      [](auto& tree) {
        for (auto& node : tree.nodes) ++node.last_used;
      },
      [](auto& tree) {
        for (auto& node : tree.nodes) node.last_used = 0;
        tree.nodes[0].last_used = 1;
      },
      [](auto& tree) { tree.nodes[2].user = false; }, [](auto& tree) { tree.nodes[3].user = true; },
      [](auto& tree) { change(*(*tree.nodes[2].snapshots.value)[0].value->k); },
      [](auto& tree) { change(*(*tree.nodes[2].snapshots.value)[0].value->v); },
      [](auto& tree) { change(*(*tree.nodes[2].snapshots.value)[1].value->k); },
      [](auto& tree) { change(*(*tree.nodes[2].snapshots.value)[2].value->delta); },
      [](auto& tree) { (*tree.nodes[2].snapshots.value)[1].value->idx = 3; },
      [](auto& tree) { --*(*tree.nodes[2].snapshots.value)[0].value->size; },
      [](auto& tree) { tree.nodes[2].snapshots.value->pop_back(); },
      // What was left is not kept, or not all of it.
      [](auto& tree) {
        tree.paged_out_bytes -= *(*tree.nodes[2].snapshots.value)[1].value->size;
        (*tree.nodes[2].snapshots.value)[1] = std::nullopt;
      },
      [](auto& tree) {
        tree.paged_out_bytes -= *(*tree.nodes[1].snapshots.value)[0].value->size;
        (*tree.nodes[1].snapshots.value)[0] = std::nullopt;
      },
      [](auto& tree) { (*tree.nodes[2].snapshots.value)[3] = (*tree.nodes[2].snapshots.value)[0]; },
      [](auto& tree) { tree = {}; }};
  two_sessions().accepts(Tree{});
  for (const TreeSpoilt& spoil : spoils) two_sessions().refuses(Tree{}, spoil);
}

TEST(SnapshotHistory, SeesALimitThatWasNotKept) {
  JudgedCase judged = two_sessions();
  judged.accepts(SetLimit{0});
  judged.accepts(Tree{});  // it takes effect with the next eviction
  // The same tree after an eviction has not kept it.
  JudgedCase spoilt = two_sessions();
  Tree::Returns before;
  spoilt.refuses(Tree{}, [&](auto& tree) {
    before = tree;
    tree.nodes[0].end = 1;
  });
  spoilt.accepts(SetLimit{0});
  spoilt.accepts(Enforce{});
  spoilt.refuses(Tree{}, [&](auto& tree) { tree = before; });
}

TEST(SnapshotHistory, SeesWrongAnswersOfASession) {
  two_sessions().refuses(Feed{{5}}, [](auto& shown) { shown.offsets[2] = 3; });
  two_sessions().refuses(CloseSession{}, [](auto& shown) { shown.offsets[0] = 0; });
  two_sessions().refuses(Keep{}, [](auto& shown) { shown.snapshot_offset = 2; });
  two_sessions().refuses_error(Enforce{});
  two_sessions().refuses_error(Output{{1}});
  JudgedCase judged = two_sessions();
  judged.accepts(Feed{{5}});
  judged.refuses_success(CloseSession{});
}

TEST(SnapshotHistory, SkipsWhatFollowsFromTokensOfNoSession) {
  JudgedCase judged = two_sessions();
  judged.accepts(Output{{5}});
  judged.accepts(Feed{{6}});
  judged.accepts(CloseSession{});
  judged.accepts(Tree{});
  EXPECT_EQ(judged.counts().skipped, 2U);
  judged.accepts(NewTrie{});
  judged.accepts(Tree{});
  EXPECT_EQ(judged.counts().skipped, 2U);
}

// ---- How much is judged ----

TEST(SnapshotHistory, JudgesMostAnswersOfRandomCases) {
  constexpr std::uint64_t kCases = 60;
  constexpr int kOperations = 80;
  for (const CacheKind* kind : contracts().kinds()) {
    if (kind->contract != "snapshot") continue;
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const OracleCounts sum =
          judged_in_random_cases(contracts(), *kind, profile, 3, kCases, kOperations);
      EXPECT_GT(sum.judged, 2 * sum.skipped) << kind->name();
      if (profile == Profile::kOriginal) continue;
      // Whoever feeds tokens without recording them has no known place in a trie.
      const std::uint64_t most = kind->cache == "trie" ? sum.judged / 50 : 0;
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
