// tools/testing/sanitized.hpp: whether a sanitizer is linked, which says by itself how a process
// crashed.
#pragma once

namespace kvo::tools {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace kvo::tools
