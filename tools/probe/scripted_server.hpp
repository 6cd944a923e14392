// tools/probe/scripted_server.hpp: a server for tests that misbehaves as a script says.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kvo::tools {

/// One connection, after the server has read a request from it.
struct Peer {
  int number = 0;      ///< of the connection, counted from 0
  std::string target;  ///< of the request
  std::string body;
  /// Sends bytes as they are. Returns false if the client has ended the connection.
  std::function<bool(std::string_view bytes)> send;
  /// Whether the client ends the connection within a second.
  std::function<bool()> ends;
};

/// A certificate that signs itself, and its key (PEM).
struct Certificate {
  std::string certificate;
  std::string key;
};
/// `name`: "DNS:localhost", "IP:127.0.0.1".
[[nodiscard]] Certificate certificate_for(const std::string& name);

/// Listens on the loopback interface until the process ends. After the script the server ends the
/// connection. Returns  the port.
[[nodiscard]] std::uint16_t serve_script(std::function<void(Peer& peer)> script,
                                         const std::optional<Certificate>& tls = {});

/// An answer with a body, as bytes.
[[nodiscard]] std::string http_bytes(int status, std::string_view body,
                                     std::string_view further_headers = {});

}  // namespace kvo::tools
