#include "properties/lockstep.hpp"

#include <algorithm>
#include <utility>

namespace kvo {
namespace {

// An operation that needs more allocations than this is only tried with the first ones failing.
constexpr std::int64_t kMostFailures = 256;

}  // namespace

std::string Verdict::text() const {
  if (outcome == Outcome::kAgrees) return "agrees";
  const std::string what = outcome == Outcome::kMismatch ? difference.text() : reason;
  return "op " + std::to_string(op_index) + " " + op + ": " + what;
}

Lockstep::Lockstep(std::span<const Subject* const> subjects, const Setup& setup,
                   LockstepOptions options)
    : options_(options) {
  participants_.resize(subjects.size());
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    Participant& participant = participants_[i];
    participant.subject = subjects[i];
    auto opened = subjects[i]->open(setup);
    if (opened) {
      participant.session = std::move(*opened);
      if (options_.watch != nullptr) participant.watch = options_.watch(*subjects[i]->kind, setup);
    } else {
      participant.verdict = {
          .outcome = Outcome::kNotSupported, .op = "open", .reason = opened.error().text()};
    }
  }
}

const Observation& Lockstep::step(const Op& op, const Observation* recorded) {
  if (recorded != nullptr) want_ = *recorded;
  bool judged = recorded != nullptr;
  for (Participant& participant : participants_) {
    if (!participant.live()) continue;
    Observation got = observe(participant, op, judged);
    if (judged) {
      judge(participant, op, want_, got);
    } else {
      judged = true;
      // The judge itself can only break or run out of memory; then nothing says what is right,
      // unless each participant has a watch.
      judge(participant, op, got, got);
      want_ = std::move(got);
      if (!participant.live() && participant.watch == nullptr) break;
    }
    if (participant.live() && operations_ % options_.invariants_every == 0)
      look_at_invariants(participant, op);
  }
  ++operations_;
  return want_;
}

bool Lockstep::worthwhile(bool recorded) const {
  const auto live = std::ranges::count_if(participants_, &Participant::live);
  if (recorded || participants_.size() == 1) return live > 0;
  return live > 1 && participants_.front().live();
}

Observation Lockstep::observe(Participant& participant, const Op& op, bool judged) const {
  // The judge is left in peace: it says what is right.
  const bool fail_each = options_.allocations == Allocations::kFailEach && judged;
  std::int64_t failing = fail_each ? 0 : -1;
  while (true) {
    allocation_gate.fail_at = failing;
    Observation got = participant.session->apply(op, participant.probe);
    allocation_gate.fail_at = -1;
    const std::uint64_t nanoseconds = participant.probe.take_nanoseconds();
    if (failing >= 0 && got.failed_with(Code::kOutOfMemory)) {
      failing = failing < kMostFailures ? failing + 1 : -1;
      continue;
    }
    std::size_t bytes = op.kind().argument_bytes(op.arguments());
    if (got.returns) bytes += op.kind().return_bytes(got.returns.get());
    participant.timings.add(op.kind(), nanoseconds, bytes);
    return got;
  }
}

void Lockstep::judge(Participant& participant, const Op& op, const Observation& want,
                     const Observation& got) {
  Verdict verdict{.op_index = operations_, .op = std::string(op.kind().name)};
  if (got.failed_with(Code::kThrew)) {
    verdict.outcome = Outcome::kBroken;
    verdict.reason = "threw: " + got.error->detail;
  } else if (got.failed_with(Code::kOutOfMemory)) {
    verdict.outcome = Outcome::kOutOfMemory;
    verdict.reason = "needs more memory than a case may have";
  } else if (participant.watch != nullptr) {
    auto words = participant.watch->saw(op, got);
    if (!words) return;
    verdict.outcome = Outcome::kBroken;
    verdict.reason = std::move(*words);
  } else if (auto difference = observation_difference(op.kind(), want, got)) {
    verdict.outcome = got.failed_with(Code::kNotSupported) && got.error->detail == op.kind().name
                          ? Outcome::kNotSupported
                          : Outcome::kMismatch;
    verdict.reason = "not supported";
    verdict.difference = std::move(*difference);
  } else {
    return;
  }
  out(participant, std::move(verdict));
}

void Lockstep::look_at_invariants(Participant& participant, const Op& op) {
  if (auto broken = participant.session->broken_invariant())
    out(participant, {.outcome = Outcome::kBroken,
                      .op_index = operations_,
                      .op = std::string(op.kind().name),
                      .reason = "broken invariant: " + *broken});
}

void Lockstep::out(Participant& participant, Verdict verdict) {
  participant.verdict = std::move(verdict);
  participant.session.reset();
}

}  // namespace kvo
