#include "reference/contract/values/quirk.hpp"

#include "reference/contract/describe/describe.hpp"

namespace kvo {

std::string QuirkInfo::name() const {
  return enumerator_word(enumerator);
}

}  // namespace kvo
