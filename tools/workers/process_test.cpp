#include "tools/workers/process.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reference/contract/subject/subject.hpp"
#include "tools/commands/usage.hpp"
#include "tools/workers/crash_guard.hpp"

namespace kvo::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

Message answer(std::string text) {
  return {Message::Kind::kAnswer, std::move(text)};
}

// What comes of one request.
struct Ended {
  std::optional<Message> answer = std::nullopt;
  Death death = {};
};

Ended outcome_of(const Process::Answer& act, Limits limits = {.silence = 1s, .quiet = true}) {
  Process process(act, limits);
  process.ask("request");
  if (process.wait() == Process::State::kAnswered) return {.answer = process.take_answer()};
  return {.death = process.death()};
}

std::string how(const Process::Answer& act) {
  const Ended outcome = outcome_of(act);
  return outcome.answer ? "answered " + outcome.answer->text : outcome.death.how;
}

void write_everywhere(std::string_view text) {
  for (int file = 3; file < 64; ++file) (void)!write(file, text.data(), text.size());
}

std::size_t children() {
  std::ifstream list("/proc/self/task/" + std::to_string(getpid()) + "/children");
  return static_cast<std::size_t>(
      std::distance(std::istream_iterator<int>(list), std::istream_iterator<int>()));
}

TEST(Framing, GivesBackWhatWasFramedHoweverItIsCut) {
  const LengthFraming framing(0x0123456789abcdefULL);
  const std::string bytes = framing.framed({Message::Kind::kAgain, "some text"});
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    std::string received = bytes.substr(0, cut);
    Message message;
    EXPECT_EQ(framing.take(received, message), Framing::Taken::kNothingYet) << cut;
    received += bytes.substr(cut) + "rest";
    ASSERT_EQ(framing.take(received, message), Framing::Taken::kMessage);
    EXPECT_EQ(message.kind, Message::Kind::kAgain);
    EXPECT_EQ(message.text, "some text");
    EXPECT_EQ(received, "rest");
  }
}

TEST(Framing, TakesNoMessageOfAnotherWordOrLength) {
  const LengthFraming framing(1);
  const auto taken = [&](std::string bytes) {
    Message message;
    return framing.take(bytes, message);
  };
  std::string bytes = framing.framed({Message::Kind::kAnswer, "x"});
  EXPECT_EQ(taken(LengthFraming(2).framed({})), Framing::Taken::kNoMessage);
  EXPECT_EQ(taken("d"), Framing::Taken::kNoMessage);
  std::string length = bytes;
  length[15] = '\x10';  // 2^60
  EXPECT_EQ(taken(length), Framing::Taken::kNoMessage);
}

/// A line a message, as adapters in other languages have it.
class LineFraming final : public Framing {
 public:
  [[nodiscard]] std::string framed(const Message& message) const override {
    return message.text + "\n";
  }
  [[nodiscard]] Taken take(std::string& received, Message& message) const override {
    const std::size_t end = received.find('\n');
    if (end == std::string::npos) return Taken::kNothingYet;
    message = answer(received.substr(0, end));
    received.erase(0, end + 1);
    return Taken::kMessage;
  }
};

TEST(Process, SpeaksWhateverFramingItIsGiven) {
  Process process([](std::string_view text) { return answer("heard " + std::string(text)); }, {},
                  std::make_unique<LineFraming>());
  for (const std::string request : {"one", "two"}) {
    process.ask(request);
    ASSERT_EQ(process.wait(), Process::State::kAnswered);
    EXPECT_EQ(process.take_answer().text, "heard " + request);
  }
}

TEST(Process, SaysHowItDied) {
  EXPECT_EQ(how([](auto) -> Message { std::_Exit(7); }), "exited with status 7");
  EXPECT_THAT(how([](auto) -> Message { return answer(std::to_string(raise(SIGKILL))); }),
              HasSubstr("SIGKILL"));
  EXPECT_THAT(how([](auto) -> Message { return answer(std::to_string(raise(SIGTERM))); }),
              HasSubstr("SIGTERM"));
  EXPECT_EQ(how([](auto) -> Message {
              std::this_thread::sleep_for(1h);
              return {};
            }),
            "hung (no answer for 1 s)");
}

TEST(Process, ACrashHasItsFrames) {
  if (kIsSanitized) GTEST_SKIP() << "the sanitizer handles signals itself";
  const Ended outcome = outcome_of([](auto) -> Message { std::abort(); });
  EXPECT_EQ(outcome.death.how, "crashed (SIGABRT)");
  EXPECT_GT(outcome.death.frames.size(), 2U);
  EXPECT_TRUE(outcome.death.thread_of.empty());
}

TEST(Process, WhatIsNoAnswerIsADeathAtOnce) {
  for (const std::string text :
       {"debug: append\n", "\xff\xff\xff\xff\xff\xff\xff\x10", "g{}", "fno such file"})
    EXPECT_EQ(how([&](auto) {
                write_everywhere(text);
                return answer("");
              }),
              "wrote to the answer pipe of its process");
  EXPECT_EQ(how([&](auto) -> Message {
              while (true) write_everywhere(std::string(4096, 'x'));
            }),
            "wrote to the answer pipe of its process");
}

TEST(Process, WhoeverClosesItsPipesIsNotWaitedFor) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(how([](auto) -> Message {
                (void)close_range(3, ~0U, 0);
                std::this_thread::sleep_for(1h);
                return {};
              }),
              HasSubstr("closed the answer pipe"));
  EXPECT_THAT(how([](auto) -> Message {
                (void)execlp("sleep", "sleep", "3600", nullptr);
                return {};
              }),
              HasSubstr("became another program"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST(Process, HasNothingOfItsParentsOpen) {
  const int file = open("/dev/null", O_RDWR);
  EXPECT_EQ(how([&](auto) { return answer(fcntl(file, F_GETFD) == -1 ? "closed" : "open"); }),
            "answered closed");
  EXPECT_EQ(how([&](auto) {
              char c = 0;
              return answer(std::to_string(read(STDIN_FILENO, &c, 1)));
            }),
            "answered 0");
  (void)close(file);
}

TEST(Process, AForkThatComesBackDoesNotAnswer) {
  Process process(
      [](std::string_view text) {
        (void)fork();
        return answer(std::string(text));
      },
      {});
  for (const std::string request : {"one", "two", "three"}) {
    process.ask(request);
    ASSERT_EQ(process.wait(), Process::State::kAnswered);
    EXPECT_EQ(process.take_answer().text, request);
  }
}

TEST(Process, WhatItStartedEndsWithIt) {
  EXPECT_EQ(how([](auto) {
              if (fork() == 0) {
                (void)setsid();
                if (fork() > 0) std::_Exit(0);
                std::this_thread::sleep_for(1h);
              }
              std::this_thread::sleep_for(100ms);
              return answer("started");
            }),
            "answered started");
  EXPECT_EQ(children(), 0U);
  EXPECT_THAT(how([](auto) -> Message {  // a child that holds the pipes open
                if (fork() == 0) std::this_thread::sleep_for(1h);
                std::_Exit(3);
              }),
              "exited with status 3");
  EXPECT_EQ(children(), 0U);
}

TEST(Process, SaysWhenItIsUsedUp) {
  const auto kind_after = [](void (*act)()) {
    return outcome_of([act](auto) {
             act();
             told_pulse->guest = true;
             return answer("");
           })
        .answer->kind;
  };
  const auto last = Message::Kind::kLastAnswer;
  EXPECT_EQ(kind_after([] {}), Message::Kind::kAnswer);
  EXPECT_EQ(kind_after([] { (void)open("/dev/null", O_RDONLY); }), last);
  EXPECT_EQ(kind_after([] { (void)!chdir("/"); }), last);
  EXPECT_EQ(kind_after([] { (void)umask(0777); }), last);
  EXPECT_EQ(kind_after([] { (void)alarm(100); }), last);
  EXPECT_EQ(kind_after([] { (void)!fork(); }), last);
  EXPECT_EQ(kind_after([] {
              const rlimit limit{0, 0};
              (void)setrlimit(RLIMIT_FSIZE, &limit);
            }),
            last);
}

TEST(Process, CannotRaiseItsMemoryLimit) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer reserves terabytes of addresses";
  EXPECT_EQ(how([](auto) {
              const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
              return answer(setrlimit(RLIMIT_AS, &none) == 0 ? "raised" : "refused");
            }),
            "answered refused");
}

TEST(Process, AThreadThatCrashesIsToldOfWhoStartedIt) {
  if (kIsSanitized) GTEST_SKIP() << "the sanitizer handles signals itself";
  static const CacheKind kKind{"some", "cache", "", {}};
  const Subject starter{&kKind, "starter", "", nullptr};
  const Subject other{&kKind, "other", "", nullptr};
  const Ended outcome = outcome_of([&](auto) -> Message {
    tell(starter, 3);
    std::thread([] {
      std::this_thread::sleep_for(50ms);
      std::abort();
    }).detach();
    look_at_threads(starter);
    tell(other, 4);
    look_at_threads(other);
    return answer("");
  });
  EXPECT_THAT(outcome.death.how, ContainsRegex("SIGABRT.* in a thread"));
  EXPECT_EQ(outcome.death.thread_of, "some.cache@starter");
}

TEST(InProcess, GivesTheRecordTheDeathOrTheFault) {
  const auto good = in_process<std::vector<std::string>>({}, [] {
    return std::vector<std::string>{"a", "b"};
  });
  EXPECT_EQ(std::get<0>(good).size(), 2U);
  const auto bad =
      in_process<std::vector<std::string>>({}, []() -> std::vector<std::string> { std::_Exit(1); });
  EXPECT_EQ(std::get<Death>(bad).how, "exited with status 1");
  EXPECT_THROW((void)in_process<std::vector<std::string>>(
                   {}, []() -> std::vector<std::string> { throw FileError("no file"); }),
               FileError);
}

}  // namespace
}  // namespace kvo::tools
