#include "reference/contract/device/recorded_device.hpp"

#include <algorithm>
#include <utility>

#include "reference/contract/subject/probe.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/thrown.hpp"

namespace kvo {
namespace {

using Where = ShownPtr::Where;

constexpr ShownPtr kHost{.where = Where::kHost};

// Counts down to the failing call.
bool strikes(std::int64_t& fault) {
  return fault > 0 && --fault == 0;
}

// None for a kernel that logs have no name for.
std::optional<DeviceCallName> call_name(std::string_view name) {
  std::optional<DeviceCallName> found;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<DeviceCallName>>([&](auto known) {
    if (enumerator_word(known.name) == name) found = known.value;
  });
  return found;
}

// The member of a call in which logs show an argument of that name.
template <class T>
std::optional<T>& member(DeviceCall& call, std::string_view name) {
  std::optional<T>* found = nullptr;
  using Members = boost::describe::describe_members<DeviceCall, boost::describe::mod_any_access>;
  boost::mp11::mp_for_each<Members>([&](auto known) {
    if constexpr (std::is_same_v<decltype(call.*known.pointer), std::optional<T>&>)
      if (known.name == name) found = &(call.*known.pointer);
  });
  KVO_CHECK(found != nullptr);
  return *found;
}

}  // namespace

ShownPtr RecordedDevice::shown(DevicePtr ptr) const {
  for (const Live& live : live_) {
    const std::uint64_t offset = ptr.address - live.base.address;
    if (ptr.address < live.base.address || offset > static_cast<std::uint64_t>(live.size)) continue;
    ShownPtr found = live.shown;
    found.off = static_cast<std::int64_t>(offset);
    return found;
  }
  return {.off = static_cast<std::int64_t>(ptr.address)};
}

std::vector<std::int64_t> RecordedDevice::live_buffers() const {
  std::vector<std::int64_t> numbers;
  for (const Live& live : live_)
    if (live.shown.where == Where::kBuffer) numbers.push_back(live.shown.buf);
  std::ranges::sort(numbers);
  return numbers;
}

RecordedDevice::Transaction::~Transaction() {
  if (committed_) return;
  std::erase_if(device_.live_, [&](const Live& live) {
    const bool fresh = live.shown.where == Where::kBuffer && live.shown.buf >= next_;
    if (fresh) (void)device_.device_->free(live.base);
    return fresh;
  });
  device_.faults_ = faults_;
  device_.next_ = next_;
  device_.kernels_ = kernels_;
  device_.calls_.clear();
}

RecordedDevice::Source::Source(RecordedDevice& device, Where name,
                               std::span<const std::byte> cells) {
  const auto size = static_cast<std::int64_t>(cells.size());
  const auto made = device.device_->alloc(size);
  if (!made) demand(made.error());
  device_ = &device;
  ptr_ = *made;
  device.keep({ptr_, size, {.where = name}});
  const Status copied = device.device_->to_device(ptr_, cells);
  if (copied) return;
  release();  // nobody destroys what was not made
  demand(copied);
}

void RecordedDevice::Source::release() {
  if (device_ == nullptr) return;
  std::erase_if(device_->live_, [&](const Live& live) { return live.base == ptr_; });
  (void)device_->device_->synchronize(Stream());
  (void)device_->device_->free(ptr_);
}

void RecordedDevice::note(DeviceCall call, const Status& done) {
  if (!done) call.error = true;
  const HarnessWork ours;
  if (recording_) calls_.push_back(call);
}

void RecordedDevice::keep(const Live& live) {
  const HarnessWork ours;
  live_.push_back(live);
}

template <class Run>
Status RecordedDevice::carry_out(DeviceCall call, std::int64_t& fault, std::string_view reason,
                                 Run&& run) {
  const Status done = strikes(fault) ? Status(fail_other(std::string(reason))) : run();
  note(std::move(call), done);
  return done;
}

Result<DevicePtr> RecordedDevice::alloc(std::int64_t bytes) {
  const auto from_below = [&]() -> Result<DevicePtr> {
    const bool one = strikes(faults_.alloc);
    const bool row = !one && faults_.next_allocs > 0;
    if (row) --faults_.next_allocs;
    return one || row ? Result<DevicePtr>(fail_other("alloc_failed")) : device_->alloc(bytes);
  };
  const auto made = from_below();
  DeviceCall call{.fn = DeviceCallName::kAlloc, .size = bytes};
  if (made) call.buf = next_;
  note(call, made ? Status() : Status(made.error()));
  if (!made) return made;
  keep({*made, bytes, {.where = Where::kBuffer, .buf = next_}});
  ++next_;
  return made;
}

Status RecordedDevice::free(DevicePtr ptr) {
  const DeviceCall call{.fn = DeviceCallName::kFree, .ptr = shown(ptr)};
  return carry_out(call, faults_.free, "free_failed", [&] {
    const Status done = device_->free(ptr);
    if (done) std::erase_if(live_, [&](const Live& live) { return live.base == ptr; });
    return done;
  });
}

Status RecordedDevice::to_device_async(DevicePtr dst, std::span<const std::byte> src,
                                       Stream stream) {
  const DeviceCall call{.fn = DeviceCallName::kMemcpy,
                        .size = static_cast<std::int64_t>(src.size()),
                        .dst = shown(dst),
                        .src = kHost,
                        .kind = 0};
  return carry_out(call, faults_.memcpy, "memcpy_failed",
                   [&] { return device_->to_device_async(dst, src, stream); });
}

Status RecordedDevice::to_host_async(std::span<std::byte> dst, DevicePtr src, Stream stream) {
  const DeviceCall call{.fn = DeviceCallName::kMemcpy,
                        .size = static_cast<std::int64_t>(dst.size()),
                        .dst = kHost,
                        .src = shown(src),
                        .kind = 1};
  return carry_out(call, faults_.memcpy, "memcpy_failed",
                   [&] { return device_->to_host_async(dst, src, stream); });
}

Status RecordedDevice::copy_async(DevicePtr dst, DevicePtr src, std::int64_t bytes, Stream stream) {
  const DeviceCall call{.fn = DeviceCallName::kMemcpy,
                        .size = bytes,
                        .dst = shown(dst),
                        .src = shown(src),
                        .kind = 2};
  return carry_out(call, faults_.memcpy, "memcpy_failed",
                   [&] { return device_->copy_async(dst, src, bytes, stream); });
}

Status RecordedDevice::launch(const Job& job, Stream stream) {
  if (!kernels_) return fail(Code::kNotSupported, "kernels");
  const auto run = [&] { return device_->launch(job, stream); };
  DeviceCall call;
  if (recording_) {
    const HarnessWork ours;
    const std::optional<DeviceCallName> name = call_name(job.type().name);
    if (!name) return strikes(faults_.kernel) ? Status(fail_other("kernel_failed")) : run();
    call.fn = *name;
    for (const JobArgument& argument : job.arguments()) {
      if (argument.is_pointer) {
        member<ShownPtr>(call, argument.name) = shown(argument.pointer);
      } else if (!argument.name.empty()) {
        member<std::int64_t>(call, argument.name) = argument.number;
      }
    }
  }
  return carry_out(call, faults_.kernel, "kernel_failed", run);
}

}  // namespace kvo
