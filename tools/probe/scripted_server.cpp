#include "tools/probe/scripted_server.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace kvo::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Script = std::function<void(Peer& peer)>;

template <class Stream>
void serve_one(Stream& stream, int number, const Script& script) {
  error_code failed;
  beast::flat_buffer buffer;
  beast::http::request<beast::http::string_body> request;
  beast::http::read(stream, buffer, request, failed);
  if (failed) return;
  Peer peer{.number = number, .target = std::string(request.target()), .body = request.body()};
  peer.send = [&](std::string_view bytes) {
    error_code unsent;
    asio::write(stream, asio::buffer(bytes), unsent);
    return !unsent;
  };
  peer.ends = [&] {
    auto& socket = beast::get_lowest_layer(stream);
    socket.non_blocking(true);
    char byte = 0;
    for (int i = 0; i < 100; ++i) {
      error_code ended;
      (void)socket.read_some(asio::buffer(&byte, 1), ended);
      if (ended && ended != asio::error::would_block) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  script(peer);
}

template <class Function>
std::string pem_of(const Function& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
  write(memory.get());
  const char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

Certificate certificate_for(const std::string& name) {
  constexpr long kHour = 3600;
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
  X509* const certificate = made.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -kHour);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kHour);
  X509_set_pubkey(certificate, key.get());
  for (const auto& [number, value] : {std::pair{NID_subject_alt_name, name.c_str()},
                                      std::pair{NID_basic_constraints, "CA:TRUE"}}) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, number, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_NAME* const subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(certificate, subject);
  X509_sign(certificate, key.get(), EVP_sha256());
  return {pem_of([&](BIO* out) { PEM_write_bio_X509(out, certificate); }), pem_of([&](BIO* out) {
            PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

std::uint16_t serve_script(Script script, const std::optional<Certificate>& tls) {
  struct Server {
    asio::io_context context;
    asio::ip::tcp::acceptor acceptor{context,
                                     asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
    asio::ssl::context tls{asio::ssl::context::tls_server};
  };
  const auto server = std::make_shared<Server>();
  if (tls) {
    server->tls.use_certificate_chain(asio::buffer(tls->certificate));
    server->tls.use_private_key(asio::buffer(tls->key), asio::ssl::context::pem);
  }
  std::thread([server, script = std::move(script), secure = tls.has_value()] {
    for (int number = 0;; ++number) {
      auto socket = std::make_shared<asio::ip::tcp::socket>(server->context);
      error_code failed;
      server->acceptor.accept(*socket, failed);
      if (failed) return;
      std::thread([server, script, secure, socket, number] {
        if (!secure) return serve_one(*socket, number, script);
        asio::ssl::stream<asio::ip::tcp::socket> stream(std::move(*socket), server->tls);
        error_code refused;
        stream.handshake(asio::ssl::stream_base::server, refused);
        if (!refused) serve_one(stream, number, script);
      }).detach();
    }
  }).detach();
  return server->acceptor.local_endpoint().port();
}

std::string http_bytes(int status, std::string_view body, std::string_view further_headers) {
  return fmt::format(
      "HTTP/1.1 {} Status\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
      status, further_headers, body.size(), body);
}

}  // namespace kvo::tools
