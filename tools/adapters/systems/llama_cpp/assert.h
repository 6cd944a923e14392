// assert() of llama.cpp's sources in a debug build: a failed one is thrown, so that the adapter can answer. Included in the
// place of the compiler's, and as often.
#include_next <assert.h>

#ifndef NDEBUG
#ifdef __cplusplus
extern "C"
#endif
    void
    fail_assertion(const char* expression) __attribute__((noreturn));
#undef assert
#define assert(expression) ((expression) ? (void)0 : fail_assertion(#expression))
#endif
