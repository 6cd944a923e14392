/* kvoracle.h: what a shared library exports so that kvoracle can drive its caches. Version 1.
 *
 * Link nothing: define kvoracle_library_of() and load the result with `KIND@lib:./mycache.so`.
 * kvoracle calls one function at a time. The library runs in a process of its own, so that a crash
 * is reported as a verdict. */
/* NOLINTBEGIN: of C */
#ifndef KVORACLE_H
#define KVORACLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVORACLE_VERSION 1

enum kvoracle_dtype {
  KVORACLE_F32, KVORACLE_F16, KVORACLE_BF16, KVORACLE_I32, KVORACLE_F8_E4M3, KVORACLE_F8_E5M2,
  KVORACLE_U32, KVORACLE_BOOL
};

/* A dense tensor, row-major: the last axis varies fastest. */
typedef struct kvoracle_tensor {
  const int64_t* shape; /* sizes of the axes, outermost first */
  size_t axes;
  const void* data;
  enum kvoracle_dtype dtype;
} kvoracle_tensor;

enum kvoracle_type {
  KVORACLE_ABSENT,   /* a member that is left out, and null */
  KVORACLE_BOOLEAN,  /* integer: 0 or 1 */
  KVORACLE_INTEGER,  /* integer; also the number of a word among the words of the member, from 0 */
  KVORACLE_NUMBER,   /* number */
  KVORACLE_TEXT,     /* text */
  KVORACLE_TENSOR,   /* tensor */
  KVORACLE_INTEGERS, /* integers: a list of them */
  KVORACLE_LIST,     /* list: of any other type */
  KVORACLE_RECORD    /* list: one value a member, in order */
};

/* A value of an argument or a result. */
typedef struct kvoracle_value {
  enum kvoracle_type type;
  union {
    int64_t integer;
    double number;
    struct { const char* data; size_t size; } text; /* UTF-8 */
    kvoracle_tensor tensor;
    struct { const int64_t* data; size_t size; } integers;
    struct { const struct kvoracle_value* data; size_t size; } list;
  } as;
} kvoracle_value;

/* What a call came to. An error has a code of operation logs ("full", "out_of_range", ..), and may
 * have a text. Without error, `returns` has one value a member of the results, in order; it belongs
 * to the library and is valid until the next call. */
typedef struct kvoracle_answer {
  const char* error;  /* NULL: none */
  const char* detail; /* NULL: none */
  const kvoracle_value* returns;
} kvoracle_answer;

typedef struct kvoracle_library {
  uint32_t version;        /* KVORACLE_VERSION */
  const char* greeting;    /* as an adapter's, in JSON: system, version, kinds with operations */
  /* Opens a case. `config` is JSON. Returns NULL if the cache cannot have this config. */
  void* (*open)(const char* kind, const char* profile, const char* config);
  /* Carries out an operation: its number in the greeting's list of the kind, and its arguments,
   * one value a member, in order. They are valid during the call. */
  void (*call)(void* cache, uint32_t operation, const kvoracle_value* arguments,
               kvoracle_answer* answer);
  void (*close)(void* cache);
} kvoracle_library;

/* What the library exports. */
const kvoracle_library* kvoracle_library_of(void);

#ifdef __cplusplus
}
#endif
#endif
/* NOLINTEND */
