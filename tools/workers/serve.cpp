// The other end of a Process: the life of what was forked.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <vector>

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <linux/capability.h>
#include <signal.h>  // NOLINT: sigaction is POSIX
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reference/contract/subject/probe.hpp"
#include "tools/workers/crash_guard.hpp"
#include "tools/workers/journal.hpp"
#include "tools/workers/process.hpp"
#include "traces/io/kept_input.hpp"

namespace kvo::tools {
namespace {

#ifdef KVO_SANITIZED
std::uint64_t used_bytes() {
  return __sanitizer_get_current_allocated_bytes();
}
#else
// Addresses in use; 0 where the system does not say.
std::uint64_t used_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}
#endif

SharedPage* shared_page = nullptr;  // NOLINT: one a process
std::vector<char> reserve;          // NOLINT: as above
pid_t own_id = 0;                   // NOLINT: as above

extern "C" void kvo_on_crash(int number) {
  if (getpid() == own_id && shared_page->signal.exchange(number) == 0) {
    shared_page->elsewhere = gettid() != own_id;
    shared_page->frame_count = static_cast<std::uint64_t>(
        backtrace(shared_page->frames.data(), static_cast<int>(SharedPage::kMostFrames)));
  }
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

// A fork of a subject's that comes back must not tell what the process does, or answer for it.
void in_a_copy() {
  told_pulse = nullptr;
  Journal::close();
}

// What only root has: to raise a limit again.
void give_up_privilege() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return;
  constexpr std::uint32_t kBit = std::uint32_t{1} << CAP_SYS_RESOURCE;
  sets[0].effective &= ~kBit;
  sets[0].permitted &= ~kBit;
  (void)syscall(SYS_capset, &header, sets.data());
}

// The driver of a card reserves terabytes of addresses and writes to few of them.
int memory_limit() {
  const auto is_there = [](const char* file) { return access(file, F_OK) == 0; };
  return is_there("/dev/nvidiactl") || is_there("/dev/dxg") ? RLIMIT_DATA : RLIMIT_AS;
}

void limit_memory(std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::uint64_t most = used_bytes() + bytes;
  if (kIsSanitized) {  // a sanitizer reserves terabytes of addresses
    heap_limit_bytes = most;
    return;
  }
  const rlimit memory{most, most};
  (void)setrlimit(memory_limit(), &memory);
  const rlimit file{bytes, bytes};  // a file in memory counts as no address
  (void)setrlimit(RLIMIT_FSIZE, &file);
}

// Closes all but the ends of its pipes and what was kept of inputs, whatever their numbers are.
void close_files(const Pipes& pipes) {
  const int nowhere = open("/dev/null", O_RDONLY);
  (void)dup2(nowhere, STDIN_FILENO);
  (void)dup2(pipes.errors, STDOUT_FILENO);  // what a subject prints is no result
  (void)dup2(pipes.errors, STDERR_FILENO);
  std::vector<int> own = traces::kept_files();
  own.insert(own.end(), {pipes.requests, pipes.answers});
  std::ranges::sort(own);
  unsigned next = STDERR_FILENO + 1;
  for (const int file : own) {
    const auto number = static_cast<unsigned>(file);
    if (number > next) (void)close_range(next, number - 1, 0);
    next = number + 1;
  }
  (void)close_range(next, ~0U, 0);
}

// What a subject can use up or change of a process, so that the next case would suffer from it, in
// numbers. Memory is left out: a case that lacks it is tried again in another process.
std::vector<std::uint64_t> condition(int own_file) {
  const int next_file = dup(own_file);
  (void)close(next_file);
  const mode_t mask = umask(0);
  (void)umask(mask);
  struct stat folder {};
  (void)stat(".", &folder);
  sigset_t blocked{};
  (void)sigprocmask(SIG_BLOCK, nullptr, &blocked);
  siginfo_t child{};
  const bool has_children = waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
  itimerval timer{};
  (void)getitimer(ITIMER_REAL, &timer);
  const bool has_timer = timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0;
  std::vector<std::uint64_t> all{static_cast<std::uint64_t>(next_file), mask, folder.st_ino,
                                 has_children, has_timer};
  for (const int number : {SIGSEGV, SIGABRT, SIGTERM})
    all.push_back(sigismember(&blocked, number) == 1);
  for (const auto kind : {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE}) {
    rlimit limit{};
    (void)getrlimit(kind, &limit);
    all.insert(all.end(), {limit.rlim_cur, limit.rlim_max});
  }
  return all;
}

// Threads that a case has left behind get a while to end, or to crash in the process that knows who
// started them. Returns how many there are then.
std::uint64_t settled(std::uint64_t before) {
  constexpr int kMostWaits = 100;
  std::uint64_t now = thread_count();
  for (int i = 0; i < kMostWaits && now > before; ++i, now = thread_count()) (void)usleep(1'000);
  return now;
}

void answer_with(int file, const std::string& bytes) {
  if (write_all(file, bytes)) return;
  shared_page->mute = true;
  _exit(0);
}

}  // namespace

std::uint64_t moved_by(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_addr : 0;
}

void tell_library(const std::string& path, void* handle) {
  if (shared_page == nullptr || path.size() >= shared_page->library_path.size()) return;
  shared_page->library_moved_by = moved_by(handle);
  std::ranges::copy(path, shared_page->library_path.begin());
  shared_page->library_path.at(path.size()) = '\0';
}

void free_reserve() {
  reserve = std::vector<char>();
}

void serve(const Pipes& pipes, const Framing& framing, const Limits& limits, SharedPage& page,
           const Process::Answer& answer) noexcept {
  (void)setpgid(0, 0);
  close_files(pipes);
  for (const int number : {SIGTERM, SIGHUP}) (void)signal(number, SIG_DFL);
  (void)signal(SIGINT, SIG_IGN);  // the parent's to answer
  shared_page = &page;
  (void)madvise(&page, sizeof page, MADV_DONTFORK);  // nor is it a copy's
  own_id = getpid();
  told_pulse = &page.pulse;
  std::array<void*, 1> first_frame{};
  (void)backtrace(first_frame.data(), 1);  // loads what it needs, which a handler must not
  catch_crashes(kvo_on_crash);
  (void)pthread_atfork(nullptr, nullptr, in_a_copy);
  give_up_privilege();
  limit_memory(limits.memory_bytes);
  const std::vector<std::uint64_t> first = condition(pipes.answers);
  constexpr std::size_t kReserve = std::size_t{4} << 20U;
  std::uint64_t threads = thread_count();
  std::string received;
  Message message;
  while (true) {
    while (framing.take(received, message) != Framing::Taken::kMessage) {
      std::array<char, 4096> part;  // NOLINT: written by read
      const ssize_t got = read(pipes.requests, part.data(), part.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) _exit(0);
      received.append(part.data(), static_cast<std::size_t>(got));
    }
    page.pulse.subject = nullptr;
    page.pulse.guest = false;
    reserve.resize(kReserve);
    Message given = answered([&] { return answer(message.text); });
    if (getpid() != own_id) _exit(0);
    if (__libc_single_threaded == 0) threads = settled(threads);
    if (given.kind == Message::Kind::kAnswer && page.pulse.guest &&
        condition(pipes.answers) != first)
      given.kind = Message::Kind::kLastAnswer;
    try {
      answer_with(pipes.answers, framing.framed(given));
    } catch (const std::bad_alloc&) {
      free_reserve();
      answer_with(pipes.answers, framing.framed(given));
    }
  }
}

}  // namespace kvo::tools
