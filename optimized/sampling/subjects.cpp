#include "optimized/sampling/subjects.hpp"

#include <memory>

#include "optimized/sampling/selecting_sampler.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::optimized {

std::vector<Subject> sampling_subjects() {
  return {sampling::make_subject("optimized", "selects what may be drawn, touches nothing else",
                                 make_selecting_sampler)};
}

std::unique_ptr<sampling::Sampler> make_selecting_sampler(QuirkSet<sampling::Quirk> quirks) {
  return std::make_unique<SelectingSampler>(quirks);
}

}  // namespace kvo::optimized
