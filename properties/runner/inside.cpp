#include "properties/runner/inside.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "reference/contract/describe/operation.hpp"

namespace kvo {
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

}  // namespace

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

}  // namespace kvo
