#include "reference/contract/device/simulated/watched_subject.hpp"

#include <utility>

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

 private:
  std::shared_ptr<Devices> devices_;
  std::unique_ptr<Session> session_;
};

}  // namespace

Subject watched_subject(const std::function<Subject(OpenDevice)>& over, OpenWatched open) {
  Subject subject = over(nullptr);  // for its name; every session makes one of its own
  subject.open = [over,
                  open = std::move(open)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
    const auto devices = std::make_shared<Devices>();
    const Subject made = over([devices, open]() -> Result<std::shared_ptr<Device>> {
      auto watched = open();
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
