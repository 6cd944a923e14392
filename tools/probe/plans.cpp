#include "tools/probe/plans.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "reference/probe/rows.hpp"

namespace kvo::tools {
namespace {

using probe::Token;
using Text = std::vector<Token>;

constexpr std::array<std::size_t, 5> kBlocks{16, 32, 64, 128, 256};

Token value(std::uint32_t of_class, traces::Random& random) {
  return probe::kFirstValue + probe::kValues * of_class +
         static_cast<Token>(random.below(probe::kValues));
}

/// Draws the texts of one plan.
class Drawer {
 public:
  Drawer(const probe::Tables& tables, const PlanLimits& limits, traces::Random& random)
      : tables_(tables), limits_(limits), random_(random), drawer_(tables) {}

  // Tokens, half of them whole blocks or one more or less, of `longest` at most.
  std::size_t length(std::size_t longest) {
    constexpr std::size_t kLeast = 24;
    std::size_t drawn = longest >> random_.below(4);
    drawn = drawn / 2 + random_.below(drawn / 2 + 1);
    if (random_.chance(50)) {
      const std::size_t block = kBlocks.at(random_.below(kBlocks.size()));
      drawn = drawn / block * block + random_.below(3) - 1;
    }
    return std::clamp(drawn, std::min(kLeast, longest), longest);
  }
  std::size_t length() { return length(limits_.longest); }

  // `begin`, with random tokens up to `size`.
  Text text(std::size_t size, Text begin = {}) {
    if (begin.empty()) begin.push_back(probe::kBegin);
    while (begin.size() < size) begin.push_back(drawer_.token(begin.size(), random_));
    return begin;
  }
  // As a request: its last token reaches all rows.
  ProbeRequest request(Text prompt) {
    prompt.back() = drawer_.last(prompt.size(), random_);
    return {std::move(prompt), limits_.tokens};
  }
  ProbeRequest request(std::size_t size, Text begin = {}) {
    return request(text(size, std::move(begin)));
  }
  // A request with the text of another one, its answer, and `more` tokens.
  ProbeRequest after(const ProbeRequest& before, std::size_t more) {
    probe::Rows rows(tables_);
    rows.extend(before.prompt);
    Text text = before.prompt;
    const Text answer = rows.generate(before.tokens);
    text.insert(text.end(), answer.begin(), answer.end());
    const std::size_t size = text.size() + more;
    return request(size, std::move(text));
  }
  std::size_t below(std::size_t bound) { return random_.below(bound); }
  [[nodiscard]] const PlanLimits& limits() const { return limits_; }
  // Of a long answer.
  [[nodiscard]] std::size_t many_tokens() const {
    constexpr std::size_t kMost = 256;
    const std::size_t most = std::min(8 * limits_.tokens, std::max(kMost, limits_.tokens));
    const auto window = tables_.shape().window;
    return window ? std::min(most, *window / 2 - 1) : most;
  }

 private:
  const probe::Tables& tables_;
  const PlanLimits& limits_;
  traces::Random& random_;
  TextDrawer drawer_;
};

Text begin_of(const Text& text, std::size_t size) {
  return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(size, text.size()))};
}

using Wave = std::vector<ProbeRequest>;
using Waves = std::vector<Wave>;

Waves alone(Drawer& draw) {
  Wave wave;
  for (std::size_t i = 0; i < draw.limits().at_once; ++i)
    wave.push_back(draw.request(draw.length()));
  return {wave};
}

Waves shared_prefix(Drawer& draw) {
  const std::size_t longest = draw.limits().longest;
  const Text prefix = draw.text(draw.length(longest - 32));
  Wave wave;
  for (std::size_t i = 0; i < draw.limits().at_once; ++i)
    wave.push_back(draw.request(prefix.size() + draw.length(longest - prefix.size()), prefix));
  return {{wave.back()}, wave};
}

Waves a_b_a(Drawer& draw) {
  const ProbeRequest a = draw.request(draw.length());
  const ProbeRequest b = draw.request(draw.length(), begin_of(a.prompt, a.prompt.size() / 2));
  return {{a}, {b}, {a}};
}

Waves repeated(Drawer& draw) {
  const std::size_t size = std::max<std::size_t>(draw.length() / 16, 2) * 16;
  const ProbeRequest whole_blocks = draw.request(size);
  return {{whole_blocks}, Wave(draw.limits().at_once, whole_blocks)};
}

// In half of the plans both cuts are at edges of blocks of one size, and more than a block follows.
// Only then does a whole block come again, elsewhere.
Waves middle_deleted(Drawer& draw) {
  const std::size_t third = draw.limits().longest / 3;
  const auto possible =
      static_cast<std::size_t>(std::ranges::upper_bound(kBlocks, third) - kBlocks.begin());
  const std::size_t block =
      possible == 0 || draw.below(2) == 0 ? 1 : kBlocks.at(draw.below(possible));
  const auto length = [&] { return std::max(draw.length(third) / block, std::size_t{1}) * block; };
  const Text x = draw.text(length());
  const Text xm = draw.text(x.size() + length(), x);
  ProbeRequest whole = draw.request(xm.size() + length() + (block > 1 ? 1 : 0), xm);
  ProbeRequest without{x, whole.tokens};
  without.prompt.insert(without.prompt.end(),
                        whole.prompt.begin() + static_cast<std::ptrdiff_t>(xm.size()),
                        whole.prompt.end());
  return {{std::move(whole)}, {std::move(without)}};
}

Waves chat(Drawer& draw) {
  Waves waves;
  ProbeRequest turn = draw.request(draw.length(draw.limits().longest / 3));
  for (int i = 0; i < 3; ++i) {
    waves.push_back({turn});
    turn = draw.after(turn, draw.length(draw.limits().longest / 6));
  }
  return waves;
}

Waves pressure(Drawer& draw) {
  const ProbeRequest first = draw.request(draw.length());
  Waves waves{{first}};
  for (int i = 0; i < 4; ++i) {
    Wave& wave = waves.emplace_back();
    for (std::size_t j = 0; j < draw.limits().at_once; ++j)
      wave.push_back(draw.request(draw.limits().longest));
  }
  waves.push_back({first});
  return waves;
}

Waves shorter(Drawer& draw) {
  const ProbeRequest whole = draw.request(draw.length());
  const std::size_t size = draw.length(whole.prompt.size());
  return {{whole}, {draw.request(size, begin_of(whole.prompt, size))}};
}

// Ends of a few tokens: the block that they share in part is written by each.
Waves forks(Drawer& draw) {
  constexpr std::size_t kMostOfAnEnd = 16;
  const Text text = draw.text(draw.length(draw.limits().longest - kMostOfAnEnd));
  const auto ends = [&] {
    Wave wave;
    for (std::size_t i = 0; i < std::max<std::size_t>(draw.limits().at_once, 2); ++i)
      wave.push_back(draw.request(text.size() + 1 + draw.below(kMostOfAnEnd), text));
    return wave;
  };
  if (draw.below(2) == 0) return {ends(), ends()};
  return {{draw.request(text)}, ends()};
}

// More than an engine serves at a time; every second one shares a prefix.
Waves many_at_once(Drawer& draw) {
  const std::size_t half = draw.limits().longest / 2;
  const Text prefix = draw.text(draw.length(half));
  Wave wave;
  for (std::size_t i = 0; i < 3 * draw.limits().at_once; ++i)
    wave.push_back(i % 2 == 0 ? draw.request(draw.length(half))
                              : draw.request(prefix.size() + draw.length(half), prefix));
  return {wave, {wave.back(), wave.front()}};
}

// Beside one that is not cancelled.
Waves cancel(Drawer& draw) {
  const ProbeRequest whole = draw.request(draw.length());
  ProbeRequest cancelled = whole;
  cancelled.tokens = draw.many_tokens();
  cancelled.manner.drop_after = draw.below(2) == 0 ? 0 : 1 + draw.below(draw.limits().tokens);
  const std::size_t begin = draw.length(whole.prompt.size());
  return {{std::move(cancelled), draw.request(draw.length())},
          {draw.request(begin, begin_of(whole.prompt, begin)), draw.request(draw.length())},
          {whole}};
}

// Long texts and long answers; then some of the texts again.
Waves preempted(Drawer& draw) {
  Wave wave;
  for (std::size_t i = 0; i < 2 * draw.limits().at_once; ++i) {
    wave.push_back(draw.request(draw.limits().longest));
    wave.back().tokens = draw.many_tokens();
  }
  Wave again(wave.begin(), wave.begin() + static_cast<std::ptrdiff_t>(draw.limits().at_once));
  return {std::move(wave), std::move(again)};
}

Waves idle(Drawer& draw) {
  const ProbeRequest first = draw.request(draw.length(draw.limits().longest / 2));
  ProbeRequest later = draw.after(first, draw.length(draw.limits().longest / 4));
  later.manner.pause = std::chrono::seconds(1);
  return {{first}, {std::move(later)}, {first}};
}

// Texts of one token less than a block, as many, and one more, in any order; each is the begin of
// the next longer one but for its last token.
Waves edges(Drawer& draw) {
  std::size_t block = kBlocks.at(draw.below(kBlocks.size()));
  while (block + 1 > draw.limits().longest) block /= 2;
  const Text text = draw.text(block + 1);
  std::array<std::size_t, 3> sizes{block - 1, block, block + 1};
  for (std::size_t i = sizes.size(); i > 1; --i)
    std::swap(sizes.at(i - 1), sizes.at(draw.below(i)));
  Waves waves;
  for (const std::size_t size : sizes) waves.push_back({draw.request(begin_of(text, size))});
  waves.push_back({waves.front().front(), draw.request(block + 1, begin_of(text, block))});
  return waves;
}

// A long prompt, which the engine reads in pieces, beside short texts that generate meanwhile.
Waves chunked(Drawer& draw) {
  constexpr std::size_t kShort = 64;
  const ProbeRequest whole = draw.request(draw.limits().longest);
  Wave wave{whole};
  for (std::size_t i = 0; i < draw.limits().at_once; ++i) {
    wave.push_back(draw.request(draw.length(kShort)));
    wave.back().tokens = draw.many_tokens();
  }
  const std::size_t begin = draw.length(whole.prompt.size());
  return {std::move(wave), {draw.request(begin, begin_of(whole.prompt, begin)), whole}};
}

// The rows of a slot on a disk, while it serves another text.
Waves save_and_restore(Drawer& draw) {
  const std::size_t third = draw.limits().longest / 3;
  const ProbeRequest first = draw.request(draw.length(third));
  ProbeRequest other = draw.request(draw.length(third));
  other.manner.before = SlotAction::kSave;
  ProbeRequest later = draw.after(first, draw.length(third));
  later.manner.before = SlotAction::kRestore;
  Waves waves{{first}, {std::move(other)}, {std::move(later)}, {first}};
  for (Wave& wave : waves) wave.front().manner.slot = 0;
  return waves;
}

struct PlanKind {
  std::string_view name;
  Waves (*draw)(Drawer&);
  std::size_t every = 1;  // round in which it is drawn
};
constexpr std::array kPlanKinds{
    PlanKind{"alone", alone},
    PlanKind{"shared prefix", shared_prefix},
    PlanKind{"a, b, a", a_b_a},
    PlanKind{"repeated", repeated},
    PlanKind{"middle deleted", middle_deleted},
    PlanKind{"chat", chat},
    PlanKind{"pressure", pressure},
    PlanKind{"shorter", shorter},
    PlanKind{"fork", forks},
    PlanKind{"edges", edges},
    PlanKind{"many at once", many_at_once},
    PlanKind{"chunked", chunked},
    PlanKind{"cancel", cancel},
    PlanKind{"preempted", preempted},
    PlanKind{"save and restore", save_and_restore},
    PlanKind{"idle", idle, 8},
};

bool needs_slots(const ProbePlan& plan) {
  return plan.waves.front().front().manner.slot.has_value();
}

}  // namespace

std::size_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::vector<std::string_view> plan_kinds() {
  std::vector<std::string_view> names;
  for (const PlanKind& kind : kPlanKinds) names.push_back(kind.name);
  return names;
}

std::vector<std::string> plan_words() {
  std::vector<std::string> words;
  for (const PlanKind& kind : kPlanKinds) {
    std::string& word = words.emplace_back();
    for (const char c : kind.name)
      if (c != ',') word += c == ' ' ? '-' : c;
  }
  return words;
}

std::vector<std::size_t> all_plan_kinds() {
  std::vector<std::size_t> kinds(kPlanKinds.size());
  std::iota(kinds.begin(), kinds.end(), std::size_t{0});
  return kinds;
}

ProbePlan draw_plan(std::size_t kind, const probe::Tables& tables, const PlanLimits& limits,
                    traces::Random& random) {
  Drawer drawer(tables, limits, random);
  return {kPlanKinds.at(kind).name, kPlanKinds.at(kind).draw(drawer)};
}

TextDrawer::TextDrawer(const probe::Tables& tables) : window_(tables.shape().window) {
  if (!window_) return;
  for (Token token = probe::kFirstValue; token < probe::kFirstPad; ++token)
    for (const std::size_t distance : {*window_ - 1, *window_})
      if (std::ranges::count(tables[token].look_back, distance) > 0) far_.push_back(token);
}

Token TextDrawer::token(std::size_t position, traces::Random& random) const {
  if (window_ && position % (*window_ / 4) == 0) return probe::kSink;
  const auto most = static_cast<std::uint32_t>(std::bit_width(position)) - 1;
  if (window_ && position >= *window_ && random.chance(25)) return far_[random.below(far_.size())];
  if (random.chance(30)) return value(static_cast<std::uint32_t>(random.below(most + 1)), random);
  std::uint32_t less = 0;
  while (less < most && random.chance(50)) ++less;
  return value(most - less, random);
}

Token TextDrawer::last(std::size_t size, traces::Random& random) const {
  if (window_ && size > *window_) return far_[random.below(far_.size())];
  const auto reach = static_cast<std::uint32_t>(std::bit_width(size));
  return value(std::min(reach, probe::kClasses - 1), random);
}

DrawnPlans::DrawnPlans(const probe::Tables& tables, const PlanLimits& limits, std::uint64_t seed,
                       std::vector<std::size_t> kinds, std::optional<std::size_t> only,
                       std::function<std::string()> saves_slots)
    : tables_(tables),
      limits_(limits),
      seed_(seed),
      kinds_(std::move(kinds)),
      only_(only),
      saves_slots_(std::move(saves_slots)),
      next_(only.value_or(0)) {}

std::optional<ProbePlan> DrawnPlans::next() {
  while (impossible_.size() < kinds_.size() && (!only_ || next_ == *only_)) {
    const std::size_t number = next_++;
    const std::size_t kind = kinds_[number % kinds_.size()];
    const std::size_t every = kPlanKinds.at(kind).every;
    if (impossible_.contains(kind)) continue;
    if (!only_ && number / kinds_.size() % every != every - 1) continue;
    traces::Random random(probe::mix({seed_, number}));
    ProbePlan plan = draw_plan(kind, tables_, limits_, random);
    plan.number = number;
    if (!needs_slots(plan)) return plan;
    const std::string missing = saves_slots_();
    if (missing.empty()) return plan;
    skipped_.push_back(fmt::format("{}: {}", plan.kind, missing));
    impossible_.insert(kind);
  }
  return std::nullopt;
}

}  // namespace kvo::tools
