#include "reference/subjects.hpp"

#include <memory>

#include "reference/mlx_lm/make.hpp"
#include "reference/mlx_lm/operations.hpp"

namespace kvo::mlx_lm {

std::vector<Subject> references() {
  return make_subjects("reference", "by the rules", make_reference, make_prompt_lru);
}

}  // namespace kvo::mlx_lm
