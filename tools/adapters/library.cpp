#include "tools/adapters/library.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/adapters/c/kvoracle.h"
#include "tools/adapters/greeting.hpp"
#include "tools/adapters/library_values.hpp"
#include "tools/adapters/refusals.hpp"
#include "tools/commands/usage.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {
namespace {

// ---- from values to records ----

constexpr std::size_t kMostElements = std::size_t{1} << 30U;

/// Reads what a library returned; the first thing that is wrong with it.
class Reader {
 public:
  /// Nothing: the record was read.
  [[nodiscard]] std::optional<std::string> members(const Type& type, const kvoracle_value* values,
                                                   void* record) {
    if (values == nullptr && !type.fields.empty()) return "returns is NULL";
    for (std::size_t i = 0; i < type.fields.size(); ++i)
      if (auto fault = value(*type.fields[i].type, values[i], type.fields[i].of(record)))
        return fmt::format("{}: {}", type.fields[i].name, *fault);
    return std::nullopt;
  }

 private:
  using Fault = std::optional<std::string>;

  static Fault wanted(kvoracle_type type, const kvoracle_value& given) {
    if (given.type == type) return std::nullopt;
    return fmt::format("has type {}, type {} is needed", static_cast<int>(given.type),
                       static_cast<int>(type));
  }

  Fault value(const Type& type, const kvoracle_value& given, void* out) {
    switch (type.type_class) {
      case TypeClass::kBool:
        if (auto fault = wanted(KVORACLE_BOOLEAN, given)) return fault;
        kvo::detail::to<bool>(out) = given.as.integer != 0;
        return std::nullopt;
      case TypeClass::kInteger:
        if (auto fault = wanted(KVORACLE_INTEGER, given)) return fault;
        return integer(type, given.as.integer, out);
      case TypeClass::kEnum:
        if (auto fault = wanted(KVORACLE_INTEGER, given)) return fault;
        if (given.as.integer < 0 || given.as.integer >= std::ssize(type.enumerators))
          return fmt::format("{}: there are {} words", given.as.integer, type.enumerators.size());
        set_integer(type, out, type.enumerators[static_cast<std::size_t>(given.as.integer)].value);
        return std::nullopt;
      case TypeClass::kFloat:
        if (auto fault = wanted(KVORACLE_NUMBER, given)) return fault;
        kvo::detail::to<float>(out) = static_cast<float>(given.as.number);
        return std::nullopt;
      case TypeClass::kDouble:
        if (auto fault = wanted(KVORACLE_NUMBER, given)) return fault;
        kvo::detail::to<double>(out) = given.as.number;
        return std::nullopt;
      case TypeClass::kString:
        if (auto fault = wanted(KVORACLE_TEXT, given)) return fault;
        if (given.as.text.size > kMostElements) return "is too long";
        kvo::detail::to<std::string>(out).assign(given.as.text.data, given.as.text.size);
        return std::nullopt;
      case TypeClass::kCustom: {
        if (auto fault = wanted(KVORACLE_TEXT, given)) return fault;
        boost::system::error_code failure;
        const auto json = parse_json({given.as.text.data, given.as.text.size}, failure);
        if (failure || !type.from_json(json, out)) return "is not understood";
        return std::nullopt;
      }
      case TypeClass::kTensor:
        if (auto fault = wanted(KVORACLE_TENSOR, given)) return fault;
        return tensor(given.as.tensor, kvo::detail::to<Tensor>(out));
      case TypeClass::kRecord:
        if (auto fault = wanted(KVORACLE_RECORD, given)) return fault;
        if (given.as.list.size != type.fields.size())
          return fmt::format("has {} members, not {}", given.as.list.size, type.fields.size());
        return members(type, given.as.list.data, out);
      case TypeClass::kList:
        return list(type, given, out);
      case TypeClass::kOptional:
      case TypeClass::kNullable:
        type.reset(out);
        if (given.type == KVORACLE_ABSENT) return std::nullopt;
        return value(*type.element, given, type.emplace(out));
    }
    return std::nullopt;
  }
  static Fault integer(const Type& type, std::int64_t given, void* out) {
    set_integer(type, out, given);
    if (integer_at(type, out) == given) return std::nullopt;
    return fmt::format("{}: does not fit", given);
  }
  static Fault tensor(const kvoracle_tensor& given, Tensor& out) {
    constexpr std::size_t kMostAxes = 8;
    if (given.axes > kMostAxes || given.dtype > KVORACLE_BOOL) return "is no tensor";
    const std::span shape(given.shape, given.axes);
    const auto count = element_count(shape);
    if (!count || static_cast<std::size_t>(*count) > kMostElements) return "has no such shape";
    out.shape.assign(shape.begin(), shape.end());
    out.dtype = static_cast<DType>(given.dtype);
    const auto* bytes = static_cast<const std::byte*>(given.data);
    out.bytes.assign(bytes, bytes + static_cast<std::size_t>(*count) * dtype_bytes(out.dtype));
    return std::nullopt;
  }
  Fault list(const Type& type, const kvoracle_value& given, void* out) {
    const bool integers = type.element->type_class == TypeClass::kInteger;
    if (auto fault = wanted(integers ? KVORACLE_INTEGERS : KVORACLE_LIST, given)) return fault;
    const std::size_t size = integers ? given.as.integers.size : given.as.list.size;
    if (size > kMostElements) return "is too long";
    type.resize(out, 0);
    type.resize(out, size);
    for (std::size_t i = 0; i < size; ++i) {
      auto fault = integers ? integer(*type.element, given.as.integers.data[i], type.at(out, i))
                            : value(*type.element, given.as.list.data[i], type.at(out, i));
      if (fault) return fmt::format("{}: {}", i, *fault);
    }
    return std::nullopt;
  }
};

// ---- the library ----

struct Loaded {
  const kvoracle_library* library = nullptr;
  void* handle = nullptr;  ///< of dlopen(3)
  std::string fault;       ///< why there is none
};

Loaded loaded(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {.fault = dlerror()};
  using Of = const kvoracle_library* (*)();
  const auto of = reinterpret_cast<Of>(dlsym(handle, "kvoracle_library_of"));  // NOLINT: POSIX
  if (of == nullptr) return {.fault = "it exports no kvoracle_library_of"};
  const kvoracle_library* library = of();
  if (library == nullptr) return {.fault = "kvoracle_library_of returned NULL"};
  if (library->version != KVORACLE_VERSION)
    return {.fault = fmt::format("it has version {} of kvoracle.h, this is version {}",
                                 library->version, KVORACLE_VERSION)};
  if (library->greeting == nullptr || library->open == nullptr || library->call == nullptr ||
      library->close == nullptr)
    return {.fault = "it leaves a member of kvoracle_library NULL"};
  return {library, handle, ""};
}

class LibrarySession final : public Session {
 public:
  LibrarySession(const kvoracle_library& library, void* cache, Refusals refusals,
                 std::vector<std::uint32_t> numbers)
      : library_(library),
        cache_(cache),
        refusals_(std::move(refusals)),
        numbers_(std::move(numbers)) {}
  ~LibrarySession() override { library_.close(cache_); }

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    if (auto refusal = refusals_.of(op)) return refused(*std::move(refusal));
    values_.clear();
    const kvoracle_value* arguments =
        values_.of_members(*op.kind().arguments, op.arguments().get());
    kvoracle_answer answer{};
    const std::uint32_t number = numbers_[refusals_.number_of(op.kind())];
    probe([&] { library_.call(cache_, number, arguments, &answer); });
    Observation seen;
    if (answer.error != nullptr) {
      seen.error = error_of_code(answer.error);
      if (answer.detail != nullptr) seen.error->detail = answer.detail;
      seen.unsupported = seen.failed_with(Code::kNotSupported);
      return seen;
    }
    const std::shared_ptr<void> returned = op.kind().returns->made();
    if (auto fault = Reader().members(*op.kind().returns, answer.returns, returned.get())) {
      seen.error = fail(Code::kThrew, "its library returned " + *fault);
      return seen;
    }
    seen.returns = Record(*op.kind().returns, returned);
    refusals_.learn(op, seen);
    return seen;
  }

 private:
  const kvoracle_library& library_;
  void* cache_;
  Refusals refusals_;
  std::vector<std::uint32_t> numbers_;  // [operation of the kind], in the greeting
  LibraryValues values_;
};

Greeting greeting_of(const std::string& path) {
  const auto made = in_process<std::vector<std::string>>(Limits{}, [&] {
    const Loaded found = loaded(path);
    return std::vector<std::string>{found.library != nullptr ? found.library->greeting : "",
                                    found.fault};
  });
  if (const auto* death = std::get_if<Death>(&made))
    throw UsageError(fmt::format("lib:{}: {}", path, death->how));
  const auto& words = std::get<std::vector<std::string>>(made);
  if (!words[1].empty()) throw UsageError(fmt::format("lib:{}: {}", path, words[1]));
  boost::system::error_code failure;
  const auto json = parse_json(words[0], failure);
  JsonFault fault;
  Greeting greeting;
  if (failure || !read_json(json, greeting, fault))
    throw UsageError(
        fmt::format("lib:{}: greeting: {}", path, failure ? failure.message() : fault.text()));
  return greeting;
}

}  // namespace

std::vector<Subject> subjects_of_library(const Contracts& contracts, const std::string& path) {
  const Greeting greeting = greeting_of(path);
  std::vector<Subject> subjects = greeted_subjects(contracts, greeting, "lib:" + path);
  for (Subject& subject : subjects) {
    const CacheKind* kind = subject.kind;
    std::vector<std::uint32_t> numbers;
    for (const OpKind* op : kind->operations) {
      const auto& greeted = *std::ranges::find(greeting.kinds, kind->name(), &GreetedKind::kind);
      const auto& names = greeted.operations;
      const auto at = names.empty()
                          ? std::ranges::find(kind->operations, op) - kind->operations.begin()
                          : std::ranges::find(names, op->name) - names.begin();
      numbers.push_back(static_cast<std::uint32_t>(at));
    }
    subject.guest = true;
    subject.open = [path, kind, numbers, missing = missing_operations(greeting, *kind)](
                       const Setup& setup) -> Result<std::unique_ptr<Session>> {
      static std::map<std::string, Loaded> known;  // in this process
      auto [found, is_new] = known.try_emplace(path);
      if (is_new) found->second = loaded(path);
      if (found->second.library == nullptr) return fail(Code::kNotSupported, found->second.fault);
      tell_library(path, found->second.handle);
      const std::string config =
          boost::json::serialize(setup.config ? write_record(setup.config) : boost::json::object());
      const char* profile = setup.profile == Profile::kDocumented ? "documented" : "original";
      void* cache = found->second.library->open(kind->name().c_str(), profile, config.c_str());
      if (cache == nullptr) return fail(Code::kNotSupported, "open returned NULL");
      return std::make_unique<LibrarySession>(*found->second.library, cache,
                                              Refusals(*kind, missing), numbers);
    };
  }
  return subjects;
}

}  // namespace kvo::tools
