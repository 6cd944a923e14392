// properties/runner/pulse.hpp: what a process is doing, told to whoever watches it.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvo {

struct Subject;

/// Lies in memory that two processes share: a worker tells it, and who started the worker reads it
/// when the worker has died, or has been silent for long. A subject lies at the same address in
/// both, because one was forked from the other.
struct Pulse {
  std::atomic<const Subject*> subject = nullptr;  ///< at work, or at work last; null: none yet
  std::atomic<std::uint64_t> op_index = 0;        ///< its operation, from 0
  std::atomic<std::uint64_t> beats = 0;           ///< grows with each operation of each subject
};

/// Where this process tells what it does; null while nobody looks.
inline Pulse* told_pulse = nullptr;  // NOLINT: one a process

/// Tells that an operation of `subject` begins.
inline void tell(const Subject& subject, std::uint64_t op_index) {
  if (told_pulse == nullptr) return;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  told_pulse->subject.store(&subject, kRelaxed);
  told_pulse->op_index.store(op_index, kRelaxed);
  told_pulse->beats.store(told_pulse->beats.load(kRelaxed) + 1, kRelaxed);  // one process writes
}

}  // namespace kvo
