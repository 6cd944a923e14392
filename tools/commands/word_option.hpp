// tools/commands/word_option.hpp: options that take one of a few words.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/describe/enum_to_string.hpp>

#include "reference/contract/describe/describe.hpp"

namespace kvo::tools {

/// The word of an enumerator, as options and logs have it.
template <class Enum>
[[nodiscard]] std::string word_of(Enum enumerator) {
  return enumerator_word(boost::describe::enum_to_string(enumerator, ""));
}

/// Declares `name`, which takes a key of `words`; `set` gets what it stands for. (CLI11's
/// transformers would put the number of an enumerator in the place of the word, in messages, too.)
template <class T>
CLI::Option* add_word_option(CLI::App& app, const std::string& name,
                             const std::map<std::string, T>& words, std::function<void(T)> set,
                             const std::string& doc) {
  std::vector<std::string> known;
  for (const auto& [word, value] : words) known.push_back(word);
  const auto chosen = [words, set = std::move(set)](const std::string& word) {
    set(words.at(word));
  };
  return app.add_option_function<std::string>(name, chosen, doc)->check(CLI::IsMember(known));
}

}  // namespace kvo::tools
