// tools/probe/events.hpp: server-sent events: an answer that comes in pieces.
//
// Source   https://html.spec.whatwg.org/multipage/server-sent-events.html, as OpenAI's interface
//          uses it: each event is one line "data: JSON", the last one "data: [DONE]".
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kvo::tools {

/// Splits a stream into the data of its events. Holds one line at most, of up to 1 MiB.
class ServerEvents {
 public:
  /// `visit` gets the data of each event, except of the last one; false: no more are wanted.
  explicit ServerEvents(std::function<bool(std::string_view data)> visit)
      : visit_(std::move(visit)) {}

  /// Takes the next piece of the stream. Returns false where no more is wanted: the visitor said
  /// so, the last event came, or failure() has a reason.
  [[nodiscard]] bool add(std::string_view piece);

  /// Why this is no stream of events, in words; empty: it is one so far.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// Whether the last event came.
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  [[nodiscard]] bool line(std::string_view line);

  std::function<bool(std::string_view data)> visit_;
  std::string line_;
  std::string failure_;
  bool ended_ = false;
};

}  // namespace kvo::tools
