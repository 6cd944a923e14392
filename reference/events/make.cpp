#include "reference/events/make.hpp"

#include <algorithm>
#include <initializer_list>

#include "reference/events/dynamo.hpp"
#include "reference/events/infera.hpp"
#include "reference/events/literal.hpp"
#include "reference/events/llmd.hpp"
#include "reference/events/positional.hpp"

namespace kvo::events {

std::unique_ptr<Follower> make_reference(Form form, const Config& config, QuirkSet<Quirk> quirks) {
  const auto any = [&](std::initializer_list<Quirk> some) {
    return std::ranges::any_of(some, [&](Quirk quirk) { return quirks.has(quirk); });
  };
  using Q = Quirk;
  switch (form) {
    case Form::kRadix:
    case Form::kCrtc:
      if (any({Q::kHoleEndsEdge, Q::kCountIsIdentity, Q::kKeyLeavesTrace, Q::kFirstNameStays}))
        return std::make_unique<TreeFollower>(form, config, quirks);
      break;
    case Form::kPositional:
      if (any({Q::kHolesUnseen, Q::kForeignKeysUnfound, Q::kKeyLeavesTrace}))
        return std::make_unique<PositionalFollower>(config, quirks);
      break;
    case Form::kDynamo:
      if (any({Q::kHoleEndsEdge, Q::kRestartUnseen, Q::kLateReplayTaken, Q::kFirstNameStays}))
        return std::make_unique<DynamoFollower>(config, quirks);
      break;
    case Form::kLlmd:
      if (any({Q::kStoresOutlive, Q::kExtraKeysHashed, Q::kLeaveKeepsCounts, Q::kBlocksRecut,
               Q::kMapsUnread, Q::kLimitsForget, Q::kKeyLeavesTrace}))
        return std::make_unique<LlmdFollower>(config, quirks);
      break;
    case Form::kInfera:
      if (any({Q::kRemovalsUnfiltered, Q::kNamespacesShared, Q::kBlocksRecut, Q::kMapsUnread,
               Q::kKeyLeavesTrace}))
        return std::make_unique<InferaFollower>(config, quirks);
      break;
    case Form::kChain:
      break;
  }
  return std::make_unique<LiteralFollower>(form, config, quirks);
}

}  // namespace kvo::events
