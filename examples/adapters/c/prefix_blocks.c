/* A block manager of kind prefix.blocks in C: full attention, and the least recently used block goes
 * first.
 *
 *   cc -O2 -shared -fPIC -I tools/adapters/c prefix_blocks.c -o prefix_blocks.so
 *   kvoracle check prefix.blocks@lib:./prefix_blocks.so --profile documented
 *
 * With -DFAULT a whole prompt may be hit. */
#include <stdlib.h>
#include <string.h>

#include "kvoracle.h"

enum { REQUEST, APPEND, SET, MATCH, ALLOCATE, CACHE, FREE, TABLE, USAGE, CACHED_TOKENS, TAKE, RELEASE, TOUCH };

static const char* const greeting =
    "{\"system\":\"manager\",\"version\":\"1\",\"kinds\":[{\"kind\":\"prefix.blocks\",\"operations\":[\"request\","
    "\"append\",\"set\",\"match\",\"allocate\",\"cache\",\"free\",\"table\",\"usage\",\"cached_tokens\",\"take\","
    "\"release\",\"touch\"],\"conventions\":[\"own_blocks\",\"config attention only default\","
    "\"config eagle only default\",\"config hash_lookahead only default\",\"config watermark only default\"]}]}";

/* A growing list of numbers. */
typedef struct list {
  int64_t* at;
  size_t size, space;
} list;

static void push(list* to, int64_t value) {
  if (to->size == to->space) {
    to->space = to->space ? 2 * to->space : 8;
    to->at = realloc(to->at, to->space * sizeof *to->at);
  }
  to->at[to->size++] = value;
}

static void extend(list* to, const int64_t* values, size_t size) {
  for (size_t i = 0; i < size; ++i) push(to, values[i]);
}

/* What a key stands for: the block before it, its tokens, salt and adapter. */
typedef struct content {
  int64_t parent, depth;
  int64_t* tokens;
  char* space;
  list holders; /* blocks that carry the key */
} content;

typedef struct request {
  list tokens, keys, table;
  char *salt, *lora;
  int64_t computed, registered; /* registered: blocks that were looked at for keys; -1: none */
  int exists, skips;
} request;

typedef struct block {
  int64_t users, key, before, after; /* key: -1: none; before, after: in the ring of free blocks */
} block;

typedef struct manager {
  int64_t size, longest, blocks, free;
  int caching;
  block* all; /* block 0 is the head of the ring of free blocks */
  content* keys;
  size_t num_keys, space_keys, num_slots, num_requests;
  int64_t* slots; /* keys by hash; -1: none */
  request* requests;
  list held, evicted; /* of the last answer */
  kvoracle_value returns[2];
} manager;

/* ---- free blocks ---- */

static void unlink_block(manager* m, int64_t number) {
  block* own = &m->all[number];
  m->all[own->before].after = own->after;
  m->all[own->after].before = own->before;
  --m->free;
}

static void link_block(manager* m, int64_t number, int last) {
  const int64_t before = last ? m->all[0].before : 0, after = last ? 0 : m->all[0].after;
  m->all[number].before = before;
  m->all[number].after = after;
  m->all[before].after = m->all[after].before = number;
  ++m->free;
}

static void pin(manager* m, const int64_t* blocks, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (blocks[i] && m->all[blocks[i]].users++ == 0) unlink_block(m, blocks[i]);
}

static void drop(manager* m, int64_t number) {
  if (!number || --m->all[number].users > 0) return;
  link_block(m, number, m->all[number].key >= 0 && m->caching); /* without a key it goes first */
}

static void hand_out(manager* m, int64_t count, list* blocks) {
  for (; count > 0; --count) {
    const int64_t number = m->all[0].after;
    block* own = &m->all[number];
    unlink_block(m, number);
    if (own->key >= 0) {
      list* holders = &m->keys[own->key].holders;
      size_t i = 0;
      while (holders->at[i] != number) ++i;
      memmove(holders->at + i, holders->at + i + 1, (--holders->size - i) * sizeof *holders->at);
      own->key = -1;
      push(&m->evicted, number);
    }
    own->users = 1;
    push(blocks, number);
  }
}

/* ---- keys ---- */

static uint64_t hash_of(int64_t parent, const int64_t* tokens, size_t size, const char* space) {
  uint64_t hash = (1469598103934665603u ^ (uint64_t)parent) * 11400714819323198485u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ (uint64_t)tokens[i]) * 1099511628211u;
  for (; *space; ++space) hash = (hash ^ (uint64_t)(unsigned char)*space) * 1099511628211u;
  return hash ^ hash >> 29;
}

static void add_slot(manager* m, int64_t key) {
  const content* own = &m->keys[key];
  size_t slot = hash_of(own->parent, own->tokens, (size_t)m->size, own->space) % m->num_slots;
  while (m->slots[slot] >= 0) slot = (slot + 1) % m->num_slots;
  m->slots[slot] = key;
}

static int64_t key_of(manager* m, int64_t parent, int64_t depth, const int64_t* tokens, const char* space) {
  const size_t bytes = (size_t)m->size * sizeof *tokens;
  if (2 * m->num_keys >= m->num_slots) {
    m->num_slots = m->num_slots ? 2 * m->num_slots : 64;
    m->slots = realloc(m->slots, m->num_slots * sizeof *m->slots);
    for (size_t i = 0; i < m->num_slots; ++i) m->slots[i] = -1;
    for (size_t i = 0; i < m->num_keys; ++i) add_slot(m, (int64_t)i);
  }
  size_t slot = hash_of(parent, tokens, (size_t)m->size, space) % m->num_slots;
  for (; m->slots[slot] >= 0; slot = (slot + 1) % m->num_slots) {
    const content* known = &m->keys[m->slots[slot]];
    if (known->parent == parent && !memcmp(known->tokens, tokens, bytes) && !strcmp(known->space, space))
      return m->slots[slot];
  }
  if (m->num_keys == m->space_keys) {
    m->space_keys = m->space_keys ? 2 * m->space_keys : 32;
    m->keys = realloc(m->keys, m->space_keys * sizeof *m->keys);
  }
  content* made = &m->keys[m->num_keys];
  *made = (content){parent, depth, malloc(bytes), strdup(space), {NULL, 0, 0}};
  memcpy(made->tokens, tokens, bytes);
  m->slots[slot] = (int64_t)m->num_keys;
  return (int64_t)m->num_keys++;
}

static void add_keys(manager* m, request* own) {
  const size_t size = (size_t)m->size;
  while (m->caching && (own->keys.size + 1) * size <= own->tokens.size) {
    const size_t number = own->keys.size;
    /* An adapter counts in each block, a salt in the first. */
    char* space = malloc(strlen(own->salt) + strlen(own->lora) + 3);
    strcpy(space, own->lora);
    if (number == 0) strcat(strcat(space, "\3"), own->salt);
    const int64_t key = key_of(m, number ? own->keys.at[number - 1] : -1, (int64_t)number + 1,
                               own->tokens.at + number * size, space);
    free(space);
    push(&own->keys, key);
    push(&m->held, key);
  }
}

/* ---- operations ---- */

static int64_t integer(const kvoracle_value* value, int64_t otherwise) {
  return value->type == KVORACLE_ABSENT ? otherwise : value->as.integer;
}

static char* text(const kvoracle_value* value) {
  const size_t size = value->type == KVORACLE_TEXT ? value->as.text.size : 0;
  char* copy = calloc(size + 1, 1);
  if (size) memcpy(copy, value->as.text.data, size);
  return copy;
}

static request* find(manager* m, const kvoracle_value* number) {
  const uint64_t at = (uint64_t)number->as.integer;
  return at < m->num_requests && m->requests[at].exists ? &m->requests[at] : NULL;
}

static void number_result(manager* m, int place, int64_t value) {
  m->returns[place].type = KVORACLE_INTEGER;
  m->returns[place].as.integer = value;
}

static void list_result(manager* m, int place, const list* values) {
  m->returns[place].type = KVORACLE_INTEGERS;
  m->returns[place].as.integers.data = values->at;
  m->returns[place].as.integers.size = values->size;
}

static void make(manager* m, const kvoracle_value* a) {
  const size_t number = (size_t)a[0].as.integer;
  if (number >= m->num_requests) {
    m->requests = realloc(m->requests, (number + 1) * sizeof *m->requests);
    memset(m->requests + m->num_requests, 0, (number + 1 - m->num_requests) * sizeof *m->requests);
    m->num_requests = number + 1;
  }
  request* own = &m->requests[number];
  if (!own->exists) own->registered = -1;
  free(own->salt), free(own->lora);
  own->exists = 1;
  own->tokens.size = own->keys.size = 0;
  own->computed = 0;
  own->skips = (int)integer(&a[5], 0);
  own->salt = text(&a[2]);
  char *name = text(&a[3]), *path = text(&a[4]);
  own->lora = calloc(strlen(name) + strlen(path) + 3, 1);
  if (a[3].type == KVORACLE_TEXT) strcat(strcat(strcat(strcat(own->lora, "\1"), name), "\2"), path);
  free(name), free(path);
  extend(&own->tokens, a[1].as.integers.data, a[1].as.integers.size);
  add_keys(m, own);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceiling(const manager* m, int64_t tokens) { return (tokens + m->size - 1) / m->size; }

static int fits(manager* m, const request* own, const int64_t* hits, size_t num_hits, int64_t tokens,
                int64_t reserved) {
  int64_t need = ceiling(m, tokens) - (int64_t)own->table.size;
  if (own->registered < 0) {
    need -= (int64_t)num_hits;
    if (need < 0) need = 0;
    for (size_t i = 0; i < num_hits; ++i) need += hits[i] && m->all[hits[i]].users == 0;
  }
  return (need > 0 ? need : 0) <= m->free - reserved;
}

static const char* hold(manager* m, request* own, int64_t tokens) {
  const int64_t end = least(least(tokens, (int64_t)own->tokens.size) / m->size, (int64_t)own->keys.size);
  const int64_t begin = own->registered > 0 ? own->registered : 0;
  if (end <= begin) return NULL;
  if (end > (int64_t)own->table.size) return "precondition";
  own->registered = end;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t number = own->table.at[i];
    if (!number || m->all[number].key >= 0) continue;
    m->all[number].key = own->keys.at[i];
    push(&m->keys[own->keys.at[i]].holders, number);
  }
  return NULL;
}

static const char* allocate(manager* m, request* own, const kvoracle_value* a) {
  const int given = a[2].type == KVORACLE_INTEGERS;
  const int64_t* hits = given ? a[2].as.integers.data : NULL;
  const size_t num_hits = given ? a[2].as.integers.size : 0;
  for (size_t i = 0; i < num_hits; ++i)
    if (hits[i] < 0 || hits[i] >= m->blocks) return "out_of_range";
  const int64_t tokens = integer(&a[1], 0), hit_tokens = integer(&a[3], 0), external = integer(&a[4], 0);
  const int fresh = own->registered < 0, adopts = num_hits || external;
  if ((!tokens && !hit_tokens && !external) || hit_tokens != (int64_t)num_hits * m->size ||
      (num_hits && (!m->caching || !fresh)) || (adopts && fresh && own->table.size))
    return "precondition";
  for (size_t i = 0; i < num_hits; ++i)
    if (hits[i] && (i >= own->keys.size || m->all[hits[i]].key != own->keys.at[i])) return "precondition";
  const int64_t computed = own->computed + hit_tokens + external;
  const int64_t slots = least(least(computed, m->longest) + tokens + integer(&a[5], 0), m->longest);
  if ((integer(&a[7], 0) && !fits(m, own, hits, num_hits, least((int64_t)own->tokens.size, m->longest), 0)) ||
      !fits(m, own, hits, num_hits, slots, integer(&a[8], 0)))
    return "exhausted";
  if (fresh && adopts) {
    pin(m, hits, num_hits);
    own->table.size = 0;
    extend(&own->table, hits, num_hits);
    own->registered = (int64_t)num_hits;
    if (external) hand_out(m, ceiling(m, computed) - (int64_t)own->table.size, &own->table);
  }
  hand_out(m, ceiling(m, slots) - (int64_t)own->table.size, &m->held);
  extend(&own->table, m->held.at, m->held.size);
  const char* error = integer(&a[6], 0) ? NULL : hold(m, own, least(computed, m->longest) + tokens);
  list_result(m, 1, &m->evicted);
  return error;
}

static const char* release(manager* m, const int64_t* blocks, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (blocks[i] < 0 || blocks[i] >= m->blocks) return "out_of_range";
  size_t allowed = 0; /* of them: each has a user for each time that it is there */
  while (allowed < size && (!blocks[allowed] || m->all[blocks[allowed]].users-- > 0)) ++allowed;
  for (size_t i = 0; i < size && i <= allowed; ++i)
    if (blocks[i]) ++m->all[blocks[i]].users;
  if (allowed < size) return "precondition";
  for (size_t i = 0; i < size; ++i) drop(m, blocks[i]);
  return NULL;
}

static void call(void* opened, uint32_t operation, const kvoracle_value* a, kvoracle_answer* answer) {
  manager* m = opened;
  m->held.size = m->evicted.size = 0;
  answer->returns = m->returns;
  request* own = operation >= APPEND && operation <= TABLE ? find(m, &a[0]) : NULL;
  if (operation >= APPEND && operation <= CACHE && !own) {
    answer->error = "precondition";
    return;
  }
  switch (operation) {
    case REQUEST: make(m, a); break;
    case APPEND:
      extend(&own->tokens, a[1].as.integers.data, a[1].as.integers.size);
      add_keys(m, own);
      break;
    case SET: own->computed = integer(&a[1], own->computed); return;
    case MATCH: {
      int64_t all = (int64_t)own->tokens.size - 1;
#ifdef FAULT
      ++all;
#endif
      const int64_t most = integer(&a[1], all) / m->size;
      for (size_t i = 0; m->caching && !own->skips && i < own->keys.size && (int64_t)i < most; ++i) {
        const list* holders = &m->keys[own->keys.at[i]].holders;
        if (!holders->size) break;
        push(&m->held, holders->at[holders->size - 1]);
      }
      number_result(m, 1, (int64_t)m->held.size * m->size);
      break;
    }
    case ALLOCATE: answer->error = allocate(m, own, a); break;
    case CACHE: answer->error = hold(m, own, integer(&a[1], 0)); return;
    case FREE:
      if (!own) return;
      while (own->table.size) drop(m, own->table.at[--own->table.size]);
      own->registered = -1;
      return;
    case TABLE:
      if (own) extend(&m->held, own->table.at, own->table.size);
      break;
    case USAGE:
      m->returns[0].type = KVORACLE_NUMBER;
      m->returns[0].as.number = m->blocks > 1 ? 1 - (double)m->free / (double)(m->blocks - 1) : 0;
      return;
    case CACHED_TOKENS: {
      int64_t depth = 0;
      own = find(m, &a[0]);
      for (size_t i = 0; own && i < own->table.size; ++i) {
        const int64_t key = m->all[own->table.at[i]].key;
        if (key >= 0 && m->keys[key].depth > depth) depth = m->keys[key].depth;
      }
      number_result(m, 0, depth * m->size);
      return;
    }
    case TAKE:
      if (integer(&a[0], 0) > m->free) answer->error = "exhausted";
      else hand_out(m, integer(&a[0], 0), &m->held);
      list_result(m, 1, &m->evicted);
      break;
    case RELEASE: answer->error = release(m, a[0].as.integers.data, a[0].as.integers.size); return;
    case TOUCH:
      for (size_t i = 0; i < a[0].as.integers.size; ++i)
        if (a[0].as.integers.data[i] < 0 || a[0].as.integers.data[i] >= m->blocks) answer->error = "out_of_range";
      if (!answer->error) pin(m, a[0].as.integers.data, a[0].as.integers.size);
      return;
    default: answer->error = "not_supported"; return;
  }
  list_result(m, 0, &m->held);
}

/* The text of a member of the config, up to its end; NULL: it is not there. */
static const char* member(const char* config, const char* name) {
  const char* found = strstr(config, name);
  return found ? found + strlen(name) : NULL;
}

static int is(const char* config, const char* name, const char* usual) {
  const char* value = member(config, name);
  return !value || !strncmp(value, usual, strlen(usual));
}

static void* open_case(const char* kind, const char* profile, const char* config) {
  (void)kind, (void)profile;
  if (!is(config, "\"attention\":", "\"full\"") || !is(config, "\"eagle\":", "false") ||
      !is(config, "\"hash_lookahead\":", "0") || !is(config, "\"watermark\":", "0") ||
      member(config, "\"retention\":"))
    return NULL;
  manager* m = calloc(1, sizeof *m);
  m->size = atoll(member(config, "\"block_size\":"));
  m->longest = atoll(member(config, "\"max_model_len\":"));
  m->blocks = atoll(member(config, "\"num_blocks\":"));
  m->caching = is(config, "\"enable_caching\":", "true");
  m->all = calloc((size_t)m->blocks, sizeof *m->all);
  for (int64_t i = 0; i < m->blocks; ++i) m->all[i].key = -1;
  for (int64_t i = m->blocks - 1; i > 0; --i) link_block(m, i, 1);
  return m;
}

static void close_case(void* opened) {
  manager* m = opened;
  for (size_t i = 0; i < m->num_keys; ++i)
    free(m->keys[i].tokens), free(m->keys[i].space), free(m->keys[i].holders.at);
  for (size_t i = 0; i < m->num_requests; ++i) {
    request* own = &m->requests[i];
    free(own->tokens.at), free(own->keys.at), free(own->table.at), free(own->salt), free(own->lora);
  }
  free(m->all), free(m->keys), free(m->slots), free(m->requests), free(m->held.at), free(m->evicted.at);
  free(m);
}

const kvoracle_library* kvoracle_library_of(void) {
  static kvoracle_library library = {KVORACLE_VERSION, NULL, open_case, call, close_case};
  library.greeting = greeting;
  return &library;
}
