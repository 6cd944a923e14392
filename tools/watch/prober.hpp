// tools/watch/prober.hpp: asks an engine for sequences that it announced, and reads how many of
// their tokens it reused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tools/probe/engine.hpp"
#include "tools/watch/sequences.hpp"

namespace kvo::tools {

class Prober {
 public:
  /// How an engine answered for the sequence that was announced last.
  struct Answer {
    Sequences::Whole asked;
    std::int64_t reused = 0;   ///< tokens, as the engine says
    std::string failure = {};  ///< why it does not say; empty: it does
  };

  /// Of an interface as OpenAI's, "http://127.0.0.1:8000/v1". `model`: its name there; empty: none
  /// is sent. Throws FileError as http_transport does.
  Prober(const HttpOptions& server, std::string model)
      : Prober(server.endpoint, std::move(model), http_transport(server)) {}
  Prober(const Endpoint& endpoint, std::string model, Transport transport)
      : path_(endpoint.path + "/completions"),
        model_(std::move(model)),
        transport_(std::move(transport)) {}

  /// What the engine announced. Prompts of adapters and namespaces are not sent.
  void note(const events::Batch& batch, std::int64_t block_size);
  /// Sends the sequence that was announced last and a token more, so that all of it can be
  /// reused; nothing if there is no new one.
  [[nodiscard]] std::optional<Answer> ask();

 private:
  std::string path_;
  std::string model_;
  Transport transport_;
  Sequences sequences_;
  std::optional<events::Key> last_;
};

}  // namespace kvo::tools
