#include "properties/contract_parts.hpp"
#include "properties/provider/lowering.hpp"

namespace kvo::provider {

std::vector<Generator> generators() {
  return {contiguous_generator(), paged_generator(),   device_generator(),
          tensor_generator(),     tracing_generator(), context_generator()};
}

std::vector<replay::Lowering> lowerings() {
  return {contiguous_lowering(), paged_lowering(), tensor_lowering(), device_lowering(),
          tracing_lowering()};
}

}  // namespace kvo::provider
