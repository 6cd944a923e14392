#include <algorithm>
#include <array>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "tools/testing/environment.hpp"
#include "tools/testing/evil_deeds.hpp"

namespace kvo::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLong{60};
constexpr std::chrono::milliseconds kDelay{20};
constexpr int kSomeStatus = 7;

int deeper(int depth) {
  volatile char frame[4096];  // NOLINT: something large
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : deeper(depth + 1) + frame[0];
}

// Overwrites the headers of its other blocks, whatever else is on the heap, and frees them.
void corrupt_heap() {
  std::array<char*, 8> blocks{};
  for (char*& block : blocks) block = static_cast<char*>(std::malloc(24));  // NOLINT: on purpose
  volatile char* cells = *std::ranges::min_element(blocks);
  for (int i = 0; i < 4096; ++i) cells[i] = 'x';
  for (char* block : blocks) std::free(block);  // NOLINT
}

void double_free() {
  void* volatile block = std::malloc(24);  // NOLINT: on purpose
  std::free(block);                        // NOLINT
  std::free(block);                        // NOLINT
}

// So large a block is unmapped when it is freed.
void use_after_free() {
  constexpr std::size_t kLarge = std::size_t{64} << 20U;
  auto* volatile block = static_cast<char*>(std::malloc(kLarge));  // NOLINT: on purpose
  std::free(block);                                                // NOLINT
  *static_cast<volatile char*>(block) = 1;                         // NOLINT
}

void crash_later() {
  std::thread([] {
    std::this_thread::sleep_for(kDelay);
    crash();
  }).detach();
}

// Each process that advances crashes soon.
void crash_soon() {
  static pid_t process = 0;
  if (is_first(process)) crash_later();
}

void crash_at_random() {
  constexpr int kEvery = 500;
  static std::mt19937 engine{std::random_device()()};
  static pid_t process = 0;
  if (is_first(process)) engine.seed(std::random_device()());
  if (std::uniform_int_distribution<int>(1, kEvery)(engine) == 1) crash();
}

void throw_in_thread() {
  std::thread([] { throw std::runtime_error("in a thread"); }).join();
}

// No call of setjmp came before.
void jump_nowhere() {
  static std::jmp_buf nowhere;
  std::longjmp(nowhere, 1);  // NOLINT: on purpose
}

class Thrown : public std::exception {
 public:
  explicit Thrown(const char* what) : what_(what) {}
  [[nodiscard]] const char* what() const noexcept override { return what_; }

 private:
  const char* what_;
};

void throw_long_what() {
  constexpr std::size_t kMany = std::size_t{64} << 20U;
  static const std::string kText(kMany, 'w');
  throw Thrown(kText.c_str());
}

void exit_somehow() {
  _exit(kSomeStatus);
}

constexpr Deed few(std::string_view name, void (*act)(), int times) {
  return {.name = name, .act = act, .times = times};
}

constexpr std::array kDeeds{
    Deed{"crash", crash},
    Deed{"abort", [] { std::abort(); }},
    Deed{"trap", [] { (void)raise(SIGTRAP); }},
    Deed{"sys", [] { (void)raise(SIGSYS); }},
    Deed{"exit", [] { std::exit(0); }},              // NOLINT: one thread
    Deed{"quick_exit", [] { std::quick_exit(0); }},  // NOLINT: one thread
    Deed{"_exit", exit_somehow},
    Deed{"kill_self", [] { (void)kill(getpid(), SIGKILL); }},
    Deed{"term_self", [] { (void)kill(getpid(), SIGTERM); }},
    Deed{"overflow_stack", [] { (void)deeper(0); }},
    Deed{"corrupt_heap", corrupt_heap},
    Deed{"double_free", double_free},
    Deed{"use_after_free", use_after_free},
    Deed{"throw_in_thread", throw_in_thread},
    Deed{"terminate", [] { std::terminate(); }},
    Deed{"longjmp", jump_nowhere},
    Deed{"pthread_exit", [] { pthread_exit(nullptr); }},
    Deed{"crash_always", crash, When::kOperation},
    Deed{"open_crash", crash, When::kOpen},
    Deed{"dtor_crash", crash, When::kDestroy},
    Deed{"hang", sleep_long},
    Deed{"loop", compute_long},
    Deed{"open_hang", sleep_long, When::kOpen},
    Deed{"dtor_loop", compute_long, When::kDestroy},
    few("crash_once", crash, 1),
    few("crash_twice", crash, 2),
    few("exit_once", exit_somehow, 1),
    few("hang_once", sleep_long, 1),
    few("delayed_thread", crash_later, 1),
    Deed{"delayed_always", crash_soon},
    Deed{"crash_random", crash_at_random},
    Deed{"throw_int", [] { throw 42; }},  // NOLINT: on purpose
    Deed{"throw_null_what", [] { throw Thrown(nullptr); }},
    Deed{"throw_bad_utf8", [] { throw Thrown("bad \xff\xfe\xc0\x80 text"); }},
    Deed{"throw_escape", [] { throw Thrown("\x1b[2J\nFAILED all\r\a"); }},
    Deed{"throw_long_what", throw_long_what}};

}  // namespace

std::span<const Deed> deadly_deeds() {
  return kDeeds;
}

void act(const Deed& deed) {
  if (deed.times == 0 || falls_due(deed.name, deed.times)) deed.act();
}

bool falls_due(std::string_view name, int times) {
  const std::string folder = text_in_environment("EVIL_DIR");
  if (folder.empty()) return false;
  for (int nth = 1; nth <= times; ++nth) {
    const std::string marker = folder + "/" + std::string(name) + std::to_string(nth);
    const int file = open(marker.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) continue;
    (void)close(file);
    return true;
  }
  return false;
}

bool is_first(pid_t& process) {
  return std::exchange(process, getpid()) != getpid();
}

void crash() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;  // NOLINT: on purpose
}

void sleep_long() {
  const auto end = Clock::now() + kLong;
  while (Clock::now() < end) std::this_thread::sleep_for(std::chrono::seconds(1));
  _exit(kSomeStatus);
}

void compute_long() {
  const auto end = Clock::now() + kLong;
  while (Clock::now() < end) {
  }
  _exit(kSomeStatus);
}

}  // namespace kvo::tools
