// reference/groups/plan.hpp: kind `groups.plan`: from layers to groups and sizes.
//
// Source   rules GR-44, GR-51 to GR-55.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/groups/cache.hpp"
#include "reference/groups/quirks.hpp"

namespace kvo::groups {

/// A layer of a model.
KVO_RECORD(Layer, (std::string, name, "of the layer"),
           (GroupKind, kind, "what it remembers", GroupKind::kFull),
           (std::int64_t, block_size, "tokens of a block", 1),
           (std::int64_t, heads, "heads that have keys", 1, may_be_absent),
           (std::int64_t, head_size, "elements of 4 bytes of a head", 1, may_be_absent),
           (std::optional<std::int64_t>, window, "positions that a token sees"),
           (std::optional<std::int64_t>, chunk, "positions of a chunk"),
           (std::int64_t, state, "of mamba: elements of a state", 1, may_be_absent),
           (std::optional<std::int64_t>, padded, "bytes of its page, if it is padded"))
KVO_RECORD(PlannedGroup, (std::string, kind, "that of its layers, or uniform"),
           (std::int64_t, block_size, "tokens of a block"), (std::int64_t, page, "bytes"),
           (std::vector<std::string>, layers, "names"))
KVO_RECORD(GroupReturns, (std::vector<PlannedGroup>, groups, "in order"))
KVO_OPERATION(GroupLayers, group, "Forms groups of layers (GR-51 to GR-53).", GroupReturns,
              (std::vector<Layer>, layers, "of the model, in order"),
              (bool, hybrid, "whether there may be several groups", true, may_be_absent))
KVO_RECORD(SizesReturns, (std::int64_t, scheduler_block, "tokens that all block sizes divide"),
           (std::int64_t, hash_block, "tokens of a key"),
           (std::int64_t, alignment, "tokens that the length of a hit is a multiple of"))
KVO_OPERATION(ShowSizes, sizes, "Sizes that groups have in common (GR-54).", SizesReturns,
              (std::vector<Group>, groups, "in order"),
              (bool, caching, "whether blocks get keys", true, may_be_absent),
              (std::optional<std::int64_t>, unit, "tokens of a key that are wanted"))
KVO_RECORD(PositionReturns, (std::int64_t, position, "tokens"))
KVO_OPERATION(Position, position, "Where a state of a prompt is held (GR-44).", PositionReturns,
              (Count, tokens, "of the prompt"), (Count, block, "tokens that it is a multiple of"),
              (bool, drop, "whether hits are dropped", false, may_be_absent),
              (std::int64_t, lookahead, "tokens that keys cover beyond", 0, may_be_absent))
KVO_RECORD(BoundariesReturns, (Ids, boundaries, "tokens, ascending"))
KVO_OPERATION(Boundaries, boundaries, "Where a prompt is promised to be hit again (GR-55).",
              BoundariesReturns, (Count, prompt, "its tokens"),
              (Count, block, "tokens that hits are multiples of"),
              (bool, drop, "whether hits are dropped", false, may_be_absent))

#define KVO_GROUPS_PLAN_OPERATIONS \
  groups::GroupLayers, groups::ShowSizes, groups::Position, groups::Boundaries
using PlanOps = boost::mp11::mp_list<KVO_GROUPS_PLAN_OPERATIONS>;

/// Most layers of a model.
inline constexpr std::size_t kMostLayers = 4096;

/// The functions; sizes are at least 1 and at most kMostTokens.
class Plan {
 public:
  virtual ~Plan() = default;
  /// Errors  kPrecondition: several windows in full attention, or layers of several kinds without
  ///         hybrid, with kMlaWindowsAbort windows of mla among them; kNotSupported: pages that
  ///         cannot be made equal.
  [[nodiscard]] virtual Result<std::vector<PlannedGroup>> group(const std::vector<Layer>& layers,
                                                                bool hybrid) const = 0;
  /// Errors  kPrecondition: a unit that does not divide the block sizes.
  [[nodiscard]] virtual Result<SizesReturns> sizes(const std::vector<Group>& groups, bool caching,
                                                   std::optional<std::int64_t> unit) const = 0;
  [[nodiscard]] virtual std::int64_t position(std::int64_t tokens, std::int64_t block, bool drop,
                                              std::int64_t lookahead) const = 0;
  [[nodiscard]] virtual Ids boundaries(std::int64_t prompt, std::int64_t block,
                                       bool drop) const = 0;
};
using MakePlan = std::function<std::unique_ptr<Plan>(QuirkSet<PlanQuirk> quirks)>;

/// The cache kind `groups.plan`.
[[nodiscard]] const CacheKind& plan_kind();
/// A subject whose plans come from `make`.
[[nodiscard]] Subject make_plan_subject(std::string variant, std::string doc, MakePlan make);

}  // namespace kvo::groups

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_GROUPS_PLAN_OPERATIONS)
}  // namespace kvo
