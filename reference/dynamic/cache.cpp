#include "reference/dynamic/cache.hpp"

namespace kvo::dynamic {
namespace {

Error not_offered() {
  return fail(Code::kNotSupported, "this cache does not have it");
}

}  // namespace

Status Cache::early_initialization(std::int64_t /*batch_size*/, std::int64_t /*num_heads*/,
                                   std::int64_t /*head_dim*/) {
  return not_offered();
}
Status Cache::layer_offload(std::int64_t /*layer*/) {
  return not_offered();
}
Status Cache::layer_prefetch(std::int64_t /*layer*/) {
  return not_offered();
}
Result<Rows> Cache::update_conv_state(std::int64_t /*layer*/, const Tensor& /*state*/,
                                      std::optional<std::int64_t> /*conv_kernel_size*/) {
  return not_offered();
}
Result<Rows> Cache::get_conv_state(std::int64_t /*layer*/) const {
  return not_offered();
}
Result<Rows> Cache::update_recurrent_state(std::int64_t /*layer*/, const Tensor& /*state*/) {
  return not_offered();
}
Result<Rows> Cache::get_recurrent_state(std::int64_t /*layer*/) const {
  return not_offered();
}
Result<bool> Cache::has_previous_state(std::optional<std::int64_t> /*layer*/) const {
  return not_offered();
}
Result<std::vector<Flag>> Cache::is_updated() const {
  return not_offered();
}

}  // namespace kvo::dynamic
