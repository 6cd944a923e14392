#include "properties/runner/shrunk.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <boost/json.hpp>

#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/contract/describe/operation.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo {
namespace {

/// What baseline and subject observe of the operation at which they differ.
struct Ending {
  Op op;
  Observation want;
  Observation got;
};

/// How a described record says that rows are stored, if it does.
std::optional<StorageFormat> format_in(const Record& record) {
  if (!record) return std::nullopt;
  const boost::json::object members = write_json(record.type(), record.get()).as_object();
  StorageFormat format;
  bool found = false;
  for (const Field& field : record.type().fields) {
    const auto* const value = members.if_contains(field.name);
    if (value == nullptr) continue;
    if (&field.type->value_type() == &type_of<StorageType>()) {
      for (const Enumerator& each : type_of<StorageType>().enumerators)
        if (value->is_string() && value->as_string() == each.word)
          format.type = static_cast<StorageType>(each.value);
      found = true;
    }
    if (field.name == "group" && value->is_int64()) format.group = value->as_int64();
    if (field.name == "offset" && value->is_bool()) format.offset = value->as_bool();
  }
  return found ? std::optional(format) : std::nullopt;
}

/// The tensors of an observation, in order.
std::vector<Tensor> tensors_of(const Observation& seen) {
  std::vector<Tensor> all;
  if (seen.returns)
    for_each_tensor(
        seen.returns.type(), seen.returns.get(),
        [&](std::string_view, const Tensor& tensor, AxisNames) { all.push_back(tensor); });
  return all;
}

/// "step 0.0157", with ", offset 0" where groups have one.
std::string scale_text(const StorageFormat& format, std::span<const float> group) {
  std::vector<std::byte> bytes(stored_bytes(format, group.size()));
  encode(format, group, bytes.data());
  std::string text = "step " + float_text(load_element(DType::kF16, bytes.data()));
  if (format.offset) text += ", offset " + float_text(load_element(DType::kF16, bytes.data() + 2));
  return text;
}

/// Steps of the first group that differs, where rows are codes.
void add_steps(const std::optional<StorageFormat>& format, const Ending& ending,
               std::vector<std::string>& lines) {
  if (!format || !in_groups(format->type)) return;
  const std::vector<Tensor> want = tensors_of(ending.want);
  const std::vector<Tensor> got = tensors_of(ending.got);
  for (std::size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
    if (want[i] == got[i]) continue;
    if (want[i].shape != got[i].shape || want[i].shape.empty() || want[i].dtype != DType::kF32 ||
        got[i].dtype != DType::kF32)
      return;
    const std::span<const float> wanted = want[i].floats();
    const std::span<const float> shown = got[i].floats();
    const auto first = static_cast<std::size_t>(
                           std::ranges::mismatch(std::as_bytes(wanted), std::as_bytes(shown)).in1 -
                           std::as_bytes(wanted).begin()) /
                       sizeof(float);
    const auto row = static_cast<std::size_t>(want[i].shape.back());
    const auto size = static_cast<std::size_t>(format->group);
    const std::size_t begin = first - first % row % size;
    const std::size_t count = std::min(size, row - begin % row);
    const std::string wanted_scale = scale_text(*format, wanted.subspan(begin, count));
    const std::string shown_scale = scale_text(*format, shown.subspan(begin, count));
    if (wanted_scale != shown_scale)
      lines.push_back("the wanted group of " + std::to_string(count) + " elements has " +
                      wanted_scale + "; the shown one has " + shown_scale);
    else
      lines.push_back("both groups of " + std::to_string(count) + " elements have " + wanted_scale +
                      ": their codes differ");
    return;
  }
}

}  // namespace

std::vector<std::string> explained(const CasePlan& plan, const Subject& subject,
                                   const Script& script, const Verdict& verdict) {
  if (verdict.outcome != Outcome::kMismatch || plan.baseline == nullptr ||
      verdict.op_index >= script.size())
    return {};
  auto want = plan.baseline->open(plan.setup);
  auto got = subject.open(plan.setup);
  if (!want || !got) return {};
  // An oracle may look at a whole history for each operation.
  constexpr std::size_t kMostJudged = 1'000;
  const bool judged =
      plan.history != nullptr && subject.tolerances.empty() && verdict.op_index < kMostJudged;
  const auto oracle = judged ? plan.history(*plan.kind, plan.setup) : nullptr;
  std::optional<StorageFormat> format = format_in(plan.setup.config);
  std::vector<std::string> lines;
  Probe probe;
  for (std::size_t at = 0; at <= verdict.op_index; ++at) {
    const Op& op = script[at];
    if (auto named = format_in(op.arguments())) format = named;
    const Ending step{op, (*want)->apply(op, probe), (*got)->apply(op, probe)};
    const bool last = observation_difference(step.want, step.got).has_value();
    std::vector<std::string> more;
    if (oracle && last) more = oracle->explain({script.data(), at + 1}, step.want, step.got);
    if (oracle && lines.empty())
      if (auto words = oracle->check(op, step.got))
        lines.push_back("its own history contradicts op " + std::to_string(at) + " " +
                        std::string(op.kind().name) + ": " + *words);
    lines.insert(lines.end(), more.begin(), more.end());
    if (last) add_steps(format, step, lines);
    if (last) break;
  }
  return lines;
}

namespace {

/// An operation that a cache inside was given, and what it answered.
struct InnerStep {
  std::size_t session;  ///< which of the sessions that were opened
  Op op;
  Observation seen;
  std::size_t outer_op;    ///< operation of the script under way
  std::size_t outer_step;  ///< step of it, from 1; 0: before the first one
};

/// What the sessions of a cache inside were asked, in order.
struct InnerLog {
  std::vector<Setup> opened;
  std::vector<InnerStep> steps;
  const Session* outer = nullptr;
  std::size_t outer_op = 0;
};

class LoggedSession final : public Session {
 public:
  LoggedSession(std::unique_ptr<Session> session, std::size_t number, InnerLog& log)
      : session_(std::move(session)), number_(number), log_(log) {}

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    Observation seen = session_->apply(op, probe);
    log_.steps.push_back({number_, op, seen, log_.outer_op, log_.outer->steps().size()});
    return seen;
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return session_->broken_invariant();
  }

 private:
  std::unique_ptr<Session> session_;
  std::size_t number_;
  InnerLog& log_;
};

/// The same subject over the same cache, which is listened to.
Subject listened_to(const Subject& subject, InnerLog& log) {
  Subject cache = *subject.inside;
  cache.open = [sound = subject.inside,
                &log](const Setup& setup) -> Result<std::unique_ptr<Session>> {
    auto session = sound->open(setup);
    if (!session) return session.error();
    log.opened.push_back(setup);
    return std::make_unique<LoggedSession>(std::move(*session), log.opened.size() - 1, log);
  };
  return subject.over(cache);
}

std::string step_number(std::size_t number) {
  return "step " + std::to_string(number);
}

/// Where the steps of two sessions part: in their work, and in what comes of it.
std::vector<std::string> partings(std::span<const WorkStep> want, std::span<const WorkStep> got) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::max(want.size(), got.size()); ++i) {
    const std::string number = step_number(i + 1);
    if (i == got.size()) {
      lines.push_back("it ends before " + number + " of the reference, " + want[i].work);
      break;
    }
    if (i == want.size()) {
      lines.push_back("the reference ends before " + number + ", " + got[i].work);
      break;
    }
    if (lines.empty() && want[i].work != got[i].work)
      lines.push_back(number + " is " + got[i].work + ", of the reference " + want[i].work);
    if (want[i].outcome != got[i].outcome) {
      lines.push_back(number + ", " + got[i].work + ", gives " + got[i].outcome +
                      ", with the reference " + want[i].outcome);
      break;
    }
  }
  return lines;
}

/// The first operation of the log that the reference answers otherwise.
std::optional<std::string> first_inside(const InnerLog& log, const Subject& reference) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const Setup& setup : log.opened) {
    auto session = reference.open(setup);
    if (!session) return std::nullopt;
    sessions.push_back(std::move(*session));
  }
  Probe probe;
  std::vector<std::size_t> counts(sessions.size());
  for (const InnerStep& step : log.steps) {
    const std::size_t number = counts[step.session]++;
    const Observation want = sessions[step.session]->apply(step.op, probe);
    const auto difference = observation_difference(want, step.seen);
    if (!difference) continue;
    return "the cache inside parts from " + reference.name() + " in op " +
           std::to_string(step.outer_op) + ", " + step_number(step.outer_step) + ": its op " +
           std::to_string(number) +
           (sessions.size() > 1 ? " of session " + std::to_string(step.session) : "") + " " +
           std::string(step.op.kind().name) + ": " + difference->text();
  }
  return "the cache inside answers as " + reference.name() + " does";
}

/// In words, where a subject over another cache leaves its baseline in operation `guilty` of the
/// script: the first step whose work or outcome differs, and the first operation that the cache
/// inside answers otherwise than the reference of its kind, which is given the same ones. Nothing
/// for a subject that nothing was put inside of, or without a plan.reference_of.
/// Requires  the subject lives through the script.
std::vector<std::string> told_inside(const CasePlan& plan, const Subject& subject,
                                     const Script& script, std::uint64_t guilty) {
  if (!subject.inside || !plan.reference_of || plan.baseline == nullptr) return {};
  InnerLog log;
  auto want = plan.baseline->open(plan.setup);
  auto got = listened_to(subject, log).open(plan.setup);
  if (!want || !got) return {};
  log.outer = got->get();
  Probe probe;
  for (; log.outer_op < script.size() && log.outer_op <= guilty; ++log.outer_op) {
    const Observation expected = (*want)->apply(script[log.outer_op], probe);
    const Observation seen = (*got)->apply(script[log.outer_op], probe);
    if (observation_difference(expected, seen)) break;
  }
  std::vector<std::string> lines = partings((*want)->steps(), (*got)->steps());
  if (auto words = first_inside(log, plan.reference_of(*subject.inside->kind)))
    lines.push_back(std::move(*words));
  return lines;
}

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
      .cut_short = smaller.cut_short,
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
  while (!smaller.cut_short && smaller.verdict.failed() &&
         simplest(smaller.plan, smaller.script) != nullptr)
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
