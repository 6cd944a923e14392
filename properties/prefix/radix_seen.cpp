// What became of the operations of a script for prefix.radix.
#include <algorithm>
#include <utility>

#include "properties/prefix/radix_script.hpp"

namespace kvo::prefix {
namespace {

RadixSeen evicted_by(Policy policy) {
  switch (policy) {
    case Policy::kMru:
      return RadixSeen::kEvictedByMru;
    case Policy::kFifo:
      return RadixSeen::kEvictedByFifo;
    case Policy::kFilo:
      return RadixSeen::kEvictedByFilo;
    case Policy::kLfu:
      return RadixSeen::kEvictedByLfu;
    case Policy::kPriority:
      return RadixSeen::kEvictedByPriority;
    case Policy::kSlru:
      return RadixSeen::kEvictedBySlru;
    default:
      return RadixSeen::kEvictedByLru;
  }
}

}  // namespace

// Nodes.
void RadixScript::met(std::int64_t node) {
  nodes_.insert(node);
  newest_ = std::max(newest_, node);
  if (node > kTwoBytes) reach(Seen::kNodesBeyondTwoBytes);
}
void RadixScript::gone(const Numbers& nodes) {
  for (const std::int64_t node : nodes) nodes_.erase(node);
  if (nodes.size() > 1) reach(Seen::kParentEvictedAfterItsChild);
}
void RadixScript::evicted(std::int64_t asked, std::int64_t units, const Numbers& nodes) {
  if (asked > 0 && nodes.empty() && !nodes_.empty()) reach(Seen::kNothingToEvict);
  if (nodes.empty()) return;
  reach(evicted_by(config_.policy));
  if (units > asked) reach(Seen::kEvictedMoreThanAsked);
  in_tree_ = std::max<std::int64_t>(in_tree_ - units, 0);
  gone(nodes);
}

// The tree.
void RadixScript::saw(const MatchTokens& op, const Observation& seen) {
  pay(std::ssize(op.tokens));
  if (config_.eagle) reach(Seen::kPairs);
  if (seen.error) return;
  const auto& hit = seen.as<FoundPrefix>();
  if (config_.disable) return reach(Seen::kDisabled);
  if (hit.length == 0) return reach(Seen::kNothingHeld);
  if (hit.node > newest_) reach(Seen::kSplit);
  if (hit.length == units(std::ssize(op.tokens))) reach(Seen::kWholeHit);
  if (hit.length > kThousand) reach(Seen::kHitOf1024Tokens);
  met(hit.node);
}
void RadixScript::saw(const TouchTokens& op, const Observation& /*seen*/) {
  pay(std::ssize(op.tokens));
}
void RadixScript::saw(const Insert& op, const Observation& seen) {
  pay(std::ssize(op.tokens));
  const std::int64_t offered = std::exchange(offered_, 0);
  if (seen.error) return;
  const auto& put = seen.as<Insert::Returns>();
  texts_.keep(op.tokens);
  in_tree_ += units(std::ssize(op.tokens)) - put.length;
  if (config_.page_size >= 16) reach(Seen::kPageOf16);
  if (put.length > 0) reach(Seen::kHeldTokensInserted);
  // The tree has slots for what it held; the others are its own now (PX-74).
  const auto held = put.node.has_value() ? std::min(put.length, offered) : offered;
  const Numbers slots = op.slots.value_or(Numbers());
  if (held > 0) plan(FreeSlots{Numbers(slots.begin(), slots.begin() + held)});
  if (put.node.has_value() && units(std::ssize(op.tokens)) >= config_.page_size) met(*put.node);
}
void RadixScript::saw(const EvictUnits& op, const Observation& seen) {
  pay(0);
  if (seen.failed_with(Code::kPrecondition)) return reach(Seen::kEvictedByTlru);
  if (seen.error) return;
  const auto& went = seen.as<EvictUnits::Returns>();
  evicted(op.tokens, went.tokens, went.nodes);
}
void RadixScript::saw(const MakeRoom& op, const Observation& seen) {
  pay(0);
  if (!seen.error) evicted(op.tokens, 0, seen.as<NodesOnly>().nodes);
}
void RadixScript::saw(const Lock& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  if (seen.as<Delta>().delta < 0) reach(Seen::kLocked);
  if (is_long()) return;
  if (const auto owed = owed_.find(op.node); owed != owed_.end() && owed->second > 0)
    --owed->second;
  else
    locks_.push_back(op.node);
}
void RadixScript::saw(const Unlock& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  if (const auto at = std::ranges::find(locks_, op.node); at != locks_.end())
    locks_.erase(at);
  else
    ++owed_[op.node];
}
void RadixScript::saw(const ResetTree& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  nodes_.clear();
  locks_.clear();
  owed_.clear();
  rows_.clear();
  in_tree_ = 0;
  // Those that were admitted hold nodes that are no more; some are asked to end (PX-79).
  for (const auto& [number, known] : requests_)
    if (known.has_row && draw().percent(30)) plan(Finish{.request = number});
  requests_.clear();
}
void RadixScript::saw(const AllSlots& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error || seen.as<SlotsOnly>().slots.empty()) reach(Seen::kAllSlotsOfAnEmptyTree);
}

// Slots by hand.
void RadixScript::saw(const AllocSlots& op, const Observation& seen) {
  pay(op.count);
  auto what = std::exchange(inserted_next_, std::nullopt);
  if (seen.failed_with(Code::kExhausted)) {
    reach(Seen::kAllocExhausted);
    if (what && draw().percent(60)) plan(EvictUnits{op.count});
  }
  if (seen.error) return;
  taken_ = seen.as<SlotsOnly>().slots;
  if (what) {
    offered_ = std::ssize(taken_);
    what->slots = taken_;
    plan(std::move(*what));
  } else if (!taken_.empty()) {
    rows_.push_back(taken_);
  }
}
void RadixScript::grow(const Numbers& lengths, const Numbers& slots) {
  auto from = slots.begin();
  for (std::size_t i = 0; i < called_.size(); ++i) {
    const std::int64_t row = called_[i];
    Numbers& grown = row < 0 ? rows_.emplace_back() : rows_[static_cast<std::size_t>(row)];
    const auto to = from + (lengths[i] - std::ssize(grown));
    grown.insert(grown.end(), from, to);
    from = to;
  }
  reach(Seen::kPagesByHand);
}
void RadixScript::saw(const AllocExtend& op, const Observation& seen) {
  pay(0);
  if (seen.failed_with(Code::kNotSupported)) reach(Seen::kPagesNotSupported);
  if (seen.failed_with(Code::kExhausted)) reach(Seen::kAllocExhausted);
  if (!seen.error) grow(op.seq_lens, seen.as<SlotsOnly>().slots);
}
void RadixScript::saw(const AllocDecode& op, const Observation& seen) {
  pay(0);
  if (!seen.error) grow(op.seq_lens, seen.as<SlotsOnly>().slots);
}
void RadixScript::saw(const FreeSlots& op, const Observation& /*seen*/) {
  pay(std::ssize(op.slots));
}
void RadixScript::saw(const FreeSegment& op, const Observation& seen) {
  pay(std::ssize(op.slots));
  if (seen.error && op.start % config_.page_size != 0) reach(Seen::kSegmentWithinAPage);
}
void RadixScript::saw(const GroupBegin& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error) return reach(Seen::kSecondGroup);
  in_group_ = true;
}
void RadixScript::saw(const GroupEnd& /*op*/, const Observation& seen) {
  pay(0);
  if (!seen.error) in_group_ = false;
}

// Requests.
void RadixScript::saw(const FileRequest& op, const Observation& seen) {
  pay(std::ssize(op.tokens));
  if (seen.error) return;
  requests_[op.request] = {.tokens = op.tokens};
  texts_.keep(op.tokens);
  if (op.extra || op.salt) reach(Seen::kRequestInANamespace);
  if (requests_.size() > 32) reach(Seen::kRequestsBeyond32);
}
void RadixScript::saw(const Admit& op, const Observation& seen) {
  Request& known = requests_[op.request];
  pay(std::ssize(known.tokens));
  if (seen.error) return;
  const auto& hit = seen.as<FoundPrefix>();
  known.admitted = true;
  known.row = hit.length;
  if (hit.length > 0) met(hit.node);
}
void RadixScript::saw(const Extend& op, const Observation& seen) {
  Request& known = requests_[op.request];
  pay(std::ssize(known.tokens));
  if (seen.error && !seen.failed_with(Code::kExhausted)) return;
  known.tokens.insert(known.tokens.end(), op.append.begin(), op.append.end());
  // Evicted nodes are reported with the error, too.
  if (seen.returns) {
    const Numbers& nodes = seen.as<Extend::Returns>().nodes;
    if (!nodes.empty()) reach(Seen::kExtendEvicts);
    evicted(0, 0, nodes);
  }
  if (seen.error) {
    reach(Seen::kExtendExhausted);
    if (draw().percent(40)) plan(known.has_row ? finish() : withdraw());
    return;
  }
  known.has_row = true;
  known.row += op.tokens;
}
void RadixScript::saw(const Withdraw& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  requests_[op.request].admitted = false;
  reach(Seen::kWithdrawn);
}
void RadixScript::saw(const Finish& op, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  if (!op.keep) reach(Seen::kFinishedWithoutKeeping);
  const auto known = requests_.find(op.request);
  if (known == requests_.end()) return;
  texts_.keep(std::move(known->second.tokens));
  requests_.erase(known);
}

void RadixScript::saw(const TakeEvents& /*op*/, const Observation& seen) {
  pay(0);
  if (seen.error) return;
  for (const ShownEvent& event : seen.as<TakeEvents::Returns>().events) {
    if (event.kind == EventKind::kRemoved) reach(Seen::kRemovedEvent);
    if (event.kind == EventKind::kCleared) reach(Seen::kClearedEvent);
    if (event.kind == EventKind::kStored) reach(Seen::kStoredEvent);
    if (event.keys && event.keys->size() > 1) reach(Seen::kEventOfSeveralPages);
  }
}
void RadixScript::saw(const ShowTree& /*op*/, const Observation& seen) {
  pay(config_.slots);
  if (seen.error) return;
  const auto& tree = seen.as<ShowTree::Returns>();
  available_ = tree.available;
  in_tree_ = tree.total;
  if (!tree.staged.empty()) reach(Seen::kStagedSlots);
  if (tree.available == 0) reach(Seen::kNothingAvailable);
  if (config_.slots > kThousand) reach(Seen::kSlotsBeyond1024);
  nodes_.clear();
  std::map<std::int64_t, std::int64_t> children;
  std::map<std::int64_t, std::int64_t> depths;
  for (const ShownNode& node : tree.nodes) {
    met(node.node);
    if (++children[node.parent] > 64) reach(Seen::k64Children);
    if (node.lock > 1) reach(Seen::kLockedBranch);
    if (node.lock > kOneByte) reach(Seen::kLockedBeyondOneByte);
    if (node.lock > kTwoBytes) reach(Seen::kLockedBeyondTwoBytes);
    if (node.hits > kTwoBytes) reach(Seen::kHitsBeyondTwoBytes);
    if (node.tokens.size() >= 256) reach(Seen::kNodeOf256Tokens);
    if (const std::int64_t depth = depths[node.node] = depths[node.parent] + 1; depth >= 64)
      reach(Seen::kDepth64);
  }
}

}  // namespace kvo::prefix
