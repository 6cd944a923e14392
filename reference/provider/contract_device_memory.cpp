#include "reference/provider/contract_device_memory.hpp"

#include "reference/contract/check.hpp"

namespace kvo::provider {
namespace {

constexpr std::int64_t kCellBytes = sizeof(float);

}  // namespace

Result<std::shared_ptr<DeviceStorage>> DeviceStorage::make(std::shared_ptr<DeviceMemory> memory,
                                                           std::int64_t count,
                                                           std::int64_t cell_bytes) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, cell_bytes, &bytes))
    return fail(Code::kPrecondition, "bytes overflow");
  auto storage = std::make_shared<DeviceStorage>(std::move(memory));
  const auto ptr = storage->memory_->alloc(bytes);
  if (!ptr) return ptr.error();
  storage->ptr_ = *ptr;
  return storage;
}

void DeviceStorage::release() {
  released = true;
  if (ptr_) (void)memory_->free(ptr_);
  ptr_ = {};
}

void DeviceStorage::read(std::int64_t offset, std::span<float> out) const {
  const Status done = memory_->to_host(std::as_writable_bytes(out), ptr_ + offset * kCellBytes);
  KVO_CHECK(done.has_value());
}

void DeviceStorage::write(std::int64_t offset, float value) {
  const Status done = memory_->to_device(ptr_ + offset * kCellBytes,
                                         std::as_bytes(std::span<const float>(&value, 1)));
  KVO_CHECK(done.has_value());
}

}  // namespace kvo::provider
