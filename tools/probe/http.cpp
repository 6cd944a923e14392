#include "tools/probe/http.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <thread>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::uint64_t kMostBody = std::uint64_t{16} << 20U;
constexpr std::size_t kPiece = 16384;

using Clock = std::chrono::steady_clock;

error_code error_of_system(int number) {
  return {number, asio::error::get_system_category()};
}

/// A socket whose every step ends at a deadline, with timed_out.
struct Socket {
  using lowest_layer_type = Socket;  // what a TLS stream asks for
  using executor_type = asio::ip::tcp::socket::executor_type;
  executor_type get_executor() { return tcp.get_executor(); }
  Socket& lowest_layer() { return *this; }

  void connect(const asio::ip::tcp::endpoint& place, error_code& failed) {
    (void)tcp.close(failed);
    (void)tcp.open(place.protocol(), failed);
    if (!failed) (void)tcp.non_blocking(true, failed);
    if (failed) return;
    if (::connect(tcp.native_handle(), place.data(), static_cast<socklen_t>(place.size())) == 0)
      return;
    failed = error_of_system(errno);
    if (failed != asio::error::in_progress) return;
    wait(POLLOUT, failed);
    int error = 0;
    socklen_t size = sizeof error;
    if (!failed && ::getsockopt(tcp.native_handle(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
        error != 0)
      failed = error_of_system(error);
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& failed) {
    return patiently(POLLIN, failed, [&] { return tcp.read_some(buffers, failed); });
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& failed) {
    return patiently(POLLOUT, failed, [&] { return tcp.write_some(buffers, failed); });
  }
  template <class Step>
  std::size_t patiently(short events, error_code& failed, const Step& step) {
    while (true) {
      failed = Clock::now() < deadline ? error_code() : asio::error::timed_out;
      const std::size_t bytes = failed ? 0 : step();
      if (failed != asio::error::would_block) return bytes;
      wait(events, failed);
      if (failed) return 0;
    }
  }
  void wait(short events, error_code& failed) {
    pollfd asked{.fd = tcp.native_handle(), .events = events, .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = ::poll(&asked, 1, static_cast<int>(std::clamp<long>(left, 0, INT_MAX)));
    failed = {};
    if (ready == 0) failed = asio::error::timed_out;
    if (ready < 0 && errno != EINTR) failed = error_of_system(errno);
  }

  asio::ip::tcp::socket tcp;
  Clock::time_point deadline;
};

/// One request over a connection of its own.
class Exchange {
 public:
  Exchange(const HttpOptions& options, asio::ssl::context* tls) : options_(options) {
    if (tls != nullptr) tls_.emplace(socket_, *tls);
  }

  HttpAnswer run(const HttpRequest& request) {
    constexpr std::chrono::duration<double> kMost = std::chrono::hours(24 * 365);
    const auto timeout =
        std::chrono::duration_cast<Clock::duration>(std::min(options_.timeout, kMost));
    const Clock::time_point end = Clock::now() + timeout;
    socket_.deadline = end;
    if (connect() && greet() && write(request)) {
      if (request.patience) socket_.deadline = std::min(end, Clock::now() + *request.patience);
      read(request);
    }
    if (answer_.failure.empty()) return std::move(answer_);
    if (Clock::now() >= end)
      return {.failure = fmt::format("no whole answer in {:g} s", options_.timeout.count())};
    if (Clock::now() >= socket_.deadline) return {};
    return {.failure = std::move(answer_.failure)};
  }

 private:
  bool connect() {
    error_code failed;
    const auto found = asio::ip::tcp::resolver(context_).resolve(options_.endpoint.host,
                                                                 options_.endpoint.port, failed);
    if (failed) return end("no such host", failed);
    for (const auto& entry : found) {
      socket_.connect(entry.endpoint(), failed);
      if (!failed) return true;
    }
    return end("no connection", failed);
  }
  bool greet() {
    if (!tls_) return true;
    SSL* const session = tls_->native_handle();
    const std::string& host = options_.endpoint.host;
    // A certificate for another host is refused; servers with several choose by the name.
    error_code failed;
    error_code no_address;
    (void)asio::ip::make_address(host, no_address);
    if (SSL_set1_host(session, host.c_str()) != 1 ||
        (no_address && SSL_set_tlsext_host_name(session, host.c_str()) != 1))
      failed = error_code(static_cast<int>(ERR_get_error()), asio::error::get_ssl_category());
    else
      (void)tls_->handshake(asio::ssl::stream_base::client, failed);
    const long verified = SSL_get_verify_result(session);
    if (failed && verified != X509_V_OK)
      return fail(fmt::format("no secure connection: certificate: {}",
                              X509_verify_cert_error_string(verified)));
    return !failed || end("no secure connection", failed);
  }
  bool write(const HttpRequest& request) {
    std::string text = fmt::format(
        "POST {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\n"
        "Connection: close\r\nContent-Length: {}\r\n",
        request.path, options_.endpoint.host, options_.endpoint.port, request.body.size());
    for (const auto& [name, value] : options_.headers)
      text += fmt::format("{}: {}\r\n", name, value);
    text += "\r\n" + request.body;
    error_code failed;
    const auto bytes = asio::buffer(text);
    for (std::size_t sent = 0; sent < text.size() && !failed;)
      sent += tls_ ? tls_->write_some(bytes + sent, failed)
                   : socket_.write_some(asio::const_buffers_1(bytes + sent), failed);
    return !failed || end("the connection ended", failed);
  }
  bool read(const HttpRequest& request) {
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.eager(true);
    parser.body_limit(kMostBody);
    while (!parser.is_done()) {
      const asio::mutable_buffer space = buffer.prepare(kPiece);
      error_code failed;
      buffer.commit(tls_ ? tls_->read_some(space, failed)
                         : socket_.read_some(asio::mutable_buffers_1(space), failed));
      if (failed == asio::error::eof && !parser.got_some())
        failed = http::error::end_of_stream;
      else if (failed == asio::error::eof)
        parser.put_eof(failed = {});
      else if (!failed)
        take(parser, buffer, failed);
      if (failed) return end("no whole answer", failed);
      if (!parser.is_header_done()) continue;
      const auto& header = parser.get();
      answer_.status = header.result_int();
      answer_.content_type = header[http::field::content_type];
      answer_.retry_after = header[http::field::retry_after];
      const std::string piece = std::exchange(parser.get().body(), {});
      if (request.on_piece == nullptr || answer_.status != 200)
        answer_.body += piece;
      else if (!piece.empty() && !request.on_piece(piece))
        break;
    }
    return true;
  }
  static void take(http::response_parser<http::string_body>& parser, beast::flat_buffer& buffer,
                   error_code& failed) {
    while (buffer.size() > 0 && !parser.is_done() && !failed)
      buffer.consume(parser.put(buffer.data(), failed));
    if (failed == http::error::need_more) failed = {};
  }

  bool end(std::string_view what, error_code failed) {
    return fail(fmt::format("{}: {}", what, failed.message()));
  }
  bool fail(std::string failure) {
    answer_.failure = std::move(failure);
    return false;
  }

  const HttpOptions& options_;
  asio::io_context context_;
  Socket socket_{asio::ip::tcp::socket(context_), {}};
  std::optional<asio::ssl::stream<Socket&>> tls_;
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
  return Exchange(options_, tls_ ? &tls_->context : nullptr).run(request);
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
