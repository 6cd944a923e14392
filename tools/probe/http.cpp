#include "tools/probe/http.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::uint64_t kMostBody = std::uint64_t{16} << 20U;

/// One request. Each step waits for its end: deadlines hold for asynchronous steps alone.
class Exchange {
 public:
  Exchange(const Endpoint& endpoint, std::chrono::duration<double> timeout)
      : endpoint_(endpoint), stream_(context_), resolver_(context_) {
    stream_.expires_after(std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
    parser_.body_limit(kMostBody);
  }

  HttpAnswer send(http::request<http::string_body>& request) {
    resolver_.async_resolve(endpoint_.host, endpoint_.port,
                            [&](error_code failed, const auto& found) {
                              if (failed) return end("no such host", failed);
                              connect(found, request);
                            });
    context_.run();
    return std::move(answer_);
  }

 private:
  void connect(const asio::ip::tcp::resolver::results_type& found,
               http::request<http::string_body>& request) {
    stream_.async_connect(found, [&](error_code failed, const auto& /*endpoint*/) {
      if (failed) return end("no connection", failed);
      write(request);
    });
  }
  void write(http::request<http::string_body>& request) {
    http::async_write(stream_, request, [&](error_code failed, std::size_t /*bytes*/) {
      if (failed) return end("the connection ended", failed);
      http::async_read(stream_, buffer_, parser_, [&](error_code unread, std::size_t /*bytes*/) {
        if (unread) return end("no whole answer", unread);
        answer_.status = parser_.get().result_int();
        answer_.body = std::move(parser_.get().body());
      });
    });
  }
  void end(std::string_view what, error_code failed) {
    answer_.failure = fmt::format("{}: {}", what, failed.message());
  }

  const Endpoint& endpoint_;
  asio::io_context context_;
  beast::tcp_stream stream_;
  asio::ip::tcp::resolver resolver_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  HttpAnswer answer_;
};

void answer_connection(asio::ip::tcp::socket socket, const HttpHandler& handler) {
  error_code failed;
  beast::flat_buffer buffer;
  while (!failed) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(kMostBody);
    http::read(socket, buffer, parser, failed);
    if (failed) return;
    const auto& request = parser.get();
    HttpAnswer answer = handler(std::string(request.target()), request.body());
    http::response<http::string_body> response(http::int_to_status(answer.status),
                                               request.version());
    response.set(http::field::content_type, "application/json");
    response.keep_alive(request.keep_alive());
    response.body() = std::move(answer.body);
    response.prepare_payload();
    http::write(socket, response, failed);
    if (!request.keep_alive()) return;
  }
}

}  // namespace

Endpoint endpoint_of(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  const auto refuse = [&](std::string_view why) {
    return UsageError(
        fmt::format("'{}': {}: http://HOST[:PORT][/PATH] is needed", printable(url), why));
  };
  if (!url.starts_with(kScheme)) throw refuse("another scheme");
  std::string rest = url.substr(kScheme.size());
  Endpoint endpoint;
  if (const std::size_t slash = rest.find('/'); slash != rest.npos) {
    endpoint.path = rest.substr(slash);
    while (endpoint.path.ends_with('/')) endpoint.path.pop_back();
    rest.resize(slash);
  }
  const std::size_t colon = rest.find(':', rest.rfind(']') == rest.npos ? 0 : rest.rfind(']'));
  if (colon != rest.npos) {
    endpoint.port = rest.substr(colon + 1);
    rest.resize(colon);
    const bool digits =
        std::ranges::all_of(endpoint.port, [](char c) { return c >= '0' && c <= '9'; });
    if (endpoint.port.empty() || endpoint.port.size() > 5 || !digits ||
        std::stoul(endpoint.port) > 65535)
      throw refuse("no port");
  }
  if (rest.empty()) throw refuse("no host");
  endpoint.host =
      rest.starts_with('[') && rest.ends_with(']') ? rest.substr(1, rest.size() - 2) : rest;
  return endpoint;
}

HttpAnswer post_json(const Endpoint& endpoint, std::string_view path, const std::string& body,
                     const HttpHeaders& headers, std::chrono::duration<double> timeout) {
  http::request<http::string_body> request(http::verb::post, endpoint.path + std::string(path), 11);
  request.set(http::field::host, endpoint.host + ":" + endpoint.port);
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "close");
  for (const auto& [name, value] : headers) request.set(name, value);
  request.body() = body;
  request.prepare_payload();
  return Exchange(endpoint, timeout).send(request);
}

void serve_http(std::uint16_t port, const std::function<void(std::uint16_t)>& ready,
                const HttpHandler& handler) {
  asio::io_context context;
  asio::ip::tcp::acceptor acceptor(context);
  const asio::ip::tcp::endpoint place(asio::ip::address_v4::loopback(), port);
  error_code failed;
  acceptor.open(place.protocol(), failed);
  if (!failed) acceptor.bind(place, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) throw FileError(fmt::format("port {}: {}", port, failed.message()));
  ready(acceptor.local_endpoint().port());
  while (true) {
    asio::ip::tcp::socket socket(context);
    acceptor.accept(socket, failed);
    if (!failed) std::thread(answer_connection, std::move(socket), handler).detach();
  }
}

}  // namespace kvo::tools
