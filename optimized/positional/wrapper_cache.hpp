// optimized/positional/wrapper_cache.hpp: caches that run in step, one for each type of layer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optimized/positional/member.hpp"

namespace kvo::optimized {

/// Members in order; put, get and what concerns a batch go to the selected one (OK-80 to OK-88).
class PositionalWrapperCache final : public positional::Cache {
 public:
  /// Errors  kPrecondition: no member, window or memory below 0.
  [[nodiscard]] static Result<std::unique_ptr<positional::Cache>> make(
      const positional::CacheOptions& options);
  explicit PositionalWrapperCache(const positional::CacheOptions& options);

  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  Status do_set_config(const positional::BackendConfig& config,
                       std::optional<std::int64_t> member) override;
  Status do_init(const positional::InitOptions& arguments) override;
  Status do_start_forward(const positional::Batch& batch) override;
  Status do_set_layer(std::int64_t layer) override;
  Status do_set_layer_type(std::int64_t type) override;
  [[nodiscard]] Result<std::int64_t> do_underlying_cache() const override;
  Status do_put(const positional::Rows& k, const positional::Rows& v) override;
  Result<positional::Shown> do_get() override;
  Status do_set_causal(std::span<const std::int64_t> except, bool with_context) override;
  Status do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) override;
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t sequence,
                                           std::int32_t position) const override;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override;
  [[nodiscard]] Result<bool> do_encoder_cached() const override;

  /// What all members answered, up to the first that failed, which is the last.
  struct Answers {
    Status outcome = {};
    std::size_t count = 0;
  };
  template <class Prepare>
  [[nodiscard]] Answers ask(Prepare&& prepare);
  /// Asks all, then carries out what has an effect (OK-86).
  template <class Prepare>
  [[nodiscard]] Status carry_out(Prepare&& prepare);
  /// The selected member, or null (OK-82).
  [[nodiscard]] PositionalMember* selected() const;
  [[nodiscard]] Error no_type() const;

  std::vector<std::unique_ptr<PositionalMember>> owned_;
  std::vector<PositionalMember*> members_;
  std::int64_t type_ = 0;
};

}  // namespace kvo::optimized
