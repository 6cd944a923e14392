// tools/probe/engine.hpp: an engine that serves the probe: how it is asked, and what it answers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "tools/probe/http.hpp"
#include "tools/probe/plans.hpp"

namespace kvo::tools {

/// Sends a request to an engine, and returns its answer. Several threads may call it. If it does
/// not send bodies in pieces, the answer has the body.
using Transport = std::function<HttpAnswer(const HttpRequest& request)>;

/// Where an engine is, and what it is asked with.
struct EngineOptions : HttpOptions {
  Transport transport = nullptr;  ///< null: HTTP to the endpoint
  std::string name;               ///< of the engine, in messages; empty: its URL
  std::string model = "probe";    ///< its name at the engine
  std::string salt = "alone";     ///< begins the salt of a request that uses no rows of others
  bool stream = false;            ///< answers come token by token, as server-sent events
  std::size_t retries = 4;        ///< of a request that is answered with status 429 or 503
  /// Sent in all, those that look for the interface, retries and shrinking included.
  std::uint64_t most_sent = std::numeric_limits<std::uint64_t>::max();
};

/// Over a connection of its own for each request. Throws FileError as HttpClient does.
[[nodiscard]] Transport http_transport(const HttpOptions& options);

/// What an engine answered: tokens, or why there are none.
struct EngineAnswer {
  ProbeTokens tokens;
  std::string failure;
  /// If it says that it read another number of tokens than the prompt has: this, in words. Tokens
  /// that are wrong then are no fault of a cache.
  std::string misread = {};
};

/// What was sent to an engine.
struct EngineCounts {
  std::uint64_t sent = 0;
  std::uint64_t retried = 0;  ///< of these, after status 429 or 503
  std::uint64_t dropped = 0;  ///< whose connection was ended before the whole answer
};

/// An engine with an interface like OpenAI's or llama-server's.
class Engine {
 public:
  /// Throws FileError as http_transport does.
  explicit Engine(const EngineOptions& options)
      : Engine(options, options.transport ? options.transport : http_transport(options)) {}
  Engine(EngineOptions options, Transport transport)
      : options_(std::move(options)), transport_(std::move(transport)) {}

  /// Finds how the engine takes prompts: token ids or text, POST /completions with or without the
  /// members that OpenAI's interface lacks, or llama-server's own /completion. Returns  its answer
  /// without rows of other requests; if it takes none, why it refuses the first way.
  [[nodiscard]] EngineAnswer meet(const ProbeRequest& request);

  /// The tokens that follow a prompt, as many as the request says, or fewer if it is dropped.
  /// `shares`: whether the engine may use rows of other requests. Several threads may call it.
  [[nodiscard]] EngineAnswer ask(const ProbeRequest& request, bool shares) const;

  /// Why the engine cannot save the rows of slot 0; empty: it has saved them.
  [[nodiscard]] std::string save_failure() const;

  /// Whether it can be asked without rows of other requests.
  [[nodiscard]] bool can_ask_alone() const { return !plain_; }
  [[nodiscard]] EngineCounts counts() const { return {sent_, retried_, dropped_}; }
  /// Where completions are asked: a URL.
  [[nodiscard]] std::string where() const;

 private:
  [[nodiscard]] std::string body_of(const ProbeRequest& request, bool shares, bool stream) const;
  [[nodiscard]] HttpAnswer send(const HttpRequest& request) const;
  [[nodiscard]] std::string act_on_slot(const Manner& manner) const;
  [[nodiscard]] std::string misread(std::size_t read, std::size_t sent) const;

  EngineOptions options_;
  Transport transport_;
  bool as_text_ = false;
  bool own_ = false;    // llama-server's interface
  bool plain_ = false;  // OpenAI's members alone: there is no way to ask without sharing
  mutable std::atomic<std::uint64_t> sent_ = 0;
  mutable std::atomic<std::uint64_t> alone_ = 0;  // of these, requests that share nothing
  mutable std::atomic<std::uint64_t> retried_ = 0;
  mutable std::atomic<std::uint64_t> dropped_ = 0;
};

/// Tokens as text: one character each. A token that begins a text is left out.
[[nodiscard]] std::string probe_text(const ProbeTokens& tokens);
/// The tokens of a text; nothing if it has a character that is no value token.
[[nodiscard]] std::optional<ProbeTokens> tokens_of_text(std::string_view text);

}  // namespace kvo::tools
