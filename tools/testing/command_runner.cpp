#include "tools/testing/command_runner.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
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

/// What a child's standard streams are connected to.
struct Streams {
  Pipe in;
  Pipe out;
  Pipe err;
};

/// Adds what can be read now; closes the end at the end of the file.
void take(Pipe& pipe, std::string& to) {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(pipe.end(0), buffer.data(), buffer.size());
  if (count > 0) to.append(buffer.data(), static_cast<std::size_t>(count));
  if (count == 0) pipe.close_end(0);
}

void give(Pipe& pipe, std::string& from) {
  const ssize_t count = write(pipe.end(1), from.data(), from.size());
  if (count > 0) from.erase(0, static_cast<std::size_t>(count));
  if (count < 0 || from.empty()) pipe.close_end(1);
}

/// Feeds and reads a child until it has closed its outputs, or the limit has passed.
void converse(Streams& streams, std::string input, Finished& finished, Clock::time_point until) {
  auto& [in, out, err] = streams;
  if (input.empty()) in.close_end(1);
  while (out.end(0) >= 0 || err.end(0) >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return;
    std::array<pollfd, 3> polled{{{out.end(0), POLLIN, 0},
                                  {err.end(0), POLLIN, 0},
                                  {in.end(1), POLLOUT, 0}}};  // -1 is passed over
    if (poll(polled.data(), polled.size(), static_cast<int>(left)) < 0) continue;
    if (polled[0].revents != 0) take(out, finished.out);
    if (polled[1].revents != 0) take(err, finished.err);
    if (polled[2].revents != 0) give(in, input);
  }
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
  if (!options.folder.empty())
    posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = -1;
  errno = posix_spawn(&child, argv.front(), &actions, nullptr, argv.data(), environ);
  const bool started = errno == 0;
  posix_spawn_file_actions_destroy(&actions);
  require(started, argv.front());
  return child;
}

}  // namespace

Finished run_program(std::vector<std::string> words, const RunOptions& options) {
  // A child that does not read its input must not end the test.
  (void)std::signal(SIGPIPE, SIG_IGN);
  Streams streams;
  const auto until = Clock::now() + options.limit;
  const pid_t child = start(words, options, streams);
  streams.in.close_end(0);
  streams.out.close_end(1);
  streams.err.close_end(1);
  Finished finished;
  converse(streams, options.input, finished, until);
  if (Clock::now() >= until) (void)kill(child, SIGKILL);
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state)) finished.status = WEXITSTATUS(state);
  if (WIFSIGNALED(state)) finished.signal = WTERMSIG(state);
  return finished;
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
