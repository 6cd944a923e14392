// Random cases for the caches of contract positional.
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/positional/script.hpp"

namespace kvo::positional {
namespace {

Generator generator(const CacheKind& kind, const std::vector<Label>& both,
                    const std::vector<Label>& documented_only) {
  Generator made{.kind = &kind,
                 .make =
                     [&kind](const CaseTerms& terms) {
                       Draw draw(terms.seed);
                       DrawnCase drawn = draw_case(draw, kind, terms.scale);
                       Setup setup{.profile = terms.profile, .config = config_of(drawn, kind)};
                       auto script =
                           std::make_unique<PositionalScript>(draw.below(~std::uint64_t{0}), kind,
                                                              std::move(drawn), setup, terms.scale);
                       return GeneratedCase{std::move(setup), std::move(script)};
                     },
                 .original_labels = {},
                 .documented_labels = {},
                 .lives_long = std::ranges::find(both, Label::kIdleFor256Passes) != both.end()};
  for (const Label label : both) made.original_labels.push_back(label_text(label));
  made.documented_labels = made.original_labels;
  for (const Label label : documented_only) made.documented_labels.push_back(label_text(label));
  if (&kind == &kind_of(MemberKind::kEncoder)) return made;
  // Some need a window, or an encoder beside other members.
  std::vector<std::string_view> of_others;
  if (std::ranges::find(both, Label::k64EvictionsOfASequence) == both.end())
    of_others.emplace_back("refused while two evict");
  if (&kind != &wrapper_kind()) of_others.emplace_back("put after unwinding");
  return with_orders<PositionalScript>(std::move(made), of_others);
}

// What a causal cache reaches, and more.
std::vector<Label> causal_and(std::initializer_list<Label> more) {
  using enum Label;
  static constexpr std::array kOfOthers{
      kWindowExceeded,        kRingOfCellsReused, kEncoderReput,
      kEncoderResultGivenUp,  kWrapperUnwound,    kChunkBoundaryCrossed,
      kResumeRefused,         kMemberSelected,    kRemovalRefusedForTheWindow,
      k64EvictionsOfASequence};
  std::vector<Label> labels;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Label>>([&](auto one) {
    if (std::ranges::find(kOfOthers, one.value) == kOfOthers.end()) labels.push_back(one.value);
  });
  labels.insert(labels.end(), more);
  return labels;
}

}  // namespace

std::vector<Generator> generators() {
  using enum Label;
  const auto windowed =
      causal_and({kWindowExceeded, kRingOfCellsReused, kResumeRefused, k64EvictionsOfASequence});
  return {generator(kind_of(MemberKind::kCausal), causal_and({}), {kResumeRefused}),
          generator(kind_of(MemberKind::kSwa), windowed, {kRemovalRefusedForTheWindow}),
          generator(kind_of(MemberKind::kSwaMem), windowed, {kRemovalRefusedForTheWindow}),
          generator(kind_of(MemberKind::kChunked), causal_and({kChunkBoundaryCrossed}),
                    {kResumeRefused}),
          generator(kind_of(MemberKind::kEncoder),
                    {kEncoderReput, kReservePass, kEncoderResultGivenUp, kFiveLayers, kFourHeads,
                     kHeadsOf64Elements},
                    {}),
          generator(wrapper_kind(),
                    causal_and({kWindowExceeded, kRingOfCellsReused, kResumeRefused,
                                k64EvictionsOfASequence, kChunkBoundaryCrossed, kEncoderReput,
                                kWrapperUnwound, kMemberSelected}),
                    {kRemovalRefusedForTheWindow})};
}

}  // namespace kvo::positional
