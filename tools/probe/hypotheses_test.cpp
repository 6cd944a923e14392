// Faults that are planted in rows, and what they are called.
#include "tools/probe/hypotheses.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::tools {
namespace {

using probe::Rows;
using probe::Token;

constexpr std::size_t kTokens = 64;  // of an answer
constexpr std::size_t kShared = 112;
constexpr std::size_t kPrompt = 190;

/// A request that shares its first tokens with two others, and whole texts of others.
class Scene {
 public:
  explicit Scene(std::uint64_t seed, std::optional<std::size_t> window = std::nullopt)
      : tables({.window = window}), seed_(seed) {
    const ProbeTokens base = text(1, 256);
    const auto begin_of = [&](std::size_t size) {
      return ProbeTokens(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(size));
    };
    answer_to(base);
    answer_to(text(2, 200));
    answer_to(text(3, 180, begin_of(kShared / 2)));
    answer_to(text(4, 300));
    request = {text(5, kPrompt, begin_of(kShared)), kTokens};
    request.prompt.back() = value(kPrompt - 1, 0, std::bit_width(kPrompt));
  }

  // Sinks where a window needs them, else values that read inside of the text.
  ProbeTokens text(std::uint64_t number, std::size_t size, ProbeTokens begin = {}) const {
    const auto window = tables.shape().window;
    while (begin.size() < size) {
      const std::size_t at = begin.size();
      const bool sink = at == 0 || (window && at % (*window / 4) == 0);
      begin.push_back(sink ? probe::kBegin
                           : value(at, number, static_cast<int>(std::bit_width(at)) - 1));
    }
    return begin;
  }
  [[nodiscard]] Token value(std::size_t at, std::uint64_t number, int token_class) const {
    return probe::kFirstValue + probe::kValues * static_cast<Token>(token_class) +
           static_cast<Token>(probe::mix({seed_, number, at}) % probe::kValues);
  }
  void answer_to(const ProbeTokens& prompt) {
    AnsweredText& text = answered.emplace_back(AnsweredText{answered.size(), prompt, Rows(tables)});
    text.rows.extend(prompt);
    for (const Token token : Rows(text.rows).generate(kTokens)) text.tokens.push_back(token);
    text.rows.extend(std::span(text.tokens).subspan(prompt.size()));
  }

  [[nodiscard]] Rows right(std::size_t count) const {
    Rows rows(tables);
    rows.extend(std::span(request.prompt).first(count));
    return rows;
  }
  // The prompt goes on from token `done`.
  [[nodiscard]] ProbeTokens answer(Rows rows, std::size_t done) const {
    rows.extend(std::span(request.prompt).subspan(done));
    return rows.generate(kTokens);
  }
  [[nodiscard]] JudgedAnswer judged(const ProbeTokens& answer) const {
    return {tables, request, answered.size(), answered.size() + 1, answer, answered};
  }

  probe::Tables tables;
  std::deque<AnsweredText> answered;
  ProbeRequest request;

 private:
  std::uint64_t seed_;
};

/// What an engine with a fault answers, and what the fault is.
struct Answer {
  ProbeTokens tokens;
  std::string what;
};

struct PlantedFault {
  std::string fault;
  Answer (*plant)(const Scene& scene);
};

ProbeTokens with_rows(const Scene& scene, std::size_t done, const auto& plant) {
  Rows rows = scene.right(done);
  plant(rows, Rows(rows));
  return scene.answer(std::move(rows), done);
}

// The first place at which a fault shows.
Answer at_a_place(const Scene& scene, const std::string& what, const auto& plant) {
  const ProbeTokens right = scene.answer(scene.right(1), 1);
  for (std::size_t place = kShared + 8;; ++place) {
    ProbeTokens tokens = with_rows(scene, kPrompt - 1,
                                   [&](Rows& rows, const Rows& old) { plant(rows, old, place); });
    if (tokens != right)
      return {std::move(tokens), fmt::format(fmt::runtime(what), place, place + 1)};
  }
}

const std::vector<PlantedFault> kFaults{
    {"stale tail",
     [](const Scene& scene) -> Answer {
       return {scene.answer(Rows(scene.answered[0].rows, 128), 128),
               "rows 112 to 127 of request 0"};
     }},
    {"foreign prefix",
     [](const Scene& scene) -> Answer {
       return {scene.answer(Rows(scene.answered[3].rows, 64), 64), "rows 1 to 63 of request 3"};
     }},
    {"lost prefix",
     [](const Scene& scene) -> Answer {
       return {with_rows(scene, kShared, [](Rows& rows, const auto&) { rows.evict(1, kShared); }),
               "a cache without rows 1 to 111"};
     }},
    {"shifted by one",
     [](const Scene& scene) -> Answer {
       return {with_rows(scene, kShared,
                         [](Rows& rows, const Rows& old) {
                           for (std::size_t at = 1; at < kShared; ++at)
                             rows.overwrite(at, old, at, {.key_position = at - 1});
                         }),
               "keys of rows 1 to 111, one position too early,"};
     }},
    {"foreign row",
     [](const Scene& scene) {
       return at_a_place(scene, "a row of request 1 at position {}",
                         [&](Rows& rows, const auto&, std::size_t place) {
                           rows.overwrite(place, scene.answered[1].rows, place);
                         });
     }},
    {"swapped neighbours",
     [](const Scene& scene) {
       return at_a_place(scene, "values of rows {} to {}, swapped,",
                         [&](Rows& rows, const Rows& old, std::size_t place) {
                           rows.overwrite(place, old, place + 1, {.keys = false});
                           rows.overwrite(place + 1, old, place, {.keys = false});
                         });
     }},
    {"foreign block",
     [](const Scene& scene) -> Answer {
       return {with_rows(scene, kShared,
                         [&](Rows& rows, const auto&) {
                           for (std::size_t at = 32; at < 64; ++at)
                             rows.overwrite(at, scene.answered[1].rows, at);
                         }),
               "rows 32 to 63 of request 1"};
     }},
    {"lost rows",
     [](const Scene& scene) -> Answer {
       return {with_rows(scene, kPrompt - 1, [](Rows& rows, const auto&) { rows.evict(128, 160); }),
               "a cache without rows 128 to 159"};
     }},
    {"wrong block",
     [](const Scene& scene) -> Answer {
       return {with_rows(scene, kShared,
                         [](Rows& rows, const Rows& old) {
                           for (std::size_t at = 32; at < 64; ++at)
                             rows.overwrite(at, old, at + 32);
                         }),
               "rows 64 to 95 of the text itself in the place of rows 32 to 63"};
     }},
    {"oldest rows evicted",
     [](const Scene& scene) -> Answer {
       return {with_rows(scene, kPrompt - 1, [](Rows& rows, const auto&) { rows.evict(1, 80); }),
               "a cache without the oldest rows 1 to 79"};
     }},
    {"swapped layers",
     [](const Scene& scene) -> Answer {
       return {with_rows(scene, kShared,
                         [](Rows& rows, const Rows& old) {
                           for (std::size_t at = 1; at < kShared; ++at) {
                             rows.overwrite(at, old, at, {.layer = 1, .from_layer = 2});
                             rows.overwrite(at, old, at, {.layer = 2, .from_layer = 1});
                           }
                         }),
               "layers 1 and 2 swapped in rows 1 to 111"};
     }},
    {"swapped heads",
     [](const Scene& scene) -> Answer {
       return {with_rows(scene, kShared,
                         [](Rows& rows, const Rows& old) {
                           for (std::size_t at = 1; at < kShared; ++at) {
                             rows.overwrite(at, old, at, {.layer = 3, .head = 0, .from_head = 3});
                             rows.overwrite(at, old, at, {.layer = 3, .head = 3, .from_head = 0});
                           }
                         }),
               "heads 0 and 3 swapped in layer 3 in rows 1 to 111"};
     }},
};

class Planted : public testing::TestWithParam<PlantedFault> {};

TEST_P(Planted, IsNamed) {
  const PlantedFault& fault = GetParam();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Scene scene(seed);
    const Answer answer = fault.plant(scene);
    ASSERT_NE(answer.tokens, scene.answer(scene.right(1), 1)) << "seed " << seed;
    const Explanation found = explain(scene.judged(answer.tokens));
    EXPECT_EQ(found.fault, fault.fault) << "seed " << seed;
    if (found.alike == 0) EXPECT_EQ(found.what, answer.what) << "seed " << seed;
    EXPECT_GT(found.wrong_tokens, 0U);
  }
}

std::string test_name(const testing::TestParamInfo<PlantedFault>& each) {
  std::string name = each.param.fault;
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, Planted, testing::ValuesIn(kFaults), test_name);

TEST(Hypotheses, RowsInTheMiddleThatWereDeletedAreMoved) {
  Scene scene(1);
  const ProbeTokens& whole = scene.answered[3].tokens;  // X, M, Y: the request is X, Y
  scene.request.prompt.assign(whole.begin(), whole.begin() + 100);
  scene.request.prompt.insert(scene.request.prompt.end(), whole.begin() + 180, whole.begin() + 300);
  Rows rows(scene.answered[3].rows, 299);
  rows.shift_out(100, 180);
  const Explanation found = explain(scene.judged(scene.answer(rows, 219)));
  EXPECT_EQ(found.fault, "moved rows");
  EXPECT_EQ(found.what, "rows 180 to 298 of request 3, moved to 100");
  EXPECT_EQ(found.when, "prefix reuse");
}

TEST(Hypotheses, AWindowThatIsOneShortShowsAtItsEdge) {
  const Scene scene(1, 64);
  const Explanation found = explain(scene.judged(scene.answer(Rows(scene.tables, 63), 0)));
  EXPECT_EQ(found.fault, "window one short");
  EXPECT_EQ(found.what, "a window of 63 tokens");
}

// Some of its set bits are lost, and bits without a row are set.
TEST(Hypotheses, ALostSinkIsNamedByTheBitsThatRemain) {
  const Scene scene(1);
  Rows rows = scene.right(kPrompt - 1);
  Rows lost = rows;
  lost.evict(0, 1);
  ProbeTokens answer;
  for (Token token = scene.request.prompt.back(); answer.size() < kTokens;) {
    rows.extend({&token, 1});
    lost.extend({&token, 1});
    const auto noise = static_cast<Token>(probe::mix({answer.size()}) % probe::kValues);
    const Token value = (rows.next() - probe::kFirstValue) ^ (noise & ~lost.certain_bits());
    token = probe::kFirstValue + value;
    answer.push_back(token);
  }
  const Explanation found = explain(scene.judged(answer));
  EXPECT_EQ(found.fault, "lost sink");
}

TEST(Hypotheses, AnyOtherAnswerIsOfNoFault) {
  const Scene scene(1);
  ProbeTokens answer = scene.answer(scene.right(1), 1);
  for (Token& token : answer)
    token = probe::kFirstValue + ((token - probe::kFirstValue) ^
                                  static_cast<Token>(probe::mix({token}) % probe::kValues));
  const Explanation found = explain(scene.judged(answer));
  EXPECT_EQ(found.fault, "") << found.what;
  EXPECT_GT(found.wrong_tokens, kTokens / 2);
}

TEST(Hypotheses, EachFaultWouldShow) {
  for (const auto window : {std::optional<std::size_t>(), std::optional<std::size_t>(64)}) {
    const Scene scene(1, window);
    const ProbeTokens right = scene.answer(scene.right(1), 1);
    const auto shown = faults_that_show(scene.judged(right));
    const auto names = probe_faults(window.has_value());
    ASSERT_EQ(shown.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
      EXPECT_EQ(shown[i], names[i].name != "moved rows") << names[i].name;
  }
}

TEST(Hypotheses, NothingIsReusedOfNoOtherText) {
  Scene scene(1);
  scene.answered.clear();
  const auto shown = faults_that_show(scene.judged(scene.answer(scene.right(1), 1)));
  const auto names = probe_faults(false);
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(shown[i], !names[i].of_reuse) << names[i].name;
}

}  // namespace
}  // namespace kvo::tools
