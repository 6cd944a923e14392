#include "tools/workers/message.hpp"

#include <algorithm>
#include <cstring>

namespace kvo::tools {
namespace {

/// What stands before the text.
struct Head {
  std::uint64_t word = 0;
  std::uint64_t size = 0;
  std::uint64_t kind = 0;
};

}  // namespace

std::string LengthFraming::framed(const Message& message) const {
  const Head head{word_, message.text.size(), static_cast<std::uint64_t>(message.kind)};
  std::string bytes;
  bytes.reserve(sizeof head + message.text.size());
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);  // NOLINT: its bytes
  return bytes += message.text;
}

Framing::Taken LengthFraming::take(std::string& received, Message& message) const {
  if (std::memcmp(received.data(), &word_, std::min(received.size(), sizeof word_)) != 0)
    return Taken::kNoMessage;
  Head head;
  if (received.size() < sizeof head) return Taken::kNothingYet;
  std::memcpy(&head, received.data(), sizeof head);
  if (head.size > kMostBytes) return Taken::kNoMessage;
  if (received.size() - sizeof head < head.size) return Taken::kNothingYet;
  message.kind = static_cast<Message::Kind>(head.kind);
  message.text.assign(received, sizeof head, head.size);
  received.erase(0, sizeof head + head.size);
  return Taken::kMessage;
}

}  // namespace kvo::tools
