#include "reference/contract/subject/dispatch.hpp"

#include <new>
#include <stdexcept>

#include "reference/contract/values/thrown.hpp"

namespace kvo {

Observation detail::observe_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {.error = fail(Code::kOutOfMemory)};
  } catch (const std::length_error& error) {
    return {.error = fail(Code::kOutOfMemory, error.what())};
  } catch (const ErrorThrown& error) {
    return {.error = error.error()};
  } catch (const std::exception& error) {
    const char* what = error.what();  // a faulty one may have none
    return {.error = fail(Code::kThrew, what != nullptr ? what : "an exception without words")};
  } catch (...) {
    return {.error = fail(Code::kThrew, "what is no std::exception")};
  }
}

}  // namespace kvo
