#include "reference/subjects.hpp"

#include "reference/events/make.hpp"
#include "reference/events/operations.hpp"

namespace kvo::events {

std::vector<Subject> references() {
  std::vector<Subject> all;
  for (const Form form : kForms)
    all.push_back(make_subject(form, "reference", "by the rules", make_reference));
  return all;
}

}  // namespace kvo::events
