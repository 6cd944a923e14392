// What all caches of the contract refuse.
#include "reference/positional/cache.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kvo::positional {
namespace {

Error undefined(std::string detail) {
  return fail(Code::kPrecondition, std::move(detail));
}

Error no_operation(std::string_view name) {
  return undefined(std::string(name) + " is no operation of this cache");
}

/// OK-6, and the indices that an encoder would look up.
Status check_batch(const Batch& batch) {
  if (batch.positions.size() != batch.sequences.size())
    return undefined("seqs: " + std::to_string(batch.sequences.size()) + " for " +
                     std::to_string(batch.positions.size()) + " positions");
  for (const std::int32_t position : batch.positions)
    if (position < 0 || position == kMaxPosition)
      return undefined("positions: " + std::to_string(position));
  for (const std::int64_t index : batch.multimodal)
    if (index < 0 || index >= std::ssize(batch.positions))
      return undefined("multimodal: " + std::to_string(index));
  return {};
}

}  // namespace

DType dtype_of(MaskType type) {
  return type == MaskType::kF16 ? DType::kF16 : DType::kF32;
}

Error shared_later_cell() {
  return fail_other("shifting cells shared by multiple sequences not supported");
}

Status Cache::ready() const {
  if (!initialized_) return undefined("call before init");
  if (closed_ && !has(Quirk::kCallsAfterClose)) return fail(Code::kClosed);
  return {};
}

Status Cache::in_pass() const {
  if (Status fit = ready(); !fit) return fit;
  if (closed_) return undefined("call after close");
  if (!usable_) return undefined("call after a start_forward that failed");
  return {};
}

Status Cache::set_config(const BackendConfig& config, std::optional<std::int64_t> member) {
  if (closed_ && !has(Quirk::kCallsAfterClose)) return fail(Code::kClosed);
  if (initialized_) return undefined("set_config after init");
  if (config.cache_padding < 0)
    return undefined("cache_padding: " + std::to_string(config.cache_padding));
  return do_set_config(config, member);
}

Status Cache::init(const InitOptions& arguments) {
  if (closed_ && !has(Quirk::kCallsAfterClose)) return fail(Code::kClosed);
  if (initialized_) return undefined("second init");
  if (arguments.max_sequences < 0 || arguments.max_sequences > kMaxPosition)
    return undefined("max_sequences: " + std::to_string(arguments.max_sequences));
  if (arguments.capacity < 0 || arguments.capacity > kMaxPosition)
    return undefined("capacity: " + std::to_string(arguments.capacity));
  if (arguments.max_batch < 1 || arguments.max_batch > kMaxPosition)
    return undefined("max_batch: " + std::to_string(arguments.max_batch));
  if (Status fit = check(arguments.storage); !fit) return undefined(fit.error().detail);
  Status done = do_init(arguments);
  if (done) initialized_ = true;
  return done;
}

Status Cache::start_forward(const Batch& batch) {
  if (Status fit = ready(); !fit) return fit;
  if (Status fit = check_batch(batch); !fit) return fit;
  Status done = do_start_forward(batch);
  if (done) {
    started_ = usable_ = true;
  } else if (failed_with(done, Code::kFull) && has(Quirk::kFullEvicts)) {
    usable_ = false;
  }
  return done;
}

Status Cache::set_layer(std::int64_t layer) {
  if (Status fit = ready(); !fit) return fit;
  return do_set_layer(layer);
}

Status Cache::set_layer_type(std::int64_t type) {
  if (Status fit = ready(); !fit) return fit;
  return do_set_layer_type(type);
}

Result<std::int64_t> Cache::underlying_cache() const {
  if (Status fit = ready(); !fit) return fit.error();
  return do_underlying_cache();
}

Status Cache::put(const Rows& k, const Rows& v) {
  if (Status fit = in_pass(); !fit) return fit;
  for (const Rows* rows : {&k, &v}) {
    if (rows->tokens < 1 || rows->heads < 1 || rows->dim < 1) return undefined("k, v: empty rows");
    const std::array<std::int64_t, 3> shape{rows->tokens, rows->heads, rows->dim};
    if (element_count(shape) != std::ssize(rows->values)) return undefined("k, v: bad shape");
  }
  if (k.tokens != v.tokens || k.heads != v.heads)
    return undefined("v: other tokens or heads than k (OK-50)");
  return do_put(k, v);
}

Result<Shown> Cache::get() {
  if (Status fit = in_pass(); !fit) return fit.error();
  return do_get();
}

Status Cache::set_causal(std::span<const std::int64_t> except, bool with_context) {
  if (Status fit = in_pass(); !fit) return fit;
  if (!started_) return undefined("set_causal before the first start_forward");
  return do_set_causal(except, with_context);
}

Status Cache::copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) {
  if (Status fit = ready(); !fit) return fit;
  return do_copy_prefix(source, target, length);
}

Result<bool> Cache::can_resume(std::int64_t sequence, std::int32_t position) const {
  if (Status fit = ready(); !fit) return fit.error();
  return do_can_resume(sequence, position);
}

Status Cache::remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) {
  if (Status fit = ready(); !fit) return fit;
  return do_remove(sequence, begin, end);
}

Result<bool> Cache::encoder_cached() const {
  if (Status fit = ready(); !fit) return fit.error();
  return do_encoder_cached();
}

Status Cache::close() {
  if (!initialized_) return undefined("call before init");
  closed_ = true;
  return {};
}

Status Cache::do_set_layer_type(std::int64_t /*type*/) {
  return no_operation("set_layer_type");
}

Result<std::int64_t> Cache::do_underlying_cache() const {
  return no_operation("underlying_cache");
}

Status Cache::do_set_causal(std::span<const std::int64_t> /*except*/, bool /*with_context*/) {
  return no_operation("set_causal");
}

Result<bool> Cache::do_encoder_cached() const {
  return no_operation("encoder_cached");
}

}  // namespace kvo::positional
