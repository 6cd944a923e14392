// tools/workers/message.hpp: what two processes say to each other, and how it stands in a stream of
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvo::tools {

struct Message {
  enum class Kind : char {
    kRequest = 'r',
    kAnswer = 'a',
    kLastAnswer = 'l',  ///< the process is used up: another one is to answer the next request
    kAgain = 'm',       ///< no answer: a new process is to try, with each subject isolated
    kFileFault = 'f',   ///< FileError
    kUsageFault = 'u',  ///< UsageError
    kFault = 'x',       ///< any other exception
  };
  Kind kind = Kind::kRequest;
  std::string text = {};
};

/// How messages stand in a stream of bytes. Limits, time and deaths are the same for each framing.
class Framing {
 public:
  Framing() = default;
  Framing(const Framing&) = delete;
  Framing& operator=(const Framing&) = delete;
  virtual ~Framing() = default;

  [[nodiscard]] virtual std::string framed(const Message& message) const = 0;
  enum class Taken : std::uint8_t { kNothingYet, kMessage, kNoMessage };
  /// Takes the message that `received` begins with. kNoMessage: what is there can be the beginning
  /// of none, or of one that is too long.
  [[nodiscard]] virtual Taken take(std::string& received, Message& message) const = 0;
};

/// Between a process and those that it forks: a random word of the run, the length, the kind, the
/// text.
class LengthFraming final : public Framing {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;
  explicit LengthFraming(std::uint64_t word) : word_(word) {}

  [[nodiscard]] std::string framed(const Message& message) const override;
  [[nodiscard]] Taken take(std::string& received, Message& message) const override;

 private:
  std::uint64_t word_;
};

}  // namespace kvo::tools
