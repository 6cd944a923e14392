// tools/workers/process.hpp: a process forked from this one that answers requests, and how it may
// die.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/json.hpp>
#include <poll.h>
#include <signal.h>  // NOLINT: siginfo_t is POSIX
#include <sys/types.h>

#include "properties/runner/case_result.hpp"
#include "properties/runner/pulse.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/contract/describe/parse_json.hpp"
#include "reference/contract/values/check.hpp"
#include "tools/workers/message.hpp"

namespace kvo::tools {

/// What a process may use. Zero is without a limit.
struct Limits {
  std::chrono::duration<double> silence{60};  ///< longest time that an operation may take
  std::uint64_t memory_bytes = std::uint64_t{6} << 30U;  ///< address space beyond this process's
  bool quiet = false;    ///< its standard error is stored for its death alone
  bool isolated = true;  ///< false: this very process does the work, for debuggers
};

/// How a process died before it had answered.
struct Death {
  std::string how =
      {};  ///< "crashed (SIGSEGV)", "exited with status 0", "hung (no answer for 60 s)"
  const Subject* subject = nullptr;  ///< that was at work, as far as is known; not to be followed
  const OpKind* op = nullptr;        ///< its operation; not to be followed
  std::uint64_t op_index = 0;        ///< its number, from 0
  std::string thread_of = {};        ///< whose thread it was; empty: the process's own
  bool hung = false;                 ///< it was ended for its silence
  bool late = false;                 ///< found after the operation that is guilty may have ended
  bool killed = false;               ///< by SIGKILL, and not by us
  std::vector<std::uint64_t> frames = {};               ///< of the crash, innermost first
  std::optional<LoadedLibrary> library = std::nullopt;  ///< that the subject is in
  std::string report = {};                              ///< of a sanitizer, from its standard error
};

/// The memory that a process shares with the one that watches it.
struct SharedPage {
  static constexpr std::size_t kMostFrames = 32;
  Pulse pulse = {};
  std::atomic<bool> mute = false;       ///< it has an answer, and no pipe to write it to
  std::atomic<int> signal = 0;          ///< of which it crashes
  std::atomic<bool> elsewhere = false;  ///< the crash is in a thread that a subject started
  std::atomic<std::uint64_t> frame_count = 0;
  std::array<void*, kMostFrames> frames = {};
  std::atomic<std::uint64_t> library_moved_by = 0;
  std::array<char, 1024> library_path = {};  ///< empty: no library
};

/// A process in a group of its own. It ends with this process, whatever ends it, and with the
/// object; so does what it has started.
class Process {
 public:
  using Answer = std::function<Message(std::string_view request)>;
  using Clock = std::chrono::steady_clock;

  /// Forks. The child answers each request with answer(request), and closes whatever is not its.
  /// `framing`: null for LengthFraming.
  /// Requires  this process has one thread.
  /// Throws std::system_error when the system has no process or pipe left.
  Process(const Answer& answer, Limits limits, std::unique_ptr<Framing> framing = nullptr);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void ask(std::string_view request);
  /// Adds what becomes readable when there is something to look at.
  void add_to(std::vector<pollfd>& entries) const;

  enum class State : std::uint8_t { kBusy, kAnswered, kDead };
  /// Reads what there is, without waiting. A process that is silent for too long, or writes what is
  /// no answer, is ended with its group.
  [[nodiscard]] State look();
  /// Waits for the answer or the death. Throws Interrupted.
  [[nodiscard]] State wait();
  /// After kAnswered.
  [[nodiscard]] Message take_answer() { return std::move(answer_); }
  /// After kDead.
  [[nodiscard]] const Death& death() const { return *death_; }

 private:
  [[nodiscard]] bool has_ended() const;
  void read_errors();
  State dies(const std::string& how = {}, bool hung = false);

  Limits limits_;
  std::unique_ptr<Framing> framing_;
  SharedPage* page_ = nullptr;
  pid_t pid_ = -1;
  int requests_ = -1;
  int answers_ = -1;
  int errors_ = -1;
  std::string received_ = {};
  std::string error_text_ = {};
  std::uint64_t forwarded_ = 0;
  Message answer_ = {};
  std::uint64_t beats_ = 0;
  Clock::time_point last_beat_;
  std::optional<Clock::time_point> closed_ = std::nullopt;  ///< since when there is no answer pipe
  std::optional<Death> death_;
};

/// Says that this process has loaded a library for a subject, so that frames in it can be named
/// after a crash. `handle`: of dlopen(3).
void tell_library(const std::string& path, void* handle);
/// By how much the addresses of a loaded library are moved. `handle`: of dlopen(3).
[[nodiscard]] std::uint64_t moved_by(void* handle);

/// False where the file takes no more.
[[nodiscard]] bool write_all(int file, const std::string& bytes);

/// Ends of pipes that a process has to itself.
struct Pipes {
  int requests = -1;
  int answers = -1;
  int errors = -1;
};

/// Frees the process of what is its parent's (descriptors, signals, terminal, standard input), sets
/// its limits, and answers requests until no more come. Never returns, not by an exception either:
/// the stack below is that of its parent.
[[noreturn]] void serve(const Pipes& pipes, const Framing& framing, const Limits& limits,
                        SharedPage& page, const Process::Answer& answer) noexcept;

/// Longest time between two looks at a process.
inline constexpr std::chrono::milliseconds kBetweenLooks{50};

/// The command is to end: SIGINT, SIGTERM or SIGHUP came after catch_interruption.
struct Interrupted : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};
[[nodiscard]] bool interrupted();
/// From now to the end of the process the first such signal ends the work in order: what was found
/// is written, to the last byte of standard output.
void catch_interruption();

/// "crashed (SIGSEGV)", "exited with status 0", of a process as waitid(2) reports it.
[[nodiscard]] std::string how_it_ended(const siginfo_t& end);

/// Whether end_strays leaves a child of this process alone, which is not a Process.
void spare(pid_t child, bool spared_from_now_on);
/// Ends what subjects have started and left behind.
void end_strays();

/// Frees what a process holds back for its answer, for when there is no other memory left.
void free_reserve();

/// What `make` gives as a message: exceptions become faults, std::bad_alloc the kind `no_memory`.
/// An exception of the harness ends a process that has opened a guest.
[[nodiscard]] Message answered(const std::function<Message()>& make,
                               Message::Kind no_memory = Message::Kind::kFileFault);
/// Throws what a message says of a fault.
void throw_fault(const Message& message);

/// A described record as it goes from one process to another.
template <class T>
[[nodiscard]] std::string packed(const T& value) {
  return boost::json::serialize(write_json(value));
}
/// Requires  text that packed<T> gave.
template <class T>
[[nodiscard]] T unpacked(const std::string& text) {
  T value;
  JsonFault fault;
  boost::system::error_code failure;
  KVO_CHECK(read_json(parse_json(text, failure), value, fault));
  return value;
}

/// What make() gives in a process of its own, or how that died. Throws what make() threw.
template <class T>
[[nodiscard]] std::variant<T, Death> in_process(const Limits& limits,
                                                const std::function<T()>& make) {
  if (!limits.isolated) return make();
  const auto answer = [&](std::string_view) {
    return answered([&] { return Message{Message::Kind::kAnswer, packed(make())}; });
  };
  Process process(answer, limits);
  process.ask("");
  if (process.wait() == Process::State::kDead) return process.death();
  const Message message = process.take_answer();
  throw_fault(message);
  return unpacked<T>(message.text);
}

}  // namespace kvo::tools
