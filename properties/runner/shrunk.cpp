#include "properties/runner/shrunk.hpp"

#include <array>
#include <map>
#include <utility>

#include <boost/json.hpp>

#include "properties/runner/explained.hpp"
#include "properties/runner/inside.hpp"
#include "reference/contract/describe/element.hpp"

namespace kvo {
namespace {

constexpr std::size_t kMostText = 300;

std::string cut(std::string text) {
  if (text.size() > kMostText) text = text.substr(0, kMostText) + "...";
  return text;
}

// What the baseline observes of a script; a subject without one is its own.
std::vector<traces::Step> recorded(const CasePlan& plan, const Subject& subject,
                                   const Script& script) {
  const std::array<const Subject*, 1> leading{plan.baseline != nullptr ? plan.baseline : &subject};
  Lockstep lockstep(nullptr, leading, plan.setup);
  std::vector<traces::Step> steps;
  for (const Op& op : script) steps.push_back({op, lockstep.step(op)});
  return steps;
}

std::vector<traces::Step> unrecorded(const Script& script) {
  std::vector<traces::Step> steps;
  for (const Op& op : script) steps.push_back({op, std::nullopt});
  return steps;
}

// Which operations up to the guilty one stored the elements that differ: tags differ.
std::vector<std::string> origins_of(const Script& script, const Verdict& verdict) {
  constexpr std::size_t kMostElements = 1'000'000;
  if (verdict.difference.elements == 0) return {};
  std::map<std::string, std::vector<std::string>> found{{verdict.difference.want, {}},
                                                        {verdict.difference.got, {}}};
  std::size_t looked_at = 0;
  for (std::size_t i = 0; i < script.size() && i <= verdict.op_index; ++i)
    for_each_tensor(script[i].arguments().type(), script[i].arguments().get(),
                    [&](std::string_view place, const Tensor& tensor, AxisNames axes) {
                      const std::size_t count = tensor.bytes.size() / dtype_bytes(tensor.dtype);
                      for (std::size_t at = 0; at < count && looked_at < kMostElements; ++at) {
                        ++looked_at;
                        const auto known = found.find(element_text(tensor, at));
                        if (known != found.end())
                          known->second.push_back(known->first + " is " + std::string(place) +
                                                  coordinates(tensor.shape, at, axes) + " of op " +
                                                  std::to_string(i) + " " +
                                                  std::string(script[i].kind().name));
                      }
                    });
  std::vector<std::string> origins;
  for (const std::string& value : {verdict.difference.want, verdict.difference.got})
    if (const auto& places = found[value]; places.size() == 1) origins.push_back(places.front());
  return origins;
}

// "(RS-4, RS-5)" at the end of an operation's sentence.
std::string rules_of(std::string_view doc) {
  constexpr char kRuleDash = '-';
  const std::size_t begin = doc.rfind('(');
  const std::size_t end = doc.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      doc.substr(begin, end - begin).find(kRuleDash) == std::string_view::npos)
    return {};
  return std::string(doc.substr(begin + 1, end - begin - 1));
}

Shrunk shrunk_of(const Smaller& smaller, const Subject& subject, bool run) {
  const CasePlan& plan = smaller.plan;
  const Verdict& verdict = smaller.verdict;
  Shrunk shrunk{
      .law = std::string(plan.law->name()),
      .operations = smaller.script.size(),
      .verdict = verdict,
      .config = config_text(plan.setup.config),
      .origins = origins_of(smaller.script, verdict),
      .schedule = draws(plan, subject) ? schedule_text(plan.setup.schedule) : std::nullopt};
  if (verdict.op_index < smaller.script.size())
    shrunk.rules = rules_of(smaller.script[verdict.op_index].kind().doc);
  // A script that uses up all memory is not run again for the sake of words.
  const bool lives = run && verdict.failed() && verdict.outcome != Outcome::kDied &&
                     !verdict.reason.starts_with(kNeedsMemory);
  if (lives) {
    shrunk.inside = told_inside(plan, subject, smaller.script, verdict.op_index);
    for (std::string& line : explained(plan, subject, smaller.script, verdict))
      shrunk.inside.push_back(std::move(line));
  }
  const bool whole = smaller.script.size() <= kMostScriptLines;
  shrunk.script = lives && whole ? plan.law->shown(plan, subject, smaller.script, verdict)
                                 : lines_of(smaller.script, verdict);
  return shrunk;
}

}  // namespace

std::optional<std::string> schedule_text(const Schedule& schedule) {
  if (schedule.seed()) return "seed " + std::to_string(*schedule.seed());
  if (schedule.given().empty()) return std::nullopt;
  std::string text = "choices";
  for (const std::uint32_t choice : schedule.given()) text += " " + std::to_string(choice);
  return text;
}

std::string config_text(const Record& config) {
  if (!config) return "{}";
  return cut(boost::json::serialize(write_changed(config.type(), config.get())));
}

std::string observation_text(const Observation& seen) {
  if (seen.error) return "error: " + seen.error->text();
  if (!seen.returns || seen.returns.type().fields.empty()) return "done";
  return cut(boost::json::serialize(write_record(seen.returns)));
}

Smaller simplest_case(const CasePlan& plan, const Subject& subject, Script script,
                      const ShrinkOptions& shrink) {
  CasePlan simpler = plan;
  const auto simplest = [&](const CasePlan& tried, const Script& failing) -> const Law* {
    for (const Law* law : plan.simpler_laws) {
      if (law == tried.law) break;
      simpler = tried;
      simpler.law = law;
      if (shrink.attempts > 0 && shrink.judge(simpler, subject, failing).failed()) return law;
    }
    return nullptr;
  };
  if (simplest(plan, script) == nullptr) simpler = plan;
  Smaller smaller = smaller_case(simpler, subject, std::move(script), shrink);
  // A smaller script may fail a law that the whole one kept.
  while (smaller.verdict.failed() && simplest(smaller.plan, smaller.script) != nullptr)
    smaller = smaller_case(simpler, subject, smaller.script, shrink);
  return smaller;
}

traces::Case log_of(const Smaller& smaller, const Subject& subject, bool run) {
  const CasePlan& plan = smaller.plan;
  // A subject that dies of the script cannot run it here.
  const bool leads = plan.baseline == nullptr || plan.baseline == &subject;
  const bool dies = leads && smaller.verdict.outcome == Outcome::kDied;
  traces::Case log{
      .header = {.kind = plan.kind,
                 .system = "kvoracle",
                 .version = (plan.baseline != nullptr ? *plan.baseline : subject).name(),
                 .name = plan.name,
                 .note = plan.note,
                 .profile = plan.setup.profile,
                 .law = std::string(plan.law->name()),
                 .config = plan.setup.config},
      .steps = run && !dies ? recorded(plan, subject, smaller.script) : unrecorded(smaller.script)};
  // The plain one, too: a log without one has a seed by its place.
  if (draws(plan, subject)) log.header.schedule = plan.setup.schedule;
  return log;
}

void add_shrunk(const Smaller& smaller, const Subject& subject, SubjectResult& result, bool run) {
  result.shrunk = shrunk_of(smaller, subject, run);
  result.log = traces::lines_of(log_of(smaller, subject, run));
}

}  // namespace kvo
