// properties/runner/pulse.hpp: what a process is doing, in memory that another process reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <sys/single_threaded.h>

namespace kvo {

struct OpKind;
struct Subject;

/// Shared by two processes, one of which was forked from the other: subjects and operations have
/// the same address in both. A subject can overwrite it, so no pointer in it may be followed before
/// it was looked up.
struct Pulse {
  std::atomic<const Subject*> subject = nullptr;  ///< at work, or at work last; null: none yet
  std::atomic<const OpKind*> op = nullptr;        ///< its operation; null: it is opened or closed
  std::atomic<std::uint64_t> op_index = 0;        ///< number of that operation, from 0
  std::atomic<std::uint64_t> beats = 0;           ///< grows with each operation of each subject
  std::atomic<bool> guest = false;                ///< a subject from outside this tree was opened
  /// Name of the subject that started a thread last, ended by a zero.
  std::array<char, 128> thread_starter = {};
};

/// Where this process writes what it does; null while no process reads it.
inline Pulse* told_pulse = nullptr;  // NOLINT: one a process

/// Notes that an operation of `subject` begins.
inline void tell(const Subject& subject, std::uint64_t op_index, const OpKind* op = nullptr) {
  if (told_pulse == nullptr) return;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  told_pulse->subject.store(&subject, kRelaxed);
  told_pulse->op.store(op, kRelaxed);
  told_pulse->op_index.store(op_index, kRelaxed);
  told_pulse->beats.store(told_pulse->beats.load(kRelaxed) + 1, kRelaxed);  // one process writes
}

/// Threads of this process; 1 where the system does not say.
[[nodiscard]] std::uint64_t thread_count();

/// Notes that `subject` has started a thread if there are more than before.
void note_threads(const Subject& subject);
/// To be called after each operation: one load where there was never a thread.
inline void look_at_threads(const Subject& subject) {
  if (__libc_single_threaded == 0 && told_pulse != nullptr) note_threads(subject);
}

}  // namespace kvo
