#include "reference/subjects.hpp"

#include "reference/dynamic/layer_cache.hpp"
#include "reference/dynamic/operations.hpp"

namespace kvo::dynamic {

std::vector<Subject> references() {
  std::vector<Subject> all;
  for (const Form form : kForms)
    all.push_back(
        make_subject(kind_of(form), "reference", "layer by layer, as written", make_layer_cache));
  return all;
}

}  // namespace kvo::dynamic
