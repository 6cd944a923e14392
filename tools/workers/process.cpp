#include "tools/workers/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <new>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT: sigaction is POSIX
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "properties/runner/pulse.hpp"
#include "reference/contract/subject/probe.hpp"
#include "tools/commands/usage.hpp"

namespace kvo::tools {
namespace {

// Whoever closes the answer pipe without ending is ended after so long.
constexpr std::chrono::milliseconds kGrace{500};
// Of standard error: the end that is stored, and what is shown of one process at most.
constexpr std::size_t kStoredErrors = std::size_t{64} << 10U;
constexpr std::uint64_t kShownErrors = std::uint64_t{1} << 20U;

[[noreturn]] void system_fault(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) system_fault("pipe");
  return ends;
}

// Appends what can be read without waiting. False at the end of the pipe.
bool read_some(int file, std::string& into) {
  std::array<char, 65'536> part;  // NOLINT: written by read
  const ssize_t got = read(file, part.data(), part.size());
  if (got > 0) into.append(part.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

std::uint64_t random_word() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return fmt::format("crashed (SIG{})", name != nullptr ? name : "?");
}

// From "==17==ERROR: AddressSanitizer: ..." on; empty where no sanitizer has reported.
std::string sanitizer_report(const std::string& text) {
  for (const char* begin : {"==ERROR: ", "WARNING: ThreadSanitizer", "runtime error: "})
    if (const std::size_t at = text.find(begin); at != std::string::npos)
      return text.substr(text.rfind('\n', at) + 1);
  return {};
}

std::set<pid_t> children_of(pid_t pid) {
  std::set<pid_t> all;
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", pid));
  for (pid_t child = 0; list >> child;) all.insert(child);
  return all;
}
// Children of this process that end_strays leaves alone: whoever started them ends them.
std::set<pid_t>& spared() {
  static auto* all =
      new std::set<pid_t>(children_of(getpid()));  // NOLINT: outlives static processes
  return *all;
}

std::uint64_t resident_bytes(pid_t pid) {
  std::uint64_t pages = 0;
  std::ifstream(fmt::format("/proc/{}/statm", pid)) >> pages >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}
// Of a process and those that it has started, each beyond what a fork begins with.
std::uint64_t resident_bytes_beyond(std::uint64_t begin, pid_t pid) {
  const std::uint64_t own = resident_bytes(pid);
  std::uint64_t all = own - std::min(own, begin);
  for (const pid_t child : children_of(pid)) all += resident_bytes_beyond(begin, child);
  return all;
}

volatile std::sig_atomic_t asked_to_end = 0;

extern "C" void kvo_on_interruption(int /*number*/) {
  asked_to_end = 1;
}

}  // namespace

Process::Process(const Answer& answer, Limits limits, std::unique_ptr<Framing> framing)
    : limits_(limits),
      framing_(framing ? std::move(framing) : std::make_unique<LengthFraming>(random_word())),
      last_beat_(Clock::now()) {
  void* memory =
      mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) system_fault("mmap");
  page_ = new (memory) SharedPage;
  const auto [requests_out, requests_in] = make_pipe();
  const auto [answers_out, answers_in] = make_pipe();
  const auto [errors_out, errors_in] = make_pipe();
  // What the processes that a subject starts leave behind becomes a child of this one.
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  (void)spared();
  (void)std::fflush(nullptr);  // or both processes would print it
  const pid_t parent = getpid();
  (void)CallClock::now();  // its rate is measured once, for all processes
  pid_ = fork();
  if (pid_ < 0) system_fault("fork");
  if (pid_ == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    serve({requests_out, answers_in, errors_in}, *framing_, limits_, *page_, answer);
  }
  (void)madvise(memory, sizeof(SharedPage),
                MADV_DONTFORK);  // other processes have no business there
  spared().insert(pid_);
  (void)setpgid(pid_, pid_);  // whichever of both is first
  for (const int file : {requests_out, answers_in, errors_in}) (void)close(file);
  requests_ = requests_in;
  answers_ = answers_out;
  errors_ = errors_out;
  for (const int file : {answers_, errors_}) (void)fcntl(file, F_SETFL, O_NONBLOCK);
}

Process::~Process() {
  if (pid_ > 0) (void)dies();
  for (const int file : {requests_, answers_, errors_}) (void)close(file);
  (void)munmap(page_, sizeof(SharedPage));
}

std::string how_it_ended(const siginfo_t& end) {
  if (end.si_code == CLD_EXITED) return fmt::format("exited with status {}", end.si_status);
  if (end.si_status == SIGKILL)
    return "was killed (SIGKILL), by itself, by another process or for want of memory";
  return signal_text(end.si_status);
}

bool write_all(int file, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = write(file, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

void Process::ask(std::string_view request) {
  last_beat_ = Clock::now();
  // A dead one shows when it is looked at.
  (void)write_all(requests_, framing_->framed({Message::Kind::kRequest, std::string(request)}));
}

void Process::add_to(std::vector<pollfd>& entries) const {
  if (!closed_) entries.push_back({answers_, POLLIN, 0});
  entries.push_back({errors_, POLLIN, 0});
}

bool Process::has_ended() const {
  siginfo_t end{};
  return waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         end.si_pid == pid_;
}

// The last of it is stored; the first of it is shown.
void Process::read_errors() {
  std::string more;
  if (!read_some(errors_, more) || more.empty()) return;
  if (!limits_.quiet && forwarded_ < kShownErrors) {
    forwarded_ += more.size();
    (void)std::fwrite(more.data(), 1, more.size(), stderr);
  }
  error_text_ += more;
  if (error_text_.size() > 2 * kStoredErrors)
    error_text_.erase(0, error_text_.size() - kStoredErrors);
}

Process::State Process::dies(const std::string& how, bool hung) {
  const bool by_itself = has_ended();
  (void)kill(-pid_, SIGKILL);
  (void)kill(pid_, SIGKILL);
  siginfo_t end{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED) < 0 && errno == EINTR) {
  }
  spared().erase(pid_);
  pid_ = -1;
  constexpr int kReads = 64;  // a pipe holds less
  for (int i = 0; i < kReads; ++i) read_errors();
  // A handler may hang before the process can die of its signal. Nothing else in the page is
  // certain.
  const bool by_signal = end.si_code != CLD_EXITED && by_itself;
  const int noted = page_->signal.load();
  const int signal = hung || (by_signal && noted == end.si_status) ? noted : 0;
  Death death{.how = !how.empty() ? how : how_it_ended(end),
              .subject = page_->pulse.subject.load(),
              .op = page_->pulse.op.load(),
              .op_index = page_->pulse.op_index.load(),
              .hung = hung && signal == 0,
              .late = !how.empty() && !hung,
              .killed = by_itself && end.si_code != CLD_EXITED && end.si_status == SIGKILL,
              .report = sanitizer_report(error_text_)};
  if (signal > 0 && signal < NSIG) {
    death.how = signal_text(signal);
    const std::uint64_t count =
        std::min<std::uint64_t>(page_->frame_count.load(), SharedPage::kMostFrames);
    for (std::uint64_t i = 0; i < count; ++i)
      death.frames.push_back(reinterpret_cast<std::uintptr_t>(page_->frames[i]));  // NOLINT
    if (page_->library_path.front() != '\0') {
      const auto& path = page_->library_path;
      death.library.emplace(LoadedLibrary{{path.begin(), std::ranges::find(path, '\0')},
                                          page_->library_moved_by.load()});
    }
    if (page_->elsewhere.load()) {
      death.how += " in a thread that it had started";
      const auto& name = page_->pulse.thread_starter;
      death.thread_of.assign(name.begin(), std::ranges::find(name, '\0'));
    }
  }
  // "AddressSanitizer: heap-use-after-free"
  if (const std::size_t at = death.report.find("Sanitizer: "); at != std::string::npos) {
    const std::size_t begin = death.report.rfind(' ', at) + 1;
    death.how +=
        ": " + death.report.substr(begin, death.report.find_first_of(" \n", at + 11) - begin);
  }
  death_ = std::move(death);
  end_strays();
  return State::kDead;
}

Process::State Process::look() {
  if (death_) return State::kDead;
  const std::size_t before = received_.size();
  const auto read_answer = [&] {
    bool open = true;
    Framing::Taken taken = framing_->take(received_, answer_);
    for (std::size_t size = ~std::size_t{0};
         taken == Framing::Taken::kNothingYet && open && received_.size() != size;) {
      size = received_.size();
      open = read_some(answers_, received_);
      taken = framing_->take(received_, answer_);
    }
    return std::pair(taken, open);
  };
  auto [taken, open] = read_answer();
  bool ended = false;
  if (taken == Framing::Taken::kNothingYet) {
    read_errors();
    ended = has_ended();
    if (ended) taken = read_answer().first;  // its last words
  }
  // One request has one answer.
  if (taken == Framing::Taken::kMessage && received_.empty()) return State::kAnswered;
  if (taken != Framing::Taken::kNothingYet) return dies("wrote to the answer pipe of its process");
  if (ended && !page_->mute) return dies();
  const auto now = Clock::now();
  if (!open && !closed_) closed_ = now;
  if (ended || (closed_ && now - *closed_ > kGrace))
    return dies("closed the answer pipe of its process, or became another program");
  // One process alone has a limit of its own.
  if (limits_.memory_bytes > 0 && !children_of(pid_).empty() &&
      resident_bytes_beyond(resident_bytes(getpid()), pid_) > limits_.memory_bytes)
    return dies("takes more memory than a case may have (--case-memory), with what it has started");
  const std::uint64_t beats = page_->pulse.beats.load();
  if (beats != beats_ || received_.size() != before) last_beat_ = now;
  beats_ = beats;
  if (told_pulse != nullptr) told_pulse->beats.fetch_add(1);  // whoever waits is not silent
  if (limits_.silence.count() > 0 && now - last_beat_ > limits_.silence)
    return dies(fmt::format("hung (no answer for {:g} s)", limits_.silence.count()), true);
  return State::kBusy;
}

Process::State Process::wait() {
  std::vector<pollfd> entries;
  add_to(entries);
  while (true) {
    (void)poll(entries.data(), entries.size(), static_cast<int>(kBetweenLooks.count()));
    const State state = look();
    if (state != State::kBusy) return state;
    if (interrupted()) throw Interrupted();
    entries.clear();
    add_to(entries);
  }
}

void spare(pid_t child, bool spared_from_now_on) {
  if (spared_from_now_on)
    spared().insert(child);
  else
    spared().erase(child);
}

void end_strays() {
  constexpr int kMostRounds = 1'000;  // what they start meanwhile is next
  bool any = true;
  for (int round = 0; round < kMostRounds && std::exchange(any, false); ++round)
    for (const pid_t child : children_of(getpid()))
      if (!spared().contains(child)) {
        any = true;
        (void)kill(child, SIGKILL);
        (void)waitpid(child, nullptr, 0);
      }
}

bool interrupted() {
  return asked_to_end != 0;
}

void catch_interruption() {
  struct sigaction action {};
  action.sa_handler = kvo_on_interruption;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one ends at once
  (void)sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    (void)sigaction(number, nullptr, &before);
    if (number == SIGHUP && before.sa_handler == SIG_IGN) continue;  // nohup
    (void)sigaction(number, &action, nullptr);
  }
}

Message answered(const std::function<Message()>& make, Message::Kind no_memory) {
  try {
    return make();
  } catch (const FileError& error) {
    return {Message::Kind::kFileFault, error.what()};
  } catch (const UsageError& error) {
    return {Message::Kind::kUsageFault, error.what()};
  } catch (const std::bad_alloc&) {
    free_reserve();
    return {no_memory, "a case needs more memory than it may have (--case-memory)"};
  } catch (const std::exception& error) {
    // A guest shares this memory and may have overwritten it. Then this is a death, and isolated
    // processes show whether the baseline alone fails as well.
    if (told_pulse != nullptr && told_pulse->guest) std::terminate();
    return {Message::Kind::kFault, error.what()};
  }
}

void throw_fault(const Message& message) {
  switch (message.kind) {
    case Message::Kind::kFileFault:
      throw FileError(message.text);
    case Message::Kind::kUsageFault:
      throw UsageError(message.text);
    case Message::Kind::kFault:
      throw std::runtime_error(message.text);
    default:
      return;
  }
}

}  // namespace kvo::tools
