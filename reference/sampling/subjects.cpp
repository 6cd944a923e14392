#include "reference/subjects.hpp"

#include "reference/sampling/operations.hpp"
#include "reference/sampling/pipeline.hpp"

namespace kvo::sampling {

std::vector<Subject> references() {
  return {make_subject("reference", "every step over the whole vocabulary", make_pipeline)};
}

}  // namespace kvo::sampling
