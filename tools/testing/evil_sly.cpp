#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/testing/environment.hpp"
#include "tools/testing/evil_deeds.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
constexpr int kMostFiles = 256;
constexpr int kMostChildren = 8;  // of all processes of a test
constexpr std::size_t kMiB = std::size_t{1} << 20U;
// No divisor of what a case may have (128 MiB): a last piece would fit or not by a few pages.
constexpr std::size_t kPiece = 48 * kMiB;

// ---- Descriptors ----

// Calls act(descriptor) for each open one of a type: S_IFIFO, S_IFREG, or 0 for all.
template <class Act>
void each_file(int first, mode_t type, Act act) {
  for (int file = first; file < kMostFiles; ++file) {
    struct stat about {};
    if (fstat(file, &about) != 0) continue;
    const mode_t is = about.st_mode & S_IFMT;
    if (type == 0 || is == type || (type == S_IFIFO && is == S_IFSOCK)) act(file);
  }
}

void write_to(int file, std::string_view bytes) {
  [[maybe_unused]] const ssize_t count = write(file, bytes.data(), bytes.size());
}

void write_to_pipes(std::string_view bytes) {
  each_file(3, S_IFIFO, [&](int file) { write_to(file, bytes); });
}

// As Child frames its messages: eight bytes of length before the text.
std::string framed(std::uint64_t length, std::string_view text) {
  std::string whole(sizeof length, '\0');
  std::memcpy(whole.data(), &length, sizeof length);
  return whole.append(text);
}

void send(std::string_view text) {
  write_to_pipes(framed(text.size(), text));
}

void flood_pipes() {
  constexpr std::size_t kMost = 2048 * kMiB;
  static const std::string kBlock(1U << 16U, 'x');
  for (std::size_t done = 0; done < kMost; done += kBlock.size()) write_to_pipes(kBlock);
}

void flood(int file) {
  constexpr int kLines = 100'000;
  static int lines = 0;
  for (; lines < kLines; ++lines) write_to(file, "a subject prints this line again and again\n");
}

void close_all() {
  (void)close_range(3, ~0U, 0);
}

void leak_files() {
  constexpr int kMost = 1 << 16U;
  int opened = 0;
  while (opened < kMost && open("/dev/null", O_RDONLY) >= 0) ++opened;  // NOLINT: for children, too
}

// Only below the folder that holds EVIL_DIR: a user's files must not be at risk.
void unlink_all() {
  const fs::path marks = text_in_environment("EVIL_DIR");
  std::error_code failed;
  if (marks.empty() || !fs::equivalent(marks.parent_path(), fs::current_path(), failed)) return;
  for (const auto& entry : fs::directory_iterator("."))
    if (entry.is_regular_file()) (void)fs::remove(entry.path(), failed);
}

// ---- Processes ----

void fork_and_return() {
  static pid_t process = 0;
  if (is_first(process) && fork() == 0) process = getpid();
}

void fork_sleeper() {
  if (falls_due("sleeper", kMostChildren) && fork() == 0) sleep_long();
}

void fork_daemon() {
  if (!falls_due("daemon", kMostChildren)) return;
  const pid_t between = fork();
  if (between == 0) {
    (void)setsid();
    if (fork() == 0) sleep_long();
    _exit(0);
  }
  (void)waitpid(between, nullptr, 0);
}

void fork_with_memory() {
  constexpr std::size_t kBytes = 300 * kMiB;
  constexpr int kAtOnce = 3;
  for (int i = 0; i < kAtOnce; ++i) {
    if (!falls_due("memory", kMostChildren) || fork() != 0) continue;
    if (void* block = std::malloc(kBytes); block != nullptr) std::memset(block, 1, kBytes);
    std::this_thread::sleep_for(std::chrono::seconds(20));
    _exit(0);
  }
}

void kill_group() {
  if (!text_in_environment("EVIL_DIR").empty()) (void)kill(0, SIGKILL);
}

// ---- Memory that is never freed ----

// Allocates and writes so much, once a process.
void take(std::size_t most) {
  static pid_t process = 0;
  if (!is_first(process)) return;
  for (std::size_t taken = 0; taken < most; taken += kPiece) {
    void* block = std::malloc(kPiece);  // NOLINT
    if (block == nullptr) throw std::bad_alloc();
    std::memset(block, 1, kPiece);
  }
}

void take_memory() {
  constexpr std::size_t kMost = 8192 * kMiB;
  [[maybe_unused]] static void* volatile last = nullptr;
  for (std::size_t taken = 0; taken < kMost; taken += kPiece) last = new char[kPiece];  // NOLINT
  throw std::bad_alloc();
}

// Takes addresses, not memory: nothing is written but what malloc itself writes.
void eat_all() {
  constexpr std::size_t kMost = 8192 * kMiB;
  constexpr std::size_t kLeast = 16;
  static void* volatile last = nullptr;
  std::size_t taken = 0;
  for (std::size_t size = kPiece; size >= kLeast && taken < kMost;) {
    last = std::malloc(size);  // NOLINT
    if (last == nullptr) size /= 2;
    if (last != nullptr) taken += size;
  }
}

void leak_a_piece() {
  constexpr std::size_t kMost = 2048 * kMiB;
  static std::size_t leaked = 0;
  if (leaked >= kMost) return;
  void* block = std::malloc(kPiece);  // NOLINT
  if (block == nullptr) throw std::bad_alloc();
  std::memset(block, 1, kPiece);
  leaked += kPiece;  // NOLINT: never freed
}

// A piece each time: one that takes long would count as hung.
void fill_shared_file() {
  constexpr std::size_t kMost = 1024 * kMiB;
  static const std::string kBlock(kMiB, 'm');
  static const int kFile = memfd_create("memory", 0);  // NOLINT: stays open in children
  static std::size_t filled = 0;
  for (const std::size_t end = std::min(filled + kPiece, kMost); filled < end; filled += kMiB)
    write_to(kFile, kBlock);
}

void raise_limit() {
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  (void)setrlimit(RLIMIT_AS, &none);
  take(192 * kMiB);  // of the 128 that a case may have
}

// Shared memory of the harness: mappings without a file, and of memfd_create.
void scribble() {
  constexpr int kByte = 0xAA;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const bool shared = line.find(" rw-s ") != std::string::npos;
    const bool ours =
        line.find("/dev/zero") != std::string::npos || line.find("/memfd:") != std::string::npos;
    if (!shared || !ours) continue;
    char* end = nullptr;
    const std::uintptr_t from = std::strtoull(line.c_str(), &end, 16);
    const std::uintptr_t to = std::strtoull(end + 1, nullptr, 16);
    std::memset(reinterpret_cast<void*>(from), kByte, to - from);  // NOLINT: on purpose
  }
  crash();
}

// ---- Limits ----

void limit(__rlimit_resource what, rlim_t most) {
  const rlimit both{most, most};
  (void)setrlimit(what, &both);
}

// To one below the folder of the test.
void change_folder() {
  std::error_code failed;
  fs::current_path(text_in_environment("EVIL_DIR"), failed);
}

void block_signals() {
  sigset_t all;
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_BLOCK, &all, nullptr);
}

constexpr bool kLies = true;
constexpr std::array kDeeds{
    Deed{"close_hang",
         [] {
           close_all();
           sleep_long();
         }},
    Deed{"close_loop",
         [] {
           close_all();
           compute_long();
         }},
    Deed{"close_all", close_all},
    Deed{"exec_sleep", [] { (void)execlp("sleep", "sleep", "45", nullptr); }},
    Deed{"fork_return", fork_and_return},
    Deed{"fork", fork_sleeper},
    Deed{"fork_daemon", fork_daemon},
    Deed{"fork_crash",
         [] {
           fork_sleeper();
           crash();
         }},
    Deed{"fork_mem", fork_with_memory},
    Deed{"kill_group", kill_group},
    Deed{"pipe_text", [] { each_file(3, 0, [](int file) { write_to(file, "debug: append\n"); }); }},
    Deed{"pipe_forge", [] { write_to_pipes(framed(std::uint64_t{1} << 60U, "")); }},
    Deed{"pipe_empty", [] { send(""); }},
    Deed{"pipe_json", [] { send("g{}"); }},
    Deed{"pipe_fault", [] { send("fno such file"); }},
    Deed{"pipe_flood", flood_pipes},
    Deed{"write_fds", [] { each_file(0, S_IFREG, [](int file) { write_to(file, "garbage"); }); }},
    Deed{"trunc_fds", [] { each_file(0, S_IFREG, [](int file) { (void)!ftruncate(file, 0); }); }},
    Deed{"seek_fds",
         [] { each_file(0, S_IFREG, [](int file) { (void)lseek(file, 0, SEEK_SET); }); }},
    Deed{"flood_stderr", [] { flood(STDERR_FILENO); }},
    Deed{"flood_stdout", [] { flood(STDOUT_FILENO); }},
    Deed{"unlink_all", unlink_all},
    Deed{"shm_mem", fill_shared_file},
    Deed{"eat_all", eat_all},
    Deed{"eat_leak", leak_a_piece},
    Deed{"take_memory", take_memory},
    Deed{"raise_as", raise_limit},
    Deed{"scribble", scribble},
    Deed{"fd_leak", leak_files, When::kAdvance, kLies},
    Deed{"nofile", [] { limit(RLIMIT_NOFILE, 3); }, When::kAdvance, kLies},
    Deed{"fsize0", [] { limit(RLIMIT_FSIZE, 0); }, When::kAdvance, kLies},
    Deed{"chdir_lie", [] { change_folder(); }, When::kAdvance, kLies},
    Deed{"umask_lie", [] { (void)umask(0777); }, When::kAdvance, kLies},
    Deed{"nice_lie", [] { (void)!nice(19); }, When::kAdvance, kLies},
    Deed{"block_signals", block_signals, When::kAdvance, kLies}};

}  // namespace

std::span<const Deed> sly_deeds() {
  return kDeeds;
}

}  // namespace kvo::tools
