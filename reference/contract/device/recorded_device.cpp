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
    if (fresh) (void)device_.below_->free(live.base);
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
  const auto made = device.below_->alloc(size);
  if (!made) demand(made.error());
  device_ = &device;
  ptr_ = *made;
  device.keep({ptr_, size, {.where = name}});
  const Status copied = device.below_->to_device(ptr_, cells);
  if (copied) return;
  release();  // no destructor runs after a throw
  demand(copied);
}

void RecordedDevice::Source::release() {
  if (device_ == nullptr) return;
  std::erase_if(device_->live_, [&](const Live& live) { return live.base == ptr_; });
  (void)device_->below_->synchronize(Stream());
  (void)device_->below_->free(ptr_);
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

Result<DevicePtr> RecordedDevice::alloc(std::int64_t bytes) {
  const auto from_below = [&]() -> Result<DevicePtr> {
    const bool one = strikes(faults_.alloc);
    const bool row = !one && faults_.next_allocs > 0;
    if (row) --faults_.next_allocs;
    return one || row ? Result<DevicePtr>(fail_other("alloc_failed")) : below_->alloc(bytes);
  };
  auto made = from_below();
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
  Status done = strikes(faults_.free) ? Status(fail_other("free_failed")) : below_->free(ptr);
  if (done) std::erase_if(live_, [&](const Live& live) { return live.base == ptr; });
  note(call, done);
  return done;
}

std::optional<DeviceCall> RecordedDevice::call_of(const Work& work) const {
  using Kind = Work::Kind;
  if (work.kind != Kind::kJob)
    return DeviceCall{.fn = DeviceCallName::kMemcpy,
                      .size = work.bytes,
                      .dst = work.kind == Kind::kToHost ? kHost : shown(work.dst),
                      .src = work.kind == Kind::kToDevice ? kHost : shown(work.src),
                      .kind = static_cast<std::int64_t>(work.kind)};
  const std::optional<DeviceCallName> name = call_name(work.job->type().name);
  if (!name) return std::nullopt;
  DeviceCall call{.fn = *name};
  for (const JobArgument& argument : work.job->arguments()) {
    if (argument.is_pointer) {
      member<ShownPtr>(call, argument.name) = shown(argument.pointer);
    } else if (!argument.name.empty()) {
      member<std::int64_t>(call, argument.name) = argument.number;
    }
  }
  return call;
}

Status RecordedDevice::queue(const Work& work, Stream stream) {
  using Kind = Work::Kind;
  static_assert(int(Kind::kToDevice) == 0 && int(Kind::kToHost) == 1 && int(Kind::kCopy) == 2,
                "as logs number the kinds of copies");
  const bool job = work.kind == Kind::kJob;
  if (job && !kernels_) return fail(Code::kNotSupported, "kernels");
  if (work.kind == Kind::kFill) return below_->queue(work, stream);
  std::optional<DeviceCall> call;
  if (recording_) {
    const HarnessWork ours;
    call = call_of(work);
  }
  Status done = strikes(job ? faults_.kernel : faults_.memcpy)
                    ? Status(fail_other(job ? "kernel_failed" : "memcpy_failed"))
                    : below_->queue(work, stream);
  if (call) note(*call, done);
  return done;
}

}  // namespace kvo
