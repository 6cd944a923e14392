#include "tools/testing/command_runner.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvo::tools {
namespace {

using Clock = std::chrono::steady_clock;

void require(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

/// Both ends of a pipe, closed at the latest by the destructor.
class Pipe {
 public:
  Pipe() { require(pipe2(ends_.data(), O_CLOEXEC) == 0, "pipe"); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int end(std::size_t which) const { return ends_.at(which); }
  void close_end(std::size_t which) {
    if (ends_.at(which) >= 0) (void)close(std::exchange(ends_.at(which), -1));
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

class File {
 public:
  File() = default;
  ~File() {
    if (number_ >= 0) (void)close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  void reset(int number) { number_ = number; }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_ = -1;
};

/// What a child's standard streams are connected to.
struct Streams {
  Pipe in;
  Pipe out;
  Pipe err;
};

/// Adds what can be read now; closes the end at the end of the file. Returns  whether it read.
bool take(Pipe& pipe, std::string& to) {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(pipe.end(0), buffer.data(), buffer.size());
  if (count > 0) to.append(buffer.data(), static_cast<std::size_t>(count));
  if (count == 0) pipe.close_end(0);
  return count > 0;
}

void give(Pipe& pipe, std::string& from) {
  const ssize_t count = write(pipe.end(1), from.data(), from.size());
  if (count > 0) from.erase(0, static_cast<std::size_t>(count));
  if (count < 0 || from.empty()) pipe.close_end(1);
}

/// A child that was not waited for yet, so that its number is its own.
class RunningChild {
 public:
  RunningChild(pid_t child, const RunOptions& options)
      : child_(child), options_(options), until_(start_ + options.limit) {
    end_.reset(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    require(end_.get() >= 0, "pidfd_open");
  }

  /// Feeds and reads the child until it has ended; kills it when its limit has passed.
  void converse(Streams& streams, std::string input, Finished& finished) {
    auto& [in, out, err] = streams;
    for (const Pipe* pipe : {&out, &err}) (void)fcntl(pipe->end(0), F_SETFL, O_NONBLOCK);
    if (input.empty()) in.close_end(1);
    bool ended = false;
    while (!ended) {
      std::array<pollfd, 4> polled{{{out.end(0), POLLIN, 0},
                                    {err.end(0), POLLIN, 0},
                                    {in.end(1), POLLOUT, 0},
                                    {end_.get(), POLLIN, 0}}};  // -1 is passed over
      if (poll(polled.data(), polled.size(), send_signals()) < 0) continue;
      ended = polled[3].revents != 0;  // looked at first: what it wrote can now be read
      if (polled[0].revents != 0) (void)take(out, finished.out);
      if (polled[1].revents != 0) (void)take(err, finished.err);
      if (polled[2].revents != 0) give(in, input);
    }
    while (out.end(0) >= 0 && take(out, finished.out)) continue;
    while (err.end(0) >= 0 && take(err, finished.err)) continue;
  }

  void bury(Finished& finished) const {
    int state = 0;
    rusage usage{};
    while (wait4(child_, &state, 0, &usage) < 0 && errno == EINTR) {
    }
    constexpr std::uint64_t kKiB = 1024;
    finished.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * kKiB;
    finished.seconds = Clock::now() - start_;
    if (WIFEXITED(state)) finished.status = WEXITSTATUS(state);
    if (WIFSIGNALED(state)) finished.signal = WTERMSIG(state);
  }

 private:
  /// Sends what is due. Returns  the milliseconds until there is something to do again.
  int send_signals() {
    constexpr std::chrono::milliseconds kAfterKill{1'000};
    const auto now = Clock::now();
    for (; sent_ < options_.signals.size(); ++sent_) {
      const TimedSignal& next = options_.signals[sent_];
      if (now < start_ + next.after) return milliseconds(start_ + next.after - now);
      if (next.when && !next.when() && now < until_) return 1;
      (void)kill(next.group ? -child_ : child_, next.number);
    }
    if (now < until_) return milliseconds(until_ - now);
    (void)kill(child_, SIGKILL);
    return milliseconds(kAfterKill);
  }
  static int milliseconds(Clock::duration left) {
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }

  pid_t child_;
  const RunOptions& options_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point until_;
  std::size_t sent_ = 0;
  File end_;  ///< readable when the child has ended
};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

pid_t start(std::vector<std::string>& words, const RunOptions& options, const Streams& streams) {
  const auto& [in, out, err] = streams;
  posix_spawn_file_actions_t actions;
  require(posix_spawn_file_actions_init(&actions) == 0, "posix_spawn");
  posix_spawn_file_actions_adddup2(&actions, in.end(0), STDIN_FILENO);
  if (options.output_to.empty()) {
    posix_spawn_file_actions_adddup2(&actions, out.end(1), STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.output_to.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  }
  posix_spawn_file_actions_adddup2(&actions, err.end(1), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  if (!options.folder.empty())
    posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  posix_spawnattr_t attributes;
  require(posix_spawnattr_init(&attributes) == 0, "posix_spawn");
  if (options.own_group) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> entries = options.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  pid_t child = -1;
  errno = posix_spawn(&child, words.front().c_str(), &actions, &attributes, pointers(words).data(),
                      pointers(entries).data());
  const bool started = errno == 0;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  require(started, words.front().c_str());
  return child;
}

bool has_entry(const std::filesystem::path& process, const std::string& entry) {
  std::ifstream environment(process / "environ", std::ios::binary);
  for (std::string text; std::getline(environment, text, '\0');)
    if (text == entry) return true;
  return false;
}

}  // namespace

Finished run_program(std::vector<std::string> words, const RunOptions& options) {
  // A child that does not read its input must not end the test.
  (void)std::signal(SIGPIPE, SIG_IGN);
  Streams streams;
  RunningChild child(start(words, options, streams), options);
  streams.in.close_end(0);
  streams.out.close_end(1);
  streams.err.close_end(1);
  Finished finished;
  child.converse(streams, options.input, finished);
  child.bury(finished);
  return finished;
}

std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> found;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const std::string name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (has_entry(process.path(), entry)) found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<pid_t> left_behind(const std::string& entry, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kBetween{20};
  const auto until = Clock::now() + patience;
  std::vector<pid_t> left = processes_with(entry);
  while (!left.empty() && Clock::now() < until) {
    std::this_thread::sleep_for(kBetween);
    left = processes_with(entry);
  }
  for (const pid_t process : left) (void)kill(process, SIGKILL);
  return left;
}

std::string kvoracle_path() {
  return KVO_COMMAND;
}

Finished run_kvoracle(const std::vector<std::string>& arguments, const RunOptions& options) {
  std::vector<std::string> words{kvoracle_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(std::move(words), options);
}

}  // namespace kvo::tools
