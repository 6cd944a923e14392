// reference/contract/device/simulated/host_watch.hpp: host memory that copies use.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "reference/contract/device/simulated/history.hpp"
#include "reference/contract/device/streams.hpp"

namespace kvo {

/// Copies host memory that may be gone. False: it is.
[[nodiscard]] bool read_host(const std::byte* from, std::span<std::byte> to);

/// Compares the host memory of each copy with what it must hold: from when it is queued until the
/// host has waited for it. What a copy will write is poisoned meanwhile, so that reading it too
/// early shows. Memory that two queued copies share, one of them writing, is not watched.
class HostWatch {
 public:
  static constexpr std::byte kPoison{0xFF};

  /// Begins with a copy that is queued; other work has no host memory.
  void begin(WorkId id, const Work& work);
  /// The bytes of a copy to the device, as they are now. Whether they are those of begin().
  [[nodiscard]] bool take(WorkId id, const Work& work, std::vector<std::byte>& bytes);
  /// Writes what a copy to the host brings, unless the memory was touched, which false says.
  [[nodiscard]] bool put(WorkId id, const Work& work, std::span<const std::byte> bytes);
  /// Ends with a copy that the host has waited for. False: the memory was touched.
  [[nodiscard]] bool end(WorkId id);
  /// The copies that have begun and not ended.
  [[nodiscard]] std::vector<WorkId> watched() const;
  void clear() { watched_.clear(); }

 private:
  struct Watched {
    const std::byte* begin = nullptr;
    std::size_t size = 0;
    bool written = false;  ///< by the copy
    bool shared = false;   ///< with another copy
    bool touched = false;  ///< that was said already
    std::vector<std::byte> holds = {};
  };
  [[nodiscard]] static bool as_it_was(const Watched& watched);

  std::map<WorkId, Watched> watched_;
};

}  // namespace kvo
