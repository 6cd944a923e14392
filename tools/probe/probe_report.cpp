#include "tools/probe/probe_report.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/contract/describe/json.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

double read_share(std::uint64_t part, std::uint64_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

std::string_view label_of(Cause cause) {
  return cause == Cause::kMemory       ? "memory fault"
         : cause == Cause::kArithmetic ? "arithmetic"
                                       : "neither";
}

std::string wrong_text(const WrongAnswer& wrong) {
  return printable(fmt::format(
      "{}: request {}, token {} {}; want {}, got {}; plan {}: {}{}", label_of(wrong.cause),
      wrong.request, wrong.token, wrong.evidence, wrong.want, wrong.got, wrong.plan_number,
      wrong.plan,
      wrong.also.empty() ? "" : fmt::format("; also: {}", fmt::join(wrong.also, ", "))));
}

std::string unanswered_text(std::uint64_t requests, const std::string& failure) {
  return printable(fmt::format("no answer to {}: {}", count_text(requests, "request"), failure));
}

std::string shrunk_text(const std::vector<ShrunkRequest>& shrunk) {
  if (shrunk.empty()) return "";
  const std::size_t waves = shrunk.back().wave + 1;
  std::string text = fmt::format("shrunk to {}", count_text(shrunk.size(), "request"));
  if (waves == shrunk.size())
    text += ", one after the other, of which the last is wrong:\n";
  else
    text += fmt::format(" in {}, each sent at once; one of the last wave is wrong:\n",
                        count_text(waves, "wave"));
  for (const ShrunkRequest& request : shrunk)
    text += boost::json::serialize(write_json(request)) + "\n";
  return text;
}

std::string verdict_line(const ProbeReport& report) {
  std::string text = "no wrong token in ";
  if (report.wrong_requests > 0)
    text = fmt::format("wrong tokens in {} of ", count_text(report.wrong_requests));
  text += count_text(report.requests, "request");
  if (report.wrong_requests > 0)
    text += fmt::format(" (memory {}, arithmetic {}, neither {})", count_text(report.memory),
                        count_text(report.arithmetic), count_text(report.neither));
  return text + fmt::format(
                    ", {}; {:.0f} % of all (layer, head, row) cells read; a fault of reuse "
                    "would change {}\n",
                    count_text(report.tokens, "token"), read_share(report.cells_read, report.cells),
                    count_text(report.telling, "request"));
}

// The faults that no request could show.
std::string blind_line(const ProbeReport& report) {
  std::vector<std::string> blind;
  for (const FaultCount& fault : report.faults)
    if (fault.requests == 0) blind.push_back(fault.fault);
  return blind.empty() ? "" : fmt::format("no request could show: {}\n", fmt::join(blind, ", "));
}

}  // namespace

std::string ProbeRepeat::of_plan(std::uint64_t number) const {
  return fmt::format("{} --plan-number {}", plan, number);
}

std::string probe_report_text(const ProbeReport& report, const ProbeRepeat& repeat) {
  std::string text = verdict_line(report) + blind_line(report);
  if (report.control_wrong)
    text += fmt::format("control: {} wrong without sharing\n",
                        count_text(*report.control_wrong, "request"));
  for (const WrongAnswer& wrong : report.wrong) text += wrong_text(wrong) + "\n";
  text += shrunk_text(report.shrunk);
  if (report.failed_requests > 0)
    text += unanswered_text(report.failed_requests, report.failure) + "\n";
  if (report.retried > 0)
    text += fmt::format("{} sent again, because the engine was busy\n",
                        count_text(report.retried, "request"));
  for (const std::string& left_out : report.skipped)
    text += "skipped: " + printable(left_out) + "\n";
  if (!report.wrong.empty() && !repeat.plan.empty()) {
    const std::uint64_t plan = report.wrong.front().plan_number;
    text += fmt::format("plan {} alone: {}\n", plan, printable_command(repeat.of_plan(plan)));
  }
  if (report.wrong_requests > 0 || report.failed_requests > 0 || report.telling == 0)
    text += std::string(kRepeatWith) + printable_command(repeat.run) + "\n";
  return text;
}

std::string probe_plans_text(const ProbeReport& report) {
  std::string text =
      fmt::format("{}, {}: {:.0f} % of all (layer, head, row) cells are read\n",
                  count_text(report.requests, "request"), count_text(report.tokens, "token"),
                  read_share(report.cells_read, report.cells));
  Table faults({column("fault"), numbers("requests that would show it")});
  faults.row({"any fault of reuse", count_text(report.telling)});
  for (const FaultCount& fault : report.faults)
    faults.row({fault.fault, count_text(fault.requests)});
  text += "\n" + faults.text(0, output_columns());

  std::vector<Table::Column> columns{numbers("layer"), numbers("head")};
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::string>> rows;
  for (const CellCount& count : report.coverage) {
    std::vector<std::string>& row = rows[{count.layer, count.head}];
    if (row.empty()) row = {count_text(count.layer), count_text(count.head)};
    row.push_back(fmt::format("{:.0f} %", read_share(count.read, count.cells)));
    if (row.size() > columns.size())
      columns.push_back(numbers(fmt::format("rows {}-{}", count.first, count.last)));
  }
  Table coverage(columns);
  for (const auto& [cell, row] : rows) coverage.row(row);
  return text + "\n" + coverage.text(0, output_columns());
}

std::vector<JunitSuite> probe_suites(const ProbeReport& report,
                                     const std::vector<PlanResult>& plans,
                                     const ProbeRepeat& repeat) {
  using State = JunitTest::State;
  JunitSuite kinds{.name = kProbedEngine};
  for (const PlanResult& plan : plans) {
    auto test = std::ranges::find(kinds.tests, plan.kind, &JunitTest::name);
    if (test == kinds.tests.end())
      test = kinds.tests.insert(test, {.name = std::string(plan.kind)});
    const auto add = [&, test = test](State state, const std::string& line) {
      if (test->message.empty()) test->message = line;
      if (test->state != State::kFailed) test->state = state;
      test->details.push_back(line);
      if (!repeat.plan.empty())
        test->details.push_back(std::string(kRepeatWith) + repeat.of_plan(plan.number));
    };
    if (plan.wrong) add(State::kFailed, wrong_text(*plan.wrong));
    if (plan.failed_requests > 0)
      add(State::kError, unanswered_text(plan.failed_requests, plan.failure));
  }
  for (JunitTest& test : kinds.tests)
    if (test.state != State::kPassed) test.details.push_back("the whole run: " + repeat.run);
  JunitSuite faults{.name = "faults that the run would show"};
  for (const FaultCount& fault : report.faults) {
    JunitTest& test = faults.tests.emplace_back(JunitTest{.name = fault.fault});
    if (fault.requests > 0) continue;
    test.state = State::kSkipped;
    test.message = "no request could show it";
  }
  return {kinds, faults};
}

CaseResult probe_case(const PlanResult& plan, std::uint64_t index, std::uint64_t seed,
                      const ProbeRepeat& repeat) {
  CaseResult record{.index = index,
                    .name = fmt::format("seed{}-plan{}", seed, plan.number),
                    .kind = "probe",
                    .law = std::string(plan.kind),
                    .operations = plan.requests};
  record.labels.assign(plan.shown.begin(), plan.shown.end());
  SubjectResult& engine = record.subjects.emplace_back(SubjectResult{.subject = kProbedEngine});
  engine.evidence.compared = plan.tokens;
  Verdict& verdict = engine.verdict;
  if (plan.wrong) {
    const WrongAnswer& wrong = *plan.wrong;
    verdict = {.outcome = Outcome::kMismatch, .op_index = wrong.request, .op = "request"};
    const std::string what = wrong.fault.empty() ? std::string(label_of(wrong.cause)) : wrong.fault;
    verdict.difference = {.place = fmt::format("{}: token[{}]", what, wrong.token),
                          .want = std::to_string(wrong.want),
                          .got = std::to_string(wrong.got)};
  } else if (plan.failed_requests > 0) {
    verdict = {.outcome = Outcome::kBroken, .op = "request", .reason = plan.failure};
  }
  if (verdict.failed()) engine.repeat = repeat.of_plan(plan.number);
  return record;
}

}  // namespace kvo::tools
