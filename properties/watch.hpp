// properties/watch.hpp: what judges a subject by what it was told and showed, without a reference.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "reference/contract/subject.hpp"

namespace kvo {

/// The history of one session. It sees every operation with what the subject answered.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;

  /// Takes note of an operation; words when what was shown contradicts the history.
  [[nodiscard]] virtual std::optional<std::string> saw(const Op& op, const Observation& seen) = 0;
};

/// Makes the watch of a case; null for a cache kind that has none, whatever the setup.
using MakeWatch = std::unique_ptr<Watch> (*)(const CacheKind& kind, const Setup& setup);

}  // namespace kvo
