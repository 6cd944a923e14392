#include "tools/probe/http.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <type_traits>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
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

using Plain = beast::tcp_stream;
using Secure = beast::ssl_stream<beast::tcp_stream>;

/// One request. Each step begins the next one; the deadline ends all of them.
template <class Stream>
class Exchange {
 public:
  template <class... Context>
  Exchange(const HttpOptions& options, const HttpRequest& request, Context&... tls)
      : options_(options),
        asked_(request),
        stream_(context_, tls...),
        resolver_(context_),
        patience_(context_),
        request_(http::verb::post, request.path, 11) {
    request_.set(http::field::host, options.endpoint.host + ":" + options.endpoint.port);
    request_.set(http::field::content_type, "application/json");
    request_.set(http::field::connection, "close");
    for (const auto& [name, value] : options.headers) request_.set(name, value);
    request_.body() = request.body;
    request_.prepare_payload();
    parser_.body_limit(kMostBody);
  }

  HttpAnswer run() {
    resolver_.async_resolve(options_.endpoint.host, options_.endpoint.port,
                            [&](error_code failed, const auto& found) {
                              if (failed) return end("no such host", failed);
                              connect(found);
                            });
    constexpr std::chrono::duration<double> kMost = std::chrono::hours(24 * 365);
    context_.run_for(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::min(options_.timeout, kMost)));
    if (!ended_)
      answer_.failure = fmt::format("no whole answer in {:g} s", options_.timeout.count());
    if (!answer_.failure.empty()) answer_.status = 0;
    return std::move(answer_);
  }

 private:
  void connect(const asio::ip::tcp::resolver::results_type& found) {
    beast::get_lowest_layer(stream_).async_connect(
        found, [&](error_code failed, const auto& /*endpoint*/) {
          if (failed) return end("no connection", failed);
          greet();
        });
  }
  void greet() {
    if constexpr (std::is_same_v<Stream, Secure>) {
      SSL* const session = stream_.native_handle();
      const std::string& host = options_.endpoint.host;
      // A certificate for another host is refused; servers with several choose by the name.
      error_code no_address;
      (void)asio::ip::make_address(host, no_address);
      if (SSL_set1_host(session, host.c_str()) != 1 ||
          (no_address && SSL_set_tlsext_host_name(session, host.c_str()) != 1))
        return end("no secure connection",
                   error_code(static_cast<int>(ERR_get_error()), asio::error::get_ssl_category()));
      stream_.async_handshake(asio::ssl::stream_base::client, [&, session](error_code failed) {
        const long verified = SSL_get_verify_result(session);
        if (failed && verified != X509_V_OK)
          return fail(fmt::format("no secure connection: certificate: {}",
                                  X509_verify_cert_error_string(verified)));
        if (failed) return end("no secure connection", failed);
        write();
      });
    } else {
      write();
    }
  }
  void write() {
    http::async_write(stream_, request_, [&](error_code failed, std::size_t /*bytes*/) {
      if (failed) return end("the connection ended", failed);
      if (asked_.patience) {
        patience_.expires_after(*asked_.patience);
        patience_.async_wait([&](error_code stopped) {
          if (stopped) return;
          answer_ = {};
          done();
        });
      }
      read_header();
    });
  }
  void read_header() {
    http::async_read_header(stream_, buffer_, parser_,
                            [&](error_code failed, std::size_t /*bytes*/) {
                              if (failed) return end("no whole answer", failed);
                              const auto& header = parser_.get();
                              answer_.status = header.result_int();
                              answer_.content_type = header[http::field::content_type];
                              answer_.retry_after = header[http::field::retry_after];
                              read_body();
                            });
  }
  void read_body() {
    if (parser_.is_done()) return done();
    auto& body = parser_.get().body();
    body.data = piece_.data();
    body.size = piece_.size();
    http::async_read_some(stream_, buffer_, parser_, [&](error_code failed, std::size_t /*bytes*/) {
      if (failed && failed != http::error::need_buffer) return end("no whole answer", failed);
      const std::string_view piece(piece_.data(), piece_.size() - parser_.get().body().size);
      if (asked_.on_piece == nullptr || answer_.status != 200)
        answer_.body += piece;
      else if (!piece.empty() && !asked_.on_piece(piece))
        return done();
      read_body();
    });
  }

  void end(std::string_view what, error_code failed) {
    fail(fmt::format("{}: {}", what, failed.message()));
  }
  void fail(std::string failure) {
    answer_.failure = std::move(failure);
    done();
  }
  void done() {
    ended_ = true;
    context_.stop();
  }

  const HttpOptions& options_;
  const HttpRequest& asked_;
  asio::io_context context_;
  Stream stream_;
  asio::ip::tcp::resolver resolver_;
  asio::steady_timer patience_;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::array<char, 16384> piece_{};
  HttpAnswer answer_;
  bool ended_ = false;
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
    response.set(http::field::content_type, answer.content_type);
    response.keep_alive(request.keep_alive());
    response.body() = std::move(answer.body);
    response.prepare_payload();
    http::write(socket, response, failed);
    if (!request.keep_alive()) return;
  }
}

}  // namespace

struct HttpClient::Tls {
  asio::ssl::context context{asio::ssl::context::tls_client};
};

Endpoint endpoint_of(const std::string& url) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kSecure = "https://";
  const auto refuse = [&](std::string_view why) {
    return UsageError(
        fmt::format("'{}': {}: http[s]://HOST[:PORT][/PATH] is needed", printable(url), why));
  };
  Endpoint endpoint;
  endpoint.tls = url.starts_with(kSecure);
  if (endpoint.tls) endpoint.port = "443";
  if (!endpoint.tls && !url.starts_with(kPlain)) throw refuse("another scheme");
  std::string rest = url.substr(endpoint.tls ? kSecure.size() : kPlain.size());
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

std::string url_of(const Endpoint& endpoint) {
  const bool literal = endpoint.host.find(':') != endpoint.host.npos;
  return fmt::format("{}://{}{}{}:{}{}", endpoint.tls ? "https" : "http", literal ? "[" : "",
                     endpoint.host, literal ? "]" : "", endpoint.port, endpoint.path);
}

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) {
  if (!options_.endpoint.tls) return;
  tls_ = std::make_shared<Tls>();
  tls_->context.set_verify_mode(asio::ssl::verify_peer);
  error_code failed;
  if (options_.ca_file.empty())
    tls_->context.set_default_verify_paths(failed);
  else
    tls_->context.load_verify_file(options_.ca_file, failed);
  if (failed)
    throw FileError(
        fmt::format("{}: no certificates: {}", printable(options_.ca_file), failed.message()));
}

HttpAnswer HttpClient::send(const HttpRequest& request) const {
  if (tls_ == nullptr) return Exchange<Plain>(options_, request).run();
  return Exchange<Secure>(options_, request, tls_->context).run();
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
