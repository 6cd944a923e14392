// Planned orders: what they draw, and which texts are refused.
#include "properties/campaign/orders.hpp"

#include <array>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "reference/cells/operations.hpp"
#include "traces/log/case_notation.hpp"

namespace kvo {
namespace {

// Words as a script has them.
struct SomeScript {
  std::int64_t cells = 8;
  bool full = false;
  bool begun = false;

  bool begin(std::int64_t size) {
    begun = size > 0;
    return begun;
  }
  [[nodiscard]] std::int64_t half() const { return cells / 2; }
  std::int64_t twice(std::int64_t number) { return 2 * number; }
  std::optional<Op> rows_of(std::int64_t number) {
    return number > 0 ? std::optional(Op::of(cells::ShowRows{})) : std::nullopt;
  }

  static std::span<const OrderWord> words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&SomeScript::cells>("cells"),
        order_word<&SomeScript::full>("full"),
        order_word<&SomeScript::begin>("begin"),
        order_word<&SomeScript::half>("half"),
        order_word<&SomeScript::twice>("twice"),
        order_word<&SomeScript::rows_of>("rows_of"),
    });
    return kWords;
  }
};

traces::TraceResult<Orders> read(const std::string& text) {
  return read_orders("orders.txt", text, cells::kv_kind(), SomeScript::words());
}

// The operations of the first order, as text.
std::vector<std::string> drawn(const std::string& steps, SomeScript script = {},
                               std::uint64_t seed = 1) {
  const Orders orders = read("kind cells.kv\norder one weight 1\n" + steps).value();
  FollowedOrder followed(orders.front());
  Draw draw(seed);
  std::vector<std::string> texts;
  while (const auto op = followed.next({&script, &draw}))
    texts.push_back(traces::operation_text(*op));
  if (!followed.is_complete()) texts.emplace_back("impossible");
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Orders, DrawOperationsWithComputedArguments) {
  EXPECT_EQ(drawn("decode seqs [2 times [half, cells - 1]], n_ubatch twice(cells) / 4\n"
                  "seq_rm seq -half, p0 max(3, cells), p1 min(3, cells) % 2\n"
                  "clear data true\n"),
            (Texts{"decode pos null, seqs [[4,7],[4,7]], n_ubatch 4", "seq_rm seq -4, p0 8, p1 1",
                   "clear data true"}));
}

TEST(Orders, FollowConditionsAndValuesOfTheirOwn) {
  const std::string steps =
      "let n cells\nlet n 1 if full\nseq_pos seq n\nstate if full else rows\nrows if full = 0\n"
      "state";
  EXPECT_EQ(drawn(steps), (Texts{"seq_pos seq 8", "rows", "rows", "state"}));
  EXPECT_EQ(drawn(steps, {.full = true}), (Texts{"seq_pos seq 1", "state", "state"}));
}

TEST(Orders, RepeatSteps) {
  EXPECT_EQ(drawn("for i 2 to 3\n2 times\nseq_pos seq i\nend\nend\nstate"),
            (Texts{"seq_pos seq 2", "seq_pos seq 2", "seq_pos seq 3", "seq_pos seq 3", "state"}));
}

TEST(Orders, EndWhereAStepIsNotPossible) {
  EXPECT_EQ(drawn("state\nneeds cells < 8\nrows"), (Texts{"state", "impossible"}));
  EXPECT_EQ(drawn("begin 0\nrows"), Texts{"impossible"});
  EXPECT_EQ(drawn("rows_of 1\nrows_of 0\nstate"), (Texts{"rows", "impossible"}));
  EXPECT_EQ(drawn("begin 1\nneeds cells <= 8\nneeds cells >= 8\nneeds cells = 8\nneeds cells != 7\n"
                  "needs cells > 7\nrows"),
            Texts{"rows"});
}

TEST(Orders, DrawOneOfSeveralAndNumbersBetweenTwo) {
  std::set<std::string> all;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const Texts texts = drawn("state | seq_pos seq any(1, 3)", {}, seed);
    ASSERT_EQ(texts.size(), 1U);
    EXPECT_EQ(texts, drawn("state | seq_pos seq any(1, 3)", {}, seed)) << "the same each time";
    all.insert(texts.front());
  }
  EXPECT_EQ(all,
            (std::set<std::string>{"state", "seq_pos seq 1", "seq_pos seq 2", "seq_pos seq 3"}));
}

TEST(Orders, OfOtherKindsAreNotRead) {
  const Orders orders = read(
                            "kind cells.meta\norder other weight 1\nnonsense\n"
                            "kind cells.kv\norder its_label weight 3\nstate")
                            .value();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders.front().label(), "its label");
  EXPECT_EQ(orders.front().weight(), 3U);
}

struct Refused {
  std::string steps;
  std::string says;  ///< a part of the message
};

TEST(Orders, RefuseATextWithLineAndWord) {
  for (const Refused& refused : std::vector<Refused>{
           {"nonsense\nstate",
            "3: nonsense: is no operation of cells.kv and no step of its script"},
           {"state\nseq_pos seqs 1\nstate", "4: seqs: is none of the members seq"},
           {"seq_pos seq other\nstate", "3: other: is no integer"},
           {"seq_pos seq cells + other\nstate", "3: other: is no value"},
           {"clear data 7\nstate", "3: 7: is neither true nor false"},
           {"needs other\nstate", "3: other: is no value"},
           {"needs\nstate", "3: needs: is followed by nothing"},
           {"cells\nstate", "3: cells: is no operation of cells.kv and no step"},
           {"begin\nstate", "3: begin: has 1 arguments, not 0"},
           {"begin 1, 2\nstate", "3: begin: has 1 arguments, not 2"},
           {"state |\n", "3: state: has nothing beside `|`"},
           {"state\nbegin 1", "2: order: begins an order that does not end with an operation"},
           {"", "2: order: begins an order that does not end with an operation"},
           {"2 times\nstate", "3: 2: begins steps without `end`"},
           {"0 times\nstate\nend\nstate", "3: 0: begins no loop of 1 to 1000 times"},
           {"state\nend\nstate", "4: end: begins no `order`, and is in none"},
           {"state\norder one weight 1\nstate", "4: order: begins a second order of the name"},
           {"state\norder two weight 0\nstate", "4: order: begins an order whose weight"},
           {"state\norder two\nstate", "is not the expected `weight`"}}) {
    const auto orders = read("kind cells.kv\norder one weight 1\n" + refused.steps);
    ASSERT_FALSE(orders) << refused.steps;
    EXPECT_NE(orders.error().text().find(refused.says), std::string::npos) << refused.steps << "\n"
                                                                           << orders.error().text();
  }
}

// Orders of an unknown kind are never read.
TEST(Orders, OfTheTreeAreOfKnownKinds) {
  std::set<std::string, std::less<>> known;
  for (const CacheKind* kind : contracts().kinds()) known.insert(kind->name());
  for (const traces::EmbeddedFile& file : order_files()) {
    std::istringstream text{std::string(file.text)};
    bool is_of_a_kind = false;
    for (std::string line; std::getline(text, line);) {
      std::istringstream words(line);
      std::string word;
      if (!(words >> word) || word.front() == '#') continue;
      if (word != "kind") {
        EXPECT_TRUE(is_of_a_kind) << file.name << ": " << line;
        continue;
      }
      is_of_a_kind = true;
      while (words >> word) EXPECT_TRUE(known.contains(word)) << file.name << ": " << line;
    }
  }
}

}  // namespace
}  // namespace kvo
