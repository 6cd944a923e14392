// properties/runner/linked_script.hpp: a script whose handles follow what its operations return.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "properties/runner/shrinker.hpp"
#include "reference/contract/describe/handles.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// The handles among a script's arguments, each with the operation that returned it last. Parts of
/// the script may be resolved: where an operation is missing, the reference returns other handles
/// to those that stay, and their users get them.
class LinkedScript {
 public:
  /// Runs the script on `reference`, which must outlive this.
  LinkedScript(const Subject& reference, const Setup& setup, Script script);
  LinkedScript() = default;  ///< links nothing

  /// Whether an argument refers to a result.
  [[nodiscard]] bool links() const { return any_; }

  /// The candidate with the handles that the reference returns in it. An argument keeps its value
  /// where the operation that it refers to is missing or returns no handle there, and where the
  /// arguments are not those of the script any more. The candidate as it is without links.
  [[nodiscard]] Script resolved(const Script& candidate, const Setup& setup) const;

 private:
  struct Link {
    std::uint64_t number = 0;  ///< of the operation in the script
    std::vector<ResultReference> references = {};
  };

  const Subject* reference_ = nullptr;
  Script script_;                                // whose arguments are the keys
  std::unordered_map<const void*, Link> links_;  // by an operation's arguments
  bool any_ = false;
};

}  // namespace kvo
