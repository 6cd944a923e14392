#include "tools/probe/answers.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "traces/io/test_files.hpp"

namespace kvo::tools {
namespace {

traces::TraceResult<AnswerCounts> answers_in(std::string_view text,
                                             const probe::Shape& shape = {}) {
  return compare_answers(traces::TextSource::in_memory("file", text, kMostAnswerBytes),
                         probe::Tables(shape));
}

TEST(ProbeAnswers, GoldenOnesAgree) {
  const auto counts =
      compare_answers(traces::TextSource::open(KVO_GOLDEN_ANSWERS).value(), probe::Tables());
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->prompts, 40U);
  EXPECT_EQ(counts->right_prompts, 40U);
  EXPECT_EQ(counts->tokens, 1920U);
  EXPECT_EQ(counts->right_tokens, 1920U);
  EXPECT_FALSE(counts->first);
}

TEST(ProbeAnswers, TheFirstWrongTokenIsNamed) {
  const auto counts = answers_in(
      "{\"prompt\":[1,710],\"continuation\":[528,528]}\n\n"
      "{\"prompt\":[1,710],\"continuation\":[528,529,532,0],\"note\":{}}\n");
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->prompts, 2U);
  EXPECT_EQ(counts->right_prompts, 1U);
  EXPECT_EQ(counts->tokens, 6U);
  EXPECT_EQ(counts->right_tokens, 4U);
  ASSERT_TRUE(counts->first);
  EXPECT_EQ(counts->first->line, 3U);
  EXPECT_EQ(counts->first->index, 1U);
  EXPECT_EQ(counts->first->want, 528U);
  EXPECT_EQ(counts->first->got, 529U);
}

TEST(ProbeAnswers, BadLinesAreNamed) {
  const auto error = [](std::string_view line, const probe::Shape& shape = {}) {
    return traces::test::error_text(answers_in(line, shape));
  };
  const std::string no_object = "is no JSON object with prompt and continuation";
  EXPECT_EQ(error("{"), "file:1: {: " + no_object);
  EXPECT_EQ(error("\n[1]"), "file:2: [1]: " + no_object);
  EXPECT_EQ(error(std::string(100'000, '[')),
            "file:1: " + std::string(60, '[') + "...: " + no_object);
  EXPECT_EQ(error("{}"), "file:1: prompt: is missing: a list of tokens");
  EXPECT_EQ(error(R"({"prompt":[1]})"), "file:1: continuation: is missing: a list of tokens");
  EXPECT_EQ(error(R"({"prompt":1})"), "file:1: prompt: 1: is no list of tokens");
  EXPECT_EQ(error(R"({"prompt":[]})"), "file:1: prompt: 0 tokens: 1 to 32768 are allowed");
  EXPECT_EQ(error(R"({"prompt":[1,4416]})"),
            "file:1: prompt[1]: 4416: is no integer from 0 to 4415");
  EXPECT_EQ(error(R"({"prompt":[1,-1]})"), "file:1: prompt[1]: -1: is no integer from 0 to 4415");
  EXPECT_EQ(error(R"({"prompt":[1,2.5]})"),
            "file:1: prompt[1]: 2.5E0: is no integer from 0 to 4415");
  EXPECT_EQ(error(R"({"prompt":[1,99999999999999999999]})"),
            "file:1: prompt[1]: 1E20: is no integer from 0 to 4415");
  EXPECT_EQ(error(R"({"prompt":[1],"continuation":["a"]})"),
            "file:1: continuation[0]: \"a\": is no integer from 0 to 4415");
  EXPECT_EQ(error(R"({"prompt":[300,1],"continuation":[1]})"),
            "file:1: prompt[0]: 300: must be token 1 or 3");
}

TEST(ProbeAnswers, TextsThatAreTooLong) {
  const auto answer = [](std::size_t prompt, std::size_t continuation) {
    std::string first = "1";
    for (std::size_t i = 1; i < prompt; ++i) first += ",2";
    std::string second = "2";
    for (std::size_t i = 1; i < continuation; ++i) second += ",2";
    return traces::test::error_text(
        answers_in(fmt::format(R"({{"prompt":[{}],"continuation":[{}]}})", first, second)));
  };
  EXPECT_EQ(answer(32'000, 768), "no error");
  EXPECT_EQ(answer(32'000, 769),
            "file:1: continuation: 32769 tokens with the prompt: 32768 at most");
  EXPECT_EQ(answer(32'769, 1), "file:1: prompt: 32769 tokens: 1 to 32768 are allowed");
  const std::string enormous(kMostAnswerBytes + 1, ' ');
  EXPECT_NE(traces::test::error_text(answers_in(enormous)).find("1048576"), std::string::npos)
      << traces::test::error_text(answers_in(enormous));
}

TEST(ProbeAnswers, AWindowNeedsASink) {
  const probe::Shape shape{.window = 8};
  const auto error = [&](std::string_view line) {
    return traces::test::error_text(answers_in(line, shape));
  };
  EXPECT_EQ(error(R"({"prompt":[1,300,300,300],"continuation":[300,300,300,300,300]})"),
            "no error");
  EXPECT_EQ(error(R"({"prompt":[1,300,300,300],"continuation":[300,300,300,300,300,300]})"),
            "file:1: position 8: needs token 1 or 3 among the last 8 tokens");
  EXPECT_EQ(error(R"({"prompt":[1,300,300,3],"continuation":[300,300,300,300,300,300]})"),
            "no error");
}

}  // namespace
}  // namespace kvo::tools
