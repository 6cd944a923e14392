#include "tools/probe/plans.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "reference/probe/rows.hpp"

namespace kvo::tools {
namespace {

using probe::Token;
using Text = std::vector<Token>;

/// Draws the texts of one plan.
class Drawer {
 public:
  Drawer(const probe::Tables& tables, const PlanLimits& limits, traces::Random& random)
      : tables_(tables), limits_(limits), random_(random) {}

  // Tokens, half of them whole blocks or one more or less, of `longest` at most.
  std::size_t length(std::size_t longest) {
    constexpr std::array<std::size_t, 5> kBlocks{16, 32, 64, 128, 256};
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
    while (begin.size() < size) begin.push_back(token(begin.size()));
    return begin;
  }
  // As a request: its last token reaches all rows.
  ProbeRequest request(Text prompt) {
    const auto reach = static_cast<std::uint32_t>(std::bit_width(prompt.size()));
    prompt.back() = value(std::min(reach, probe::kClasses - 1));
    return {std::move(prompt), limits_.tokens};
  }
  ProbeRequest request(std::size_t size, Text begin = {}) {
    return request(text(size, std::move(begin)));
  }
  // What must follow a request.
  [[nodiscard]] Text answer(const ProbeRequest& request) const {
    probe::Rows rows(tables_);
    rows.extend(request.prompt);
    return rows.generate(request.tokens);
  }
  [[nodiscard]] const PlanLimits& limits() const { return limits_; }

 private:
  Token value(std::uint32_t of_class) {
    return probe::kFirstValue + probe::kValues * of_class +
           static_cast<Token>(random_.below(probe::kValues));
  }
  // Mostly of a class that reaches far, and none beyond the begin of the text.
  Token token(std::size_t position) {
    const auto most = static_cast<std::uint32_t>(std::bit_width(position)) - 1;
    if (random_.chance(30)) return value(static_cast<std::uint32_t>(random_.below(most + 1)));
    std::uint32_t less = 0;
    while (less < most && random_.chance(50)) ++less;
    return value(most - less);
  }

  const probe::Tables& tables_;
  const PlanLimits& limits_;
  traces::Random& random_;
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

Waves middle_deleted(Drawer& draw) {
  const std::size_t third = draw.limits().longest / 3;
  const Text x = draw.text(draw.length(third));
  const Text xm = draw.text(x.size() + draw.length(third), x);
  ProbeRequest whole = draw.request(xm.size() + draw.length(third), xm);
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
    Text so_far = turn.prompt;
    const Text answer = draw.answer(turn);
    so_far.insert(so_far.end(), answer.begin(), answer.end());
    const std::size_t size = so_far.size() + draw.length(draw.limits().longest / 6);
    turn = draw.request(size, std::move(so_far));
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

struct PlanKind {
  std::string_view name;
  Waves (*draw)(Drawer&);
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
};

}  // namespace

std::size_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::vector<std::string_view> plan_kinds() {
  std::vector<std::string_view> names;
  for (const PlanKind& kind : kPlanKinds) names.push_back(kind.name);
  return names;
}

ProbePlan draw_plan(std::size_t kind, const probe::Tables& tables, const PlanLimits& limits,
                    traces::Random& random) {
  Drawer drawer(tables, limits, random);
  return {kPlanKinds.at(kind).name, kPlanKinds.at(kind).draw(drawer)};
}

}  // namespace kvo::tools
