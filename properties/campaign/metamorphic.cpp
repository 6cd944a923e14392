#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "properties/runner/shrunk.hpp"
#include "reference/contract/describe/shrink.hpp"

namespace kvo {
namespace {

// A subject alone on a script: what it observed until it failed, if it did.
struct Alone {
  std::vector<Observation> seen = {};
  Verdict verdict = {};
  Timings timings = {};
};

Alone run_alone(const CasePlan& plan, const Subject& subject, const Script& script) {
  const std::array<const Subject*, 1> one{&subject};
  // The law knows the errors of the rules alone.
  const bool settles = plan.baseline != nullptr && subject.conventions.any();
  Lockstep lockstep(settles ? plan.baseline : nullptr, one, plan.setup,
                    {.invariants_every = plan.options.invariants_every,
                     .compare = !settles,
                     .returns_answers = settles});
  Alone alone;
  for (const Op& op : script) {
    if (!lockstep.worthwhile()) break;
    alone.seen.push_back(lockstep.step(op));
  }
  alone.verdict = lockstep.participants().front().verdict;
  alone.timings = lockstep.participants().front().timings;
  for (std::size_t at = 0; at < alone.seen.size(); ++at)
    if (alone.seen[at].unsupported && alone.verdict.outcome == Outcome::kAgrees)
      alone.verdict = {.outcome = Outcome::kNotSupported,
                       .op_index = at,
                       .op = std::string(script[at].kind().name),
                       .reason = "not supported"};
  return alone;
}

CasePlan varied_plan(CasePlan plan, const Variation& variation) {
  if (variation.config) plan.setup.config = variation.config;
  return plan;
}

std::optional<Difference> difference_of(const Pair& pair, const Observation& drawn,
                                        const Observation& varied) {
  if (!pair.canonical) return observation_difference(drawn, varied);
  return observation_difference(pair.canonical(drawn), pair.canonical(varied));
}

// What went wrong in the varied run, told by the operation of the drawn script that it stands for.
Verdict told_as_drawn(Verdict verdict, const Variation& variation, const Script& script,
                      std::string_view how) {
  verdict.reason += "; in " + std::string(how) + ", " + verdict.op;
  std::size_t at = 0;
  for (const Pair& pair : variation.pairs)
    if (pair.varied <= verdict.op_index) at = pair.drawn;
  verdict.op_index = at;
  verdict.op = script[at].kind().name;
  return verdict;
}

}  // namespace

LawRun MetamorphicLaw::run(const CasePlan& plan, const Subject* baseline,
                           std::span<const Subject* const> subjects, OpStream& ops) const {
  LawRun result;
  if (baseline == nullptr && subjects.empty()) return result;
  const std::array<const Subject*, 1> leading{baseline != nullptr ? baseline : subjects.front()};
  Lockstep lockstep(nullptr, leading, plan.setup);
  Script script;
  while (lockstep.worthwhile()) {
    auto op = ops.next();
    if (!op) break;
    ops.observe(*op, lockstep.step(*op), result.labels);
    script.push_back(std::move(*op));
  }
  result.operations = script.size();
  if (baseline != nullptr && std::ranges::find(subjects, baseline) == subjects.end()) {
    const Lockstep::Participant& led = lockstep.participants().front();
    result.judgements.push_back(
        {.subject = led.subject, .verdict = led.verdict, .timings = led.timings});
  }
  for (const Subject* subject : subjects)
    result.judgements.push_back(judge(plan, *subject, script));
  return result;
}

Variation MetamorphicLaw::vary(const CasePlan& plan, const Script& script,
                               const std::vector<Observation>& seen) const {
  // A log may ask for a law of another contract, which has nothing to say of it.
  if (!applies_to(*plan.kind)) return {};
  return terms_.transformation({*plan.kind, plan.setup, script, seen});
}

std::vector<ScriptLine> MetamorphicLaw::shown(const CasePlan& plan, const Subject& subject,
                                              const std::vector<Op>& script,
                                              const Verdict& verdict) const {
  const Alone drawn = run_alone(plan, subject, script);
  if (drawn.verdict.failed()) return lines_of(script, verdict);
  const Variation variation = vary(plan, script, drawn.seen);
  const Alone varied = run_alone(varied_plan(plan, variation), subject, variation.script);
  std::vector<ScriptLine> lines;
  if (variation.config)
    lines.push_back({.text = "config of this script: " + config_text(variation.config)});
  auto pair = variation.pairs.begin();
  std::size_t next = 0;  // of the original script
  for (std::size_t at = 0; at < variation.script.size(); ++at) {
    ScriptLine& line = lines.emplace_back(ScriptLine{.text = op_text(variation.script[at])});
    const bool paired = pair != variation.pairs.end() && pair->varied == at;
    if (paired) next = pair->drawn;
    const bool same = next < script.size() && op_text(script[next]) == line.text;
    line.mark = same ? "" : paired ? "~" : "+";
    if (same || paired) line.op_index = next++;
    if (line.mark == "~") line.notes.push_back("original script: " + op_text(script[pair->drawn]));
    const bool breaks = varied.verdict.failed();
    if (breaks ? varied.verdict.op_index == at : paired && pair->drawn == verdict.op_index)
      line.mark.insert(0, ">");
    if (paired && line.mark.starts_with('>') && at < varied.seen.size()) {
      const auto compared = [&](const Observation& seen) {
        return observation_text(pair->canonical ? pair->canonical(seen) : seen);
      };
      line.notes.push_back("original script returns: " + compared(drawn.seen[pair->drawn]));
      line.notes.push_back("this script returns:     " + compared(varied.seen[at]));
    }
    if (paired) ++pair;
  }
  return lines;
}

Judgement MetamorphicLaw::judge(const CasePlan& plan, const Subject& subject,
                                const Script& script) const {
  Alone drawn = run_alone(plan, subject, script);
  Judgement judgement{
      .subject = &subject, .verdict = drawn.verdict, .timings = std::move(drawn.timings)};
  if (drawn.verdict.outcome != Outcome::kAgrees) return judgement;
  const Variation variation = vary(plan, script, drawn.seen);
  if (variation.pairs.empty()) {
    judgement.verdict = {.outcome = Outcome::kVacuous, .reason = "nothing to change in the script"};
    return judgement;
  }
  const Alone varied = run_alone(varied_plan(plan, variation), subject, variation.script);
  for (const Pair& pair : variation.pairs) {
    if (pair.varied >= varied.seen.size()) break;
    const bool last = pair.varied + 1 == varied.seen.size();
    if (last && varied.verdict.outcome != Outcome::kAgrees) break;
    ++judgement.evidence.compared;
    auto difference = difference_of(pair, drawn.seen[pair.drawn], varied.seen[pair.varied]);
    if (!difference) continue;
    difference->varied = std::string(terms_.how);
    judgement.verdict = {.outcome = Outcome::kMismatch,
                         .op_index = pair.drawn,
                         .op = std::string(script[pair.drawn].kind().name),
                         .difference = std::move(*difference)};
    return judgement;
  }
  if (varied.verdict.outcome != Outcome::kAgrees)
    judgement.verdict = told_as_drawn(varied.verdict, variation, script, terms_.how);
  return judgement;
}

Observation error_only(const Observation& seen) {
  return {.error = seen.error};
}

std::optional<std::int64_t> integer_of(const Op& op, std::string_view member) {
  for (const auto& [name, value] : integers_of(op.arguments()))
    if (name == member) return value;
  return std::nullopt;
}

Op with_renamed(const Op& op, std::string_view member,
                const std::function<std::int64_t(std::int64_t)>& renamed) {
  const auto value = integer_of(op, member);
  const std::int64_t to = value ? renamed(*value) : 0;
  if (!value || to == *value) return op;
  return {op.kind(), *with_integer(op.arguments(), {member, *value}, to)};
}

bool NewNumbers::knows(const Op& op) const {
  return std::ranges::all_of(members_, [&](std::string_view member) {
    const auto number = integer_of(op, member);
    return !number || numbers_.contains(*number);
  });
}

Op NewNumbers::named(Op op) const {
  constexpr std::int64_t kOfNothing = 1 << 20;
  for (const std::string_view member : members_)
    op = with_renamed(op, member, [&](std::int64_t number) {
      const auto known = numbers_.find(number);
      return known != numbers_.end() ? known->second : number + kOfNothing;
    });
  return op;
}

Variation owner_by_owner(const Drawn& drawn, const Owners& owners) {
  std::map<std::int64_t, std::int64_t> owner_of_handle;
  std::vector<std::pair<std::int64_t, std::size_t>> order;  // owner and index
  std::set<std::int64_t> all;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    std::optional<std::int64_t> owner = owners.of(op);
    if (const auto handle = integer_of(op, "handle")) {
      const auto found = owner_of_handle.find(*handle);
      owner = found != owner_of_handle.end() ? std::optional(found->second) : std::nullopt;
    }
    if (!owner) continue;
    if (const auto given = owners.handle(drawn.seen[at])) owner_of_handle[*given] = *owner;
    order.emplace_back(*owner, at);
    all.insert(*owner);
  }
  if (all.size() < 2) return {};
  std::ranges::stable_sort(order, std::greater(), [](const auto& item) { return item.first; });
  Variation varied;
  static constexpr std::array<std::string_view, 1> kMembers{"handle"};
  NewNumbers handles(kMembers, owners.first_handle);
  for (const auto& [owner, at] : order) {
    varied.pair(at, handles.named(drawn.script[at]), owners.without_handle);
    if (const auto given = owners.handle(drawn.seen[at])) handles.made(*given);
  }
  return varied;
}

Tensor axis_range(const Tensor& tensor, std::size_t axis, std::int64_t begin, std::int64_t end) {
  Tensor head = cut_axis(tensor, axis, end);
  if (begin == 0) return head;
  // The entries before `begin` are taken out of every block of the axes before.
  std::size_t inner = dtype_bytes(tensor.dtype);
  for (std::size_t i = axis + 1; i < head.shape.size(); ++i)
    inner *= static_cast<std::size_t>(head.shape[i]);
  const std::size_t block = static_cast<std::size_t>(end) * inner;
  const std::size_t skipped = static_cast<std::size_t>(begin) * inner;
  Tensor tail{.shape = head.shape, .dtype = head.dtype, .bytes = {}};
  tail.shape[axis] = end - begin;
  std::vector<std::byte>& bytes = tail.bytes.own();
  for (std::size_t at = 0; block > 0 && at < head.bytes.size(); at += block)
    bytes.insert(bytes.end(), head.bytes.begin() + static_cast<std::ptrdiff_t>(at + skipped),
                 head.bytes.begin() + static_cast<std::ptrdiff_t>(at + block));
  return tail;
}

}  // namespace kvo
