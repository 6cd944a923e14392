// properties/prefix/rules_case.hpp: what tests of single rules of contract `prefix` are written
// with. A text's characters are its tokens, so that a test shows prefixes as a reader sees them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::prefix {

/// A fresh cache of each subject of a kind in each profile: check(case, is_original).
template <class Check>
void in_each(const CacheKind& kind, const Record& config, Check&& check) {
  for (const Subject* subject : contracts().subjects_of(kind))
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const bool original = profile == Profile::kOriginal;
      SCOPED_TRACE(subject->name() + (original ? " original" : " documented"));
      RulesCase made(*subject, profile, config);
      check(made, original);
    }
}

/// Profile documented makes no cache of a config that profile original takes.
inline void expect_refused_where_documented(const CacheKind& kind, const Record& config) {
  for (const Subject* subject : contracts().subjects_of(kind)) {
    SCOPED_TRACE(subject->name());
    EXPECT_TRUE(subject->open({.profile = Profile::kOriginal, .config = config}));
    const auto refused = subject->open({.profile = Profile::kDocumented, .config = config});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code_text(), "not_supported");
  }
}

/// A token a character.
inline Tokens tokens_of(std::string_view text) {
  return {text.begin(), text.end()};
}

/// The characters of tokens.
inline std::string text_of(const Tokens& tokens) {
  std::string text;
  for (const Token token : tokens) text += static_cast<char>(token);
  return text;
}

/// "[1, 2]"
inline std::string list_text(const Numbers& numbers) {
  return fmt::format("{}", numbers);
}

/// The code of an observation's error.
inline std::string code_of(const Observation& seen) {
  return seen.error ? seen.error->code_text() : "ok";
}

/// "stored [0, 1] after null: abcd; removed [1]; cleared": the events since the last time.
inline std::string events_text(RulesCase& cache) {
  std::string text;
  for (const ShownEvent& event : cache.values(TakeEvents{}).events) {
    text += text.empty() ? "" : "; ";
    if (event.kind == EventKind::kCleared) {
      text += "cleared";
      continue;
    }
    const Numbers keys = event.keys.value_or(Numbers());
    if (event.kind == EventKind::kRemoved) {
      text += "removed " + list_text(keys);
      continue;
    }
    const auto parent = event.parent ? event.parent->value : std::nullopt;
    text += fmt::format("stored {} after {}: {}", keys, parent ? fmt::to_string(*parent) : "null",
                        text_of(event.tokens.value_or(Tokens())));
  }
  return text;
}

}  // namespace kvo::prefix
