/* A cache of kind layered.vector in C: two growing arrays a layer.
 *
 *   cc -O2 -shared -fPIC -I tools/adapters/c layered_vector.c -o layered_vector.so
 *   kvoracle check layered.vector@lib:./layered_vector.so --profile documented
 *
 * With -DFAULT the values of every second token are those of its keys. */
#include <stdlib.h>
#include <string.h>

#include "kvoracle.h"

typedef struct rows {
  float *k, *v;
  size_t tokens, space;
} rows;

typedef struct cache {
  rows* layers;
  uint64_t num_layers, width, length;
} cache;

/* The caches of a case, by number, and what the last answer refers to. */
typedef struct caches {
  cache* all;
  size_t count;
  kvoracle_value returns;
  int64_t elements;
} caches;

enum { NEW, WITH_CAPACITY, APPEND, ADVANCE, K, V, LEN, IS_EMPTY, NUM_LAYERS, ENTRY_SIZE, CLEAR, CLONE };

static const char* const greeting =
    "{\"system\":\"arrays\",\"version\":\"1\",\"kinds\":[{\"kind\":\"layered.vector\",\"operations\":["
    "\"new\",\"with_capacity\",\"append\",\"advance\",\"k\",\"v\",\"len\",\"is_empty\",\"num_layers\","
    "\"entry_size\",\"clear\",\"clone\"]}]}";

static void* open_case(const char* kind, const char* profile, const char* config) {
  (void)kind, (void)profile;
  return strstr(config, "storage") ? NULL : calloc(1, sizeof(caches));
}

static void drop(cache* own) {
  for (uint64_t i = 0; i < own->num_layers; ++i) free(own->layers[i].k), free(own->layers[i].v);
  free(own->layers);
}

static void close_case(void* opened) {
  caches* own = opened;
  for (size_t i = 0; i < own->count; ++i) drop(&own->all[i]);
  free(own->all);
  free(own);
}

static cache* add(caches* own, uint64_t layers, uint64_t width, uint64_t length) {
  own->all = realloc(own->all, (own->count + 1) * sizeof(cache));
  cache* made = &own->all[own->count++];
  *made = (cache){calloc(layers ? layers : 1, sizeof(rows)), layers, width, length};
  return made;
}

static const kvoracle_value* integer(caches* own, uint64_t value) {
  own->returns.type = KVORACLE_INTEGER;
  own->returns.as.integer = (int64_t)value;
  return &own->returns;
}

static const kvoracle_value* flat(caches* own, const float* data, size_t elements) {
  own->elements = (int64_t)elements;
  own->returns.type = KVORACLE_TENSOR;
  own->returns.as.tensor = (kvoracle_tensor){&own->elements, 1, data, KVORACLE_F32};
  return &own->returns;
}

static void store(rows* to, uint64_t width, const float* k, const float* v) {
  if (to->tokens == to->space) {
    to->space = to->space ? 2 * to->space : 4;
    to->k = realloc(to->k, (to->space * width + 1) * sizeof(float));
    to->v = realloc(to->v, (to->space * width + 1) * sizeof(float));
  }
  memcpy(to->k + to->tokens * width, k, width * sizeof(float));
#ifdef FAULT
  if (to->tokens % 2 == 1) v = k;
#endif
  memcpy(to->v + to->tokens++ * width, v, width * sizeof(float));
}

static void call(void* opened, uint32_t operation, const kvoracle_value* arguments, kvoracle_answer* answer) {
  caches* own = opened;
  static const kvoracle_value nothing = {KVORACLE_ABSENT, {0}};
  answer->returns = &nothing;
  if (operation <= WITH_CAPACITY) {
    const uint64_t layers = (uint64_t)arguments[0].as.integer, heads = (uint64_t)arguments[1].as.integer,
                   size = (uint64_t)arguments[2].as.integer;
    const uint64_t most = operation == WITH_CAPACITY ? (uint64_t)arguments[3].as.integer : 0;
    uint64_t width, elements;
    if (__builtin_mul_overflow(heads, size, &width) || __builtin_mul_overflow(width, most, &elements) ||
        elements > UINT64_MAX / 8 || layers > 1u << 20) {
      answer->error = "out_of_range";
      return;
    }
    add(own, layers, width, 0);
    answer->returns = integer(own, own->count - 1);
    return;
  }
  cache* at = &own->all[arguments[0].as.integer];
  rows* layer = NULL;
  if (operation == APPEND || operation == K || operation == V) {
    if ((uint64_t)arguments[1].as.integer >= at->num_layers) {
      answer->error = "out_of_range";
      return;
    }
    layer = &at->layers[arguments[1].as.integer];
  }
  switch (operation) {
    case APPEND: {
      const kvoracle_tensor *k = &arguments[2].as.tensor, *v = &arguments[3].as.tensor;
      if ((uint64_t)k->shape[0] != at->width || (uint64_t)v->shape[0] != at->width)
        answer->error = "bad_shape";
      else
        store(layer, at->width, k->data, v->data);
      return;
    }
    case ADVANCE: ++at->length; return;
    case K: answer->returns = flat(own, layer->k, layer->tokens * at->width); return;
    case V: answer->returns = flat(own, layer->v, layer->tokens * at->width); return;
    case LEN: answer->returns = integer(own, at->length); return;
    case IS_EMPTY:
      answer->returns = integer(own, at->length == 0);
      own->returns.type = KVORACLE_BOOLEAN;
      return;
    case NUM_LAYERS: answer->returns = integer(own, at->num_layers); return;
    case ENTRY_SIZE: answer->returns = integer(own, at->width); return;
    case CLEAR:
      for (uint64_t i = 0; i < at->num_layers; ++i) at->layers[i].tokens = 0;
      at->length = 0;
      return;
    case CLONE: {
      const cache from = *at;
      cache* copy = add(own, from.num_layers, from.width, from.length);
      for (uint64_t i = 0; i < from.num_layers; ++i)
        for (size_t t = 0; t < from.layers[i].tokens; ++t)
          store(&copy->layers[i], from.width, from.layers[i].k + t * from.width, from.layers[i].v + t * from.width);
      answer->returns = integer(own, own->count - 1);
      return;
    }
    default: answer->error = "not_supported";
  }
}

const kvoracle_library* kvoracle_library_of(void) {
  static kvoracle_library library = {KVORACLE_VERSION, NULL, open_case, call, close_case};
  library.greeting = greeting;
  return &library;
}
