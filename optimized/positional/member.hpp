// optimized/positional/member.hpp: caches whose operations are prepared first and carried out
// later.
//
// Preparing allocates, calls the shift function and may fail; carrying out cannot. So what an
// allocation interrupts has changed nothing, and a wrapper can ask all its members before any of
// them changes.
#pragma once

#include <memory>
#include <span>

#include "reference/positional/cache.hpp"

namespace kvo::optimized {

/// A cache that may be a member of a wrapper.
class PositionalMember : public positional::Cache {
 public:
  using Cache::Cache;

  /// Whether set_config has been called (OK-8).
  [[nodiscard]] bool configured() const { return config_.has_value(); }
  void configure(const positional::BackendConfig& config) noexcept { config_ = config; }

  // Each works out an operation; a caller cannot see a difference yet. Then follows commit or
  // cancel.
  virtual Status prepare_init(const positional::InitOptions& arguments) = 0;
  virtual Status prepare_start(const positional::Batch& batch) = 0;
  virtual Status prepare_copy(std::int64_t source, std::int64_t target, std::int32_t length) = 0;
  virtual Status prepare_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) = 0;
  /// Carries out what was prepared; what an error leaves behind as well.
  virtual void commit() noexcept = 0;
  /// Carries out a start_forward that another member did not follow, and takes its batch out
  /// (OK-83). The pass is not usable.
  virtual void commit_unwound(const positional::Batch& batch) noexcept = 0;
  /// Drops what was prepared, if anything is.
  virtual void cancel() noexcept = 0;

  Status do_set_config(const positional::BackendConfig& config,
                       std::optional<std::int64_t> member) final;
  Status do_init(const positional::InitOptions& arguments) final;
  Status do_start_forward(const positional::Batch& batch) final;
  Status do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) final;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) final;
  // For wrappers as well, which keep the guards of their own public calls.
  Status do_set_layer(std::int64_t layer) override = 0;
  Status do_put(const positional::Rows& k, const positional::Rows& v) override = 0;
  Result<positional::Shown> do_get() override = 0;
  Status do_set_causal(std::span<const std::int64_t> except, bool with_context) override {
    return Cache::do_set_causal(except, with_context);
  }
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t sequence,
                                           std::int32_t position) const override = 0;
  [[nodiscard]] Result<bool> do_encoder_cached() const override {
    return Cache::do_encoder_cached();
  }

 protected:
  PositionalMember(const positional::BackendConfig& backend, QuirkSet<positional::Quirk> quirks)
      : Cache(quirks), backend_(backend) {}
  /// The config as given, without defaults (OK-9).
  [[nodiscard]] positional::BackendConfig config() const { return config_.value_or(backend_); }

 private:
  positional::BackendConfig backend_;
  std::optional<positional::BackendConfig> config_;
};

/// Drops on its way out what members have prepared and not carried out.
class PreparedScope {
 public:
  explicit PreparedScope(std::span<PositionalMember* const> members) : members_(members) {}
  PreparedScope(const PreparedScope&) = delete;
  PreparedScope& operator=(const PreparedScope&) = delete;
  ~PreparedScope() {
    for (PositionalMember* member : members_) member->cancel();
  }

 private:
  std::span<PositionalMember* const> members_;
};

/// Whether an outcome changes anything: in the original most errors do (OK-22, OK-66, OK-67).
[[nodiscard]] inline bool takes_effect(const Status& outcome, bool documented) {
  return outcome || (!documented && !failed_with(outcome, Code::kPrecondition));
}

}  // namespace kvo::optimized
