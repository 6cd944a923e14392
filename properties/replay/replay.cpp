#include "properties/replay/replay.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "properties/runner/led_reference.hpp"

namespace kvo::replay {
namespace {

// Tokens of a case that an oracle judges in seconds.
constexpr std::int64_t kMostJudged = 10'000;

}  // namespace

Replay::Replay(const Contracts& contracts, std::vector<Request> requests,
               const std::vector<Comparison>& comparisons, ReplayOptions options)
    : requests_(std::move(requests)),
      options_(std::move(options)),
      reference_of_(contracts.reference_finder()) {
  std::ranges::stable_sort(requests_, {}, &Request::arrival_us);
  const LoweringInput all{.requests = requests_,
                          .schedule = options_.schedule,
                          .policy = options_.lowering,
                          .seed = options_.seed};
  for (const Comparison& comparison : comparisons) {
    for (const Lowering* lowering : contracts.lowerings_of(*comparison.kind)) {
      const std::int64_t scale = options_.scale > 0 ? options_.scale : scale_of(*lowering, all);
      kinds_.push_back({comparison, lowering, contracts.oracle_of(*comparison.kind), scale});
    }
  }
  if (options_.requests > 0)
    requests_.resize(std::min(requests_.size(), static_cast<std::size_t>(options_.requests)));
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const std::uint64_t size =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(options_.lowering.requests_per_case),
                                requests_.size()) *
        static_cast<std::uint64_t>(kinds_[kind].lowering->windows);
    for (std::uint64_t first = 0; first < requests_.size(); first += size)
      windows_.push_back({first, kind, first / size, std::min(requests_.size() - first, size)});
  }
  std::ranges::stable_sort(windows_, {}, &Window::first);
}

Policies Replay::policies(std::uint64_t index) const {
  const Window& window = windows_[index];
  return varied({options_.schedule, options_.lowering}, options_.varied, options_.seed,
                kinds_[window.kind].lowering->full_name(), window.number);
}

CasePlan Replay::plan(std::uint64_t index) const {
  const auto& [first, kind_number, number, count] = windows_[index];
  const ReplayedKind& kind = kinds_[kind_number];
  const Policies own = policies(index);
  LoweringInput input{.requests = std::span(requests_).subspan(first, count),
                      .schedule = own.schedule,
                      .policy = own.lowering,
                      .seed = options_.seed + number,
                      .profile = options_.profile,
                      .earlier = std::span(requests_).first(first)};
  input.schedule.scale = kind.scale;
  const std::string name(kind.lowering->name);
  CasePlan plan{
      .kind = kind.comparison.kind,
      .name = (name.empty() ? "" : name + "-") + "requests" + std::to_string(first) + "-" +
              std::to_string(first + count - 1),
      .note = "lowered from a trace, policy " + std::to_string(options_.schedule.version) + ": " +
              sizes_text(own),
      .setup = kind.lowering->setup(input),
      .options = {.invariants_every = options_.invariants_every,
                  .fill_bytes = 0,
                  // Attention over whole histories costs far more than the replay itself: an
                  // oracle judges the first window beside the comparison, if that is short.
                  .oracle = number == 0 && input.tokens() <= kMostJudged ? kind.oracle : nullptr},
      .baseline = kind.comparison.reference,
      .subjects = kind.comparison.subjects,
      .reference_of = reference_of_,
      .history = kind.oracle};
  if (options_.keep_lookups) plan.lookup_figures = name.empty() ? "" : name + ": ";
  plan.setup.profile = options_.profile;
  plan.setup.schedule = schedule_of(case_seed(options_.seed, index));
  lead(plan);
  plan.ops = [input, lowering = kind.lowering] { return lowering->lower(input); };
  return plan;
}

}  // namespace kvo::replay
