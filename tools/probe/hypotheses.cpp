#include "tools/probe/hypotheses.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace kvo::tools {
namespace {

using probe::Part;
using probe::Rows;
using probe::Shape;
using probe::Token;

constexpr std::array<std::size_t, 5> kBlockSizes{16, 32, 64, 128, 256};
constexpr std::size_t kLeastBlock = kBlockSizes.front();

std::string rows_text(std::size_t first, std::size_t last) {
  return fmt::format("rows {} to {}", first, last - 1);
}

std::string of_request(std::size_t request) {
  return fmt::format("of request {}", request);
}

// In which bits two tokens differ.
Token different_bits(Token one, Token other) {
  return (one - probe::kFirstValue) ^ (other - probe::kFirstValue);
}

/// Applies faults to the rows of one request, and compares what follows with its answer.
class FaultSearch {
 public:
  enum class Purpose : std::uint8_t { kExplains, kShows };

  FaultSearch(const JudgedAnswer& judged, Purpose purpose)
      : judged_(judged),
        shows_(purpose == Purpose::kShows),
        size_(judged.request.prompt.size()),
        text_(judged.request.prompt),
        right_(judged.tables) {
    text_.insert(text_.end(), judged.answer.begin(), judged.answer.end());
    right_.extend(std::span(text_).first(size_));
    for (const Token token : judged.answer) {
      next_.push_back(right_.next());
      right_.extend({&token, 1});
    }
    const auto wrong = std::ranges::mismatch(next_, judged.answer).in1 - next_.begin();
    focus_ = shows_ ? 0 : static_cast<std::size_t>(wrong);
    find_others();
    find_culprits();
    find_moments();
  }

  [[nodiscard]] Explanation explanation() {
    Explanation found;
    for (std::size_t i = 0; i < next_.size(); ++i)
      found.wrong_tokens += next_[i] == judged_.answer[i] ? 0 : 1;
    for (const Sort& sort : kSorts) {
      one_is_enough_ = !found.fault.empty();
      try_sort(sort);
      if (fitting_.empty()) continue;
      if (one_is_enough_) {
        found.also.emplace_back(sort.fault.name);
        continue;
      }
      found.fault = sort.fault.name;
      found.what = fitting_.front();
      found.when = when_;
      found.alike = fitting_.size() - 1;
    }
    return found;
  }

  [[nodiscard]] std::vector<bool> shown() {
    std::vector<bool> all;
    for (const Sort& sort : kSorts)
      if (is_possible(sort, judged_.tables.shape().window.has_value())) {
        try_sort(sort);
        all.push_back(shown_);
      }
    return all;
  }

  static std::vector<ProbeFault> names(bool window) {
    std::vector<ProbeFault> all;
    for (const Sort& sort : kSorts)
      if (is_possible(sort, window)) all.push_back(sort.fault);
    return all;
  }

 private:
  struct Sort {
    ProbeFault fault;
    void (FaultSearch::*each)();
  };
  static const std::array<Sort, 15> kSorts;

  /// Another text, and how many tokens both begin with.
  struct Other {
    const AnsweredText* text;
    std::size_t common;
  };
  /// The cache has the fault from token `at` of the text on.
  struct Moment {
    std::size_t at;
    std::string_view when;
  };

  static bool is_possible(const Sort& sort, bool window) {
    return window || sort.each != &FaultSearch::short_window;
  }

  // ---- What the faults are about ----

  void find_others() {
    for (auto other = judged_.answered.rbegin(); other != judged_.answered.rend(); ++other)
      if (other->request != judged_.number && other->request < judged_.end)
        others_.push_back({&*other, common_prefix(judged_.request.prompt, other->tokens)});
    // Nearest first, then the latest.
    std::ranges::stable_sort(others_, std::ranges::greater(), &Other::common);
    if (!others_.empty()) reused_ = std::min(others_.front().common, size_ - 1);
  }

  // The rows that wrong bits of a token depend on: one in each layer.
  void find_culprits() {
    const Token wrong =
        shows_ ? probe::kValues - 1 : different_bits(next_[focus_], text_[size_ + focus_]);
    std::set<std::size_t> places;
    for (std::size_t head = 0; head < Shape::kHeads; ++head) {
      if ((wrong >> (Shape::kBits * head) & ((1U << Shape::kBits) - 1)) == 0) continue;
      std::size_t place = size_ + focus_ - 1;
      for (std::size_t layer = 0; layer < Shape::kLayers; ++layer) {
        const std::size_t distance =
            judged_.tables[text_[place]].look_back[(head + layer) % Shape::kHeads];
        if (distance > place) break;
        place -= distance;
        if (place > 0) places.insert(place);
      }
    }
    culprits_.assign(places.begin(), places.end());
  }

  // Rows are reused in blocks or one by one. The last token of a prompt is always computed.
  void find_moments() {
    const auto add = [&](std::size_t at, std::string_view when) {
      if (at > 1 && std::ranges::find(moments_, at, &Moment::at) == moments_.end())
        moments_.push_back({at, when});
    };
    add(reused_ / kLeastBlock * kLeastBlock, "prefix reuse");
    add(reused_, "prefix reuse");
    add(size_ - 1, "before the last token of the prompt");
    add(size_ + focus_, "while it answers");
  }

  [[nodiscard]] Rows right(std::size_t count) const { return {right_, count}; }

  // ---- Trying ----

  void try_sort(const Sort& sort) {
    fitting_.clear();
    shown_ = false;
    tries_ = 0;
    steps_ = 0;
    (this->*sort.each)();
  }

  // A budget of steps, not of time: results are the same on each machine.
  [[nodiscard]] bool enough() const {
    constexpr std::size_t kMostTries = 6;
    constexpr std::size_t kMostSteps = std::size_t{1} << 18U;
    constexpr std::size_t kMostLater = std::size_t{1} << 15U;
    if (shows_) return shown_ || tries_ >= kMostTries;
    if (one_is_enough_) return !fitting_.empty() || steps_ >= kMostLater;
    return steps_ >= (fitting_.empty() ? kMostSteps : kMostLater);
  }

  // How the tokens of the answer follow from rows.
  struct Fit {
    std::size_t certain = 0;     // bits
    std::size_t different = 0;   // certain bits that differ
    std::size_t surprising = 0;  // bits set, though uncertain and not set without the fault
    bool at_focus = false;       // certain bits are wrong there without the fault
  };

  // The text goes on from token `done`, until the first difference if `exact`.
  Fit fit_of(Rows& rows, std::size_t done, bool exact) {
    constexpr std::size_t kCopiedAtOnce = 128;
    ++tries_;
    steps_ += text_.size() - done + rows.size() / kCopiedAtOnce;
    const std::span text(text_);
    if (done < size_) rows.extend(text.subspan(done, size_ - done));
    Fit fit;
    for (std::size_t i = std::max(done, size_) - size_; i < next_.size(); ++i) {
      const Token token = judged_.answer[i];
      const Token certain = rows.certain_bits();
      const Token different =
          different_bits(rows.next(), token) & (certain | ~(probe::kValues - 1));
      const Token without = different_bits(next_[i], token);
      fit.certain += static_cast<std::size_t>(std::popcount(certain));
      fit.different += static_cast<std::size_t>(std::popcount(different));
      fit.surprising += static_cast<std::size_t>(
          std::popcount(without & ~certain & (token - probe::kFirstValue) & (probe::kValues - 1)));
      fit.at_focus |= i == focus_ && (without & certain) != 0;
      if (exact && different != 0) break;
      rows.extend({&token, 1});
    }
    return fit;
  }

  // `what` makes words of the fault.
  template <class What>
  void tell(Rows rows, std::size_t done, std::string_view when, const What& what) {
    constexpr std::size_t kLeastBits = 4;  // of each token
    const Fit fit = fit_of(rows, done, true);
    if (shows_) {
      shown_ = fit.different > 0;
    } else if (fit.different == 0 && fit.at_focus && fit.certain >= kLeastBits * next_.size()) {
      fits(what(), when);
    }
  }
  void fits(const std::string& what, std::string_view when) {
    if (fitting_.empty()) when_ = when;
    if (std::ranges::find(fitting_, what) == fitting_.end()) fitting_.push_back(what);
  }

  // Rows are right until a moment after `after` tokens. Then `plant` puts the fault in.
  template <class Plant, class What>
  void at_moments(std::size_t after, const Plant& plant, const What& what) {
    std::vector<Moment> moments = moments_;
    if (std::ranges::find(moments, after, &Moment::at) == moments.end())
      moments.push_back({after, "as it is written"});
    for (const Moment& moment : moments) {
      if (moment.at < after || enough()) continue;
      Rows rows = right(moment.at);
      plant(rows);
      tell(std::move(rows), moment.at, moment.when, what);
    }
  }

  // The blocks of all sizes that have culprits, without row 0.
  template <class Visit>
  void each_block(const Visit& visit) {
    for (const std::size_t block : kBlockSizes) {
      std::set<std::size_t> begins;
      for (const std::size_t place : culprits_) begins.insert(place / block * block);
      for (const std::size_t begin : begins)
        if (!enough() && begin + block <= size_) visit(begin, block);
    }
  }

  // Where reuse may end: whole blocks that reach beyond `first`, and all that there is.
  [[nodiscard]] std::vector<std::size_t> ends_after(std::size_t first, std::size_t most) const {
    std::vector<std::size_t> ends;
    for (const std::size_t block : kBlockSizes) ends.push_back((first / block + 1) * block);
    ends.insert(ends.end(), {first + 1, most, most - 1});
    for (std::size_t end = (first / kLeastBlock + 1) * kLeastBlock; end < most; end += kLeastBlock)
      ends.push_back(end);
    std::erase_if(ends, [&](std::size_t end) { return end <= first || end > most; });
    return ends;
  }

  // ---- Rows of other texts ----

  void tails(bool of_shared_text) {
    for (const Other& other : others_) {
      if ((other.common >= kLeastBlock) != of_shared_text) continue;
      for (const std::size_t end :
           ends_after(other.common, std::min(size_, other.text->tokens.size()))) {
        if (enough()) return;
        if (!of_shared_text && end < kLeastBlock) continue;
        tell(Rows(other.text->rows, end), end, "prefix reuse", [&] {
          return fmt::format("{} {}", rows_text(other.common, end),
                             of_request(other.text->request));
        });
      }
    }
  }
  void stale_tail() { tails(true); }
  void foreign_prefix() { tails(false); }

  // Rows after a part that this prompt lacks, moved forward: they have seen that part.
  void moved_rows() {
    constexpr std::size_t kLeast = 8;
    for (const Other& other : others_) {
      if (other.common + kLeast >= size_ || other.common >= other.text->tokens.size()) continue;
      const auto rest = std::span(text_).first(size_).subspan(other.common);
      const std::span theirs(other.text->tokens);
      const auto found = std::search(theirs.begin() + static_cast<std::ptrdiff_t>(other.common) + 1,
                                     theirs.end(), rest.begin(), rest.begin() + kLeast);
      if (found == theirs.end() || enough()) continue;
      const auto at = static_cast<std::size_t>(found - theirs.begin());
      const std::size_t same = std::min(common_prefix(rest, theirs.subspan(at)), rest.size() - 1);
      Rows rows(other.text->rows, at + same);
      rows.shift_out(other.common, at);
      tell(std::move(rows), other.common + same, "prefix reuse", [&] {
        return fmt::format("{} {}, moved to {}", rows_text(at, at + same),
                           of_request(other.text->request), other.common);
      });
    }
  }

  void foreign_row() {
    for (const Other& other : others_)
      for (const std::size_t place : culprits_) {
        if (place < other.common || place >= other.text->tokens.size() || enough()) continue;
        at_moments(
            place + 1, [&](Rows& rows) { rows.overwrite(place, other.text->rows, place); },
            [&] {
              return fmt::format("a row {} at position {}", of_request(other.text->request), place);
            });
      }
  }

  // `count` rows of a text replace rows that begin at `place`. `turned`: their keys, too, get the
  // positions of the place.
  template <class What>
  void block(const Rows& from, std::size_t source, std::size_t place, std::size_t count,
             bool turned, const What& what) {
    at_moments(
        place + count,
        [&](Rows& rows) {
          for (std::size_t i = place == 0 ? 1 : 0; i < count; ++i)
            rows.overwrite(place + i, from, source + i,
                           {.key_position = turned ? place + i : source + i});
        },
        what);
  }

  void foreign_block() {
    for (const Other& other : others_)
      each_block([&](std::size_t begin, std::size_t count) {
        if (begin + count <= other.common || begin + count > other.text->tokens.size()) return;
        block(other.text->rows, begin, begin, count, true, [&] {
          return fmt::format("{} {}", rows_text(begin, begin + count),
                             of_request(other.text->request));
        });
      });
  }

  // ---- Rows of the text itself ----

  // The begin that the text shares with others, in whole blocks or all of it.
  template <class Visit>
  void each_prefix(const Visit& visit) {
    std::set<std::size_t, std::greater<>> ends;
    for (const Other& other : others_)
      for (const std::size_t block : {std::size_t{1}, std::size_t{16}, std::size_t{32},
                                      std::size_t{64}, std::size_t{128}, std::size_t{256}})
        ends.insert(std::min(other.common, size_ - 1) / block * block);
    for (const std::size_t end : ends)
      if (end > 2 && !enough()) visit(end);
  }

  void lost_prefix() {
    each_prefix([&](std::size_t end) {
      Rows rows = right(end);
      rows.evict(1, end);
      tell(std::move(rows), end, "prefix reuse",
           [&] { return fmt::format("a cache without {}", rows_text(1, end)); });
    });
  }

  void shifted_by_one() {
    each_prefix([&](std::size_t end) {
      Rows gap = right(end);
      gap.shift_out(1, 2);
      tell(std::move(gap), end, "prefix reuse",
           [&] { return fmt::format("{} at positions 1 to {}", rows_text(2, end), end - 2); });
      for (const bool late : {false, true}) {
        Rows rows = right(end);
        for (std::size_t at = 1; at < end; ++at)
          rows.overwrite(at, right_, at, {.key_position = late ? at + 1 : at - 1});
        tell(std::move(rows), end, "prefix reuse", [&] {
          return fmt::format("keys of {}, one position too {},", rows_text(1, end),
                             late ? "late" : "early");
        });
      }
    });
  }

  void short_window() {
    const auto window = judged_.tables.shape().window;
    if (!window) return;
    tell(Rows(judged_.tables, *window - 1), 0, "always",
         [&] { return fmt::format("a window of {} tokens", *window - 1); });
  }

  // `swap` gets the two sides of the swap; keys, values, or both.
  template <class Swap>
  void swapped(std::string_view of, const Swap& swap) {
    for (std::size_t one = 0; one < Shape::kHeads; ++one)
      for (std::size_t other = one + 1; other < Shape::kHeads; ++other)
        for (const auto& [keys, values, words] :
             {std::tuple(true, true, ""), {true, false, "keys of "}, {false, true, "values of "}})
          swap(one, other, Part{.keys = keys, .values = values},
               fmt::format("{}{} {} and {} swapped", words, of, one, other));
  }
  void swap_all(const Part& first, const Part& second, const std::string& what) {
    for (const Moment& moment : moments_) {
      if (enough()) return;
      Rows rows = right(moment.at);
      for (std::size_t at = 1; at < moment.at; ++at) {
        rows.overwrite(at, right_, at, first);
        rows.overwrite(at, right_, at, second);
      }
      tell(std::move(rows), moment.at, moment.when,
           [&] { return fmt::format("{} in {}", what, rows_text(1, moment.at)); });
    }
  }
  void swapped_heads() {
    std::vector<std::optional<std::size_t>> layers{std::nullopt};
    for (std::size_t layer = 0; layer < Shape::kLayers; ++layer) layers.emplace_back(layer);
    for (const auto layer : layers)
      swapped("heads", [&](std::size_t a, std::size_t b, Part part, const std::string& what) {
        part.layer = layer;
        Part back = part;
        part.head = back.from_head = a;
        part.from_head = back.head = b;
        swap_all(part, back, layer ? fmt::format("{} in layer {}", what, *layer) : what);
      });
  }
  void swapped_layers() {
    static_assert(Shape::kLayers == Shape::kHeads);
    swapped("layers", [&](std::size_t a, std::size_t b, Part part, const std::string& what) {
      Part back = part;
      part.layer = back.from_layer = a;
      part.from_layer = back.layer = b;
      swap_all(part, back, what);
    });
  }

  void swapped_neighbours() {
    for (const std::size_t culprit : culprits_)
      for (const std::size_t first : {culprit - 1, culprit})
        for (const auto& [keys, words] : {std::pair(false, "values of "), {true, ""}})
          if (first > 0 && first + 2 <= size_ && !enough())
            at_moments(
                first + 2,
                [&, both = keys](Rows& rows) {
                  rows.overwrite(first, right_, first + 1, {.keys = both});
                  rows.overwrite(first + 1, right_, first, {.keys = both});
                },
                [&, of = words] {
                  return fmt::format("{}{}, swapped,", of, rows_text(first, first + 2));
                });
  }

  // As a table of blocks gives it, or with keys that are right for the place.
  void wrong_block() {
    each_block([&](std::size_t begin, std::size_t count) {
      for (std::size_t source = 0; source + count <= size_; source += count)
        for (const bool turned : {false, true})
          if (source != begin && !enough())
            block(right_, source, begin, count, turned, [&] {
              return fmt::format("{} of the text itself in the place of {}",
                                 rows_text(source, source + count),
                                 rows_text(begin, begin + count));
            });
    });
    for (const Other& other : others_)
      each_block([&](std::size_t begin, std::size_t count) {
        for (std::size_t source = 0; source + count <= other.text->tokens.size(); source += count)
          if (source != begin && !enough())
            block(other.text->rows, source, begin, count, false, [&] {
              return fmt::format("{} {} in the place of {}", rows_text(source, source + count),
                                 of_request(other.text->request), rows_text(begin, begin + count));
            });
      });
  }

  // The oldest rows are lost at once, or one by one as new ones come. The sink stays.
  void oldest_rows() {
    constexpr std::size_t kMostLengths = 64;
    const std::size_t step = (size_ / kMostLengths / kLeastBlock + 1) * kLeastBlock;
    for (std::size_t count = step; count < size_; count += step) {
      at_moments(
          count + 1, [&](Rows& rows) { rows.evict(1, count); },
          [&] { return fmt::format("a cache without the oldest {}", rows_text(1, count)); });
      if (enough()) return;
      Rows rows(judged_.tables);
      for (std::size_t at = 0; at < size_; ++at) {
        rows.extend(std::span(text_).subspan(at, 1));
        if (at > count) rows.evict(at - count, at - count + 1);
      }
      tell(std::move(rows), size_, "always",
           [&] { return fmt::format("a cache of the last {} rows", count); });
    }
  }

  void lost_rows() {
    const auto lose = [&](std::size_t begin, std::size_t end) {
      at_moments(
          end, [&](Rows& rows) { rows.evict(begin, end); },
          [&] {
            return begin + 1 == end ? fmt::format("a cache without row {}", begin)
                                    : fmt::format("a cache without {}", rows_text(begin, end));
          });
    };
    for (const std::size_t place : culprits_)
      if (!enough()) lose(place, place + 1);
    each_block([&](std::size_t begin, std::size_t count) {
      lose(std::max<std::size_t>(begin, 1), begin + count);
    });
  }

  // Then other rows are read, as noise: cleared bits stay, some set bits are lost, and bits that
  // read before the begin of the text are set.
  void lost_sink() {
    constexpr std::size_t kOneIn = 25;
    constexpr std::size_t kLeastBits = 2;  // of each token
    for (const Moment& moment : moments_) {
      if (enough()) return;
      Rows rows = right(moment.at);
      for (std::size_t place = 0; place < moment.at; ++place)
        if (probe::is_sink(text_[place])) rows.evict(place, place + 1);
      const Fit fit = fit_of(rows, moment.at, false);
      if (shows_) {
        shown_ = fit.certain < (Shape::kBits * Shape::kHeads - 1) * next_.size();
      } else if (kOneIn * fit.different <= fit.certain && fit.surprising > 0 &&
                 fit.certain >= kLeastBits * next_.size()) {
        fits("a cache without the row of a sink", moment.when);
      }
    }
  }

  const JudgedAnswer& judged_;
  bool shows_;
  std::size_t size_;       // of the prompt
  ProbeTokens text_;       // prompt and answer
  Rows right_;             // of the text
  ProbeTokens next_;       // after each token before the answer's: the right one
  std::size_t focus_ = 0;  // the token of the answer that culprits belong to
  std::vector<Other> others_;
  std::size_t reused_ = 0;  // tokens that the prompt shares with another text at most
  std::vector<std::size_t> culprits_;
  std::vector<Moment> moments_;

  bool one_is_enough_ = false;
  std::vector<std::string> fitting_;  // faults of the sort that give the answer
  std::string_view when_;             // of the first
  bool shown_ = false;
  std::size_t tries_ = 0;
  std::size_t steps_ = 0;
};

// The simplest first. Where two faults give the same tokens, the first one is named.
const std::array<FaultSearch::Sort, 15> FaultSearch::kSorts{{
    {{"stale tail", true}, &FaultSearch::stale_tail},
    {{"foreign prefix", true}, &FaultSearch::foreign_prefix},
    {{"lost prefix", true}, &FaultSearch::lost_prefix},
    {{"shifted by one", true}, &FaultSearch::shifted_by_one},
    {{"moved rows", true}, &FaultSearch::moved_rows},
    {{"window one short"}, &FaultSearch::short_window},
    {{"foreign row", true}, &FaultSearch::foreign_row},
    {{"swapped neighbours"}, &FaultSearch::swapped_neighbours},
    {{"foreign block", true}, &FaultSearch::foreign_block},
    {{"lost rows"}, &FaultSearch::lost_rows},
    {{"wrong block"}, &FaultSearch::wrong_block},
    {{"oldest rows evicted"}, &FaultSearch::oldest_rows},
    {{"swapped layers"}, &FaultSearch::swapped_layers},
    {{"swapped heads"}, &FaultSearch::swapped_heads},
    {{"lost sink"}, &FaultSearch::lost_sink},
}};

}  // namespace

std::vector<ProbeFault> probe_faults(bool window) {
  return FaultSearch::names(window);
}

Explanation explain(const JudgedAnswer& wrong) {
  return FaultSearch(wrong, FaultSearch::Purpose::kExplains).explanation();
}

std::vector<bool> faults_that_show(const JudgedAnswer& right) {
  return FaultSearch(right, FaultSearch::Purpose::kShows).shown();
}

}  // namespace kvo::tools
