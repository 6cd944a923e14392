// properties/positional/rules_case.hpp: what tests of single rules of `positional` are written
// with.
//
// Rows have one head of one element. The keys that a case puts count 1, 2, 3, ...; values are their
// negatives.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {

/// The position of each cell that a sequence owns; -1: not owned.
using Positions = std::vector<int>;
/// What each token of a batch sees: the keys, by ascending cell.
using SeenKeys = std::vector<std::vector<float>>;

/// One case against one subject of the contract.
class PositionalCase : public RulesCase {
 public:
  using RulesCase::RulesCase;

  /// The next keys and values, for so many tokens.
  Put rows(std::int64_t tokens) {
    Put put{counting({tokens, 1, 1}, next_), counting({tokens, 1, 1}, next_)};
    for (float& value : put.v.floats()) value = -value;
    next_ += static_cast<float>(tokens);
    return put;
  }
  /// start_forward, and put if it succeeds. Returns the code of the first that fails, or "ok".
  std::string pass(std::vector<std::int32_t> positions, std::vector<std::int64_t> sequences) {
    const std::int64_t tokens = std::ssize(positions);
    StartForward start;
    start.positions = std::move(positions);
    start.seqs = std::move(sequences);
    const std::string started = code(std::move(start));
    return started == "ok" ? code(rows(tokens)) : started;
  }
  /// As pass, all tokens of sequence 0.
  std::string pass(std::vector<std::int32_t> positions) {
    std::vector<std::int64_t> sequences(positions.size(), 0);
    return pass(std::move(positions), std::move(sequences));
  }
  /// What the tokens of the pass see of the current layer.
  SeenKeys seen() {
    const Get::Returns shown = values(Get{});
    if (!shown.mask.has_value()) return {};
    SeenKeys rows(static_cast<std::size_t>(shown.mask->shape[0]));
    const auto width = static_cast<std::size_t>(shown.mask->shape[1]);
    for (std::size_t row = 0; row < rows.size(); ++row)
      for (std::size_t cell = 0; cell < width; ++cell)
        if (shown.mask->floats()[row * width + cell] == 0)
          rows[row].push_back(shown.k->floats()[cell]);
    return rows;
  }
  /// Positions of the cells that a sequence owns, -1 for others; by a planned pass (OK-27), in
  /// which a token at p sees a cell at p and none at a later position. Ends the pass.
  Positions held(std::int64_t sequence, std::int64_t member = 0) {
    plan({sequence});
    (void)code(SetLayerType{member});
    const Get::Returns shown = values(Get{});
    if (!shown.mask.has_value()) return {};
    Positions positions(static_cast<std::size_t>(shown.mask->shape[1]), -1);
    for (std::size_t cell = 0; cell < positions.size(); ++cell)
      for (std::size_t row = kMostPositions; row-- > 0;)
        if (shown.mask->floats()[row * positions.size() + cell] == 0)
          positions[cell] = static_cast<int>(row);
    return positions;
  }
  /// All keys of the current layer. Ends the pass.
  std::vector<float> keys(std::int64_t member = 0) {
    plan({0});
    (void)code(SetLayerType{member});
    return elements_of(values(Get{}).k.value);
  }
  /// Everything that can be seen of the cache, as text; what it does not offer is an error in the
  /// text. Ends the pass.
  std::vector<std::string> picture() {
    std::vector<std::string> seen{text(UnderlyingCache{}), text(EncoderCached{}), text(Get{}),
                                  text(SetCausal{{0}}), text(Get{})};
    for (std::int64_t sequence = 0; sequence < kMostSequences; ++sequence)
      for (std::int32_t position = -1; position < kMostPositions; ++position)
        seen.push_back(text(CanResume{sequence, position}));
    plan({0, 1, 2});
    for (std::int64_t member = 0; member < 2; ++member) {
      seen.push_back(text(SetLayerType{member}));
      seen.push_back(text(Get{}));
    }
    return seen;
  }

 private:
  static constexpr std::int64_t kMostSequences = 3;
  static constexpr int kMostPositions = 12;

  template <class T>
  std::string text(T op) {
    const Observation seen = run(std::move(op));
    const std::string error = seen.error ? seen.error->code_text() : "";
    return seen.returns ? error + json_text(seen.returns.type(), seen.returns.get()) : error;
  }
  void plan(const std::vector<std::int64_t>& sequences) {
    StartForward start{.reserve = true};
    for (const std::int64_t sequence : sequences)
      for (std::int32_t position = 0; position < kMostPositions; ++position) {
        start.positions.push_back(position);
        start.seqs.push_back(sequence);
      }
    EXPECT_EQ(code(std::move(start)), "ok");
    (void)code(SetLayer{0});
  }

  float next_ = 1;
};

/// Tests that run on each engine that has caches of the contract.
class PositionalTest : public testing::TestWithParam<const Subject*> {
 protected:
  /// Whether the engine under test has a cache of that kind; one over a device has the causal ones.
  [[nodiscard]] bool has(const CacheKind& kind) const {
    return contracts().find_subject(kind.name() + "@" + GetParam()->variant) != nullptr;
  }
  /// A cache of the engine under test; `config` as in a log's header.
  [[nodiscard]] PositionalCase open(const CacheKind& kind, Profile profile,
                                    std::string_view config = "{}") const {
    const Subject* subject = contracts().find_subject(kind.name() + "@" + GetParam()->variant);
    if (subject == nullptr) throw std::runtime_error("the engine has no " + kind.name());
    JsonFault fault;
    Record read = read_record(boost::json::parse(config), *kind.config, fault);
    if (!read) throw std::runtime_error("config " + fault.text());
    return {*subject, profile, std::move(read)};
  }
  /// The same behind init, in f32.
  [[nodiscard]] PositionalCase ready(const CacheKind& kind, Profile profile,
                                     std::string_view config, Init sizes) const {
    PositionalCase made = open(kind, profile, config);
    EXPECT_EQ(made.code(sizes), "ok");
    return made;
  }
};

/// The operation must fail with `code` and leave no trace: afterwards the case that `make` prepares
/// looks as if it had not happened.
template <class Make, class T>
void expect_refused(const Make& make, const T& op, std::string_view code) {
  PositionalCase tried = make();
  PositionalCase spared = make();
  const Observation seen = tried.run(op);
  EXPECT_EQ(seen.error ? seen.error->code_text() : "ok", code) << op_text(Op::of(op));
  EXPECT_EQ(tried.picture(), spared.picture()) << op_text(Op::of(op));
}

inline const CacheKind& causal() {
  return kind_of(MemberKind::kCausal);
}
inline const CacheKind& swa() {
  return kind_of(MemberKind::kSwa);
}
inline const CacheKind& encoder() {
  return kind_of(MemberKind::kEncoder);
}

inline constexpr std::string_view kAdd = R"({"shift":{"kind":"add","scale":1}})";
inline constexpr std::array<Profile, 2> kProfiles{Profile::kOriginal, Profile::kDocumented};

}  // namespace kvo::positional
