#include "properties/runner/led_reference.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "properties/runner/pulse.hpp"

namespace kvo {
namespace {

class LedSession final : public Session {
 public:
  LedSession(const Subject& chooser, std::unique_ptr<Session> led, std::unique_ptr<Session> leading)
      : chooser_(chooser), led_(std::move(led)), leading_(std::move(leading)) {}

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    const Subject* at_work = told_pulse != nullptr ? told_pulse->subject.load() : nullptr;
    tell(chooser_, operations_, &op.kind());
    Probe unused;
    led_->follow(op, leading_->apply(op, unused), *leading_);
    if (at_work != nullptr) tell(*at_work, operations_, &op.kind());
    ++operations_;
    return led_->apply(op, probe);
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return led_->broken_invariant();
  }
  [[nodiscard]] std::span<const WorkStep> steps() const override { return led_->steps(); }
  [[nodiscard]] Session& shown_session() override { return led_->shown_session(); }

 private:
  const Subject& chooser_;
  std::unique_ptr<Session> led_;
  std::unique_ptr<Session> leading_;
  std::uint64_t operations_ = 0;
};

}  // namespace

const Subject* chooser_among(std::span<const Subject* const> subjects) {
  const auto found = std::ranges::find_if(subjects, [](const Subject* subject) {
    return chooses(subject->conventions, *subject->kind);
  });
  return found != subjects.end() ? *found : nullptr;
}

Subject led_by(const Subject& reference, const Subject& chooser) {
  Subject led = reference;
  led.over = nullptr;
  led.guest = reference.guest || chooser.guest;
  led.open = [&reference, &chooser](const Setup& setup) -> Result<std::unique_ptr<Session>> {
    auto opened = reference.open(setup);
    if (!opened) return opened.error();
    auto leading = chooser.open(setup);
    if (!leading) return opened;  // the chooser takes no part in the case
    return std::make_unique<LedSession>(chooser, std::move(*opened), std::move(*leading));
  };
  return led;
}

void lead(CasePlan& plan) {
  const Subject* chooser = chooser_among(plan.subjects);
  if (chooser == nullptr || plan.baseline == nullptr) return;
  std::erase(plan.subjects, plan.baseline);
  plan.led = std::make_shared<const Subject>(led_by(*plan.baseline, *chooser));
  plan.baseline = plan.led.get();
}

}  // namespace kvo
