// tools/testing/mutator.hpp: good inputs made hostile at random. For tests only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reference/contract/values/random.hpp"

namespace kvo::tools {

/// Damages lines, bytes, numbers and words of a text, and of one in sixteen its packed form.
class Mutator {
 public:
  /// The same seed gives the same damage.
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// 1 to 3 damages.
  [[nodiscard]] std::string mutated(std::string text);
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }

 private:
  void damage_lines(std::string& text);
  void damage_bytes(std::string& text);
  void damage_number(std::string& text);
  void damage_word(std::string& text);
  std::string damaged_gzip(std::string_view text);
  [[nodiscard]] std::size_t position(const std::string& text) { return below(text.size() + 1); }

  traces::Random random_;
};

}  // namespace kvo::tools
