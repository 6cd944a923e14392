#include "properties/runner/shrinker.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "properties/runner/shrink_passes.hpp"
#include "reference/contract/describe/shrink.hpp"

namespace kvo {
namespace {

// Takes large parts out of a long script, each candidate of which costs as much as the case itself.
bool shrink_long(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kLong = 256;
  constexpr std::uint64_t kRuns = 24;  // of the whole script
  constexpr std::size_t kChunks = 32;
  constexpr std::size_t kRounds = 16;
  if (trial.script.size() < kLong) return false;
  return fails.apart(kRuns * trial.script.size(), [&] {
    bool any = false;
    for (bool helped = true; helped && trial.script.size() >= kLong && fails.may_ask();) {
      helped = drop_named(trial, fails);
      helped = drop_values(trial, fails) || helped;
      helped = drop_operations(trial, fails, 1 + trial.script.size() / kChunks) || helped;
      helped = drop_tail(trial, fails) || helped;
      helped = join_rounds(trial, fails, kRounds) || helped;
      helped = cut_axes(trial, fails) || helped;
      any |= helped;
    }
    return any;
  });
}

// One after the other; what costs more, only where the rest does not help.
bool shrink_once(Shrinkable& trial, Judge& fails, const Script& queries) {
  constexpr std::size_t kMostOfRounds = 128;
  bool helped = drop_operations(trial, fails, 1);
  helped = end_with_query(trial, fails, queries) || helped;
  helped = join_lists(trial, fails) || helped;
  if (trial.script.size() <= kMostOfRounds) helped = join_rounds(trial, fails, 2) || helped;
  helped = shrink_arguments(trial, fails) || helped;
  helped = shrink_config(trial, fails) || helped;
  helped = renumber(trial, fails) || helped;
  helped = cut_axes(trial, fails) || helped;
  helped = make_elements_plain(trial, fails) || helped;
  return helped || drop_values(trial, fails) || scale_together(trial, fails) ||
         lower_together(trial, fails) || drop_numbered(trial, fails) ||
         drop_and_swap(trial, fails) || drop_several(trial, fails);
}

}  // namespace

bool Judge::operator()(const Shrinkable& trial) {
  if (!may_ask()) return false;
  left_ -= std::min<std::uint64_t>(left_, kOperationsOfAttempt + trial.script.size());
  return fails_(trial);
}

bool Judge::replaces(Shrinkable& trial, Shrinkable candidate) {
  // What a pass did not change is shared.
  const bool same =
      candidate.config.get() == trial.config.get() &&
      std::ranges::equal(
          candidate.script, trial.script, {}, [](const Op& op) { return op.arguments().get(); },
          [](const Op& op) { return op.arguments().get(); });
  if (same || !(*this)(candidate)) return false;
  trial = std::move(candidate);
  return true;
}

bool Judge::replaces(Shrinkable& trial, Script candidate) {
  return replaces(trial, Shrinkable{std::move(candidate), trial.config});
}

bool Judge::apart(std::uint64_t operations, const std::function<bool()>& shrink) {
  const std::uint64_t before = std::exchange(left_, operations);
  const bool shrunk = shrink();
  left_ = before;
  return shrunk;
}

Script simplest_queries(const std::vector<const OpKind*>& operations) {
  Script queries;
  for (const OpKind* kind : operations) {
    if (kind->returns->fields.empty()) continue;
    const bool numbers_only = std::ranges::all_of(kind->arguments->fields, [](const Field& field) {
      return field.type->is_optional() || field.type->type_class == TypeClass::kInteger;
    });
    if (numbers_only)
      queries.emplace_back(*kind, Record(*kind->arguments, kind->arguments->made()));
  }
  return queries;
}

void for_each_simpler(const Script& script, const std::function<bool(const Script&)>& candidate) {
  for (std::size_t size = script.size(); size > 0; size /= 2)
    for (std::size_t begin = 0; begin < script.size(); begin += size)
      if (candidate(without(script, begin, size))) return;
  for (std::size_t i = 0; i < script.size(); ++i) {
    const auto attempt = [&](Record smaller) {
      Script simpler = script;
      simpler[i] = Op(script[i].kind(), std::move(smaller));
      return candidate(simpler);
    };
    if (shrink_record(script[i].arguments(), attempt)) return;
  }
}

bool shrink_trial(Shrinkable& trial, Judge& fails, const Script& queries) {
  bool any = shrink_long(trial, fails);
  while (fails.may_ask() && shrink_once(trial, fails, queries)) any = true;
  // Worth an attempt, too, where the budget is spent.
  return fails.apart(1, [&] { return make_elements_plain(trial, fails); }) || any;
}

Script shrink_script(Script script, const std::function<bool(const Script&)>& fails,
                     std::uint64_t most_attempts, const Script& queries) {
  Shrinkable trial{std::move(script)};
  Judge judge([&](const Shrinkable& candidate) { return fails(candidate.script); }, most_attempts);
  shrink_trial(trial, judge, queries);
  return std::move(trial.script);
}

}  // namespace kvo
