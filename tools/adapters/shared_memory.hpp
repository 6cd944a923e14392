// tools/adapters/shared_memory.hpp: where tensors are between a harness and an adapter.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "reference/contract/describe/json.hpp"

namespace kvo::tools {

/// Memory that two processes have open as a file. The harness writes the first half, the adapter
/// the second. Offsets count from the beginning of the memory.
class SharedMemory final : public TensorMemory {
 public:
  /// Of the harness. Throws std::system_error: the system has no memory left.
  explicit SharedMemory(std::size_t bytes);
  /// Of the adapter: the memory of an open file. Throws std::system_error: it cannot be mapped.
  SharedMemory(int file, std::size_t bytes);
  ~SharedMemory() override;

  [[nodiscard]] std::optional<std::size_t> put(std::span<const std::byte> bytes) override;
  [[nodiscard]] std::span<const std::byte> at(std::size_t offset, std::size_t bytes) const override;
  /// The harness waits for the answer to a request; an adapter writes what it likes when it likes.
  [[nodiscard]] bool lends() const override { return others_ == 0; }
  /// What was put so far may be overwritten.
  void restart() { used_ = 0; }
  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void map();

  std::size_t bytes_;
  std::size_t own_;     // where the half begins that this process writes
  std::size_t others_;  // and that of the other process
  int file_ = -1;
  std::byte* memory_ = nullptr;
  std::size_t used_ = 0;
};

}  // namespace kvo::tools
