#include "reference/contract/subject/dispatch.hpp"

#include <new>
#include <stdexcept>

namespace kvo {

Observation detail::observe_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {.error = fail(Code::kOutOfMemory)};
  } catch (const std::length_error& error) {
    return {.error = fail(Code::kOutOfMemory, error.what())};
  } catch (const std::exception& error) {
    return {.error = fail(Code::kThrew, error.what())};
  }
}

}  // namespace kvo
