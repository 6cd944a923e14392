#include "properties/seeding/faulty_subject.hpp"

#include <memory>
#include <utility>

namespace kvo::seeding {
namespace {

class FaultySession final : public Session {
 public:
  FaultySession(std::unique_ptr<Session> inner, std::uint64_t number)
      : inner_(std::move(inner)), number_(number) {}
  FaultySession(const FaultySession&) = delete;
  FaultySession& operator=(const FaultySession&) = delete;
  ~FaultySession() override {
    const FaultScope on(number_);
    inner_.reset();
  }

  Observation apply(const Op& op, Probe& probe) override {
    const FaultScope on(number_);
    return inner_->apply(op, probe);
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    const FaultScope on(number_);
    return inner_->broken_invariant();
  }

 private:
  std::unique_ptr<Session> inner_;
  std::uint64_t number_;
};

}  // namespace

Subject with_fault(Subject subject, const Fault& fault) {
  const std::uint64_t number = number_of(fault.kind, fault.name);
  subject.open = [open = std::move(subject.open),
                  number](const Setup& setup) -> Result<std::unique_ptr<Session>> {
    const FaultScope on(number);
    auto inner = open(setup);
    if (!inner) return inner.error();
    return std::make_unique<FaultySession>(std::move(*inner), number);
  };
  return subject;
}

}  // namespace kvo::seeding
