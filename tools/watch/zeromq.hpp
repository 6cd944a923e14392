// tools/watch/zeromq.hpp: sockets of ZeroMQ that only read: SUB, and DEALER for requests of
// replays.
//
// The library is loaded when the first socket is made: no other command needs it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kvo::tools {

/// There is no libzmq, or it refuses an endpoint. Says which and why.
class ZeroMqError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Frames of a message.
using Frames = std::vector<std::string>;

class ZeroMqSocket {
 public:
  enum class Kind : std::uint8_t { kSubscriber, kDealer, kPublisher, kRouter };
  /// Most bytes of a frame that comes; the connection of a peer that sends more is closed.
  static constexpr std::int64_t kMostBytes = std::int64_t{16} << 20U;
  /// Messages that wait at most; what comes then is lost, as if the network had lost it.
  static constexpr int kMostWaiting = 10'000;

  /// A subscriber to all topics, or another socket. Throws ZeroMqError.
  explicit ZeroMqSocket(Kind kind);
  ~ZeroMqSocket();
  ZeroMqSocket(const ZeroMqSocket&) = delete;
  ZeroMqSocket& operator=(const ZeroMqSocket&) = delete;

  /// Throws ZeroMqError: not an endpoint, as tcp://127.0.0.1:5557 is one.
  void connect(const std::string& endpoint);
  /// Returns  the endpoint with its port. Throws ZeroMqError.
  std::string bind(const std::string& endpoint);
  /// The next message; nothing if none comes in that time.
  [[nodiscard]] std::optional<Frames> receive(std::chrono::milliseconds patience);
  /// Throws ZeroMqError.
  void send(const Frames& frames);

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

}  // namespace kvo::tools
