#include "tools/probe/check.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <numeric>
#include <thread>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "tools/commands/usage.hpp"
#include "tools/probe/hypotheses.hpp"
#include "tools/probe/smaller_plan.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using probe::Rows;
using probe::Token;

ProbeTokens right_answer(const probe::Tables& tables, const ProbeRequest& request) {
  Rows rows(tables);
  rows.extend(request.prompt);
  return rows.generate(request.tokens);
}

// How many tokens are the same at the same place. Requires  as many of each.
std::size_t right_tokens(const ProbeTokens& want, const ProbeTokens& got) {
  return std::inner_product(want.begin(), want.end(), got.begin(), std::size_t{0}, std::plus<>(),
                            std::equal_to<>());
}

// What must come back of a request's answer: of a dropped one the begin.
bool is_right(const probe::Tables& tables, const ProbeRequest& request, const ProbeTokens& got) {
  ProbeTokens want = right_answer(tables, request);
  if (request.manner.drop_after) want.resize(std::min(want.size(), got.size()));
  return want == got;
}

/// A run over all plans.
class Check {
 public:
  /// `plans`: none for drawn ones.
  Check(const ProbeOptions& options, PlanSource* plans)
      : options_(options),
        tables_(options.shape),
        engine_(options),
        drawn_(tables_, options.limits, options.seed, options.kinds,
               [this] { return engine_.save_failure(); }),
        plans_(plans != nullptr ? *plans : drawn_) {}

  ProbeReport run() {
    recognize();
    while (sent_ < options_.requests && in_a_row_ < kMostInARow) {
      const std::optional<ProbePlan> plan = plans_.next();
      if (!plan) break;
      for (const auto& wave : plan->waves)
        if (in_a_row_ < kMostInARow) send(*plan, wave);
      plan_begin_ = sent_;
    }
    if (!failing_.empty()) shrink();
    report_.sent = engine_.counts().sent;
    report_.retried = engine_.counts().retried;
    report_.dropped = engine_.counts().dropped;
    report_.skipped = plans_.skipped();
    return std::move(report_);
  }

 private:
  static constexpr std::size_t kMostInARow = 8;
  static constexpr std::size_t kMostAnswered = 64;
  static constexpr std::size_t kMostWrong = 20;

  // One short text, alone: who answers this wrongly serves no probe.
  void recognize() {
    traces::Random random(~options_.seed);
    const ProbeRequest request =
        draw_plan(0, tables_, {.longest = 64, .tokens = 8}, random).waves[0][0];
    const EngineAnswer given = engine_.meet(request);
    const std::string where = engine_.where();
    if (!given.failure.empty()) throw UsageError(fmt::format("{}: {}", where, given.failure));
    const ProbeTokens want = right_answer(tables_, request);
    const std::size_t right = right_tokens(want, given.tokens);
    if (2 * right > want.size()) return;
    if (!given.misread.empty()) throw UsageError(fmt::format("{}: {}", where, given.misread));
    if (engine_.ask(request, false).tokens != given.tokens)
      throw UsageError(where +
                       ": answers the same text in two ways: it must take the likeliest token");
    throw UsageError(
        fmt::format("{}: serves another model than `kvoracle probe model` writes, or lacks the "
                    "token that begins a text: want {}, got {}",
                    where, json::serialize(json::value_from(want)),
                    json::serialize(json::value_from(given.tokens))));
  }

  void send(const ProbePlan& plan, const std::vector<ProbeRequest>& wave) {
    std::vector<EngineAnswer> answers(wave.size());
    {
      std::atomic<std::size_t> next = 0;
      std::vector<std::jthread> threads;
      while (threads.size() < std::min(wave.size(), plan.at_once))
        threads.emplace_back([&] {
          for (std::size_t i = next++; i < wave.size(); i = next++)
            answers[i] = engine_.ask(wave[i], true);
        });
    }
    for (std::size_t i = 0; i < wave.size(); ++i)
      if (!answers[i].misread.empty() && !is_right(tables_, wave[i], answers[i].tokens))
        answers[i].failure = answers[i].misread;
    const std::size_t first = sent_;
    sent_ += wave.size();
    for (std::size_t i = 0; i < wave.size(); ++i) keep(wave[i], answers[i], first + i);
    requests_.insert(requests_.end(), wave.begin(), wave.end());
    for (std::size_t i = 0; i < wave.size(); ++i) {
      const bool dropped = wave[i].manner.drop_after && answers[i].tokens.empty();
      if (answers[i].failure.empty() && !dropped)
        judge(plan, {wave[i].prompt, answers[i].tokens.size()}, answers[i].tokens, first + i);
    }
    while (answered_.size() > kMostAnswered) answered_.pop_front();
    while (requests_.size() > kMostAnswered) requests_.pop_front();
  }

  void keep(const ProbeRequest& request, const EngineAnswer& answer, std::size_t number) {
    if (!answer.failure.empty()) {
      ++in_a_row_;
      if (report_.failed_requests++ == 0)
        report_.failure = fmt::format("request {}: {}", number, answer.failure);
      return;
    }
    in_a_row_ = 0;
    AnsweredText& given =
        answered_.emplace_back(AnsweredText{number, request.prompt, Rows(tables_)});
    given.tokens.insert(given.tokens.end(), answer.tokens.begin(), answer.tokens.end());
    given.rows.extend(given.tokens);
  }

  void judge(const ProbePlan& plan, const ProbeRequest& request, const ProbeTokens& got,
             std::size_t number) {
    probe::Coverage coverage;
    Rows rows(tables_);
    rows.extend(request.prompt, &coverage);
    const ProbeTokens want = rows.generate(request.tokens, &coverage);
    ++report_.requests;
    report_.tokens += want.size();
    report_.cells_read += coverage.cells();
    report_.cells += (rows.size() - 1) * probe::Shape::kLayers * probe::Shape::kHeads;
    bool telling = false;
    each_hypothesis(tables_, request, number, answered_, false, [&](const Hypothesis& hypothesis) {
      telling = hypothesis.tokens != want;
      return telling;
    });
    report_.telling += telling ? 1 : 0;
    if (got != want) add_wrong(plan, request, number, want, got);
  }

  void add_wrong(const ProbePlan& plan, const ProbeRequest& request, std::size_t number,
                 const ProbeTokens& want, const ProbeTokens& got) {
    if (report_.wrong_requests++ >= kMostWrong) return;
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(want, got).in1 - want.begin());
    WrongAnswer wrong{.request = number,
                      .plan = std::string(plan.kind),
                      .token = at,
                      .want = want[at],
                      .got = got[at]};
    explain(request, want, got, wrong);
    if (wrong.cause == Cause::kMemory && failing_.empty()) {
      failing_.assign(requests_.begin(), requests_.end());
      const auto own = failing_.end() - static_cast<std::ptrdiff_t>(sent_ - number);
      std::rotate(own, own + 1, failing_.end());
      of_its_plan_ = std::min<std::size_t>(sent_ - plan_begin_, failing_.size());
    }
    report_.wrong.push_back(std::move(wrong));
  }

  // By a fault that makes these very tokens, and by the same text without rows of others. Among
  // thousands of faults one makes a wrong token or two by chance.
  void explain(const ProbeRequest& request, const ProbeTokens& want, const ProbeTokens& got,
               WrongAnswer& wrong) const {
    constexpr std::size_t kByChance = 2;
    const std::size_t right = right_tokens(want, got);
    std::string fault;
    each_hypothesis(tables_, request, wrong.request, answered_, true, [&](const Hypothesis& one) {
      if (one.tokens != got) return false;
      fault = fmt::format("{}: {} would give these tokens", one.fault, one.detail);
      return true;
    });
    const EngineAnswer alone = engine_.ask(request, false);
    const EngineAnswer again = engine_.ask(request, false);
    const std::string failure = alone.failure + again.failure;
    if (!failure.empty()) {
      wrong.evidence = "no answer when it is asked alone: " + failure;
    } else if (alone.tokens != again.tokens) {
      wrong.evidence = "alone it answers in two ways";
    } else if (alone.tokens == want) {
      wrong.cause = Cause::kMemory;
      wrong.evidence = fault.empty() ? "right when it is asked alone" : fault;
    } else if (!fault.empty() && want.size() - right > kByChance) {
      wrong.cause = Cause::kMemory;
      wrong.evidence = fault + "; it is wrong alone, too";
    } else if (alone.tokens == got) {
      wrong.cause = Cause::kArithmetic;
      wrong.evidence = "no known fault makes these tokens, and alone it answers alike";
    } else {
      wrong.evidence = "no known fault makes these tokens, and alone it answers otherwise";
    }
  }

  // The requests of its plan, or those before them, too; without pauses.
  void shrink() {
    for (ProbeRequest& request : failing_) request.manner.pause = {};
    constexpr std::size_t kAttempts = 150;
    constexpr int kOthers = 2;
    std::uint64_t number = 0;
    ProbeRequests repeats;
    const auto wrong = [&](const ProbeRequests& requests) {
      for (int i = 0; i < kOthers; ++i) {
        ProbeRequests fresh = with_other_values(requests, ++number);
        EngineAnswer last;
        for (const ProbeRequest& request : fresh) {
          last = engine_.ask(request, true);
          if (!last.failure.empty()) return false;
        }
        if (is_right(tables_, fresh.back(), last.tokens)) continue;
        repeats = std::move(fresh);
        return true;
      }
      return false;
    };
    const ProbeRequests own(failing_.end() - static_cast<std::ptrdiff_t>(of_its_plan_),
                            failing_.end());
    if (wrong(own))
      (void)smaller_requests(own, kAttempts, wrong);
    else if (wrong(failing_))
      (void)smaller_requests(failing_, kAttempts, wrong);
    for (ProbeRequest& request : repeats)
      report_.shrunk.push_back(
          {std::move(request.prompt), request.tokens, request.manner.drop_after});
  }

  const ProbeOptions& options_;
  probe::Tables tables_;
  Engine engine_;
  DrawnPlans drawn_;
  PlanSource& plans_;
  std::deque<AnsweredText> answered_;  // the last ones
  std::deque<ProbeRequest> requests_;  // the last ones
  ProbeRequests failing_;              // up to the first answer of cause memory
  std::size_t of_its_plan_ = 0;        // of these, the last ones
  std::size_t plan_begin_ = 0;         // number of the plan's first request
  std::size_t sent_ = 0;
  std::size_t in_a_row_ = 0;  // requests that failed
  ProbeReport report_;
};

}  // namespace

ProbeReport probe_engine(const ProbeOptions& options) {
  return Check(options, nullptr).run();
}

ProbeReport probe_engine(const ProbeOptions& options, PlanSource& plans) {
  return Check(options, &plans).run();
}

}  // namespace kvo::tools
