#include "tools/adapters/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>  // NOLINT: kill is POSIX
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "properties/runner/pulse.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Of standard error: what is stored, and what is shown of it.
constexpr std::size_t kStoredErrors = std::size_t{64} << 10U;
constexpr std::size_t kShownLines = 6;
constexpr std::size_t kShownLine = 160;
// How long a child may take to end, or to write its stacks.
constexpr std::chrono::milliseconds kGrace{300};

[[noreturn]] void system_fault(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void close_file(int& file) {
  if (file >= 0) (void)close(file);
  file = -1;
}

// In the process that becomes the child: it has the ends of its pipes and the memory, and dies with
// the process that started it.
[[noreturn]] void become(const char* command, int requests, int answers, int errors, int memory,
                         pid_t parent) {
  (void)setsid();
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int number : {SIGINT, SIGPIPE, SIGTERM, SIGHUP}) (void)signal(number, SIG_DFL);
  sigset_t none{};
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  // Numbers above those that they get: none is overwritten before it was copied.
  constexpr int kAbove = 16;
  const std::array from{fcntl(requests, F_DUPFD, kAbove), fcntl(answers, F_DUPFD, kAbove),
                        fcntl(errors, F_DUPFD, kAbove), fcntl(memory, F_DUPFD, kAbove)};
  for (int to = 0; to <= Child::kMemoryFile; ++to)
    (void)dup2(from[static_cast<std::size_t>(to)], to);
  (void)close_range(Child::kMemoryFile + 1, ~0U, 0);
  execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
  _exit(127);
}

// A worker and its child take turns: on one processor each wakes the other in a fifth of the time
// that it takes on two. The child inherits this.
void stay_on_this_processor() {
  const int here = sched_getcpu();
  if (told_pulse == nullptr || here < 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  (void)sched_setaffinity(0, sizeof one, &one);
}

}  // namespace

Child::Child(const std::string& command, const SharedMemory& memory) {
  // Whoever writes to a child that has died learns it from the call.
  static const auto kIgnored = signal(SIGPIPE, SIG_IGN);
  (void)kIgnored;
  std::array<std::array<int, 2>, 3> pipes{};
  for (auto& pipe : pipes)
    if (pipe2(pipe.data(), O_CLOEXEC) != 0) system_fault("pipe");
  stay_on_this_processor();
  const pid_t parent = getpid();
  // A shell between the two would end with a status of its own where the program crashes.
  const bool simple = command.find_first_of(";&|<>()$`\n#=") == std::string::npos;
  const std::string words = (simple ? "exec " : "") + command;
  pid_ = fork();
  if (pid_ < 0) system_fault("fork");
  if (pid_ == 0)
    become(words.c_str(), pipes[0][0], pipes[1][1], pipes[2][1], memory.file(), parent);
  spare(pid_, true);
  requests_ = pipes[0][1];
  answers_ = pipes[1][0];
  errors_ = pipes[2][0];
  for (const int end : {pipes[0][0], pipes[1][1], pipes[2][1]}) (void)close(end);
  for (const int end : {requests_, answers_, errors_}) (void)fcntl(end, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
  stop();
}

void Child::stop() {
  if (pid_ > 0) {
    (void)kill(-pid_, SIGKILL);
    (void)kill(pid_, SIGKILL);  // it may not have its group yet
    (void)waitpid(pid_, nullptr, 0);
    spare(pid_, false);
  }
  pid_ = -1;
  for (int* file : {&requests_, &answers_, &errors_}) close_file(*file);
}

std::optional<std::string> Child::ask(std::string_view line,
                                      std::chrono::duration<double> deadline) {
  received_.erase(0, end_ < received_.size() ? end_ + 1 : received_.size());
  end_ = searched_ = 0;
  if (read_answers() == Read::kSome || !received_.empty())
    return refuse(fmt::format("wrote {} bytes without a request", received_.size()));
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(deadline);
  bool takes = true;  // requests
  while (true) {
    if (!line.empty() && takes) {
      const ssize_t written = write(requests_, line.data(), line.size());
      if (written > 0) line.remove_prefix(static_cast<std::size_t>(written));
      takes = written > 0 || errno == EAGAIN || errno == EINTR;
    }
    if (line.empty() || !takes) {
      if (has_line()) return std::nullopt;
      if (received_.size() > kMostLine)
        return refuse(fmt::format("wrote a line of more than {} MiB", kMostLine >> 20U));
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return hangs(deadline);
    std::array<pollfd, 3> entries{{{answers_, POLLIN, 0},
                                   {errors_, POLLIN, 0},
                                   {line.empty() || !takes ? -1 : requests_, POLLOUT, 0}}};
    (void)poll(entries.data(), entries.size(), static_cast<int>(left));
    if (entries[1].revents != 0) read_errors();
    if (entries[0].revents != 0 && read_answers() == Read::kEnd) {
      if (has_line()) return std::nullopt;
      return has_ended();
    }
  }
}

Child::Read Child::read_answers() {
  std::array<char, 65'536> part;  // NOLINT: written by read
  const ssize_t got = read(answers_, part.data(), part.size());
  if (got > 0) received_.append(part.data(), static_cast<std::size_t>(got));
  if (got > 0) return Read::kSome;
  return got < 0 && (errno == EAGAIN || errno == EINTR) ? Read::kNothing : Read::kEnd;
}

bool Child::has_line() {
  end_ = received_.find('\n', searched_);
  searched_ = received_.size();
  if (end_ == std::string::npos) end_ = 0;
  return end_ > 0 || received_.starts_with('\n');
}

// A child that writes without end gets no more than one look at a time.
void Child::read_errors() {
  std::array<char, 65'536> part;  // NOLINT: written by read
  const ssize_t got = read(errors_, part.data(), part.size());
  if (got == 0) close_file(errors_);
  if (got <= 0) return;
  error_text_.append(part.data(), static_cast<std::size_t>(got));
  if (error_text_.size() > kStoredErrors) error_text_.erase(0, error_text_.size() - kStoredErrors);
}

std::string Child::hangs(std::chrono::duration<double> deadline) {
  if (gives_stacks_ && kill(pid_, SIGUSR1) == 0) {
    error_text_.clear();
    const auto until = Clock::now() + kGrace;
    while (Clock::now() < until) {
      pollfd entry{errors_, POLLIN, 0};
      if (poll(&entry, 1, static_cast<int>(kGrace.count()) / 10) > 0) read_errors();
      if (errors_ < 0) break;
    }
  }
  return refuse(fmt::format("hung (no answer for {:.3g} s)", deadline.count()));
}

std::string Child::has_ended() {
  const bool in_line = !received_.empty();
  siginfo_t end{};
  const auto until = Clock::now() + kGrace;
  while (waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         end.si_pid == 0 && Clock::now() < until)
    (void)usleep(1'000);
  std::string how = end.si_pid != 0 ? how_it_ended(end) : "closed its standard output";
  if (in_line) how += " in the middle of a line";
  return refuse(std::move(how));
}

std::string Child::refuse(std::string problem) {
  if (errors_ >= 0) read_errors();
  stop();
  return with_errors(std::move(problem));
}

// The last lines that it wrote for people.
std::string Child::with_errors(std::string how) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < error_text_.size();) {
    const std::size_t end = std::min(error_text_.find('\n', at), error_text_.size());
    if (end > at) lines.push_back(error_text_.substr(at, std::min(end - at, kShownLine)));
    at = end + 1;
  }
  if (lines.size() > kShownLines) lines.erase(lines.begin(), lines.end() - kShownLines);
  error_text_.clear();
  return lines.empty() ? how : fmt::format("{}: {}", how, fmt::join(lines, "; "));
}

}  // namespace kvo::tools
