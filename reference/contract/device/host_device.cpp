#include "reference/contract/device/host_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kvo {
namespace {

// Buffers lie far apart, so that an offset that runs off one does not reach another.
constexpr std::uint64_t kSpacing = std::uint64_t{1} << 36U;

Error bad_pointer() {
  return fail_other("bad_pointer");
}

}  // namespace

std::byte* HostDevice::host_address(DevicePtr ptr, std::int64_t bytes, bool /*written*/) {
  auto buffer = buffers_.upper_bound(ptr.address);
  if (buffer == buffers_.begin() || bytes < 0) return nullptr;
  --buffer;
  const std::uint64_t offset = ptr.address - buffer->first;
  const std::uint64_t size = buffer->second.size();
  const bool inside = offset <= size && static_cast<std::uint64_t>(bytes) <= size - offset;
  if (!inside) return nullptr;
  static std::byte none{};  // an empty buffer has no bytes to point to
  return size == 0 ? &none : buffer->second.data() + offset;
}

Result<DevicePtr> HostDevice::alloc(std::int64_t bytes) {
  if (bytes < 0) return fail_other("alloc_failed");
  const DevicePtr made{next_address_};
  buffers_.emplace(made.address, std::vector<std::byte>(static_cast<std::size_t>(bytes)));
  next_address_ += (static_cast<std::uint64_t>(bytes) / kSpacing + 1) * kSpacing;
  return made;
}

Status HostDevice::free(DevicePtr ptr) {
  return buffers_.erase(ptr.address) == 1 ? Status() : bad_pointer();
}

Status HostDevice::queue(const Work& work, Stream stream) {
  const auto captured = streams_.captured(work, stream);
  if (!captured) return captured.error();
  return *captured ? Status() : carry_out(work);
}

Status HostDevice::carry_out(const Work& work) {
  if (!work.job) return copied(work);
  if (work.job->type().touch == nullptr) return looked_up(*work.job);
  Job mapped = *work.job;
  if (!mapped.touch(*this)) return bad_pointer();
  for (std::int64_t item = 0; item < mapped.items(); ++item) mapped.run(item);
  return {};
}

// Finds each address anew.
class HostDevice::LookedUp final : public WatchedMemory {
 public:
  explicit LookedUp(HostDevice& device) : device_(device) {}
  [[nodiscard]] bool left() const { return left_; }

 private:
  void read(DevicePtr from, std::span<std::byte> out) override {
    const std::byte* const found = find(from, out.size(), false);
    if (found != nullptr) std::copy_n(found, out.size(), out.begin());
  }
  void write(DevicePtr to, std::span<const std::byte> cells) override {
    std::byte* const found = find(to, cells.size(), true);
    if (found != nullptr) std::ranges::copy(cells, found);
  }
  std::byte* find(DevicePtr at, std::size_t bytes, bool written) {
    std::byte* const found = device_.host_address(at, static_cast<std::int64_t>(bytes), written);
    left_ = left_ || found == nullptr;
    return found;
  }

  HostDevice& device_;
  bool left_ = false;
};

Status HostDevice::looked_up(const Job& job) {
  LookedUp memory(*this);
  job.run_thread(0, 1, memory);
  return memory.left() ? Status(bad_pointer()) : Status();
}

Status HostDevice::copied(const Work& work) {
  std::byte* const to = work.writes() ? host_address(work.dst, work.bytes, true) : work.host_dst;
  const std::byte* const from =
      work.reads() ? host_address(work.src, work.bytes, false) : work.host_src;
  if ((work.writes() && to == nullptr) || (work.reads() && from == nullptr)) return bad_pointer();
  const auto bytes = static_cast<std::size_t>(work.bytes);
  if (bytes == 0) return {};
  if (work.kind == Work::Kind::kFill) {
    std::memset(to, std::to_integer<int>(work.value), bytes);
  } else {
    std::memmove(to, from, bytes);
  }
  return {};
}

Result<std::uint64_t> HostDevice::control(const StreamCall& call) {
  auto done = streams_.control(call);
  if (!done || call.kind != Call::kReplay) return done;
  for (const WorkNode& node : streams_.work_of(call.graph))
    if (Status carried = carry_out(node.work); !carried) return carried.error();
  return done;
}

}  // namespace kvo
