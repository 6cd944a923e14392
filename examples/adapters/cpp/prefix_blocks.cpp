// A block manager of kind prefix.blocks in C++: full attention, and the least recently used block
// goes first. With -DFAULT a whole prompt may be hit.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kvoracle.h"

namespace {

using Number = std::int64_t;
using Numbers = std::vector<Number>;

enum Operation {
  kRequest,
  kAppend,
  kSet,
  kMatch,
  kAllocate,
  kCache,
  kFree,
  kTable,
  kUsage,
  kCachedTokens,
  kTake,
  kRelease,
  kTouch
};

constexpr const char* kGreeting =
    R"({"system":"manager","version":"1","kinds":[{"kind":"prefix.blocks",)"
    R"("operations":["request","append","set","match","allocate","cache","free",)"
    R"("table","usage","cached_tokens","take","release","touch"],)"
    R"("conventions":["own_blocks","config attention only default",)"
    R"("config eagle only default","config hash_lookahead only default",)"
    R"("config watermark only default"]}]})";

// A refusal: its code.
struct Refused {
  const char* code;
};

// ---- arguments ----

Number integer(const kvoracle_value& value, Number otherwise = 0) {
  return value.type == KVORACLE_ABSENT ? otherwise : value.as.integer;
}
Numbers numbers(const kvoracle_value& value) {
  if (value.type != KVORACLE_INTEGERS) return {};
  return {value.as.integers.data, value.as.integers.data + value.as.integers.size};
}
std::optional<std::string> text(const kvoracle_value& value) {
  if (value.type != KVORACLE_TEXT) return std::nullopt;
  return std::string(value.as.text.data, value.as.text.size);
}
// A member of the config's JSON, which is an object of numbers and words.
std::string member(const std::string& config, const std::string& name) {
  const std::size_t at = config.find("\"" + name + "\":");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 3;
  return config.substr(begin, config.find_first_of(",}", begin) - begin);
}

// ---- the manager ----

struct Block {
  Number users = 0;
  std::optional<Number> key;
  std::list<Number>::iterator place;  // in the list of free blocks, if it is free
};

struct Request {
  Numbers tokens;
  std::string salt;
  std::optional<std::pair<std::string, std::string>> lora;
  bool skips = false;
  Numbers keys;
  Numbers table;
  Number computed = 0;
  std::optional<Number> registered;  // blocks that were looked at for keys
};

class Manager {
 public:
  explicit Manager(const std::string& config)
      : size_(std::atoll(member(config, "block_size").c_str())),
        longest_(std::atoll(member(config, "max_model_len").c_str())),
        caching_(member(config, "enable_caching") != "false"),
        blocks_(static_cast<std::size_t>(std::atoll(member(config, "num_blocks").c_str()))) {
    for (Number block = count() - 1; block > 0; --block)
      at(block).place = free_.insert(free_.end(), block);
  }

  const kvoracle_value* call(Operation operation, const kvoracle_value* a) {
    returns_ = {};
    switch (operation) {
      case kRequest:
        return make(a);
      case kAppend: {
        Request& own = find(a);
        const Numbers more = numbers(a[1]);
        own.tokens.insert(own.tokens.end(), more.begin(), more.end());
        return add_keys(own);
      }
      case kSet: {
        Request& own = find(a);
        own.computed = integer(a[1], own.computed);
        return returns_;
      }
      case kMatch:
        return match(a);
      case kAllocate:
        return allocate(a);
      case kCache:
        hold(find(a), integer(a[1]));
        return returns_;
      case kFree:
        if (const auto found = requests_.find(integer(a[0])); found != requests_.end()) {
          Numbers table = std::exchange(found->second.table, {});
          found->second.registered.reset();
          std::reverse(table.begin(), table.end());
          drop(table);
        }
        return returns_;
      case kTable:
        return list(0, table(a));
      case kUsage:
        returns_[0].type = KVORACLE_NUMBER;
        returns_[0].as.number =
            count() > 1 ? 1 - static_cast<double>(free_.size()) / static_cast<double>(count() - 1)
                        : 0;
        return returns_;
      case kCachedTokens: {
        Number depth = 0;
        for (const Number block : table(a))
          if (const auto key = at(block).key) depth = std::max(depth, depths_.at(*key));
        return number(0, depth * size_);
      }
      case kTake: {
        if (integer(a[0]) > free_count()) throw Refused{"exhausted"};
        Numbers evicted;
        (void)list(0, hand_out(integer(a[0]), evicted));
        return list(1, evicted);
      }
      case kRelease:
        return release(numbers(a[0]));
      case kTouch: {
        const Numbers blocks = numbers(a[0]);
        check(blocks);
        pin(blocks);
        return returns_;
      }
    }
    throw Refused{"not_supported"};
  }

 private:
  using Content =
      std::tuple<Number, Numbers, std::string, std::optional<std::pair<std::string, std::string>>>;

  Block& at(Number block) { return blocks_[static_cast<std::size_t>(block)]; }
  [[nodiscard]] Number count() const { return static_cast<Number>(blocks_.size()); }
  [[nodiscard]] Number free_count() const { return static_cast<Number>(free_.size()); }
  [[nodiscard]] Number ceil(Number tokens) const { return (tokens + size_ - 1) / size_; }
  static Number length(const Numbers& list) { return static_cast<Number>(list.size()); }

  const kvoracle_value* list(int place, const Numbers& values) {
    held_[place] = values;
    returns_[place].type = KVORACLE_INTEGERS;
    returns_[place].as.integers = {held_[place].data(), held_[place].size()};
    return returns_;
  }
  const kvoracle_value* number(int place, Number value) {
    returns_[place].type = KVORACLE_INTEGER;
    returns_[place].as.integer = value;
    return returns_;
  }

  Request& find(const kvoracle_value* a) {
    const auto found = requests_.find(integer(a[0]));
    if (found == requests_.end()) throw Refused{"precondition"};
    return found->second;
  }
  void check(const Numbers& blocks) const {
    for (const Number block : blocks)
      if (block < 0 || block >= count()) throw Refused{"out_of_range"};
  }
  Numbers table(const kvoracle_value* a) {
    const auto found = requests_.find(integer(a[0]));
    return found != requests_.end() ? found->second.table : Numbers();
  }

  const kvoracle_value* make(const kvoracle_value* a) {
    Request& own = requests_[integer(a[0])];
    Request made;
    made.tokens = numbers(a[1]);
    made.salt = text(a[2]).value_or("");
    if (const auto name = text(a[3])) made.lora.emplace(*name, text(a[4]).value_or(""));
    made.skips = integer(a[5]) != 0;
    made.table = std::move(own.table);
    made.registered = own.registered;
    own = std::move(made);
    return add_keys(own);
  }
  const kvoracle_value* add_keys(Request& own) {
    Numbers added;
    while (caching_ && (length(own.keys) + 1) * size_ <= length(own.tokens)) {
      const Number block = length(own.keys);
      const auto begin = own.tokens.begin() + block * size_;
      Content content(block > 0 ? own.keys.back() : -1, Numbers(begin, begin + size_),
                      block == 0 ? own.salt : "", own.lora);
      const auto next = static_cast<Number>(keys_.size());
      own.keys.push_back(keys_.try_emplace(std::move(content), next).first->second);
      depths_[own.keys.back()] = block + 1;
      added.push_back(own.keys.back());
    }
    return list(0, added);
  }
  const kvoracle_value* match(const kvoracle_value* a) {
    const Request& own = find(a);
#ifdef FAULT
    const Number all = length(own.tokens);
#else
    const Number all = length(own.tokens) - 1;
#endif
    const Number most = integer(a[1], all) / size_;
    Numbers hits;
    if (caching_ && !own.skips)
      for (const Number key : own.keys) {
        const Numbers& holders = holders_[key];
        if (length(hits) >= most || holders.empty()) break;
        hits.push_back(holders.back());
      }
    (void)number(1, length(hits) * size_);
    return list(0, hits);
  }
  const kvoracle_value* allocate(const kvoracle_value* a) {
    Request& own = find(a);
    const Numbers hits = numbers(a[2]);
    check(hits);
    const Number tokens = integer(a[1]);
    const Number hit_tokens = integer(a[3]);
    const Number external = integer(a[4]);
    const bool adopts = !hits.empty() || external > 0;
    if ((tokens == 0 && hit_tokens == 0 && external == 0) || hit_tokens != length(hits) * size_ ||
        (!hits.empty() && (!caching_ || own.registered)) ||
        (adopts && !own.registered && !own.table.empty()))
      throw Refused{"precondition"};
    for (std::size_t i = 0; i < hits.size(); ++i)
      if (hits[i] != 0 && (i >= own.keys.size() || at(hits[i]).key != own.keys[i]))
        throw Refused{"precondition"};
    const Number computed = own.computed + hit_tokens + external;
    const Number slots = std::min(std::min(computed, longest_) + tokens + integer(a[5]), longest_);
    if ((integer(a[7]) != 0 && !fits(own, hits, std::min(length(own.tokens), longest_), 0)) ||
        !fits(own, hits, slots, integer(a[8])))
      throw Refused{"exhausted"};
    Numbers evicted;
    if (!own.registered && adopts) {
      pin(hits);
      own.table = hits;
      own.registered = length(hits);
      if (external > 0) extend(own, ceil(computed), evicted);
    }
    const Numbers added = extend(own, ceil(slots), evicted);
    if (integer(a[6]) == 0) hold(own, std::min(computed, longest_) + tokens);
    (void)list(0, added);
    return list(1, evicted);
  }
  bool fits(const Request& own, const Numbers& hits, Number tokens, Number reserved) {
    Number need = ceil(tokens) - length(own.table);
    if (!own.registered) {
      need = std::max<Number>(need - length(hits), 0);
      for (const Number block : hits) need += block != 0 && at(block).users == 0 ? 1 : 0;
    }
    return std::max<Number>(need, 0) <= free_count() - reserved;
  }
  Numbers extend(Request& own, Number blocks, Numbers& evicted) {
    Numbers added = hand_out(blocks - length(own.table), evicted);
    own.table.insert(own.table.end(), added.begin(), added.end());
    return added;
  }
  void pin(const Numbers& blocks) {
    for (const Number block : blocks)
      if (block != 0 && at(block).users++ == 0) free_.erase(at(block).place);
  }
  Numbers hand_out(Number count, Numbers& evicted) {
    Numbers blocks;
    for (; count > 0; --count) {
      const Number block = free_.front();
      free_.pop_front();
      if (const auto key = std::exchange(at(block).key, std::nullopt)) {
        Numbers& holders = holders_[*key];
        holders.erase(std::find(holders.begin(), holders.end(), block));
        evicted.push_back(block);
      }
      at(block).users = 1;
      blocks.push_back(block);
    }
    return blocks;
  }
  void hold(Request& own, Number tokens) {
    const Number end = std::min(std::min(tokens, length(own.tokens)) / size_, length(own.keys));
    const Number begin = own.registered.value_or(0);
    if (end <= begin) return;
    if (end > length(own.table)) throw Refused{"precondition"};
    own.registered = end;
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const Number block = own.table[i];
      if (block == 0 || at(block).key) continue;
      at(block).key = own.keys[i];
      holders_[own.keys[i]].push_back(block);
    }
  }
  const kvoracle_value* release(const Numbers& blocks) {
    check(blocks);
    std::map<Number, Number> times;
    for (const Number block : blocks)
      if (block != 0 && ++times[block] > at(block).users) throw Refused{"precondition"};
    drop(blocks);
    return returns_;
  }
  void drop(const Numbers& blocks) {
    for (const Number block : blocks) {
      if (block == 0 || --at(block).users > 0) continue;
      // Without a key it is of no use: it goes first.
      const bool last = at(block).key && caching_;
      at(block).place = free_.insert(last ? free_.end() : free_.begin(), block);
    }
  }

  Number size_;
  Number longest_;
  bool caching_;
  std::vector<Block> blocks_;
  std::list<Number> free_;  // the next to be handed out comes first
  std::map<Number, Request> requests_;
  std::map<Content, Number> keys_;
  std::map<Number, Number> depths_;
  std::map<Number, Numbers> holders_;
  struct Returns {  // of the last call
    kvoracle_value values[2] = {};
    operator const kvoracle_value*() const { return values; }
    kvoracle_value& operator[](int place) { return values[place]; }
  };
  Returns returns_;
  Numbers held_[2];
};

void* open_case(const char* /*kind*/, const char* /*profile*/, const char* text) {
  const std::string config = text;
  const auto is = [&](const char* name, const char* usual) {
    const std::string value = member(config, name);
    return value.empty() || value == usual;
  };
  const bool known = is("attention", "\"full\"") && is("eagle", "false") &&
                     is("hash_lookahead", "0") && is("watermark", "0") && is("retention", "");
  return known ? new Manager(config) : nullptr;
}

void call(void* cache, std::uint32_t operation, const kvoracle_value* arguments,
          kvoracle_answer* answer) {
  try {
    answer->returns =
        static_cast<Manager*>(cache)->call(static_cast<Operation>(operation), arguments);
  } catch (const Refused& refused) {
    answer->error = refused.code;
  }
}

}  // namespace

const kvoracle_library* kvoracle_library_of() {
  static const kvoracle_library kLibrary = {
      KVORACLE_VERSION, kGreeting, open_case, call,
      [](void* cache) { delete static_cast<Manager*>(cache); }};
  return &kLibrary;
}
