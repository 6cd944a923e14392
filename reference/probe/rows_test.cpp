// The rules of the probe, each beside a second, slower way to say the same.
#include "reference/probe/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace kvo::probe {
namespace {

/// Rows that are searched by their position.
struct SlowRows {
  struct Row {
    std::size_t position;
    Token token;
    PerLayer<PerHead<Bit>> sign;
    PerLayer<PerHead<Bits>> bits;
  };

  // Only one row can have a position.
  [[nodiscard]] const Row* at(std::size_t position) const {
    const auto found = std::ranges::find(rows, position, &Row::position);
    return found == rows.end() ? nullptr : &*found;
  }
  [[nodiscard]] Bit read(std::size_t layer, std::size_t head, std::size_t bit) const {
    const Row& last = rows.back();
    const Meaning& meaning = (*tables)[last.token];
    const std::size_t distance = meaning.look_back[head];
    if (!meaning.is_value || distance > last.position || (window && distance >= *window)) return 0;
    const Row* row = at(last.position - distance);
    if (row == nullptr) return 0;
    return static_cast<Bit>(row->sign[layer][head] * row->bits[layer][head][bit]);
  }
  void append(Token token) {
    const Meaning& meaning = (*tables)[token];
    rows.push_back({next_position++, token, meaning.sign, {}});
    for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
      for (std::size_t head = 0; head < Shape::kHeads; ++head)
        for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
          rows.back().bits[layer][head][bit] =
              layer == 0 ? meaning.bits[head][bit]
                         : read(layer - 1, (head + 1) % Shape::kHeads, bit);
  }
  [[nodiscard]] Token next() const {
    Token token = kFirstValue + kValues * (*tables)[rows.back().token].token_class;
    for (std::size_t head = 0; head < Shape::kHeads; ++head)
      for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
        if (read(Shape::kLayers - 1, head, bit) > 0) token += 1U << (2 * head + bit);
    return token;
  }
  void crop(std::size_t count) {
    std::erase_if(rows, [count](const Row& row) { return row.position >= count; });
    next_position = std::min(next_position, count);
  }
  void evict(std::size_t first, std::size_t last) {
    std::erase_if(rows,
                  [&](const Row& row) { return row.position >= first && row.position < last; });
  }
  void shift_out(std::size_t first, std::size_t last) {
    evict(first, last);
    for (Row& row : rows)
      if (row.position >= last) row.position -= last - first;
    next_position -= last - first;
  }

  const Tables* tables;
  std::optional<std::size_t> window = std::nullopt;
  std::vector<Row> rows = {};
  std::size_t next_position = 0;
};

/// Draws from the chain of the tables.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t bound) { return mix({seed_, ++count_}) % bound; }
  // A value token for `position`, whose reads stay inside of the text or leave it by few rows.
  Token value_token(std::size_t position) {
    std::size_t classes = 2;
    while ((std::size_t{1} << classes) <= position) ++classes;
    return static_cast<Token>(kFirstValue + kValues * below(classes) + below(kValues));
  }
  std::vector<Token> text(std::size_t length) {
    std::vector<Token> tokens{kBegin};
    while (tokens.size() < length) {
      const std::size_t kind = below(20);
      tokens.push_back(kind == 0   ? kSink
                       : kind == 1 ? kFirstByte + static_cast<Token>(below(200))
                                   : value_token(tokens.size()));
    }
    return tokens;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

TEST(ProbeTables, KnownNumbers) {
  EXPECT_EQ(mix({0}), 0x6E789E6AA1B965F4U) << "the second number of splitmix64 from 0";
  const Tables tables;
  const Meaning& first = tables[kFirstValue];
  EXPECT_EQ(first.look_back, (PerHead<std::uint32_t>{0, 0, 0, 0})) << "class 0 reads itself";
  EXPECT_FALSE(tables[kBegin].is_value);
  EXPECT_FALSE(tables[kFirstPad].is_value);
  for (Token token = kFirstValue; token < kFirstPad; ++token)
    for (const std::uint32_t distance : tables[token].look_back)
      EXPECT_LT(distance, 1U << tables[token].token_class);
}

TEST(ProbeTables, BitsTellTheValuesOfAClassApart) {
  const Tables tables;
  for (std::uint32_t token_class = 0; token_class < kClasses; ++token_class) {
    std::vector<PerHead<Bits>> seen;
    for (std::uint32_t value = 0; value < kValues; ++value)
      seen.push_back(tables[kFirstValue + kValues * token_class + value].bits);
    std::ranges::sort(seen);
    EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
  }
}

TEST(ProbeTables, AWindowLimitsHowFarATokenReads) {
  const Tables tables({.window = 100});
  for (Token token = kFirstValue; token < kFirstPad; ++token)
    for (const std::uint32_t distance : tables[token].look_back) EXPECT_LT(distance, 100U);
}

TEST(ProbeRows, DoWhatTheSlowOnesDo) {
  const Tables tables;
  std::size_t uncertain = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Draws draws(seed);
    const auto window = seed % 4 == 0 ? std::optional<std::size_t>(20) : std::nullopt;
    Rows rows(tables, window);
    SlowRows slow{&tables, window};
    for (const Token token : draws.text(30)) {
      rows.extend({&token, 1});
      slow.append(token);
    }
    for (int step = 0; step < 60; ++step) {
      const std::size_t first = 1 + draws.below(rows.size());
      const std::size_t last = std::min(rows.size(), first + draws.below(6));
      const std::size_t operation = draws.below(12);
      if (operation == 0) {
        rows.crop(first);
        slow.crop(first);
      } else if (operation == 1 && first < last) {
        rows.shift_out(first, last);
        slow.shift_out(first, last);
      } else if (operation == 2 && first < last) {
        rows.evict(first, last);
        slow.evict(first, last);
      }
      const Token token = draws.below(4) == 0 ? rows.next() : draws.value_token(rows.size());
      rows.extend({&token, 1});
      slow.append(token);
      ASSERT_EQ(rows.size(), slow.next_position);
      // The slow rows need no sink.
      const Token different = (rows.next() - kFirstValue) ^ (slow.next() - kFirstValue);
      ASSERT_EQ(different & (rows.certain_bits() | ~(kValues - 1)), 0U)
          << "seed " << seed << " step " << step;
      uncertain += rows.certain_bits() == kValues - 1 ? 0 : 1;
      EXPECT_TRUE(window || rows.certain_bits() == kValues - 1);
    }
  }
  EXPECT_LT(uncertain, 300U) << "of 600 with a window";
}

TEST(ProbeRows, ExtendInOneCallOrTokenByToken) {
  const Tables tables;
  const std::vector<Token> text = Draws(7).text(500);
  Rows whole(tables);
  whole.extend(text);
  Rows single(tables);
  for (const Token token : text) single.extend({&token, 1});
  EXPECT_EQ(whole.generate(50), single.generate(50));
}

TEST(ProbeRows, ACroppedTextIsAsGoodAsAFreshOne) {
  const Tables tables;
  const std::vector<Token> text = Draws(8).text(300);
  Rows cropped(tables);
  cropped.extend(text);
  cropped.crop(200);
  Rows fresh(tables);
  fresh.extend(std::span(text).first(200));
  EXPECT_EQ(cropped.size(), 200U);
  EXPECT_EQ(cropped.generate(50), fresh.generate(50));
}

TEST(ProbeRows, AForkDoesNotChangeItsOrigin) {
  const Tables tables;
  Rows origin(tables);
  origin.extend(Draws(9).text(300));
  Rows fork = origin;
  Rows second = origin;
  fork.extend(Draws(10).text(20));
  fork.evict(1, 250);
  EXPECT_EQ(origin.size(), 300U);
  EXPECT_EQ(origin.generate(50), second.generate(50));
}

TEST(ProbeRows, AWindowHidesOlderRows) {
  // A token that looks back 19 rows reads in a window of 20, and not in one of 19.
  const Tables tables;
  Token token = kFirstValue;
  while (std::ranges::count(tables[token].look_back, 19U) == 0) ++token;
  std::vector<Token> text = Draws(11).text(100);
  text.push_back(token);
  const auto cells = [&](std::optional<std::size_t> window) {
    Rows rows(tables, window);
    rows.extend(std::span(text).first(100));
    Coverage coverage;
    rows.extend(std::span(text).last(1), &coverage);
    std::size_t found = 0;
    for (std::size_t head = 0; head < Shape::kHeads; ++head)
      found += coverage.has(0, head, 100 - 19) ? 1 : 0;
    return found;
  };
  text[100 - 19] = kFirstValue;  // holds something
  EXPECT_GT(cells(20), 0U);
  EXPECT_EQ(cells(19), 0U);
  EXPECT_EQ(cells(std::nullopt), cells(20));
}

TEST(ProbeRows, CoverageCountsTheCellsThatATokenReads) {
  const Tables tables;
  const Token token = kFirstValue + kValues * 4 + 200;
  Rows rows(tables);
  rows.extend(std::vector<Token>(100, kFirstValue + kValues));
  Coverage coverage;
  rows.extend({&token, 1}, &coverage);
  EXPECT_EQ(coverage.cells(), Shape::kLayers * Shape::kHeads);
  for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
    for (std::size_t head = 0; head < Shape::kHeads; ++head)
      for (std::size_t position = 0; position < rows.size(); ++position)
        EXPECT_EQ(coverage.has(layer, head, position),
                  position + tables[token].look_back[head] == 100);
}

TEST(ProbeRows, RowsThatHoldNothingAreNotCovered) {
  const Tables tables;
  const Token reads_itself = kFirstValue;
  const Token reads_back = kFirstValue + kValues * 2;
  Rows rows(tables);
  rows.extend(std::vector<Token>{kBegin, kSink, kFirstByte, kSink, kSink, kSink});
  Coverage coverage;
  rows.extend({&reads_itself, 1}, &coverage);
  EXPECT_EQ(coverage.cells(), Shape::kLayers * Shape::kHeads) << "its own row";
  rows.evict(0, rows.size());
  Coverage none;
  const auto& distances = tables[reads_back].look_back;
  rows.extend({&reads_back, 1}, &none);
  EXPECT_EQ(none.cells(),
            Shape::kLayers * static_cast<std::size_t>(std::ranges::count(distances, 0U)));
}

// ---- faults ----

// Texts in which no token reads a void row, so that every cell but those of row 0 holds a bit.
std::vector<Token> full_text(std::size_t length) {
  std::vector<Token> text{kBegin};
  while (text.size() < length)
    text.push_back(kFirstValue + static_cast<Token>(7 * text.size() % kValues));
  return text;
}

TEST(ProbeRows, AFaultInTheLastLayerShowsInTheTokensThatReadItAlone) {
  const Tables tables;
  const std::vector<Token> prompt = full_text(32);
  Rows rows(tables);
  rows.extend(prompt);
  constexpr std::size_t kLast = Shape::kLayers - 1;
  std::size_t changed = 0;
  for (std::size_t head = 0; head < Shape::kHeads; ++head)
    for (std::size_t position = 1; position < 32; ++position) {
      // A row whose key has the other sign turns both bits that are read.
      std::size_t source = 1;
      while (tables[prompt[source]].sign[kLast][head] == tables[prompt[position]].sign[kLast][head])
        ++source;
      Rows right = rows;
      Rows faulty = rows;
      faulty.overwrite(position, rows, source, {.layer = kLast, .head = head, .values = false});
      Draws draws(position);
      for (int step = 0; step < 40; ++step) {
        const Token token = kFirstValue + kValues * 6 + static_cast<Token>(draws.below(kValues));
        Coverage coverage;
        right.extend({&token, 1}, &coverage);
        faulty.extend({&token, 1});
        EXPECT_EQ(right.next() != faulty.next(), coverage.has(kLast, head, position))
            << "head " << head << " position " << position << " step " << step;
        changed += right.next() != faulty.next() ? 1 : 0;
      }
    }
  EXPECT_GT(changed, 40U);
}

TEST(ProbeRows, AFaultInTheFirstLayerSpreadsThroughLaterRows) {
  const Tables tables;
  const std::vector<Token> prompt = full_text(64);
  Rows right(tables);
  right.extend(prompt);
  Rows faulty = right;
  Rows other(tables);
  other.extend(Draws(12).text(64));
  for (std::size_t position = 1; position < 64; ++position)
    faulty.overwrite(position, other, position, {.layer = 0});
  EXPECT_EQ(right.next(), faulty.next()) << "computed before the fault";
  const Token token = kFirstValue + kValues * 5 + 3;
  right.extend({&token, 1});
  faulty.extend({&token, 1});
  EXPECT_EQ(right.next(), faulty.next()) << "one token reads only one layer below";
  EXPECT_NE(right.generate(40), faulty.generate(40));
}

TEST(ProbeRows, AWholeRowOfItselfIsNoFault) {
  const Tables tables;
  Rows rows(tables);
  rows.extend(Draws(13).text(100));
  Rows same = rows;
  for (std::size_t position = 0; position < 100; ++position)
    same.overwrite(position, rows, position);
  EXPECT_EQ(rows.generate(60), same.generate(60));
}

TEST(ProbeRows, ARowIsFoundAtThePositionInItsKey) {
  const Tables tables;
  Rows right(tables);
  right.extend(full_text(64));
  const auto answer = [](Rows rows) {
    const Token token = kFirstValue + kValues * 6;
    rows.extend({&token, 1});
    return rows.generate(40);
  };
  Rows late = right;
  for (std::size_t at = 1; at < 64; ++at) late.overwrite(at, right, at, {.key_position = at + 1});
  EXPECT_NE(answer(late), answer(right));
  // They follow when rows before them are removed, and end with their row.
  Rows shifted = late;
  shifted.shift_out(10, 11);
  Rows again = right;
  again.shift_out(10, 11);
  const Rows whole = again;
  for (std::size_t at = 1; at < 63; ++at) again.overwrite(at, whole, at, {.key_position = at + 1});
  EXPECT_EQ(answer(shifted), answer(again));
  late.evict(1, 64);
  Rows lost = right;
  lost.evict(1, 64);
  EXPECT_EQ(answer(late), answer(lost));
  // A row that gets a key of its position is found there alone.
  Rows back = shifted;
  for (std::size_t at = 1; at < 63; ++at) back.overwrite(at, whole, at);
  EXPECT_EQ(answer(back), answer(whole));
  EXPECT_EQ(answer(Rows(right, 50)), [&] {
    Rows cropped = right;
    cropped.crop(50);
    return answer(cropped);
  }());
}

}  // namespace
}  // namespace kvo::probe
