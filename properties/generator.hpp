// properties/generator.hpp: random scripts, drawn from what the judge has shown so far.
//
// A generator is an endless OpStream. Swarm weights make cases unlike each other: each case
// switches some operations off and favours others.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "reference/contract/op_stream.hpp"
#include "reference/contract/subject.hpp"
#include "traces/random.hpp"

namespace kvo {

/// Random draws of a case; a function of its seed alone, on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  /// low to high, both included.
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  [[nodiscard]] bool percent(std::uint64_t percent) { return random_.chance(percent); }
  /// One of the values, each as likely.
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  /// An index into `weights`, as likely as its weight; the last if all are 0.
  [[nodiscard]] std::size_t weighted(const std::vector<std::uint64_t>& weights);

 private:
  traces::Random random_;
};

/// Weights of a case's operations: `usual` ones, with about a fifth switched off and a few made
/// much likelier. The first `always_first` operations are never switched off.
[[nodiscard]] std::vector<std::uint64_t> swarm(Draw& draw, std::vector<std::uint64_t> usual,
                                               std::uint64_t always_first = 0);

/// A random case: its setup, and its endless operations.
struct GeneratedCase {
  Setup setup;
  std::unique_ptr<OpStream> ops;
};

/// How random cases of one cache kind are made.
struct Generator {
  const CacheKind* kind;
  std::function<GeneratedCase(std::uint64_t seed, Profile profile)> make;
  /// States that matter: a campaign that never reached one of them proved little. The two lists are
  /// for profile original and documented.
  std::vector<std::string_view> original_labels;
  std::vector<std::string_view> documented_labels;

  [[nodiscard]] const std::vector<std::string_view>& labels(Profile profile) const {
    return profile == Profile::kOriginal ? original_labels : documented_labels;
  }
};

/// One for each cache kind; a new one is its own file and one line here.
[[nodiscard]] const std::vector<Generator>& generators();
/// The generator of a kind, or null.
[[nodiscard]] const Generator* generator_of(const CacheKind& kind);

/// Independent seed of case `index` in a run of `seed`.
[[nodiscard]] std::uint64_t case_seed(std::uint64_t seed, std::uint64_t index);

}  // namespace kvo
