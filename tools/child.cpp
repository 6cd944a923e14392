#include "tools/child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reference/contract/subject/probe.hpp"
#include "tools/crash_guard.hpp"

namespace kvo::tools {
namespace {

[[noreturn]] void system_fault(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) system_fault("pipe");
  return ends;
}

/// A message is its length, eight bytes, and its bytes.
bool write_message(int file, std::string_view text) {
  const std::uint64_t size = text.size();
  std::string whole(sizeof size, '\0');
  std::memcpy(whole.data(), &size, sizeof size);
  whole += text;
  std::size_t done = 0;
  while (done < whole.size()) {
    const ssize_t wrote = write(file, whole.data() + done, whole.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

std::optional<std::uint64_t> announced(std::string_view received) {
  std::uint64_t size = 0;
  if (received.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, received.data(), sizeof size);
  return size;
}

bool is_whole(std::string_view received) {
  const auto size = announced(received);
  return size && received.size() - sizeof *size >= *size;
}

enum class Read : std::uint8_t { kSome, kNothingYet, kEnd };

Read read_some(int file, std::string& into) {
  std::array<char, 65'536> part;  // NOLINT: written by read
  const ssize_t got = read(file, part.data(), part.size());
  if (got > 0) {
    into.append(part.data(), static_cast<std::size_t>(got));
    return Read::kSome;
  }
  return got < 0 && (errno == EINTR || errno == EAGAIN) ? Read::kNothingYet : Read::kEnd;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/// A sanitizer reserves terabytes of addresses.
void limit_memory(std::uint64_t bytes) {
  if (bytes > 0) heap_limit_bytes = __sanitizer_get_current_allocated_bytes() + bytes;
}
#else
std::uint64_t address_space() {
  std::uint64_t pages = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "r"),
                                                             std::fclose);
  if (!file || std::fscanf(file.get(), "%lu", &pages) != 1) return 0;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void limit_memory(std::uint64_t bytes) {
  const std::uint64_t used = address_space();
  if (bytes == 0 || used == 0) return;
  const rlimit limit{used + bytes, used + bytes};
  (void)setrlimit(RLIMIT_AS, &limit);
}
#endif

void silence_standard_error() {
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) (void)dup2(nowhere, STDERR_FILENO);
}

/// The life of a child.
[[noreturn]] void serve(int requests, int answers,
                        const std::function<std::string(std::string_view)>& answer) {
  std::string received;
  while (true) {
    while (!is_whole(received))
      if (read_some(requests, received) == Read::kEnd) _exit(0);
    const std::size_t size = sizeof(std::uint64_t) + *announced(received);
    const std::string given =
        answer(std::string_view(received).substr(sizeof(std::uint64_t), *announced(received)));
    received.erase(0, size);
    if (!write_message(answers, given)) _exit(0);
  }
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return "exited with status " + std::to_string(WEXITSTATUS(status));
  const char* name = sigabbrev_np(WTERMSIG(status));
  const std::string text = "SIG" + std::string(name != nullptr ? name : "?");
  return WTERMSIG(status) == SIGKILL ? "was killed (SIGKILL), perhaps for want of memory"
                                     : "crashed (" + text + ")";
}

}  // namespace

Child::Child(const std::function<std::string(std::string_view)>& answer, ChildLimits limits)
    : limits_(limits), last_beat_(Clock::now()) {
  void* memory =
      mmap(nullptr, sizeof(Pulse), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) system_fault("mmap");
  pulse_ = new (memory) Pulse;
  const auto [requests_out, requests_in] = make_pipe();
  const auto [answers_out, answers_in] = make_pipe();
  (void)std::fflush(nullptr);  // or both processes would print it
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) system_fault("fork");
  if (pid_ == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    (void)close(requests_in);
    (void)close(answers_out);
    forget_crash_guard();
    (void)std::signal(SIGINT, SIG_IGN);  // the parent has had it, too
    if (limits.quiet) silence_standard_error();
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);  // what a subject prints is no result
    told_pulse = pulse_;
    limit_memory(limits.memory_bytes);
    try {
      serve(requests_out, answers_in, answer);
    } catch (const std::exception& error) {
      (void)std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  (void)close(requests_out);
  (void)close(answers_in);
  requests_ = requests_in;
  answers_ = answers_out;
  (void)fcntl(answers_, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
  if (pid_ > 0) {
    (void)kill(pid_, SIGKILL);
    bury();
  }
  (void)close(requests_);
  (void)close(answers_);
  (void)munmap(pulse_, sizeof(Pulse));
}

void Child::ask(std::string_view request) {
  last_beat_ = Clock::now();
  (void)write_message(requests_, request);  // a dead one shows when it is looked at
}

void Child::bury() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  death_ = Death{.how = hung_ ? fmt::format("hung (no answer for {:g} s)", limits_.silence.count())
                              : how_it_ended(status),
                 .subject = pulse_->subject.load(),
                 .op_index = pulse_->op_index.load(),
                 .hung = hung_};
}

Child::State Child::look() {
  if (death_) return State::kDead;
  Read read = Read::kSome;
  while (read == Read::kSome && !is_whole(received_)) read = read_some(answers_, received_);
  if (is_whole(received_)) return State::kAnswered;
  if (read == Read::kEnd) {
    bury();
    return State::kDead;
  }
  const auto now = Clock::now();
  const std::uint64_t beats = pulse_->beats.load();
  if (beats != beats_) last_beat_ = now;
  beats_ = beats;
  // The one that waits for a child of its own is alive as long as it looks at it.
  if (told_pulse != nullptr) told_pulse->beats.fetch_add(1);
  if (limits_.silence.count() > 0 && now - last_beat_ > limits_.silence) {
    hung_ = true;
    (void)kill(pid_, SIGKILL);
    bury();
    return State::kDead;
  }
  return State::kBusy;
}

Child::State Child::wait() {
  while (true) {
    const State state = look();
    if (state != State::kBusy) return state;
    pollfd entry{answers_, POLLIN, 0};
    (void)poll(&entry, 1, static_cast<int>(kBetweenLooks.count()));
  }
}

std::string Child::take_answer() {
  std::string answer = received_.substr(sizeof(std::uint64_t));
  received_.clear();
  return answer;
}

}  // namespace kvo::tools
