// tools/probe/http.hpp: requests to a server that speaks HTTP, and a server for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvo::tools {

/// Where a server answers: "http://HOST[:PORT][/PATH]".
struct Endpoint {
  std::string host;
  std::string port = "80";
  std::string path;  ///< without a slash at its end; empty: none
};
/// Throws UsageError: another scheme, no host, a port that is none.
[[nodiscard]] Endpoint endpoint_of(const std::string& url);

/// Further lines of a request: names with values.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
  std::string failure;  ///< why there is no answer, in words; empty: there is one
};

/// Sends JSON to `path` below the endpoint and waits for the whole answer, of 16 MiB at most. Opens
/// a connection of its own; may be called by several threads.
[[nodiscard]] HttpAnswer post_json(const Endpoint& endpoint, std::string_view path,
                                   const std::string& body, const HttpHeaders& headers,
                                   std::chrono::duration<double> timeout);

/// What a server answers to a body that was sent to a path.
using HttpHandler = std::function<HttpAnswer(const std::string& path, const std::string& body)>;

/// Answers on the loopback interface, one thread a connection, until the process ends. `port` 0:
/// any free one. `ready` gets the port. Throws FileError: the port is taken.
[[noreturn]] void serve_http(std::uint16_t port, const std::function<void(std::uint16_t)>& ready,
                             const HttpHandler& handler);

}  // namespace kvo::tools
