#include "tools/testing/forked_main.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/kvo_main.hpp"

// What a sanitizer complains of must not look like a verdict: its usual status is 1. Memory that is
// used again soon, and short stacks, take half the time.
extern "C" const char* __asan_default_options() {  // NOLINT: its name
  return "exitcode=99:quarantine_size_mb=2:thread_local_quarantine_size_kb=64:malloc_context_size="
         "2";
}
extern "C" const char* __ubsan_default_options() {  // NOLINT: its name
  return "exitcode=99";
}

namespace kvo::tools {
namespace {

/// What goes to the process and comes back.
struct Request {
  std::vector<std::string> words;
  unsigned most_seconds = 0;
};
BOOST_DESCRIBE_STRUCT(Request, (), (words, most_seconds))
struct Answer {
  int status = -1;
  std::uint64_t peak_bytes = 0;
};
BOOST_DESCRIBE_STRUCT(Answer, (), (status, peak_bytes))

int nameless_file() {
  const int file = memfd_create("captured", 0);
  if (file < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return file;
}

void empty(int file) {
  (void)!ftruncate(file, 0);
  (void)lseek(file, 0, SEEK_SET);
}

std::string text_of(int file) {
  std::string all;
  std::array<char, 65'536> part{};
  off_t at = 0;
  for (ssize_t got = 1; got > 0; at += got) {
    got = pread(file, part.data(), part.size(), at);
    if (got > 0) all.append(part.data(), static_cast<std::size_t>(got));
  }
  return all;
}

std::uint64_t peak_bytes(int whose) {
  rusage usage{};
  (void)getrusage(whose, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

// A process closes its parent's files, and opens this one of them again.
void write_to(int file, int stream) {
  const std::string path = fmt::format("/proc/{}/fd/{}", getppid(), file);
  const int own = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  (void)dup2(own, stream);
  (void)close(own);
}

// In the process.
Message answer(std::string_view text, int out, int err) {
  auto request = unpacked<Request>(std::string(text));
  std::vector<char*> argv;
  for (std::string& word : request.words) argv.push_back(word.data());
  argv.push_back(nullptr);
  write_to(out, STDOUT_FILENO);
  write_to(err, STDERR_FILENO);
  (void)alarm(request.most_seconds);
  const int status = kvo::main(static_cast<int>(request.words.size()), argv.data());
  (void)alarm(0);
  return {Message::Kind::kAnswer,
          packed(Answer{status, std::max(peak_bytes(RUSAGE_SELF), peak_bytes(RUSAGE_CHILDREN))})};
}

}  // namespace

ForkedMain::ForkedMain() : out_(nameless_file()), err_(nameless_file()) {}

ForkedMain::~ForkedMain() {
  (void)close(out_);
  (void)close(err_);
}

Forked ForkedMain::run(const std::vector<std::string>& arguments, unsigned most_seconds) {
  empty(out_);
  empty(err_);
  if (!child_)
    child_ = std::make_unique<Process>(
        [this](std::string_view request) { return answer(request, out_, err_); },
        Limits{.silence = {}, .memory_bytes = 0});
  Request request{.words = {"kvoracle"}, .most_seconds = most_seconds};
  request.words.insert(request.words.end(), arguments.begin(), arguments.end());
  child_->ask(packed(request));
  Forked forked;
  if (child_->wait() == Process::State::kAnswered) {
    const auto ended = unpacked<Answer>(child_->take_answer().text);
    forked.status = ended.status;
    forked.peak_bytes = ended.peak_bytes;
  } else {
    forked.death = child_->death().how;
    child_.reset();
  }
  forked.out = text_of(out_);
  forked.err = text_of(err_);
  return forked;
}

}  // namespace kvo::tools
