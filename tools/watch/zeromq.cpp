#include "tools/watch/zeromq.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <zmq.h>

namespace kvo::tools {
namespace {

/// The functions of libzmq that are used.
struct Library {
  decltype(&zmq_ctx_new) ctx_new = nullptr;
  decltype(&zmq_ctx_term) ctx_term = nullptr;
  decltype(&zmq_socket) socket = nullptr;
  decltype(&zmq_close) close = nullptr;
  decltype(&zmq_setsockopt) setsockopt = nullptr;
  decltype(&zmq_getsockopt) getsockopt = nullptr;
  decltype(&zmq_connect) connect = nullptr;
  decltype(&zmq_bind) bind = nullptr;
  decltype(&zmq_poll) poll = nullptr;
  decltype(&zmq_send) send = nullptr;
  decltype(&zmq_msg_init) msg_init = nullptr;
  decltype(&zmq_msg_recv) msg_recv = nullptr;
  decltype(&zmq_msg_data) msg_data = nullptr;
  decltype(&zmq_msg_size) msg_size = nullptr;
  decltype(&zmq_msg_close) msg_close = nullptr;
  decltype(&zmq_errno) error = nullptr;
  decltype(&zmq_strerror) strerror = nullptr;
};

template <class Function>
void find(void* file, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(file, name));  // NOLINT: as dlsym is to be used
  if (function == nullptr) throw ZeroMqError(fmt::format("libzmq.so.5 has no {}", name));
}

Library loaded() {
  void* const file = dlopen("libzmq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr)
    throw ZeroMqError("there is no libzmq.so.5: install ZeroMQ 4 (Debian: libzmq5)");
  Library all;
  find(file, "zmq_ctx_new", all.ctx_new);
  find(file, "zmq_ctx_term", all.ctx_term);
  find(file, "zmq_socket", all.socket);
  find(file, "zmq_close", all.close);
  find(file, "zmq_setsockopt", all.setsockopt);
  find(file, "zmq_getsockopt", all.getsockopt);
  find(file, "zmq_connect", all.connect);
  find(file, "zmq_bind", all.bind);
  find(file, "zmq_poll", all.poll);
  find(file, "zmq_send", all.send);
  find(file, "zmq_msg_init", all.msg_init);
  find(file, "zmq_msg_recv", all.msg_recv);
  find(file, "zmq_msg_data", all.msg_data);
  find(file, "zmq_msg_size", all.msg_size);
  find(file, "zmq_msg_close", all.msg_close);
  find(file, "zmq_errno", all.error);
  find(file, "zmq_strerror", all.strerror);
  return all;
}

const Library& library() {
  static const Library kLibrary = loaded();
  return kLibrary;
}

[[noreturn]] void give_up(const std::string& what) {
  throw ZeroMqError(fmt::format("{}: {}", what, library().strerror(library().error())));
}

int type_of_socket(ZeroMqSocket::Kind kind) {
  constexpr std::array kTypes{ZMQ_SUB, ZMQ_DEALER, ZMQ_PUB, ZMQ_ROUTER};
  return kTypes.at(static_cast<std::size_t>(kind));
}

}  // namespace

struct ZeroMqSocket::Handles {
  void* context = nullptr;
  void* socket = nullptr;
};

ZeroMqSocket::ZeroMqSocket(Kind kind) : handles_(std::make_unique<Handles>()) {
  const Library& zmq = library();
  handles_->context = zmq.ctx_new();
  handles_->socket = zmq.socket(handles_->context, type_of_socket(kind));
  if (handles_->socket == nullptr) give_up("no socket");
  const auto set = [&](int option, int value) {
    zmq.setsockopt(handles_->socket, option, &value, sizeof value);
  };
  set(ZMQ_LINGER, 0);
  set(ZMQ_RCVHWM, kMostWaiting);
  zmq.setsockopt(handles_->socket, ZMQ_MAXMSGSIZE, &kMostBytes, sizeof kMostBytes);
  if (kind == Kind::kSubscriber) zmq.setsockopt(handles_->socket, ZMQ_SUBSCRIBE, "", 0);
}

ZeroMqSocket::~ZeroMqSocket() {
  library().close(handles_->socket);
  library().ctx_term(handles_->context);
}

void ZeroMqSocket::connect(const std::string& endpoint) {
  if (library().connect(handles_->socket, endpoint.c_str()) != 0)
    give_up(fmt::format("'{}' is no endpoint such as tcp://127.0.0.1:5557", endpoint));
}

std::string ZeroMqSocket::bind(const std::string& endpoint) {
  if (library().bind(handles_->socket, endpoint.c_str()) != 0) give_up(endpoint);
  std::array<char, 256> bound{};
  std::size_t size = bound.size();
  library().getsockopt(handles_->socket, ZMQ_LAST_ENDPOINT, bound.data(), &size);
  return bound.data();
}

std::optional<Frames> ZeroMqSocket::receive(std::chrono::milliseconds patience) {
  const Library& zmq = library();
  zmq_pollitem_t item{.socket = handles_->socket, .fd = 0, .events = ZMQ_POLLIN, .revents = 0};
  if (zmq.poll(&item, 1, static_cast<long>(patience.count())) <= 0) return std::nullopt;
  Frames frames;
  for (int more = 1; more != 0;) {
    zmq_msg_t message;
    zmq.msg_init(&message);
    if (zmq.msg_recv(&message, handles_->socket, 0) < 0) {
      zmq.msg_close(&message);
      return std::nullopt;
    }
    frames.emplace_back(static_cast<const char*>(zmq.msg_data(&message)), zmq.msg_size(&message));
    zmq.msg_close(&message);
    std::size_t size = sizeof more;
    zmq.getsockopt(handles_->socket, ZMQ_RCVMORE, &more, &size);
  }
  return frames;
}

void ZeroMqSocket::send(const Frames& frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int more = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
    if (library().send(handles_->socket, frames[i].data(), frames[i].size(), more) < 0)
      give_up("a message cannot be sent");
  }
}

}  // namespace kvo::tools
