// reference/generation/operated_cache.hpp: a session as the caches behind it are called.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/generation/inner_caches.hpp"
#include "reference/provider/cache.hpp"

namespace kvo::generation {

/// A session of a subject whose caches a generation drives. Only what the caches do is timed and
/// counted: the session calls them through the probe of the operation under way.
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

/// Rows that an operation returned, as a cache shows them.
[[nodiscard]] provider::KvPair pair_of(const Tensor& k, const Tensor& v);

/// How operations of one kind keep rows, layer by layer: what stands behind a cache that is bounded
/// and counts by itself.
class RowStore {
 public:
  virtual ~RowStore() = default;
  /// Adds rows [1, positions, dim] behind `past` positions of a layer. Errors  of the cache.
  [[nodiscard]] virtual Status add(std::int64_t layer, std::int64_t past, const Tensor& k,
                                   const Tensor& v) = 0;
  /// All rows of a layer, [1, positions, dim]. Errors  of the cache.
  [[nodiscard]] virtual Result<provider::KvPair> rows(std::int64_t layer) = 0;
  /// Cuts every layer to at most `n` positions, n >= 0. Errors  of the cache.
  [[nodiscard]] virtual Status cut(std::int64_t n) = 0;
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const = 0;
};

/// A store of a stand-in's kind, or nothing for another kind. Errors  of the subject.
[[nodiscard]] Result<std::unique_ptr<RowStore>> make_store(const Subject& subject,
                                                           const Setup& setup,
                                                           const CacheSizes& sizes,
                                                           const ProbeSlot& probe);

}  // namespace kvo::generation
