#include "tools/probe/check.hpp"

#include <algorithm>
#include <thread>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/commands/usage.hpp"
#include "tools/probe/hypotheses.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using probe::Rows;
using probe::Token;

constexpr std::uint32_t kFirstCharacter = 0x4E00;  // of the first value token
constexpr std::size_t kMostShown = 120;

std::string shown(const std::string& text) {
  return printable(text.substr(0, kMostShown));
}

/// What an engine answered: tokens, or why there are none.
struct Told {
  ProbeTokens tokens;
  std::string failure;
};

/// An engine behind an interface like OpenAI's.
class Engine {
 public:
  explicit Engine(const ProbeOptions& options) : options_(options) {}

  /// `shares`: whether it may use rows of other requests.
  [[nodiscard]] Told ask(const ProbeRequest& request, bool shares) const {
    json::object body{{"model", options_.model}, {"max_tokens", request.tokens},
                      {"temperature", 0},        {"seed", 0},
                      {"ignore_eos", true},      {"return_token_ids", true},
                      {"cache_prompt", shares}};
    if (as_text_)
      body["prompt"] = probe_text(request.prompt);
    else
      body["prompt"] = json::value_from(request.prompt);
    if (!shares) body["cache_salt"] = fmt::format("alone {}", options_.seed);
    const HttpAnswer answer = post_json(options_.endpoint, "/completions", json::serialize(body),
                                        options_.headers, options_.timeout);
    if (!answer.failure.empty()) return {{}, answer.failure};
    if (answer.status != 200)
      return {{}, fmt::format("status {}: {}", answer.status, shown(answer.body))};
    Told told = read(answer.body);
    if (told.failure.empty() && told.tokens.size() != request.tokens)
      told.failure = fmt::format("{} tokens, {} were asked", told.tokens.size(), request.tokens);
    return told;
  }
  void send_text() { as_text_ = true; }
  [[nodiscard]] bool sends_text() const { return as_text_; }

 private:
  static Told read(const std::string& text) {
    boost::system::error_code failed;
    const json::value answer = parse_json(text, failed);
    if (failed) return {{}, fmt::format("no JSON: {}", shown(text))};
    const json::value* choice = answer.find_pointer("/choices/0", failed);
    if (choice == nullptr || !choice->is_object()) return {{}, "no choices: " + shown(text)};
    const json::object& first = choice->get_object();
    for (const char* member : {"token_ids", "tokens"})
      if (const json::value* ids = first.if_contains(member))
        if (const auto tokens = json::try_value_to<ProbeTokens>(*ids)) return {*tokens, ""};
    const json::value* words = first.if_contains("text");
    if (words == nullptr || !words->is_string()) return {{}, "no text: " + shown(text)};
    const auto tokens = tokens_of_text(words->get_string());
    if (!tokens)
      return {{}, "other text than the probe's: " + shown(std::string(words->get_string()))};
    return {*tokens, ""};
  }

  const ProbeOptions& options_;
  bool as_text_ = false;
};

ProbeTokens right_answer(const probe::Tables& tables, const ProbeRequest& request) {
  Rows rows(tables);
  rows.extend(request.prompt);
  return rows.generate(request.tokens);
}

/// A run over all plans.
class Check {
 public:
  explicit Check(const ProbeOptions& options)
      : options_(options), tables_(options.shape), engine_(options), random_(options.seed) {}

  ProbeReport run() {
    recognize();
    const std::size_t kinds = plan_kinds().size();
    for (std::size_t kind = 0; sent_ < options_.requests && in_a_row_ < kMostInARow; ++kind) {
      const ProbePlan plan = draw_plan(kind % kinds, tables_, options_.limits, random_);
      for (const auto& wave : plan.waves) send(plan, wave);
    }
    return std::move(report_);
  }

 private:
  static constexpr std::size_t kMostInARow = 8;
  static constexpr std::size_t kMostTold = 16;
  static constexpr std::size_t kMostWrong = 20;

  // One short text, alone: who answers this wrongly serves no probe.
  void recognize() {
    ProbeRequest request = draw_plan(0, tables_, {.longest = 64, .tokens = 8}, random_).waves[0][0];
    Told told = engine_.ask(request, false);
    if (told.failure.starts_with("status 4")) {
      engine_.send_text();
      const Told again = engine_.ask(request, false);
      if (again.failure.empty()) told = again;
    }
    const std::string where = fmt::format("http://{}:{}{}/completions", options_.endpoint.host,
                                          options_.endpoint.port, options_.endpoint.path);
    if (!told.failure.empty()) throw UsageError(fmt::format("{}: {}", where, told.failure));
    if (told.tokens == right_answer(tables_, request)) return;
    if (engine_.ask(request, false).tokens != told.tokens)
      throw UsageError(where +
                       ": answers the same text in two ways: it must take the likeliest token");
    const auto answers = [&](ProbeTokens prompt) {
      return told.tokens == right_answer(tables_, {std::move(prompt), request.tokens});
    };
    ProbeTokens doubled = request.prompt;
    doubled.insert(doubled.begin(), probe::kBegin);
    if (answers(doubled)) throw UsageError(where + ": puts a token before the text");
    if (answers({request.prompt.begin() + 1, request.prompt.end()}))
      throw UsageError(where + ": drops the first token of the text");
    throw UsageError(
        fmt::format("{}: serves another model than `kvoracle probe model` writes: want {}, got {}",
                    where, json::serialize(json::value_from(right_answer(tables_, request))),
                    json::serialize(json::value_from(told.tokens))));
  }

  void send(const ProbePlan& plan, const std::vector<ProbeRequest>& wave) {
    std::vector<Told> answers(wave.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < wave.size(); ++i)
        threads.emplace_back([&, i] { answers[i] = engine_.ask(wave[i], true); });
    }
    std::vector<ToldText> told;
    for (std::size_t i = 0; i < wave.size(); ++i) judge(plan, wave[i], answers[i], told);
    told_.insert(told_.end(), told.begin(), told.end());
    if (told_.size() > kMostTold)
      told_.erase(told_.begin(), told_.end() - static_cast<std::ptrdiff_t>(kMostTold));
  }

  void judge(const ProbePlan& plan, const ProbeRequest& request, const Told& answer,
             std::vector<ToldText>& told) {
    const std::size_t number = sent_++;
    if (!answer.failure.empty()) {
      ++in_a_row_;
      if (report_.failed_requests++ == 0)
        report_.failure = fmt::format("request {}: {}", number, answer.failure);
      return;
    }
    in_a_row_ = 0;
    probe::Coverage coverage;
    Rows rows(tables_);
    rows.extend(request.prompt, &coverage);
    const ProbeTokens want = rows.generate(request.tokens, &coverage);
    ++report_.requests;
    report_.tokens += want.size();
    report_.cells_read += coverage.cells();
    report_.cells += (rows.size() - 1) * probe::Shape::kLayers * probe::Shape::kHeads;
    bool telling = false;
    if (!told_.empty())
      each_hypothesis(tables_, request, told_, false, [&](const Hypothesis& hypothesis) {
        telling = hypothesis.tokens != want;
        return telling;
      });
    report_.telling += telling ? 1 : 0;
    if (answer.tokens != want) add_wrong(plan, request, number, want, answer.tokens);
    ToldText text{number, request.prompt, Rows(tables_)};
    text.tokens.insert(text.tokens.end(), answer.tokens.begin(), answer.tokens.end());
    if (answer.tokens == want)
      text.rows = std::move(rows);
    else
      text.rows.extend(text.tokens);
    told.push_back(std::move(text));
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
    each_hypothesis(tables_, request, told_, true, [&](const Hypothesis& hypothesis) {
      if (hypothesis.tokens != got) return false;
      wrong.cause = Cause::kMemory;
      wrong.evidence =
          fmt::format("these are the tokens of a {}: {}", hypothesis.fault, hypothesis.detail);
      return true;
    });
    if (wrong.evidence.empty()) compare_alone(request, want, got, wrong);
    report_.wrong.push_back(std::move(wrong));
  }

  // The same text, without rows of others.
  void compare_alone(const ProbeRequest& request, const ProbeTokens& want, const ProbeTokens& got,
                     WrongAnswer& wrong) const {
    const Told alone = engine_.ask(request, false);
    if (!alone.failure.empty()) {
      wrong.evidence = "no known fault makes these tokens; alone: " + alone.failure;
    } else if (alone.tokens == want) {
      wrong.cause = Cause::kMemory;
      wrong.evidence = "right when it is asked alone, without rows of others";
    } else if (alone.tokens == got) {
      wrong.cause = Cause::kArithmetic;
      wrong.evidence = "no known fault makes these tokens, and alone it answers alike";
    } else {
      wrong.evidence = "no known fault makes these tokens, and alone it answers otherwise";
    }
  }

  const ProbeOptions& options_;
  probe::Tables tables_;
  Engine engine_;
  traces::Random random_;
  std::vector<ToldText> told_;  // the last ones
  std::size_t sent_ = 0;
  std::size_t in_a_row_ = 0;  // requests that failed
  ProbeReport report_;
};

}  // namespace

std::string probe_text(const std::vector<Token>& tokens) {
  std::string text;
  for (const Token token : tokens) {
    if (token < probe::kFirstValue || token >= probe::kFirstPad) continue;
    const std::uint32_t code =
        kFirstCharacter + token - probe::kFirstValue;  // three bytes of UTF-8
    for (const std::uint32_t byte :
         {0xE0U | code >> 12U, 0x80U | (code >> 6U & 0x3FU), 0x80U | (code & 0x3FU)})
      text += static_cast<char>(byte);
  }
  return text;
}

std::optional<std::vector<Token>> tokens_of_text(std::string_view text) {
  std::vector<Token> tokens;
  if (text.size() % 3 != 0) return std::nullopt;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    const auto byte = [&](std::size_t i) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i]));
    };
    if (byte(0) >> 4U != 0xEU || byte(1) >> 6U != 2 || byte(2) >> 6U != 2) return std::nullopt;
    const std::uint32_t code =
        (byte(0) & 0xFU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    if (code < kFirstCharacter || code >= kFirstCharacter + probe::kFirstPad - probe::kFirstValue)
      return std::nullopt;
    tokens.push_back(code - kFirstCharacter + probe::kFirstValue);
  }
  return tokens;
}

ProbeReport probe_engine(const ProbeOptions& options) {
  return Check(options).run();
}

}  // namespace kvo::tools
