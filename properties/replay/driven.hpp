// properties/replay/driven.hpp: for tests, requests and what a lowering makes of them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "properties/replay/engine.hpp"
#include "properties/replay/replay.hpp"

namespace kvo::replay {

/// A request that arrives at time 0.
[[nodiscard]] Request request(std::int64_t input, std::int64_t output,
                              std::vector<std::uint64_t> ids = {});
/// Conversations in blocks of eight tokens.
[[nodiscard]] const std::vector<Request>& chats();
/// The embedded trace.
[[nodiscard]] const std::vector<Request>& sample();

/// The lowering with that full name. Requires  there is one.
[[nodiscard]] const Lowering& lowering_of(std::string_view full_name);
/// Its full name as part of the name of a test.
[[nodiscard]] std::string test_name(std::string name);

/// A case of a lowering on the reference of its kind.
struct Driven {
  std::vector<Op> ops = {};
  std::vector<Observation> observed = {};  ///< of each
  std::int64_t expectations = 0;           ///< observations that the lowering predicted
  Labels labels = {};
  std::map<std::string, std::int64_t> figures = {};  ///< without the lowering's name

  /// The operations as `text` writes them, those without a text left out.
  [[nodiscard]] std::vector<std::string> lines(std::string (*text)(const Op& op)) const;
};

/// Runs a case. A test fails where an observation is not as the lowering predicts.
[[nodiscard]] Driven driven(std::string_view full_name, LoweringInput input,
                            Profile profile = Profile::kDocumented);

/// The labels of all cases that a replay of the sample has for a lowering. A test fails where the
/// reference does.
[[nodiscard]] std::set<std::string> labels_of_sample(const Lowering& lowering,
                                                     const ReplayOptions& options);

/// Whether the oracle of its kind alone fails a mutant in a case of chats().
[[nodiscard]] bool caught_alone(std::string_view mutant, const ReplayOptions& options);

}  // namespace kvo::replay
