// reference/contract/subject/inner.hpp: a cache that another one has inside, driven by operations.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// Where the sessions of caches inside find the probe of the operation under way.
class ProbeSlot {
 public:
  void set(Probe& probe) { probe_ = &probe; }
  [[nodiscard]] Probe& get() const { return *probe_; }

 private:
  Probe* probe_ = nullptr;
};

/// A session of the subject inside. It calls its caches through the probe of the slot, so only what
/// they do is timed and counted; the slot outlives it.
class Inner {
 public:
  /// Opens a session in the setup's profile, with those of its quirks that the kind has.
  /// Errors  of the subject.
  [[nodiscard]] static Result<Inner> open(const Subject& subject, const Setup& setup,
                                          const ProbeSlot& probe, Record config = {});

  /// Carries out one operation. Errors  those that it observes.
  template <class T>
  [[nodiscard]] Result<typename T::Returns> operator()(T op) {
    const Observation seen = session_->apply(Op::of(std::move(op)), probe_->get());
    if (seen.error) return *seen.error;
    return seen.as<typename T::Returns>();
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const {
    return session_->broken_invariant();
  }

 private:
  Inner(std::unique_ptr<Session> session, const ProbeSlot& probe)
      : session_(std::move(session)), probe_(&probe) {}

  std::unique_ptr<Session> session_;
  const ProbeSlot* probe_;
};

/// A result without its value.
template <class T>
[[nodiscard]] Status status_of(const Result<T>& result) {
  return result ? Status() : Status(result.error());
}

}  // namespace kvo
