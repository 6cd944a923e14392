// A program that pretends to be an adapter of `layered.vector`, and then misbehaves as its argument
// says. It has no cache.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include <signal.h>  // NOLINT: raise is POSIX
#include <unistd.h>

namespace {

// The number of a request.
std::string id_of(const std::string& line) {
  const std::size_t at = line.find("\"id\":") + 5;
  return line.substr(at, line.find_first_of(",}", at) - at);
}

void say(const std::string& id, const std::string& members) {
  std::cout << "{\"id\":" << id << members << "}" << std::endl;  // NOLINT: a line is an answer
}

void leave_a_daemon() {
  if (fork() == 0) {
    (void)setsid();
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    sleep(600);
    _exit(0);
  }
}

// At the first operation. True: it has answered.
bool misbehaves(const std::string& how, const std::string& id, const std::string& line) {
  bool known = false;
  const auto is = [&](const char* name) {
    known = known || how == name;
    return how == name;
  };
  (void)signal(SIGSEGV, SIG_DFL);  // which a sanitizer catches
  if (is("crashes")) (void)raise(SIGSEGV);
  if (is("aborts")) std::abort();
  if (is("exits")) std::_Exit(3);
  if (is("says_why")) std::cerr << "IndexError: row 7\n";
  if (is("says_why")) std::_Exit(1);
  if (is("hangs") || is("ignores_sigterm")) {
    for (const int number : {SIGTERM, SIGHUP, SIGINT}) (void)signal(number, SIG_IGN);
    while (true) sleep(600);
  }
  if (is("writes_garbage")) std::cout << "hello, world" << std::endl;
  if (is("stops_amid_a_line")) {
    std::cout << "{\"id\":" << id << ",\"re" << std::flush;
    std::_Exit(0);
  }
  if (is("writes_one_long_line"))
    for (const std::string part(std::size_t{1} << 20U, 'x'); std::cout << part;) continue;
  if (is("answers_without_end"))
    while (std::cout) say(id, R"(,"ret":{"cache":0})");
  if (is("closes_its_output")) {
    (void)close(STDOUT_FILENO);
    sleep(600);
  }
  if (is("answers_another_request")) say("999", R"(,"ret":{"cache":0})");
  if (is("answers_another_operation")) say(id, R"(,"ret":{"len":3})");
  if (is("answers_nothing")) say(id, "");
  if (is("has_an_infinite_number")) say(id, R"(,"ret":{"cache":"nan"})");
  if (is("has_a_fraction")) say(id, R"(,"ret":{"cache":0.5})");
  if (line.find(R"("op":"k")") == std::string::npos && how.starts_with("keys_")) return false;
  if (is("keys_do_not_fit_their_shape")) say(id, R"(,"ret":{"k":{"shape":[3],"data":[1,2]}})");
  if (is("keys_are_outside_of_the_memory")) say(id, R"(,"ret":{"k":{"shape":[9],"at":1}})");
  if (is("is_no_adapter_any_more")) say(id, R"(,"fault":"no such case")");
  if (is("throws")) say(id, R"(,"threw":"KeyError: 3")");
  if (is("refuses")) say(id, R"(,"ret":{"error":"full","detail":"no space"})");
  if (is("pretends_to_have_died")) say(id, R"(,"ret":{"error":"died"})");
  if (is("floods_standard_error")) {
    for (int i = 0; i < 100'000; ++i) std::cerr << "a line of no use\n";
    say(id, R"(,"ret":{"cache":0})");
  }
  if (is("leaves_a_daemon")) {
    leave_a_daemon();
    std::_Exit(5);
  }
  if (is("takes_all_memory"))
    for (std::size_t size = std::size_t{1} << 24U;; size += size / 8) {
      void* more = std::malloc(size);  // NOLINT: it is meant to fail
      if (more == nullptr) std::abort();
      std::memset(more, 1, size);
    }
  if (is("dies_at_len") && line.find(R"("len")") != std::string::npos) std::_Exit(9);
  const bool makes = line.find(R"("new")") != std::string::npos;
  if (is("dies_at_len")) say(id, makes ? R"(,"ret":{"cache":0})" : R"(,"ret":{})");
  return known;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "sound";
  if (how == "says_nothing") return 0;
  if (how == "never_greets") sleep(600);
  for (std::string line; std::getline(std::cin, line);) {
    const std::string id = id_of(line);
    const auto asks = [&](const char* member) {
      return line.find("\"" + std::string(member) + "\":") != std::string::npos;
    };
    if (asks("hello") && how == "is_of_another_version")
      say(id, R"(,"hello":{"protocol":7,"system":"x","version":"1","kinds":[]})");
    else if (asks("hello") && how == "has_an_unknown_kind")
      say(id,
          R"(,"hello":{"protocol":1,"system":"x","version":"1","kinds":[{"kind":"layered.w"}]})");
    else if (asks("hello"))
      say(id, R"(,"hello":{"protocol":1,"system":"hostile","version":"1","memory":true,)" +
                  std::string(how == "dies_at_len" ? R"("batches":true,)" : "") +
                  R"("kinds":[{"kind":"layered.vector"}]})");
    else if (asks("open") && how == "dies_when_opened")
      return 4;
    else if (asks("open") && how == "lacks_the_config")
      say(id, R"(,"error":"not_supported","detail":"f32 alone")");
    else if (asks("close") && how == "dies_when_closed")
      return 6;
    else if (asks("batch"))
      return 9;  // each has an operation that it dies of
    else if (!asks("op") || !misbehaves(how, id, line))
      say(id, asks("op") ? R"(,"ret":{"cache":0})" : "");
  }
}
