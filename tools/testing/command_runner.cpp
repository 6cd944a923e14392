#include "tools/testing/command_runner.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/testing/captured.hpp"

namespace kvo::tools {
namespace {

using Clock = std::chrono::steady_clock;

void require(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

// Sends the program its signals until it has ended, and kills it when its limit has passed.
void wait_for(pid_t child, const ProgramOptions& options, Finished& finished) {
  constexpr std::chrono::milliseconds kBetweenLooks{2};
  constexpr std::uint64_t kKiB = 1024;
  const auto start = Clock::now();
  std::size_t sent = 0;
  int state = 0;
  rusage usage{};
  while (wait4(child, &state, WNOHANG, &usage) == 0) {
    const auto spent = Clock::now() - start;
    for (; sent < options.signals.size(); ++sent) {
      const TimedSignal& next = options.signals[sent];
      if (spent < next.after || (next.when && !next.when() && spent < options.limit)) break;
      (void)kill(next.group ? -child : child, next.number);
    }
    if (spent >= options.limit) (void)kill(child, SIGKILL);
    std::this_thread::sleep_for(kBetweenLooks);
  }
  finished.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * kKiB;
  finished.seconds = Clock::now() - start;
  if (WIFEXITED(state)) finished.status = WEXITSTATUS(state);
  if (WIFSIGNALED(state)) finished.signal = WTERMSIG(state);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

pid_t start(std::vector<std::string>& words, const ProgramOptions& options, const Captured& out,
            const Captured& err) {
  posix_spawn_file_actions_t actions;
  require(posix_spawn_file_actions_init(&actions) == 0, "posix_spawn");
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.file(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.file(), STDERR_FILENO);
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

Finished run_program(std::vector<std::string> words, const ProgramOptions& options) {
  const Captured out;
  const Captured err;
  Finished finished;
  wait_for(start(words, options, out, err), options, finished);
  finished.out = out.text();
  finished.err = err.text();
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

Finished run_kvoracle(const std::vector<std::string>& arguments, const ProgramOptions& options) {
  std::vector<std::string> words{kvoracle_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(std::move(words), options);
}

}  // namespace kvo::tools
