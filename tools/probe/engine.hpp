// tools/probe/engine.hpp: an engine that serves the probe: how it is asked, and what it answers.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tools/probe/http.hpp"
#include "tools/probe/plans.hpp"

namespace kvo::tools {

/// Where an engine is, and what it is asked with.
struct EngineOptions {
  Endpoint endpoint;            ///< of an interface like OpenAI's: it gets POST /completions
  std::string model = "probe";  ///< name of the model there
  HttpHeaders headers;
  std::chrono::duration<double> timeout{60};  ///< of a request
  std::string salt = "alone";  ///< names the cache of a request that uses no rows of others
};

/// Sends JSON to a path of an engine, and returns its answer. Several threads may call it.
using Transport = std::function<HttpAnswer(std::string_view path, const std::string& body)>;

/// Over a connection of its own for each request.
[[nodiscard]] Transport http_transport(const EngineOptions& options);

/// What an engine answered: tokens, or why there are none.
struct EngineAnswer {
  ProbeTokens tokens;
  std::string failure;
};

/// An engine with an interface like OpenAI's.
class Engine {
 public:
  explicit Engine(const EngineOptions& options) : Engine(options, http_transport(options)) {}
  Engine(const EngineOptions& options, Transport transport)
      : model_(options.model), salt_(options.salt), transport_(std::move(transport)) {}

  /// The tokens that follow a prompt, as many as the request says. `shares`: whether the engine may
  /// use rows of other requests. Several threads may call it.
  [[nodiscard]] EngineAnswer ask(const ProbeRequest& request, bool shares) const;
  /// From now on prompts are sent as text.
  void send_text() { as_text_ = true; }

 private:
  std::string model_;
  std::string salt_;
  Transport transport_;
  bool as_text_ = false;
};

/// Tokens as text: one character each. A token that begins a text is left out.
[[nodiscard]] std::string probe_text(const ProbeTokens& tokens);
/// The tokens of a text; nothing if it has a character that is no value token.
[[nodiscard]] std::optional<ProbeTokens> tokens_of_text(std::string_view text);

}  // namespace kvo::tools
