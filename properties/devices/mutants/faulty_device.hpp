// properties/devices/mutants/faulty_device.hpp: a device that passes everything on; faults override
// what they do wrong.
#pragma once

#include <memory>
#include <utility>

#include "reference/contract/device/device.hpp"

namespace kvo::devices {

class FaultyDevice : public Device {
 public:
  explicit FaultyDevice(std::shared_ptr<Device> below) : below_(std::move(below)) {}

  [[nodiscard]] Result<DevicePtr> alloc(std::int64_t bytes) override {
    return below_->alloc(bytes);
  }
  [[nodiscard]] Status free(DevicePtr ptr) override { return below_->free(ptr); }
  [[nodiscard]] Status to_device_async(DevicePtr dst, std::span<const std::byte> src,
                                       Stream stream) override {
    return below_->to_device_async(dst, src, stream);
  }
  [[nodiscard]] Status to_host_async(std::span<std::byte> dst, DevicePtr src,
                                     Stream stream) override {
    return below_->to_host_async(dst, src, stream);
  }
  [[nodiscard]] Status copy_async(DevicePtr dst, DevicePtr src, std::int64_t bytes,
                                  Stream stream) override {
    return below_->copy_async(dst, src, bytes, stream);
  }
  [[nodiscard]] Status fill_async(DevicePtr dst, std::byte value, std::int64_t bytes,
                                  Stream stream) override {
    return below_->fill_async(dst, value, bytes, stream);
  }
  [[nodiscard]] Status launch(const Job& job, Stream stream) override {
    return below_->launch(job, stream);
  }
  [[nodiscard]] Result<Stream> create_stream() override { return below_->create_stream(); }
  [[nodiscard]] Status destroy(Stream stream) override { return below_->destroy(stream); }
  [[nodiscard]] Result<Event> create_event() override { return below_->create_event(); }
  [[nodiscard]] Status destroy(Event event) override { return below_->destroy(event); }
  [[nodiscard]] Status record(Event event, Stream stream) override {
    return below_->record(event, stream);
  }
  [[nodiscard]] Status wait(Stream stream, Event event) override {
    return below_->wait(stream, event);
  }
  [[nodiscard]] Status synchronize(Stream stream) override { return below_->synchronize(stream); }
  [[nodiscard]] Status synchronize(Event event) override { return below_->synchronize(event); }
  [[nodiscard]] Status begin_capture(Stream stream) override {
    return below_->begin_capture(stream);
  }
  [[nodiscard]] Result<Graph> end_capture(Stream stream) override {
    return below_->end_capture(stream);
  }
  [[nodiscard]] Status replay(Graph graph, Stream stream) override {
    return below_->replay(graph, stream);
  }
  [[nodiscard]] Status destroy(Graph graph) override { return below_->destroy(graph); }

 protected:
  std::shared_ptr<Device> below_;
};

}  // namespace kvo::devices
