#include "tools/testing/forked_main.hpp"

#include <algorithm>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
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

Forked ForkedMain::run(const std::vector<std::string>& arguments, unsigned most_seconds) {
  out_.clear();
  err_.clear();
  if (!child_)
    child_ = std::make_unique<Process>(
        [this](std::string_view request) { return answer(request, out_.file(), err_.file()); },
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
  forked.out = out_.text();
  forked.err = err_.text();
  return forked;
}

}  // namespace kvo::tools
