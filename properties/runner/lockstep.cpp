#include "properties/runner/lockstep.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "properties/runner/pulse.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/sanitizers.hpp"

namespace kvo {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xA5};

#ifdef KVO_ADDRESS_SANITIZER
// Who touches a guard crashes there, whether it writes or reads.
void set(std::span<std::byte> bytes) {
  ASAN_POISON_MEMORY_REGION(bytes.data(), bytes.size());
}
void lift(std::span<std::byte> bytes) {
  ASAN_UNPOISON_MEMORY_REGION(bytes.data(), bytes.size());
}
bool is_whole(std::span<const std::byte> /*bytes*/) {
  return true;
}
#else
void set(std::span<std::byte> bytes) {
  std::ranges::fill(bytes, kGuard);
}
void lift(std::span<std::byte> /*bytes*/) {}
bool is_whole(std::span<const std::byte> bytes) {
  static const std::vector<std::byte> kWhole(kGuardBytes, kGuard);
  return std::memcmp(bytes.data(), kWhole.data(), kGuardBytes) == 0;
}
#endif

// Lists of numbers are handed out as they lie in memory.
bool is_handed_out(const Type& type) {
  if (type.type_class == TypeClass::kTensor) return true;
  return type.type_class == TypeClass::kList && type.element->is_number();
}

}  // namespace

const Op& LentArguments::lend(const Op& op) {
  lift_guards();
  original_ = &op;
  lent_ = &copy_of(op.kind(), op);
  if (lent_->arguments == nullptr) lent_ = nullptr;
  if (lent_ == nullptr) return op;
  fill();
  return lent_->op;
}

std::optional<std::string> LentArguments::damage() {
  if (lent_ == nullptr) return std::nullopt;
  std::optional<std::string> words;
  if (const auto changed = first_difference(original_->arguments().type(),
                                            original_->arguments().get(), lent_->arguments.get()))
    words = "changed its arguments: " + changed->text();
  for (const Guard& guard : guards_)
    if (!words && !is_whole(guard.bytes))
      words = "wrote behind its arguments: " + std::string(guard.field);
  if (!words) return std::nullopt;
  lift_guards();
  fill();
  return words;
}

LentArguments::Copy& LentArguments::copy_of(const OpKind& kind, const Op& op) {
  for (const auto& copy : copies_)
    if (copy->kind == &kind) return *copy;
  const bool any = std::ranges::any_of(kind.arguments->fields, [](const Field& field) {
    return is_handed_out(field.type->value_type());
  });
  if (!any) return *copies_.emplace_back(std::make_unique<Copy>(Copy{&kind, nullptr, op}));
  const std::shared_ptr<void> arguments = kind.arguments->made();
  return *copies_.emplace_back(
      std::make_unique<Copy>(Copy{&kind, arguments, Op(kind, Record(*kind.arguments, arguments))}));
}

void LentArguments::fill() {
  const Type& type = *lent_->kind->arguments;
  void* to = lent_->arguments.get();
  type.assign(to, original_->arguments().get());
  for (const Field& field : type.fields) {
    const Type* held = field.type;
    void* value = field.of(to);
    while (value != nullptr && (held->is_optional() || held->is_nullable())) {
      value = held->held(value);
      held = held->element;
    }
    if (value != nullptr && is_handed_out(*held)) guard(*held, value, field.name);
  }
}

// What a list has given up stays its memory, as long as it does not grow.
void LentArguments::guard(const Type& type, void* value, std::string_view field) {
  std::byte* end = nullptr;
  if (type.type_class == TypeClass::kTensor) {
    std::vector<std::byte>& bytes = detail::to<Tensor>(value).bytes.own();
    const std::size_t size = bytes.size();
    bytes.resize(size + kGuardBytes);
    end = bytes.data() + size;
    bytes.resize(size);
  } else {
    const std::size_t length = type.length(value);
    type.resize(value, length + kGuardBytes / type.element->size);
    end = static_cast<std::byte*>(type.at(value, length));
    type.resize(value, length);
  }
  guards_.push_back({{end, kGuardBytes}, field});
  set(guards_.back().bytes);
}

void LentArguments::lift_guards() {
  for (const Guard& guard : guards_) lift(guard.bytes);
  guards_.clear();
}

namespace {

// An operation that needs more allocations than this is only tried with the first ones failing.
constexpr std::int64_t kMostFailures = 256;
// So many fail one after the other, of those behind them every second, third, ...
constexpr std::int64_t kFailedInTurn = 16;

// A larger request than so many times the limit is no need, but a wrong number.
constexpr std::size_t kAbsurd = 16;

}  // namespace

std::uint64_t thread_count() {
  struct stat tasks {};
  constexpr std::uint64_t kOwnLinks = 2;
  return ::stat("/proc/self/task", &tasks) == 0 ? tasks.st_nlink - kOwnLinks : 1;
}

void note_threads(const Subject& subject) {
  static std::uint64_t known = 1;
  const std::uint64_t now = thread_count();
  if (now > known) {
    const std::string name = subject.name();
    told_pulse->thread_starter.back() = '\0';
    (void)name.copy(told_pulse->thread_starter.data(), told_pulse->thread_starter.size() - 1);
  }
  known = now;
}

Lockstep::Lockstep(const Subject* baseline, std::span<const Subject* const> subjects,
                   const Setup& setup, LockstepOptions options)
    : options_(options) {
  // Where subjects are compared, their baseline must be right by its own history, too.
  if (baseline != nullptr)
    baseline_ = opened(*baseline, setup, options_.compare ? options_.oracle : nullptr);
  participants_.reserve(subjects.size());
  for (const Subject* subject : subjects)
    participants_.push_back(opened(*subject, setup, options_.oracle));
}

Lockstep::~Lockstep() {
  // Who is closed is named: it may crash or hang there.
  for (Participant& participant : participants_) close(participant);
  if (baseline_) close(*baseline_);
}

void Lockstep::close(Participant& participant) const {
  if (!participant.live()) return;
  tell(*participant.subject, operations_);
  participant.session.reset();
}

Lockstep::Participant Lockstep::opened(const Subject& subject, const Setup& setup,
                                       MakeOracle oracle) {
  Participant participant{.subject = &subject};
  tell(subject, 0);
  if (subject.guest && told_pulse != nullptr) told_pulse->guest = true;
  auto session = subject.open(setup);
  if (session) {
    participant.session = std::move(*session);
    if (subject.conventions.any())
      participant.settlement =
          std::make_unique<Settlement>(subject.conventions, *subject.kind, setup);
    if (oracle != nullptr && subject.tolerances.empty())
      participant.oracle = oracle(*subject.kind, setup);
  } else {
    participant.verdict = {
        .outcome = Outcome::kNotSupported, .op = "open", .reason = session.error().text()};
  }
  return participant;
}

bool Lockstep::lead(const Op& op, const Op& lent, const Observation* recorded) {
  if (!baseline_ || !baseline_->live()) return false;
  Observation got = observe(*baseline_, lent, Allocations::kSucceed);
  if (baseline_->live()) judge(*baseline_, op, recorded, got);
  if (baseline_->live() && invariants_are_due()) look_at_invariants(*baseline_, op);
  if (recorded == nullptr) want_ = std::move(got);
  return true;
}

void Lockstep::expect(std::span<const Op> ops) {
  for (Participant& participant : participants_)
    if (participant.live() && participant.subject->takes_batches) participant.session->expect(ops);
}

void Lockstep::end() {
  for (Participant& participant : participants_) {
    if (!participant.live()) continue;
    tell(*participant.subject, operations_);
    if (auto how = participant.session->end())
      participant.verdict = {.outcome = Outcome::kDied,
                             .op_index = operations_,
                             .op = "close",
                             .reason = *std::move(how)};
  }
}

const Op& Lockstep::lend(const Op& op) {
  payload_bytes_ = payload_bytes(op.arguments().type(), op.arguments().get());
  return arguments_.lend(op);
}

const Observation& Lockstep::step(const Op& op, const Observation* recorded) {
  const Op& lent = lend(op);
  reference_wants_memory_ = false;
  if (recorded != nullptr) want_ = *recorded;
  wanted_ = recorded != nullptr ? Wanted::kRecorded : Wanted::kComputed;
  bool known = lead(op, lent, recorded) || recorded != nullptr;
  for (Participant& participant : participants_) {
    if (!participant.live()) continue;
    Observation got = observe(participant, lent, options_.allocations);
    if (participant.live() && known) settle(participant, op, want_, got);
    if (participant.live())
      judge(participant, op, known && options_.compare ? &want_ : nullptr, got);
    if (!known || options_.returns_answers) want_ = std::move(got);
    known = true;
    if (participant.live() && invariants_are_due()) look_at_invariants(participant, op);
  }
  ++operations_;
  return want_;
}

bool Lockstep::fails(const Op& op, std::int64_t allocation) {
  KVO_CHECK(baseline_ && participants_.size() == 1);
  Participant& participant = participants_.front();
  if (!participant.live()) return false;
  const Op& lent = lend(op);
  bool failed = false;
  Observation got = attempt(participant, lent, allocation, failed);
  if (failed) {
    ++participant.evidence.failures;
    if (participant.live()) look_at_invariants(participant, op);
    return participant.live();
  }
  reference_wants_memory_ = false;
  wanted_ = Wanted::kComputed;
  if (lead(op, lent, nullptr) && participant.live()) settle(participant, op, want_, got);
  if (participant.live()) judge(participant, op, options_.compare ? &want_ : nullptr, got);
  if (participant.live()) look_at_invariants(participant, op);
  ++operations_;
  return false;
}

bool Lockstep::worthwhile(bool recorded) const {
  const bool anybody = std::ranges::any_of(participants_, &Participant::live);
  const bool baseline = baseline_ && baseline_->live();
  if (recorded) return anybody || baseline;
  // Without its baseline nothing says what is right; alone it is watched for broken invariants.
  if (baseline_) return baseline && (anybody || participants_.empty());
  return anybody;
}

Observation Lockstep::observe(Participant& participant, const Op& op, Allocations allocations) {
  std::int64_t failing = allocations == Allocations::kFailEach ? 0 : -1;
  while (true) {
    bool failed = false;
    Observation got = attempt(participant, op, failing, failed);
    if (!failed || !participant.live()) {
      if (failing != 0 && allocations == Allocations::kFailEach) ++participant.evidence.retried;
      return got;
    }
    ++participant.evidence.failures;
    // Of an operation that makes many, the time would go with the square of their number.
    failing = failing < kMostFailures ? failing + 1 + failing / kFailedInTurn : -1;
  }
}

Observation Lockstep::attempt(Participant& participant, const Op& op, std::int64_t allocation,
                              bool& failed) {
  allocation_gate.fill_bytes = options_.fill_bytes;
  tell(*participant.subject, operations_, &op.kind());
  allocation_gate.refused_bytes = 0;
  allocation_gate.fail_at = allocation;
  Observation got = participant.session->apply(op, participant.probe);
  if (got.error && got.error->detail.size() > kMostErrorText)
    got.error->detail.resize(kMostErrorText);
  // The gate counts down to the one that fails.
  const bool came_to_it = allocation >= 0 && allocation_gate.fail_at < 0;
  allocation_gate.fail_at = -1;
  look_at_threads(*participant.subject);
  const std::uint64_t nanoseconds = participant.probe.take_nanoseconds();
  failed = came_to_it && got.failed_with(Code::kOutOfMemory);
  if (!failed) {
    std::size_t bytes = payload_bytes_;
    if (got.returns) bytes += payload_bytes(got.returns.type(), got.returns.get());
    participant.timings.add(op.kind(), nanoseconds, bytes);
  }
  if (auto harm = arguments_.damage())
    out(participant, op, {.outcome = Outcome::kBroken, .reason = std::move(*harm)});
  return got;
}

void Lockstep::settle(Participant& participant, const Op& op, const Observation& want,
                      Observation& got) {
  if (participant.settlement == nullptr) return;
  got = participant.settlement->settled(op, want, std::move(got));
  if (const char* reason = participant.settlement->ends(op, want, got))
    out(participant, op, {.outcome = Outcome::kEnded, .reason = reason});
}

void Lockstep::judge(Participant& participant, const Op& op, const Observation* want,
                     const Observation& got) {
  if (got.failed_with(Code::kThrew))
    return out(participant, op,
               {.outcome = Outcome::kBroken, .reason = "threw: " + got.error->detail});
  if (got.failed_with(Code::kDied))
    return out(participant, op, {.outcome = Outcome::kDied, .reason = got.error->detail});
  if (got.failed_with(Code::kOutOfMemory) && may_want_memory(participant, want))
    return out(participant, op,
               {.outcome = Outcome::kOutOfMemory,
                .reason = allocation_gate.refused_bytes > 0 ? kAsksForMore : kNeedsMemory});
  if (participant.oracle) {
    auto words = participant.oracle->check(op, got);
    const OracleCounts counts = participant.oracle->counts();
    participant.evidence.rows_judged = counts.judged;
    participant.evidence.rows_skipped = counts.skipped;
    if (words)
      return out(participant, op, {.outcome = Outcome::kBroken, .reason = std::move(*words)});
  }
  if (want == nullptr) return;
  ++participant.evidence.compared;
  if (auto difference = observation_difference(
          *want, got, {wanted_, participant.subject->stored_in(op.kind().name)}))
    out(participant, op,
        {.outcome = got.unsupported ? Outcome::kNotSupported : Outcome::kMismatch,
         .difference = std::move(*difference),
         .reason = got.unsupported ? "not supported" : ""});
}

// Only where the reference asks for too much as well does it say nothing about a subject, or where
// one request is above the limit: the reference may make several of it.
bool Lockstep::may_want_memory(const Participant& participant, const Observation* want) {
  if (participant.subject->variant == "reference") reference_wants_memory_ = true;
  const std::size_t refused = allocation_gate.refused_bytes;
  if (refused > 0 && refused / kAbsurd <= allocation_gate.limit_bytes) return true;
  return want == nullptr || want->failed_with(Code::kOutOfMemory) || reference_wants_memory_;
}

// A cache looks at all that it holds: in a long script less often.
bool Lockstep::invariants_are_due() const {
  constexpr std::uint64_t kClose = 1'000;
  constexpr std::uint64_t kRest = 32;
  const std::uint64_t every = options_.invariants_every;
  return operations_ % (operations_ < kClose ? every : std::max(every, kRest)) == 0;
}

void Lockstep::look_at_invariants(Participant& participant, const Op& op) const {
  if (auto broken = participant.session->broken_invariant())
    out(participant, op, {.outcome = Outcome::kBroken, .reason = "broken invariant: " + *broken});
}

void Lockstep::out(Participant& participant, const Op& op, Verdict verdict) const {
  verdict.op_index = operations_;
  verdict.op = op.kind().name;
  if (verdict.failed()) verdict.choices = participant.session->choices();
  participant.verdict = std::move(verdict);
  close(participant);
}

}  // namespace kvo
