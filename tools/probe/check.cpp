#include "tools/probe/check.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
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
using probe::Shape;

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

// The first token that differs. Requires  one does.
std::size_t first_wrong(const ProbeTokens& want, const ProbeTokens& got) {
  return static_cast<std::size_t>(std::ranges::mismatch(want, got).in1 - want.begin());
}

// What must come back of a request's answer: of a dropped one the begin.
bool is_right(const probe::Tables& tables, const ProbeRequest& request, const ProbeTokens& got) {
  ProbeTokens want = right_answer(tables, request);
  if (request.manner.drop_after) want.resize(std::min(want.size(), got.size()));
  return want == got;
}

// One short text, alone: who answers this wrongly serves no probe.
void recognize(const probe::Tables& tables, Engine& engine, std::uint64_t seed) {
  traces::Random random(~seed);
  const ProbeRequest request =
      draw_plan(0, tables, {.longest = 64, .tokens = 8}, random).waves[0][0];
  const EngineAnswer given = engine.meet(request);
  const std::string where = engine.where();
  if (!given.failure.empty()) throw UsageError(fmt::format("{}: {}", where, given.failure));
  const ProbeTokens want = right_answer(tables, request);
  if (2 * right_tokens(want, given.tokens) > want.size()) return;
  if (!given.misread.empty()) throw UsageError(fmt::format("{}: {}", where, given.misread));
  if (engine.ask(request, false).tokens != given.tokens)
    throw UsageError(where +
                     ": answers the same text in two ways: it must take the likeliest token");
  throw UsageError(
      fmt::format("{}: serves another model than `kvoracle probe model` writes, or lacks the "
                  "token that begins a text: want {}, got {}",
                  where, json::serialize(json::value_from(want)),
                  json::serialize(json::value_from(given.tokens))));
}

/// Answers a request; `shares`: whether with rows of other requests.
using Ask = std::function<EngineAnswer(const ProbeRequest& request, bool shares)>;

/// A run over all plans.
class Check {
 public:
  Check(const ProbeOptions& options, const probe::Tables& tables, Ask ask, PlanDone done)
      : options_(options),
        tables_(tables),
        ask_(std::move(ask)),
        done_(std::move(done)),
        faults_(probe_faults(options.shape.window.has_value())) {
    for (const ProbeFault& fault : faults_)
      report_.faults.push_back({.fault = std::string(fault.name)});
    for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
      for (std::size_t head = 0; head < Shape::kHeads; ++head)
        for (std::size_t i = 0; i + 1 < kRanges.size(); ++i)
          report_.coverage.push_back(
              {.layer = layer, .head = head, .first = kRanges[i], .last = kRanges[i + 1] - 1});
    if (options.control) report_.control_wrong = 0;
  }

  ProbeReport run(PlanSource& plans) {
    while (sent_ < options_.requests && !is_over()) {
      const std::optional<ProbePlan> plan = plans.next();
      if (!plan) break;
      send_plan(*plan);
    }
    if (!failing_.empty() && options_.shrink_attempts > 0) shrink();
    report_.skipped = plans.skipped();
    std::erase_if(report_.coverage, [](const CellCount& count) { return count.cells == 0; });
    return std::move(report_);
  }

 private:
  static constexpr std::size_t kMostInARow = 8;
  static constexpr std::size_t kMostAnswered = 64;
  static constexpr std::size_t kMostWrong = 20;
  // Positions at which the parts of the coverage begin. Row 0 holds nothing.
  static constexpr std::array<std::size_t, 8> kRanges{1,    16,   64,    256,
                                                      1024, 4096, 16384, Shape::kPositions};

  struct Judged {
    ProbeRequest request;
    ProbeTokens got;
    std::size_t number;
    std::size_t wave_end;  // number of the first request after its wave
  };

  [[nodiscard]] bool is_over() const { return in_a_row_ >= kMostInARow; }

  void send_plan(const ProbePlan& plan) {
    plan_ = {.number = plan.number, .kind = plan.kind};
    plan_waves_ = 0;
    std::vector<Judged> judged;
    for (const auto& wave : plan.waves)
      if (!is_over()) send(plan, wave, judged);
    // Texts that are asked alone may take the place of rows that the plan shares.
    for (const Judged& one : judged) judge(plan, one);
    if (done_) done_(plan_);
  }

  [[nodiscard]] std::vector<EngineAnswer> ask_wave(const std::vector<ProbeRequest>& wave,
                                                   std::size_t at_once) const {
    std::vector<EngineAnswer> answers(wave.size());
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> threads;
    while (threads.size() < std::min(wave.size(), at_once))
      threads.emplace_back([&] {
        for (std::size_t i = next++; i < wave.size(); i = next++) answers[i] = ask_(wave[i], true);
      });
    threads.clear();
    return answers;
  }

  void send(const ProbePlan& plan, const std::vector<ProbeRequest>& wave,
            std::vector<Judged>& judged) {
    std::vector<EngineAnswer> answers = ask_wave(wave, plan.at_once);
    const std::size_t first = sent_;
    sent_ += wave.size();
    plan_.requests += wave.size();
    for (std::size_t i = 0; i < wave.size(); ++i) {
      EngineAnswer& answer = answers[i];
      if (!answer.misread.empty() && !is_right(tables_, wave[i], answer.tokens))
        answer.failure = answer.misread;
      if (!is_answered(answer, first + i)) continue;
      AnsweredText& given =
          answered_.emplace_back(AnsweredText{first + i, wave[i].prompt, Rows(tables_)});
      given.tokens.insert(given.tokens.end(), answer.tokens.begin(), answer.tokens.end());
      given.rows.extend(given.tokens);
      if (!wave[i].manner.drop_after || !answer.tokens.empty())
        judged.push_back({{wave[i].prompt, answer.tokens.size()}, answer.tokens, first + i, sent_});
    }
    while (answered_.size() > kMostAnswered) answered_.pop_front();
    waves_.push_back({first, wave});
    ++plan_waves_;
    while (sent_ - waves_.front().first > kMostAnswered && waves_.size() > plan_waves_)
      waves_.pop_front();
  }

  bool is_answered(const EngineAnswer& answer, std::size_t number) {
    if (answer.failure.empty()) {
      in_a_row_ = 0;
      return true;
    }
    ++in_a_row_;
    const std::string failure = fmt::format("request {}: {}", number, answer.failure);
    if (report_.failed_requests++ == 0) report_.failure = failure;
    if (plan_.failed_requests++ == 0) plan_.failure = failure;
    return false;
  }

  void judge(const ProbePlan& plan, const Judged& judged) {
    const ProbeTokens want = add_answer(judged);
    add_shown({tables_, judged.request, judged.number, judged.wave_end, want, answered_});
    std::optional<EngineAnswer> alone;
    if (options_.control) {
      alone = ask_(judged.request, false);
      if (!is_answered(*alone, judged.number)) return;
      *report_.control_wrong += alone->tokens == want ? 0 : 1;
    }
    if (judged.got != want) add_wrong(plan, judged, want, alone);
  }

  // Counts what the right answer reads. Returns  it.
  ProbeTokens add_answer(const Judged& judged) {
    probe::Coverage coverage;
    Rows rows(tables_);
    rows.extend(judged.request.prompt, &coverage);
    ProbeTokens want = rows.generate(judged.request.tokens, &coverage);
    ++report_.requests;
    report_.tokens += want.size();
    plan_.tokens += want.size();
    for (CellCount& count : report_.coverage)
      for (std::size_t at = count.first; at < std::min(count.last + 1, rows.size()); ++at) {
        ++count.cells;
        ++report_.cells;
        const bool read = coverage.has(count.layer, count.head, at);
        count.read += read ? 1 : 0;
        report_.cells_read += read ? 1 : 0;
      }
    return want;
  }

  void add_shown(const JudgedAnswer& right) {
    const std::vector<bool> shown = faults_that_show(right);
    bool telling = false;
    for (std::size_t i = 0; i < faults_.size(); ++i) {
      if (!shown[i]) continue;
      ++report_.faults[i].requests;
      telling |= faults_[i].of_reuse;
      if (std::ranges::find(plan_.shown, faults_[i].name) == plan_.shown.end())
        plan_.shown.push_back(faults_[i].name);
    }
    report_.telling += telling ? 1 : 0;
  }

  void add_wrong(const ProbePlan& plan, const Judged& judged, const ProbeTokens& want,
                 const std::optional<EngineAnswer>& control) {
    const std::size_t at = first_wrong(want, judged.got);
    WrongAnswer wrong{.request = judged.number,
                      .plan = std::string(plan_.kind),
                      .plan_number = plan_.number,
                      .token = at,
                      .want = want[at],
                      .got = judged.got[at]};
    const bool is_shown = report_.wrong_requests++ < kMostWrong;
    std::optional<Explanation> found;
    if (is_shown)
      found =
          explain({tables_, judged.request, judged.number, judged.wave_end, judged.got, answered_});
    set_cause(judged, want, control, found, wrong);
    ++(wrong.cause == Cause::kMemory       ? report_.memory
       : wrong.cause == Cause::kArithmetic ? report_.arithmetic
                                           : report_.neither);
    if (wrong.cause == Cause::kMemory && failing_.empty()) set_failing(plan, judged.number);
    if (plan_.wrong_requests++ == 0) plan_.wrong = wrong;
    if (!is_shown) return;
    for (FaultCount& count : report_.faults) count.named += count.fault == wrong.fault ? 1 : 0;
    report_.wrong.push_back(std::move(wrong));
  }

  // By a fault that gives these very tokens, and by the same text without rows of others. Among
  // thousands of faults one gives a wrong token or two by chance.
  void set_cause(const Judged& judged, const ProbeTokens& want,
                 const std::optional<EngineAnswer>& control,
                 const std::optional<Explanation>& found, WrongAnswer& wrong) const {
    constexpr std::size_t kByChance = 2;
    const EngineAnswer alone = control ? *control : ask_(judged.request, false);
    const EngineAnswer again = ask_(judged.request, false);
    const std::string failure = alone.failure + again.failure;
    const bool is_named = found && !found->fault.empty();
    const std::string unknown = found && !is_named ? ", and no known fault gives it" : "";
    // Where the text goes wrong without sharing; nowhere: after its end.
    const std::size_t at = !failure.empty()       ? 0
                           : alone.tokens == want ? want.size()
                                                  : first_wrong(want, alone.tokens);
    const bool is_named_alone = is_named && !options_.control && found->wrong_tokens > kByChance;
    if (!failure.empty() && !is_named_alone) {
      wrong.evidence = "is wrong; the text has no answer when it is asked alone: " + failure;
    } else if (failure.empty() && alone.tokens != again.tokens) {
      wrong.evidence = "is wrong; alone, the text is answered in two ways";
    } else if (wrong.token < at || is_named_alone) {
      wrong.cause = Cause::kMemory;
      wrong.evidence = is_named ? fault_text(*found) : "is right when the text is asked alone";
      if (failure.empty() && wrong.token >= at) wrong.evidence += "; it is wrong alone, too";
      if (is_named) wrong.fault = found->fault;
      if (is_named) wrong.also = found->also;
    } else if (wrong.token > at || alone.tokens[at] == wrong.got) {
      wrong.cause = Cause::kArithmetic;
      wrong.evidence = fmt::format("is wrong; alone, the text goes wrong {}{}",
                                   wrong.token > at ? "earlier" : "in the same way", unknown);
    } else {
      wrong.evidence = "is wrong, and otherwise when the text is asked alone" + unknown;
    }
  }
  static std::string fault_text(const Explanation& found) {
    std::string text =
        fmt::format("is the one that {} would give ({}; {}", found.what, found.fault, found.when);
    if (found.alike > 0) text += fmt::format("; or {} others", found.alike);
    return text + ")";
  }

  // The waves up to that of the request, which becomes the last of its wave.
  void set_failing(const ProbePlan& plan, std::size_t number) {
    failing_at_once_ = plan.at_once;
    std::size_t later = waves_.size();
    for (const auto& [first, wave] : waves_) {
      failing_.push_back(wave);
      --later;
      if (number >= first + wave.size()) continue;
      const auto own = failing_.back().begin() + static_cast<std::ptrdiff_t>(number - first);
      std::rotate(own, own + 1, failing_.back().end());
      break;
    }
    failing_of_plan_ = plan_waves_ - later;
  }

  // The requests of its plan, or those before them, too; one after the other, or in waves. Without
  // pauses.
  void shrink() {
    for (auto& wave : failing_)
      for (ProbeRequest& request : wave) request.manner.pause = {};
    constexpr int kOthers = 2;
    std::uint64_t number = 0;
    ProbeWaves repeats;
    const auto wrong = [&](const ProbeWaves& waves) {
      for (int i = 0; i < kOthers; ++i) {
        ProbeWaves fresh = with_other_values(waves, ++number);
        std::vector<EngineAnswer> last;
        for (const auto& wave : fresh) {
          last = ask_wave(wave, failing_at_once_);
          for (const EngineAnswer& answer : last)
            if (!answer.failure.empty()) return false;
        }
        for (std::size_t j = 0; j < last.size(); ++j)
          if (!is_right(tables_, fresh.back()[j], last[j].tokens)) {
            repeats = std::move(fresh);
            return true;
          }
      }
      return false;
    };
    const ProbeWaves own(failing_.end() - static_cast<std::ptrdiff_t>(failing_of_plan_),
                         failing_.end());
    for (const ProbeWaves& waves : {one_by_one(own), one_by_one(failing_), own, failing_}) {
      if (!wrong(waves)) continue;
      (void)smaller_waves(waves, options_.shrink_attempts, wrong);
      break;
    }
    for (std::size_t wave = 0; wave < repeats.size(); ++wave)
      for (ProbeRequest& request : repeats[wave])
        report_.shrunk.push_back(
            {wave, std::move(request.prompt), request.tokens, request.manner.drop_after});
  }

  const ProbeOptions& options_;
  const probe::Tables& tables_;
  Ask ask_;
  PlanDone done_;
  std::vector<ProbeFault> faults_;
  std::deque<AnsweredText> answered_;  // the last ones
  struct Wave {
    std::size_t first;  // number of its first request
    std::vector<ProbeRequest> requests;
  };
  std::deque<Wave> waves_;           // the last ones
  ProbeWaves failing_;               // up to the first answer of cause memory
  std::size_t failing_at_once_ = 0;  // of each wave
  std::size_t failing_of_plan_ = 0;  // of these, the last ones
  PlanResult plan_;                  // that is sent
  std::size_t plan_waves_ = 0;       // of it, sent so far
  std::size_t sent_ = 0;
  std::size_t in_a_row_ = 0;  // requests that failed
  ProbeReport report_;
};

ProbeReport ask_engine(const ProbeOptions& options, const probe::Tables& tables, Engine& engine,
                       PlanSource& plans, const PlanDone& done) {
  recognize(tables, engine, options.seed);
  if (options.control && !engine.can_ask_alone())
    throw UsageError(engine.where() + ": takes no request without rows of others: no --control");
  const Ask ask = [&](const ProbeRequest& request, bool shares) {
    if (!shares && !engine.can_ask_alone())
      return EngineAnswer{{}, "the engine has no member for it"};
    return engine.ask(request, shares);
  };
  ProbeReport report = Check(options, tables, ask, done).run(plans);
  report.sent = engine.counts().sent;
  report.retried = engine.counts().retried;
  report.dropped = engine.counts().dropped;
  return report;
}

}  // namespace

ProbeReport probe_engine(const ProbeOptions& options, PlanSource& plans, const PlanDone& done) {
  Engine engine(options);
  return ask_engine(options, probe::Tables(options.shape), engine, plans, done);
}

ProbeReport probe_engine(const ProbeOptions& options, const PlanDone& done) {
  const probe::Tables tables(options.shape);
  Engine engine(options);
  DrawnPlans plans(tables, options.limits, options.seed, options.kinds, options.plan_number,
                   [&] { return engine.save_failure(); });
  return ask_engine(options, tables, engine, plans, done);
}

ProbeReport probe_plans(const ProbeOptions& options) {
  const probe::Tables tables(options.shape);
  DrawnPlans plans(tables, options.limits, options.seed, options.kinds, options.plan_number,
                   [] { return ""; });
  const Ask right = [&](const ProbeRequest& request, bool /*shares*/) {
    EngineAnswer answer{right_answer(tables, request), ""};
    if (const auto& most = request.manner.drop_after; most && *most < answer.tokens.size())
      answer.tokens.resize(*most);
    return answer;
  };
  return Check(options, tables, right, {}).run(plans);
}

}  // namespace kvo::tools
