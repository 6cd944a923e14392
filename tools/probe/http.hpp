// tools/probe/http.hpp: requests to a server that speaks HTTP, and a server for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvo::tools {

/// Where a server answers: "http[s]://HOST[:PORT][/PATH]".
struct Endpoint {
  std::string host;
  std::string port = "80";  ///< 443 with TLS
  std::string path;         ///< without a slash at its end; empty: none
  bool tls = false;         ///< https
};
/// Throws UsageError: another scheme, no host, a port that is none.
[[nodiscard]] Endpoint endpoint_of(const std::string& url);
/// The URL of an endpoint, with its port.
[[nodiscard]] std::string url_of(const Endpoint& endpoint);

/// Further lines of a request: names with values.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// JSON that is sent to an endpoint.
struct HttpRequest {
  std::string path;  ///< the whole one, with that of the endpoint
  std::string body;
  /// Gets the body of an answer with status 200 piece by piece as it comes; the answer has none
  /// then. False ends the connection.
  std::function<bool(std::string_view piece)> on_piece = {};
  /// Ends the connection so long after the request was sent, with or without an answer.
  std::optional<std::chrono::milliseconds> patience = {};
};

struct HttpAnswer {
  unsigned status = 0;  ///< 0: none came before the request ended the connection
  std::string body;
  std::string failure;  ///< why there is no answer, in words; empty: there is one
  std::string content_type = "application/json";
  std::string retry_after = {};  ///< the header of this name
};

/// How a server is reached.
struct HttpOptions {
  Endpoint endpoint;
  HttpHeaders headers;
  /// From the name's look-up to the last byte. The system's resolver may take longer to give up.
  std::chrono::duration<double> timeout{60};
  /// Certificates (PEM) that are trusted; empty: those of the system. Another server than one with
  /// such a certificate for the endpoint's host is refused.
  std::string ca_file;
};

/// Sends requests, each over a connection of its own. Several threads may use it.
class HttpClient {
 public:
  /// Throws FileError: the file of certificates has none or cannot be read.
  explicit HttpClient(HttpOptions options);

  /// Sends a request and waits for the whole answer, of 16 MiB at most.
  [[nodiscard]] HttpAnswer send(const HttpRequest& request) const;

 private:
  struct Tls;
  HttpOptions options_;
  std::shared_ptr<Tls> tls_;
};

/// What a server answers to a body that was sent to a path.
using HttpHandler = std::function<HttpAnswer(const std::string& path, const std::string& body)>;

/// Answers on the loopback interface, one thread a connection, until the process ends. `port` 0:
/// any free one. `ready` gets the port. Throws FileError: the port is taken.
[[noreturn]] void serve_http(std::uint16_t port, const std::function<void(std::uint16_t)>& ready,
                             const HttpHandler& handler);

}  // namespace kvo::tools
