// reference/contract/device/job.hpp: the work of a kernel as a value.
//
// A job is a trivially copyable struct of pointers and sizes with
//   kName           as logs name the kernel;
//   items()         how many items it has;
//   run(i, memory)  carries out one, with memory.load(p) and memory.store(p, value): items write
//                   disjoint cells, so every order of items, and all at once, leave the same
//                   memory;
//   touch(memory)   says what it reads (pointers to const) and writes, in elements from a pointer;
//   a
//                   job may be without, and must be if it reads pointers from memory;
//   arguments()     as logs show them, all pointers among them.
// A device gets it as a Job, which knows no type. One that runs on the host maps the pointers of a
// copy to where the memory is, while touch() names them, and runs the items over PlainMemory; one
// that looks at every access, or finds no touch(), runs them over WatchedMemory; one with kernels
// of its own has a launcher for each JobType.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "reference/contract/device/portable.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo {

/// An address in device memory, in bytes; 0 is null.
struct DevicePtr {
  std::uint64_t address = 0;

  explicit operator bool() const { return address != 0; }
  friend bool operator==(const DevicePtr&, const DevicePtr&) = default;
  friend DevicePtr operator+(DevicePtr base, std::int64_t bytes) {
    return {base.address + static_cast<std::uint64_t>(bytes)};
  }
  /// For a job; nobody else follows it.
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
};
static_assert(sizeof(DevicePtr) == 8, "pointer arrays on a device hold 8 bytes each");

/// What a job is called with: an address or a number.
struct JobArgument {
  std::string_view name = {};
  bool is_pointer = false;
  DevicePtr pointer = {};
  std::int64_t number = 0;
  // Of a pointer, for reports.
  std::int64_t element_bytes = 1;
  std::int64_t width = 0;                                     ///< elements of a row; 0: no rows
  std::optional<std::int64_t> first_position = std::nullopt;  ///< of row 0

  JobArgument() = default;
  JobArgument(std::int64_t value) : number(value) {}  // NOLINT: arguments are listed
  /// A pointer, or one to rows of so many elements. `first`: the position of row 0, where rows
  /// ascend.
  template <class T>
  JobArgument(T* to, std::int64_t row = 0,  // NOLINT: the same
              std::optional<std::int64_t> first = std::nullopt)
      : is_pointer(true),
        pointer{reinterpret_cast<std::uint64_t>(to)},
        element_bytes(sizeof(T)),
        width(row),
        first_position(first) {}
};

inline constexpr std::size_t kMostJobArguments = 12;
using JobArguments = std::array<JobArgument, kMostJobArguments>;  ///< those without name are none

/// Arguments and their names, with blanks between them. Requires  a name for each.
inline JobArguments named_arguments(std::string_view names,
                                    std::initializer_list<JobArgument> arguments) {
  JobArguments made;
  auto next = made.begin();
  for (const JobArgument& argument : arguments) {
    const std::size_t end = std::min(names.find(' '), names.size());
    KVO_CHECK(end > 0);
    *next = argument;
    next++->name = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  KVO_CHECK(names.empty());
  return made;
}

/// Device memory that the host can reach: where touch() maps the pointers of a job to.
class JobMemory {
 public:
  virtual ~JobMemory() = default;

  /// Makes pointer[first], .., pointer[first + count - 1] usable.
  /// Errors  false: they are not all inside one live buffer.
  template <class T>
  [[nodiscard]] bool map(T*& pointer, std::int64_t first, std::int64_t count) {
    constexpr std::int64_t kBytes = sizeof(T);
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(first, kBytes, &offset) ||
        __builtin_mul_overflow(count, kBytes, &bytes))
      return false;
    const DevicePtr at{reinterpret_cast<std::uint64_t>(pointer)};
    std::byte* const found = host_address(at + offset, bytes, !std::is_const_v<T>);
    if (found != nullptr) pointer = reinterpret_cast<T*>(found - offset);
    return found != nullptr;
  }

 protected:
  /// The bytes at `ptr`, or null unless all of them lie inside one buffer.
  [[nodiscard]] virtual std::byte* host_address(DevicePtr ptr, std::int64_t bytes,
                                                bool written) = 0;
};

/// Loads and stores as they are: what an item runs over on a card, and on mapped host memory.
struct PlainMemory {
  template <class T>
  [[nodiscard]] KVO_HD constexpr T load(const T* at) const {
    return *at;
  }
  template <class T>
  KVO_HD constexpr void store(T* at, std::type_identity_t<T> value) const {
    *at = value;
  }
};

/// Loads and stores that a device looks at one by one. Pointers are addresses on the device.
class WatchedMemory {
 public:
  virtual ~WatchedMemory() = default;

  template <class T>
  [[nodiscard]] T load(const T* at) {
    T value = {};
    read({reinterpret_cast<std::uint64_t>(at)}, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  template <class T>
  void store(T* at, std::type_identity_t<T> value) {
    write({reinterpret_cast<std::uint64_t>(at)}, std::as_bytes(std::span(&value, 1)));
  }

 protected:
  /// One access; its address must be a multiple of its size.
  virtual void read(DevicePtr from, std::span<std::byte> out) = 0;
  virtual void write(DevicePtr to, std::span<const std::byte> cells) = 0;
};

/// What one of `threads` threads of a kernel does: each threads-th item from its number on.
template <class T, class Memory>
KVO_HD constexpr void run_thread(const T& job, std::int64_t thread, std::int64_t threads,
                                 Memory& memory) {
  for (std::int64_t i = thread; i < job.items(); i += threads) job.run(i, memory);
}

template <class T>
concept IsJob = std::is_trivially_copyable_v<T> &&
    requires(const T& job, PlainMemory& plain, WatchedMemory& watched) {
  { T::kName } -> std::convertible_to<std::string_view>;
  { job.items() } -> std::same_as<std::int64_t>;
  job.run(std::int64_t{0}, plain);
  job.run(std::int64_t{0}, watched);
  { job.arguments() } -> std::same_as<JobArguments>;
};

template <class T>
concept TouchesMemory = requires(T& job, JobMemory& memory) {
  { job.touch(memory) } -> std::same_as<bool>;
};

/// What is common to the jobs of one type; there is one object a type.
struct JobType {
  std::string_view name;
  std::size_t bytes;  ///< of the struct
  std::int64_t (*items)(const void* job);
  void (*run)(const void* job, std::int64_t item);
  void (*run_thread)(const void* job, std::int64_t thread, std::int64_t threads,
                     WatchedMemory& memory);
  bool (*touch)(void* job, JobMemory& memory);  ///< null: it does not say
  JobArguments (*arguments)(const void* job);
};

template <class T>
constexpr auto touch_of() -> bool (*)(void* job, JobMemory& memory) {
  if constexpr (TouchesMemory<T>) {
    return [](void* job, JobMemory& memory) { return static_cast<T*>(job)->touch(memory); };
  } else {
    return nullptr;
  }
}

template <IsJob T>
inline constexpr JobType kJobType{
    T::kName,
    sizeof(T),
    [](const void* job) { return static_cast<const T*>(job)->items(); },
    [](const void* job, std::int64_t item) {
      PlainMemory memory;
      static_cast<const T*>(job)->run(item, memory);
    },
    [](const void* job, std::int64_t thread, std::int64_t threads, WatchedMemory& memory) {
      run_thread(*static_cast<const T*>(job), thread, threads, memory);
    },
    touch_of<T>(),
    [](const void* job) { return static_cast<const T*>(job)->arguments(); }};

/// A copy of a job of any type.
class Job {
 public:
  template <IsJob T>
  Job(const T& job) : type_(&kJobType<T>) {  // NOLINT: a job is one
    static_assert(sizeof(T) <= kBytes);
    static_assert(alignof(T) <= kAlign);
    new (bytes_.data()) T(job);
  }
  /// From the struct itself, as a launch passes it on.
  Job(const JobType& type, const void* job) : type_(&type) {
    std::memcpy(bytes_.data(), job, type.bytes);
  }

  [[nodiscard]] const JobType& type() const { return *type_; }
  /// The struct itself, for a launcher.
  [[nodiscard]] const void* data() const { return bytes_.data(); }
  [[nodiscard]] JobArguments arguments() const { return type_->arguments(bytes_.data()); }
  [[nodiscard]] std::int64_t items() const { return type_->items(bytes_.data()); }
  /// Whether `live` holds of all pointers it is called with, null ones among them.
  template <class Live>
  [[nodiscard]] bool points_to(const Live& live) const {
    for (const JobArgument& argument : arguments())
      if (argument.is_pointer && !live(argument.pointer)) return false;
    return true;
  }
  /// Maps the pointers to host memory; false: one of them leads out of it. Requires type().touch.
  [[nodiscard]] bool touch(JobMemory& memory) { return type_->touch(bytes_.data(), memory); }
  /// Carries out one item of a job that was mapped.
  void run(std::int64_t item) const { type_->run(bytes_.data(), item); }
  /// Carries out what one thread of a kernel does, over addresses of the device.
  void run_thread(std::int64_t thread, std::int64_t threads, WatchedMemory& memory) const {
    type_->run_thread(bytes_.data(), thread, threads, memory);
  }

 private:
  static constexpr std::size_t kBytes = 128;
  static constexpr std::size_t kAlign = 8;

  const JobType* type_;
  alignas(kAlign) std::array<std::byte, kBytes> bytes_ = {};
};

}  // namespace kvo
