#include "tools/probe/engine.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <thread>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/probe/events.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using probe::Token;
using Seconds = std::chrono::duration<double>;

constexpr std::uint32_t kFirstCharacter = 0x4E00;  // of the first value token
constexpr std::string_view kV1 = "/v1";
constexpr unsigned kOk = 200;
constexpr unsigned kTooManyRequests = 429;
constexpr unsigned kUnavailable = 503;

std::string begin_shown(std::string_view text) {
  constexpr std::size_t kMostShown = 120;
  return printable(std::string(text.substr(0, kMostShown)));
}

std::string status_text(const HttpAnswer& answer) {
  return fmt::format("status {}: {}", answer.status, begin_shown(answer.body));
}

/// An answer, of which parts come one by one.
class Completion {
 public:
  // One JSON text: a whole answer, or an event. Returns false where it has no tokens for a reason
  // that failure() names.
  bool add(std::string_view text) {
    boost::system::error_code failed;
    const json::value answer = parse_json(text, failed);
    if (failed) return fail("no JSON: " + begin_shown(text));
    if (!answer.is_object()) return fail("no choices: " + begin_shown(text));
    const json::object& object = answer.get_object();
    if (const json::value* error = object.if_contains("error"); error && !error->is_null())
      return fail("error: " + begin_shown(json::serialize(*error)));
    read_counts(answer);
    if (object.contains("content")) return add_choice(object, text);
    const json::value* choices = object.if_contains("choices");
    const bool any = choices != nullptr && choices->is_array() && !choices->get_array().empty();
    if (any && choices->get_array().front().is_object())
      return add_choice(choices->get_array().front().get_object(), text);
    return (!any && choices != nullptr && read_ > 0) || fail("no choices: " + begin_shown(text));
  }

  [[nodiscard]] const std::string& failure() const { return failure_; }
  // That have come; by their text, if some came without an id.
  [[nodiscard]] std::size_t count() const {
    return has_ids_ ? ids_.size() : text_.size() / kBytesOfACharacter;
  }
  // Of the prompt, if the engine says so; 0: it does not.
  [[nodiscard]] std::size_t read() const { return read_; }
  [[nodiscard]] EngineAnswer answer() const {
    if (!failure_.empty()) return {{}, failure_};
    if (has_ids_ && !ids_.empty()) return {ids_, ""};
    if (auto tokens = tokens_of_text(text_)) return {*std::move(tokens), ""};
    return {{}, "other text than the probe's: " + begin_shown(text_)};
  }

 private:
  static constexpr std::size_t kBytesOfACharacter = 3;

  bool fail(std::string why) {
    failure_ = std::move(why);
    return false;
  }
  // The prompt's tokens: OpenAI's member, and llama-server's.
  void read_counts(const json::value& answer) {
    for (const char* place : {"/usage/prompt_tokens", "/tokens_evaluated"}) {
      boost::system::error_code none;
      if (const json::value* count = answer.find_pointer(place, none))
        if (const auto number = json::try_value_to<std::size_t>(*count)) read_ = *number;
    }
  }
  bool add_choice(const json::object& choice, std::string_view shown) {
    bool any = false;
    for (const char* member : {"token_ids", "tokens"})
      if (const json::value* ids = choice.if_contains(member))
        if (const auto tokens = json::try_value_to<ProbeTokens>(*ids)) {
          for (const Token token : *tokens)
            if (token >= probe::Shape::kVocabulary)
              return fail(fmt::format("token {}: the probe has 0 to 4415", token));
          ids_.insert(ids_.end(), tokens->begin(), tokens->end());
          any = true;
          break;
        }
    const bool with_ids = any;
    for (const char* member : {"text", "content"})
      if (const json::value* words = choice.if_contains(member); words && words->is_string()) {
        if (!with_ids && !words->get_string().empty()) has_ids_ = false;
        text_ += words->get_string();
        any = true;
      }
    return any || fail("no text: " + begin_shown(shown));
  }

  ProbeTokens ids_;
  std::string text_;
  std::string failure_;
  bool has_ids_ = true;
  std::size_t read_ = 0;
};

// What Retry-After says, in seconds; nothing for a date.
std::optional<double> seconds_of(const std::string& text) {
  std::uint32_t seconds = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return seconds;
}

bool refuses(const EngineAnswer& answer) {
  return answer.failure.starts_with("status 4") && !answer.failure.starts_with("status 429");
}

}  // namespace

Transport http_transport(const HttpOptions& options) {
  const auto client = std::make_shared<const HttpClient>(options);
  return [client](const HttpRequest& request) { return client->send(request); };
}

std::string Engine::where() const {
  if (!options_.name.empty()) return options_.name;
  return url_of(options_.endpoint) + (own_ ? "/completion" : "/completions");
}

EngineAnswer Engine::meet(const ProbeRequest& request) {
  EngineAnswer first;
  for (const auto& [own, plain] : {std::pair(false, false), {false, true}, {true, false}})
    for (const bool as_text : {false, true}) {
      if (plain && first.failure.starts_with("status 404")) continue;  // no member is at fault
      own_ = own;
      plain_ = plain;
      as_text_ = as_text;
      EngineAnswer given = ask(request, false);
      if (given.failure.empty()) return given;
      if (first.failure.empty()) first = given;
      if (!refuses(first)) return first;
    }
  own_ = plain_ = as_text_ = false;
  if (first.failure.starts_with("status 404") && !options_.endpoint.path.ends_with(kV1))
    first.failure += " (does the URL lack /v1?)";
  return first;
}

std::string Engine::body_of(const ProbeRequest& request, bool shares, bool stream) const {
  json::object body{{"temperature", 0}, {"seed", 0}};
  if (!plain_) {
    body["ignore_eos"] = true;
    body["cache_prompt"] = shares;
  }
  if (own_) {
    body["n_predict"] = request.tokens;
    body["return_tokens"] = true;
  } else {
    body["model"] = options_.model;
    body["max_tokens"] = request.tokens;
    if (!plain_) body["return_token_ids"] = true;
    // A salt of its own: under one of all that are asked alone they would share rows.
    if (!plain_ && !shares) body["cache_salt"] = fmt::format("{} {}", options_.salt, alone_++);
  }
  if (stream) {
    body["stream"] = true;
    if (!own_) body["stream_options"] = {{"include_usage", true}};
  }
  if (request.manner.slot) body["id_slot"] = *request.manner.slot;
  if (as_text_)
    body["prompt"] = probe_text(request.prompt);
  else
    body["prompt"] = json::value_from(request.prompt);
  return json::serialize(body);
}

HttpAnswer Engine::send(const HttpRequest& request) const {
  constexpr double kFirstWait = 0.25;
  double waited = 0;
  for (std::size_t attempt = 0;; ++attempt) {
    if (sent_++ >= options_.most_sent) {
      --sent_;
      return {0, "",
              fmt::format("{} requests were sent, the most that are allowed", options_.most_sent)};
    }
    HttpAnswer answer = transport_(request);
    if (!answer.failure.empty() || attempt == options_.retries ||
        (answer.status != kTooManyRequests && answer.status != kUnavailable))
      return answer;
    const double wait =
        seconds_of(answer.retry_after)
            .value_or(kFirstWait *
                      static_cast<double>(std::uint64_t{1} << std::min<std::size_t>(attempt, 30)));
    waited += wait;
    if (waited > options_.timeout.count())
      return {0, "",
              fmt::format("{}; it is to be sent again after {:g} s, later than the timeout",
                          status_text(answer), wait)};
    std::this_thread::sleep_for(Seconds(wait));
    ++retried_;
  }
}

std::string Engine::act_on_slot(const Manner& manner) const {
  if (manner.before == SlotAction::kNone) return "";
  std::string path = options_.endpoint.path;
  if (path.ends_with(kV1)) path.resize(path.size() - kV1.size());
  const bool saves = manner.before == SlotAction::kSave;
  path += fmt::format("/slots/{}?action={}", manner.slot.value_or(0), saves ? "save" : "restore");
  const HttpAnswer answer = send({path, R"({"filename":"kvoracle-probe.bin"})"});
  if (!answer.failure.empty()) return answer.failure;
  return answer.status == kOk ? "" : status_text(answer);
}

std::string Engine::save_failure() const {
  const std::string failure = act_on_slot({.slot = 0, .before = SlotAction::kSave});
  return failure.empty() ? "" : "the engine saves no slots: " + failure;
}

std::string Engine::misread(std::size_t read, std::size_t sent) const {
  if (read == 0 || read == sent) return "";
  std::string why = "it puts a template or other tokens around the prompt";
  if (as_text_ && read + 1 == sent)
    why = "it lacks the token that begins a text";
  else if (read < sent)
    why = "it truncates the context";
  return fmt::format("the engine read {} tokens of a prompt that has {}: {}", read, sent, why);
}

EngineAnswer Engine::ask(const ProbeRequest& request, bool shares) const {
  constexpr std::chrono::milliseconds kPatience(20);
  const Manner& manner = request.manner;
  std::this_thread::sleep_for(manner.pause);
  if (std::string failure = act_on_slot(manner); !failure.empty()) return {{}, std::move(failure)};

  const bool drops = manner.drop_after.has_value();
  const bool stream = options_.stream || (drops && *manner.drop_after > 0);
  Completion completion;
  std::string whole;  // where no events came
  bool dropped = false;
  ServerEvents events([&](std::string_view data) {
    if (!completion.add(data)) return false;
    dropped = drops && completion.count() >= *manner.drop_after;
    return !dropped;
  });
  // A server that cannot stream may answer a request that was to be dropped.
  const auto on_piece = [&](std::string_view piece) {
    if (!stream || (!options_.stream && (!whole.empty() || piece.starts_with('{')))) {
      whole += piece;
      return true;
    }
    return events.add(piece);
  };
  HttpRequest sent{.path = options_.endpoint.path + (own_ ? "/completion" : "/completions"),
                   .body = body_of(request, shares, stream)};
  if (stream) sent.on_piece = on_piece;
  if (drops && !stream) sent.patience = kPatience;
  const HttpAnswer answer = send(sent);
  if (!answer.failure.empty()) return {{}, answer.failure};
  if (sent.patience && answer.status == 0) {
    ++dropped_;
    return {};
  }
  if (answer.status != kOk) return {{}, status_text(answer)};
  if (!answer.body.empty()) (void)on_piece(answer.body);
  // The last line may lack its end.
  if (stream && !dropped && completion.failure().empty()) (void)events.add("\n");
  if (!events.failure().empty()) return {{}, events.failure()};
  if (!stream || !whole.empty()) (void)completion.add(whole);
  EngineAnswer given = completion.answer();
  if (!given.failure.empty()) return given;
  if (dropped) {
    ++dropped_;
    given.tokens.resize(std::min(given.tokens.size(), request.tokens));
    return given;
  }
  if (given.tokens.size() != request.tokens)
    given.failure = fmt::format("{} tokens, {} were asked", given.tokens.size(), request.tokens);
  else
    given.misread = misread(completion.read(), request.prompt.size());
  return given;
}

std::string probe_text(const ProbeTokens& tokens) {
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

std::optional<ProbeTokens> tokens_of_text(std::string_view text) {
  ProbeTokens tokens;
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

}  // namespace kvo::tools
