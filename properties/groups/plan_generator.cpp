// Random scripts for groups.plan: models of few kinds of layers, and groups as planners form them.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/groups/operations.hpp"

namespace kvo::groups {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(PlanSeen, std::uint8_t, kOneGroupOfLayers, kUniformGroup,
                              kSeveralGroups, kUnevenGroups, kPaddedPages, kLargerBlocks,
                              kPagesNotEqual, kSeveralWindows, kNotOneKind, kUnitThatDivides,
                              kUnitThatDoesNot, kFineHits)

namespace {

class PlanScript final : public ScriptGenerator<PlanScript, PlanOps, PlanSeen> {
  using S = PlanScript;
  using Seen = PlanSeen;

 public:
  explicit PlanScript(const CaseTerms& terms) : ScriptGenerator(terms) {}

  Op group() {
    GroupLayers what{.hybrid = !draw().percent(25)};
    const std::int64_t kinds = draw().between(1, 3);
    for (std::int64_t kind = 0; kind < kinds; ++kind) {
      const Layer like = layer();
      const std::int64_t count = draw().between(1, draw().percent(10) ? 12 : 5);
      for (std::int64_t i = 0; i < count; ++i) {
        what.layers.push_back(like);
        what.layers.back().name = std::to_string(kind) + "." + std::to_string(i);
        if (draw().percent(8)) what.layers.back().window = draw().one_of<std::int64_t>({16, 32});
      }
    }
    for (Layer& one : what.layers) {  // windows are of full attention and windows alone
      const bool windowed =
          one.kind == GroupKind::kSlidingWindow || one.kind == GroupKind::kSlidingWindowMla;
      if (!windowed && one.kind != GroupKind::kFull) one.window.reset();
    }
    if (draw().percent(2)) what.layers.clear();
    return Op::of(std::move(what));
  }
  Op sizes() {
    ShowSizes what{.caching = !draw().percent(20)};
    const std::int64_t count = draw().between(1, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      Group one{.kind = kind(), .block_size = 16 * draw().between(1, 4)};
      if (draw().percent(4)) one.block_size = draw().between(1, 65);
      if (one.kind == GroupKind::kSlidingWindowMla) one.replay = draw().percent(30);
      if (one.kind == GroupKind::kMamba && draw().percent(10)) one.mode = StateMode::kNone;
      what.groups.push_back(one);
    }
    if (draw().percent(40)) what.unit = draw().one_of<std::int64_t>({4, 8, 16, 32, 48});
    return Op::of(std::move(what));
  }
  Op position() {
    return Op::of(Position{.tokens = draw().size(0, 4'097),
                           .block = draw().size(1, 65),
                           .drop = draw().percent(40),
                           .lookahead = draw().percent(30) ? draw().between(0, 3) : 0});
  }
  Op boundaries() {
    return Op::of(Boundaries{
        .prompt = draw().size(0, 4'097), .block = draw().size(1, 65), .drop = draw().percent(60)});
  }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {10, "group", &S::group, true},
      {6, "sizes", &S::sizes, true},
      {2, "position", &S::position},
      {2, "boundaries", &S::boundaries},
  });

  void observe(const GroupLayers& op, const Observation& seen) {
    spend(10 * op.layers.size());
    if (seen.failed_with(Code::kNotSupported)) reach(Seen::kPagesNotEqual);
    if (seen.failed_with(Code::kPrecondition))
      reach(op.hybrid ? Seen::kSeveralWindows : Seen::kNotOneKind);
    if (seen.error) return;
    const auto& groups = seen.as<GroupReturns>().groups;
    if (groups.size() > 1) reach(Seen::kSeveralGroups);
    if (groups.size() == 1)
      reach(groups[0].kind == "uniform" ? Seen::kUniformGroup : Seen::kOneGroupOfLayers);
    for (const PlannedGroup& one : groups) {
      if (one.layers.size() != groups[0].layers.size()) reach(Seen::kUnevenGroups);
      for (const Layer& layer : op.layers) {
        if (layer.name != one.layers[0] || groups.size() == 1) continue;
        reach(one.block_size == layer.block_size ? Seen::kPaddedPages : Seen::kLargerBlocks);
      }
    }
  }
  void observe(const ShowSizes& op, const Observation& seen) {
    spend(op.groups.size());
    if (seen.error) return reach(Seen::kUnitThatDoesNot);
    const auto& sizes = seen.as<SizesReturns>();
    if (op.unit && sizes.hash_block == *op.unit) reach(Seen::kUnitThatDivides);
    if (sizes.alignment < sizes.scheduler_block) reach(Seen::kFineHits);
  }

 private:
  GroupKind kind() {
    return draw().one_of({GroupKind::kFull, GroupKind::kFull, GroupKind::kMla,
                          GroupKind::kSlidingWindow, GroupKind::kSlidingWindow,
                          GroupKind::kSlidingWindowMla, GroupKind::kChunkedLocal, GroupKind::kMamba,
                          GroupKind::kMamba, GroupKind::kRing});
  }
  Layer layer() {
    Layer one{.kind = kind(),
              .block_size = draw().one_of<std::int64_t>({16, 16, 32}),
              .heads = draw().between(1, 3),
              .head_size = draw().one_of<std::int64_t>({8, 9})};
    if (one.kind == GroupKind::kRing) one.kind = GroupKind::kFull;
    if (one.kind == GroupKind::kSlidingWindow || one.kind == GroupKind::kSlidingWindowMla)
      one.window = draw().one_of<std::int64_t>({16, 32});
    if (one.kind == GroupKind::kChunkedLocal) one.chunk = 64;
    if (one.kind == GroupKind::kMamba) one.state = draw().one_of<std::int64_t>({64, 100, 600});
    return one;
  }
};

}  // namespace

Generator blocks_generator();

std::vector<Generator> generators() {
  return {blocks_generator(),
          script_generator<PlanSeen>(
              plan_kind(), [](const CaseTerms& terms) { return script_case<PlanScript>(terms); },
              {}, {})};
}

}  // namespace kvo::groups
