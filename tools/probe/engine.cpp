#include "tools/probe/engine.hpp"

#include <cstdint>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using probe::Token;

constexpr std::uint32_t kFirstCharacter = 0x4E00;  // of the first value token

std::string begin_shown(const std::string& text) {
  constexpr std::size_t kMostShown = 120;
  return printable(text.substr(0, kMostShown));
}

EngineAnswer completion_of(const std::string& text) {
  boost::system::error_code failed;
  const json::value answer = parse_json(text, failed);
  if (failed) return {{}, fmt::format("no JSON: {}", begin_shown(text))};
  const json::value* choice = answer.find_pointer("/choices/0", failed);
  if (choice == nullptr || !choice->is_object()) return {{}, "no choices: " + begin_shown(text)};
  const json::object& first = choice->get_object();
  for (const char* member : {"token_ids", "tokens"})
    if (const json::value* ids = first.if_contains(member))
      if (auto tokens = json::try_value_to<ProbeTokens>(*ids)) {
        for (const Token token : *tokens)
          if (token >= probe::Shape::kVocabulary)
            return {{}, fmt::format("token {}: the probe has 0 to 4415", token)};
        return {*std::move(tokens), ""};
      }
  const json::value* words = first.if_contains("text");
  if (words == nullptr || !words->is_string()) return {{}, "no text: " + begin_shown(text)};
  const auto tokens = tokens_of_text(words->get_string());
  if (!tokens)
    return {{}, "other text than the probe's: " + begin_shown(std::string(words->get_string()))};
  return {*tokens, ""};
}

}  // namespace

Transport http_transport(const EngineOptions& options) {
  return [endpoint = options.endpoint, headers = options.headers, timeout = options.timeout](
             std::string_view path, const std::string& body) {
    return post_json(endpoint, path, body, headers, timeout);
  };
}

EngineAnswer Engine::ask(const ProbeRequest& request, bool shares) const {
  json::object body{
      {"model", model_},    {"max_tokens", request.tokens}, {"temperature", 0},      {"seed", 0},
      {"ignore_eos", true}, {"return_token_ids", true},     {"cache_prompt", shares}};
  if (as_text_)
    body["prompt"] = probe_text(request.prompt);
  else
    body["prompt"] = json::value_from(request.prompt);
  if (!shares) body["cache_salt"] = salt_;
  const HttpAnswer answer = transport_("/completions", json::serialize(body));
  if (!answer.failure.empty()) return {{}, answer.failure};
  if (answer.status != 200)
    return {{}, fmt::format("status {}: {}", answer.status, begin_shown(answer.body))};
  EngineAnswer given = completion_of(answer.body);
  if (given.failure.empty() && given.tokens.size() != request.tokens)
    given.failure = fmt::format("{} tokens, {} were asked", given.tokens.size(), request.tokens);
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
