#include "properties/sampling/faults.hpp"

namespace kvo::sampling {
namespace {

using seeding::Fault;

constexpr std::string_view kKind = "sampling.pipeline";
constexpr std::string_view kSteps = "reference/sampling/pipeline.cpp";
constexpr std::string_view kBlocks = "optimized/sampling/selection.hpp";
constexpr std::string_view kReach = "optimized/sampling/selection.cpp";
constexpr std::string_view kFast = "optimized/sampling/selecting_sampler.cpp";

std::vector<Fault> faults_of_steps() {
  return {
      {kKind,
       "rewards_negative_logits",
       "a penalty divides logits below 0 too, and makes repeated tokens likelier",
       "the sign of a logit overlooked",
       {{kSteps, "penalized(value, penalty)", "canonical(value / penalty)"}}},
      {kKind,
       "penalizes_the_last_id_only",
       "only the newest token is penalized",
       "a window of the history with a fixed size of one",
       {{kSteps, "if (id < 0 || id >= std::ssize(logits)) continue;",
         "if (id < 0 || id >= std::ssize(logits) || id != generated.back()) continue;"}}},
      {kKind,
       "keeps_one_too_many",
       "top-k keeps the k + 1 largest",
       "an index off by one",
       {{kSteps, "descending[static_cast<std::size_t>(k) - 1]",
         "descending[static_cast<std::size_t>(k)]"}}},
      {kKind,
       "stops_before_p",
       "top-p leaves out the token with which the sum reaches p",
       "the sum is compared before it is added to",
       {{kSteps, "std::span(order).subspan(kept)",
         "std::span(order).subspan(kept > 1 ? kept - 1 : kept)"}}},
      {kKind,
       "later_of_equal_kept",
       "of equal probabilities top-p keeps those with the larger index",
       "an order that is not stable",
       {{kSteps, "std::iota(order.begin(), order.end(), 0);",
         "std::iota(order.rbegin(), order.rend(), 0);"}}},
      {kKind,
       "last_of_equal_wins",
       "of equal logits the last one is the greedy choice",
       ">= in place of >",
       {{kSteps, "!(value > largest)", "!(value >= largest)"}}},
      {kKind,
       "last_token_never_greedy",
       "the last token of the vocabulary is never the greedy choice",
       "a bound off by one",
       {{kSteps, "!(value > largest)", "!(value > largest) || i + 1 == std::ssize(logits)"}}},
      {kKind,
       "maximum_not_subtracted",
       "probabilities of large logits are infinite, so that none is left",
       "softmax by its textbook formula",
       {{kSteps, "exponential(value - largest)", "exponential(value)"}}},
      {kKind,
       "first_position_used",
       "the token is chosen from the first position of a prompt",
       "the offset of the last position left out",
       {{kSteps, "(logits.shape[1] - 1) * logits.strides[1]",
         "std::int64_t{0} * logits.strides[1]"}}},
      {kKind,
       "draws_from_all",
       "a token is drawn as if temperature were 1",
       "an option that is read but not used",
       {{kSteps, "apply_temperature(row, config.temperature);", "(void)0;"}}},
  };
}

std::vector<Fault> faults_of_selection() {
  return {
      {kKind,
       "rest_of_lanes_not_seen",
       "what does not fill a vector is not looked at",
       "a vocabulary whose size is no multiple of the vector's",
       {{kBlocks, "some[at] > lanes[i] ? some[at] : lanes[i]", "lanes[i]"}}},
      {kKind,
       "penalized_twice_there",
       "a penalized token is a candidate with its old logit as well",
       "an index of changed entries that is not asked",
       {{kBlocks, "double{part[i]} >= floor() && !is_skipped(index)",
         "double{part[i]} >= floor()"}}},
      {kKind,
       "penalized_come_last",
       "penalized tokens stand behind the others, whatever their ids",
       "two sorted lists joined and not merged",
       {{kFast,
         "std::ranges::inplace_merge(found, found.begin() + untouched, {}, &Candidate::index);",
         "(void)untouched;"}}},
      {kKind,
       "forgets_first_chunk",
       "where top-p needs more than the first tokens that were sorted it keeps too few",
       "a count that starts anew with each chunk",
       {{kReach, "sorted + i + 1", "i + 1"}}},
      {kKind,
       "nan_survives",
       "top-k leaves NaN, and probabilities are no numbers",
       "a comparison turned round",
       {{kFast, "!(value >= kth)", "value < kth"}}},
      {kKind,
       "equal_quotients_parted",
       "of tokens that a temperature makes equal only some stay",
       "a threshold taken before the division",
       {{kFast, "if (!floor) return std::nullopt;", "if (!floor && kth == 0) return std::nullopt;"},
        {kFast, "reaching(row, blocks, *floor)", "reaching(row, blocks, kth)"}}},
      {kKind,
       "k_kept_in_one_byte",
       "top-k keeps 255 tokens at most",
       "a count in too few bits",
       {{kBlocks, "static_cast<std::ptrdiff_t>(k_) - 1",
         "static_cast<std::ptrdiff_t>(k_ < 255 ? k_ : 255) - 1"}}},
  };
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> kFaults = [] {
    std::vector<Fault> all = faults_of_steps();
    const std::vector<Fault> more = faults_of_selection();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kFaults;
}

}  // namespace kvo::sampling
