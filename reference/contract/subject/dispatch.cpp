#include "reference/contract/subject/dispatch.hpp"

#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

#include "reference/contract/values/thrown.hpp"

namespace kvo {

namespace {

Observation threw(const char* what) {
  if (what == nullptr) what = "an exception without words";  // a faulty one may have none
  return {.error = fail(Code::kThrew, std::string(what, ::strnlen(what, kMostErrorText)))};
}

}  // namespace

Observation detail::observe_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {.error = fail(Code::kOutOfMemory)};
  } catch (const std::length_error& error) {
    return {.error = fail(Code::kOutOfMemory, error.what())};
  } catch (const ErrorThrown& error) {
    return {.error = error.error()};
  } catch (const std::system_error& error) {
    // No thread or no memory to be had says nothing about the cache.
    const bool starved = error.code() == std::errc::resource_unavailable_try_again ||
                         error.code() == std::errc::not_enough_memory;
    if (!starved) return threw(error.what());
    allocation_gate.refused_bytes = 1;
    return {.error = fail(Code::kOutOfMemory)};
  } catch (const std::exception& error) {
    return threw(error.what());
  } catch (...) {
    return {.error = fail(Code::kThrew, "what is no std::exception")};
  }
}

}  // namespace kvo
