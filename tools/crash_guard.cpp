#include "tools/crash_guard.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include <signal.h>  // NOLINT: sigaction is POSIX
#include <unistd.h>

#include "tools/exit_status.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#define KVO_SANITIZED 1
#else
#define KVO_SANITIZED 0
#endif

namespace kvo::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSignalStack = std::size_t{64} << 10U;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

/// The innermost activity of this thread. Read by the signal handler, hence without a constructor.
constinit thread_local std::atomic<Activity*> innermost = nullptr;

/// What the watchdog sees of a thread.
struct Watched {
  std::mutex mutex;
  Activity* innermost = nullptr;    // guarded by mutex
  std::int64_t last_change_ns = 0;  // guarded by mutex
};

struct AllWatched {
  std::mutex mutex;
  std::vector<Watched*> threads;
};

AllWatched& all_watched() {
  // Never destroyed: threads may end after main.
  static auto& all = *new AllWatched;
  return all;
}

/// Made with a thread's first activity: its place in the list, and a stack for signal handlers.
class ThreadGuard {
 public:
  ThreadGuard() {
    {
      const std::scoped_lock lock(all_watched().mutex);
      all_watched().threads.push_back(&watched);
    }
    if constexpr (KVO_SANITIZED == 0) {
      stack_ = std::make_unique<std::byte[]>(kSignalStack);  // NOLINT: a raw stack
      use_stack(stack_.get(), 0);
    }
  }
  ~ThreadGuard() {
    if (stack_) use_stack(nullptr, SS_DISABLE);
    const std::scoped_lock lock(all_watched().mutex);
    std::erase(all_watched().threads, &watched);
  }
  ThreadGuard(const ThreadGuard&) = delete;
  ThreadGuard& operator=(const ThreadGuard&) = delete;

  Watched watched;

 private:
  static void use_stack(std::byte* memory, int flags) {
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = kSignalStack;
    stack.ss_flags = flags;
    (void)sigaltstack(&stack, nullptr);
  }

  std::unique_ptr<std::byte[]> stack_;  // NOLINT: a raw stack
};

ThreadGuard& this_thread() {
  thread_local ThreadGuard guard;
  return guard;
}

void set_innermost(Activity* activity) {
  Watched& watched = this_thread().watched;
  const std::scoped_lock lock(watched.mutex);
  watched.innermost = activity;
  watched.last_change_ns = now_ns();
  innermost.store(activity, std::memory_order_relaxed);
}

template <std::size_t N>
void copy_text(std::string_view from, std::array<char, N>& to) {
  const std::size_t size = std::min(from.size(), N - 1);
  std::copy_n(from.begin(), size, to.begin());
  to[size] = '\0';
}

/// One line put together without allocating: usable in a signal handler.
class RawLine {
 public:
  void add(const char* text) {
    const std::size_t size = std::min(std::strlen(text), text_.size() - size_);
    std::memcpy(text_.data() + size_, text, size);
    size_ += size;
  }
  void write_to(int file) const {
    std::size_t done = 0;
    while (done < size_) {
      const ssize_t wrote = write(file, text_.data() + done, size_ - done);
      if (wrote <= 0) return;
      done += static_cast<std::size_t>(wrote);
    }
  }

 private:
  std::array<char, 1200> text_;
  std::size_t size_ = 0;
};

/// "crash (SIGSEGV) in WHAT: repeat with: REPEAT"
void print_end(const char* what_happened, const Activity* activity) {
  RawLine line;
  if (isatty(STDERR_FILENO) == 1) line.add("\r\x1b[K");  // a progress line may stand there
  line.add(what_happened);
  if (activity != nullptr) {
    line.add(" in ");
    line.add(activity->what());
    if (activity->repeat()[0] != '\0') {
      line.add(": repeat with: ");
      line.add(activity->repeat());
    }
  }
  line.add("\n");
  line.write_to(STDERR_FILENO);
}

/// True for the first caller; others must wait for the end that the first brings.
bool is_first_end() {
  static constinit std::atomic_flag ended = ATOMIC_FLAG_INIT;
  return !ended.test_and_set();
}

#if KVO_SANITIZED
/// Called behind a sanitizer's report, and when leaks are reported at the very end.
void on_sanitizer_end() {
  const Activity* activity = innermost.load(std::memory_order_relaxed);
  if (activity == nullptr || !is_first_end()) return;
  print_end("crash (see the sanitizer's report)", activity);
  std::_Exit(kExitCrashed);  // the thread sanitizer watches _exit, and is in no state to
}
#else
struct Fatal {
  int number;
  const char* text;
};
constexpr std::array<Fatal, 5> kFatal{{{SIGSEGV, "crash (SIGSEGV)"},
                                       {SIGBUS, "crash (SIGBUS)"},
                                       {SIGFPE, "crash (SIGFPE)"},
                                       {SIGILL, "crash (SIGILL)"},
                                       {SIGABRT, "crash (SIGABRT)"}}};

extern "C" void kvo_on_fatal_signal(int number) {
  while (!is_first_end()) (void)pause();
  const char* text = "crash";
  for (const Fatal& fatal : kFatal)
    if (fatal.number == number) text = fatal.text;
  print_end(text, innermost.load(std::memory_order_relaxed));
  _exit(kExitCrashed);
}
#endif

/// Ends the process if any thread has been in one activity since before `limit_ns` ago.
void look_for_hangs(std::int64_t limit_ns) {
  const std::scoped_lock all_lock(all_watched().mutex);
  for (Watched* watched : all_watched().threads) {
    const std::scoped_lock lock(watched->mutex);
    if (watched->innermost == nullptr || now_ns() - watched->last_change_ns <= limit_ns) continue;
    if (!is_first_end()) return;
    print_end("hung", watched->innermost);
    _exit(kExitCrashed);
  }
}

}  // namespace

Activity::Activity(std::string_view what, std::string_view repeat)
    : outer_(innermost.load(std::memory_order_relaxed)) {
  copy_text(what, what_);
  copy_text(repeat, repeat_);
  set_innermost(this);
}

Activity::~Activity() {
  set_innermost(outer_);
}

void install_crash_guard() {
  (void)this_thread();
#if KVO_SANITIZED
  __sanitizer_set_death_callback(on_sanitizer_end);
#else
  struct sigaction action {};
  action.sa_handler = kvo_on_fatal_signal;
  action.sa_flags = SA_ONSTACK;
  (void)sigemptyset(&action.sa_mask);
  for (const Fatal& fatal : kFatal) (void)sigaction(fatal.number, &action, nullptr);
#endif
}

Watchdog::Watchdog(std::chrono::duration<double> limit) {
  if (limit.count() <= 0) return;
  const auto limit_ns =
      static_cast<std::int64_t>(std::min(limit.count(), 1e9) * 1e9);  // 30 years are enough
  const std::chrono::nanoseconds pause(
      std::clamp<std::int64_t>(limit_ns / 8, 5'000'000, 1'000'000'000));
  thread_ = std::jthread([this, limit_ns, pause](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    while (!wake_.wait_for(lock, stop, pause, [&stop] { return stop.stop_requested(); }))
      look_for_hangs(limit_ns);
  });
}

Watchdog::~Watchdog() = default;

}  // namespace kvo::tools
