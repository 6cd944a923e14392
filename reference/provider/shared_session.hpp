// reference/provider/shared_session.hpp: what sessions of several kinds of `provider` do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// The caches of a case by number, and the results that the case may read again. An Entry gives its
/// Cache by ->. A session has `using SharedSession::operator();`.
template <class Cache, class Entry = std::unique_ptr<Cache>>
class SharedSession : public ProbedSession {
 public:
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return caches_.broken_invariant();
  }
  template <class T>
  [[nodiscard]] Result<Cache*> cache_of(const T& op) {
    const auto entry = caches_.at(op.cache.value_or(0));
    if (!entry) return entry.error();
    return (*entry)->operator->();
  }
  Status operator()(const Update& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    const auto rows = rows_of(op);
    if (!rows) return rows.error();
    return probe()([&] { return (*cache)->update(op.layer, *rows); });
  }
  Result<Found> operator()(const Get& op) { return found_by(&Cache::get, op); }
  Result<Again> operator()(const Reread& op) {
    const auto pair = result_of(op.handle);
    if (!pair) return pair.error();
    if ((*pair)->k.dangling() || (*pair)->v.dangling()) return Again{.dangling = true};
    return Again{.k = materialize((*pair)->k), .v = materialize((*pair)->v)};
  }
  Status operator()(const Poke& op) {
    const auto pair = result_of(op.handle);
    if (!pair) return pair.error();
    if (op.side != "k" && op.side != "v") return fail(Code::kPrecondition, "side " + op.side);
    const TensorView& view = op.side == "k" ? (*pair)->k : (*pair)->v;
    if (op.index < 0 || op.index >= element_count(view.shape).value_or(0))
      return fail(Code::kPrecondition, "index " + std::to_string(op.index));
    if (view.dangling()) return fail(Code::kPrecondition, "the result is dangling");
    if (in_groups(storage_.type)) return fail(Code::kPrecondition, "rows are codes");
    view.storage->write(view.offset + op.index, op.value);
    return {};
  }

 protected:
  /// The rows of an update. Errors  kPrecondition: they are not f32.
  template <class T>
  [[nodiscard]] static Result<Rows> rows_of(const T& op) {
    for (const Nullable<Tensor>* rows : {&op.k, &op.v})
      if (rows->has_value() && (*rows)->dtype != DType::kF32)
        return fail(Code::kPrecondition, "rows are f32");
    return Rows{.k = op.k.has_value() ? &*op.k : nullptr, .v = op.v.has_value() ? &*op.v : nullptr};
  }
  /// What the method `get` of a cache returns for a layer, with a handle unless `keep` is false.
  template <class Method, class T>
  [[nodiscard]] Result<Found> found_by(Method get, const T& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    const auto pair = probe()([&] { return ((*cache)->*get)(op.layer); });
    if (!pair) return pair.error();
    if (!*pair) return Found{};
    Found found{.found = true, .k = materialize((*pair)->k), .v = materialize((*pair)->v)};
    if (op.keep.value_or(true)) {
      found.handle = std::ssize(results_);
      results_.push_back(**pair);
    }
    return found;
  }
  /// Puts what `make` returns, an Entry, in the place of an operation's `cache`.
  template <class T, class Make>
  [[nodiscard]] Status put(const T& op, Make make) {
    const std::int64_t number = op.cache.value_or(0);
    if (!caches_.may_have(number)) return caches_.none(number);
    Result<Entry> made = make();
    if (!made) return made.error();
    caches_.put(number, *std::move(made));
    return {};
  }

  NumberedCaches<Entry> caches_;
  StorageFormat storage_ = {};  ///< of the rows of its caches

 private:
  [[nodiscard]] Result<const KvPair*> result_of(std::int64_t handle) const {
    if (handle < 0 || handle >= std::ssize(results_))
      return fail(Code::kPrecondition, "no handle " + std::to_string(handle));
    return &results_[static_cast<std::size_t>(handle)];
  }

  std::vector<KvPair> results_;
};

}  // namespace kvo::provider
