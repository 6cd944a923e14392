// reference/cells/session.hpp: what the sessions of the contract share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reference/cells/values.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::cells {

/// A session that shows its cache; null before there is one.
template <class Cache>
struct ShowsCache {
  virtual ~ShowsCache() = default;
  [[nodiscard]] virtual Cache* shown_cache() const = 0;
};

/// A session of one cache. The first of Ops makes it in the place of the earlier one; every other
/// operation is kPrecondition before that.
template <class Derived, class Ops, class Cache, class Options>
class OneCacheSession : public DispatchSession<Derived, Ops>, public ShowsCache<Cache> {
 public:
  using Make = std::function<Result<std::unique_ptr<Cache>>(const Options& options)>;

  OneCacheSession(Make make, const Options& options) : make_(std::move(make)), options_(options) {}

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    if (!cache_ && op.as<boost::mp11::mp_front<Ops>>() == nullptr)
      return {.error = fail(Code::kPrecondition, "no cache")};
    return DispatchSession<Derived, Ops>::apply(op, probe);
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache_ ? cache_->broken_invariant() : std::nullopt;
  }
  [[nodiscard]] Cache* shown_cache() const override { return cache_.get(); }
  /// The cache, whatever the operation.
  template <class T>
  [[nodiscard]] Result<Cache*> cache_of(const T& /*op*/) const {
    return cache_.get();
  }

 protected:
  /// Errors  those of check_options and of the function that makes caches.
  Status make_cache() {
    if (const Status checked = check_options(options_); !checked) return checked;
    auto made = this->probe()([&] { return make_(options_); });
    if (!made) return made.error();
    cache_ = std::move(*made);
    return {};
  }
  [[nodiscard]] Cache& cache() const { return *cache_; }
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  Make make_;
  Options options_;
  std::unique_ptr<Cache> cache_;
};

/// Saved states, or copies of cells, by number.
template <class T>
class NumberedCells {
 public:
  /// Errors  kPrecondition: there is none of that number.
  [[nodiscard]] Result<T*> find(std::int64_t number) {
    if (number < 0 || number >= std::ssize(all_))
      return refused(fmt::format("nothing was saved as {}", number));
    return &all_[static_cast<std::size_t>(number)];
  }
  /// Errors  kPrecondition: there are too many to add another one.
  [[nodiscard]] Status has_space() const {
    constexpr std::size_t kMost = 4096;            // of a case
    constexpr std::size_t kMostSaved = 1U << 20U;  // cells of all of them together
    std::size_t saved = 0;
    for (const T& one : all_) saved += one.cell_count();
    if (all_.size() == kMost || saved > kMostSaved) return refused("too much was saved");
    return {};
  }
  /// Adds one; its number.
  std::int64_t add(T one) {
    all_.push_back(std::move(one));
    return std::ssize(all_) - 1;
  }
  void clear() { all_.clear(); }

 private:
  std::vector<T> all_;
};

/// A subject whose sessions are made with what options_of(setup, quirks) returns.
template <class Session, class OptionsOf>
Subject subject_of(const CacheKind& kind, std::string variant, std::string doc,
                   typename Session::Make make, OptionsOf options_of) {
  return {.kind = &kind,
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make),
                   options_of](const Setup& setup) -> Result<std::unique_ptr<kvo::Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            return std::make_unique<Session>(make, options_of(setup, *quirks));
          }};
}

}  // namespace kvo::cells
