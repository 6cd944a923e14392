// reference/provider/operated_provider.hpp: a provider that is cache 0 of a session.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "reference/contract/subject/inner.hpp"
#include "reference/provider/cache.hpp"

namespace kvo::provider {

/// What a cache of provider.contiguous, paged or tensor does, as its operations say. The session
/// has a cache 0.
class OperatedProvider final : public Provider {
 public:
  /// `tensor`: the session is one of provider.tensor. `live`: results show what the cache holds
  /// when they are looked at, as the session's own do; else copies, which cost no handle.
  OperatedProvider(std::shared_ptr<Inner> inner, bool tensor, bool live)
      : inner_(std::move(inner)), tensor_(tensor), live_(live) {}

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return inner_->broken_invariant();
  }

 private:
  std::shared_ptr<Inner> inner_;
  bool tensor_;
  bool live_;
};

/// Copies of rows as a cache shows them.
[[nodiscard]] KvPair pair_of(const Tensor& k, const Tensor& v);

}  // namespace kvo::provider
