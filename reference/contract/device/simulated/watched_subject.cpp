#include "reference/contract/device/simulated/watched_subject.hpp"

#include <utility>

#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo {
namespace {

using Devices = std::vector<WatchedDevice>;

class WatchedSession final : public Session {
 public:
  WatchedSession(std::shared_ptr<Devices> devices, std::unique_ptr<Session> session)
      : devices_(std::move(devices)), session_(std::move(session)) {}

  Observation apply(const Op& op, Probe& probe) override { return session_->apply(op, probe); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    for (const WatchedDevice& watched : *devices_)
      if (!watched.reports().empty()) return watched.reports().front().text;
    return session_->broken_invariant();
  }
  // Of two devices that draw from one schedule no list would be the choices of both.
  [[nodiscard]] std::vector<std::uint32_t> choices() const override {
    if (devices_->size() != 1 || !devices_->front().choices) return {};
    return devices_->front().choices();
  }

 private:
  std::shared_ptr<Devices> devices_;
  std::unique_ptr<Session> session_;
};

}  // namespace

Result<WatchedDevice> open_simulated(const Setup& setup) {
  const auto device =
      std::make_shared<SimulatedDevice>(SimulatedOptions{.schedule = setup.schedule});
  WatchedDevice made = watched(device, device);
  made.choices = [device]() -> const std::vector<std::uint32_t>& { return device->choices(); };
  return made;
}

Subject watched_subject(const std::function<Subject(OpenDevice)>& over, OpenWatched open) {
  Subject subject = over(nullptr);  // for its name; every session makes one of its own
  subject.scheduled = true;
  subject.open = [over,
                  open = std::move(open)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
    const auto devices = std::make_shared<Devices>();
    const Subject made = over([devices, open, setup]() -> Result<std::shared_ptr<Device>> {
      auto watched = open(setup);
      if (!watched) return watched.error();
      devices->push_back(*watched);
      return watched->device;
    });
    auto session = made.open(setup);
    if (!session) return session.error();
    return std::make_unique<WatchedSession>(devices, std::move(*session));
  };
  return subject;
}

}  // namespace kvo
