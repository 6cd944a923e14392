// Where scripts of the contract come from: random ones for `check`, request traces for `run`.
#include "properties/campaign/script_generator.hpp"
#include "properties/replay/engine.hpp"
#include "ring.hpp"

namespace ring {
namespace {

class RandomScript final : public kvo::ScriptGenerator<RandomScript, Ops> {
 public:
  explicit RandomScript(const kvo::CaseTerms& terms) : ScriptGenerator(terms) {}

  kvo::Op push() {
    const WhenFull when_full = draw().percent(70) ? WhenFull::kEvict : WhenFull::kRefuse;
    return kvo::Op::of(Push{tagger_.pair({draw().size(0, 20)}).first, when_full});
  }
  kvo::Op window() { return kvo::Op::of(Window{}); }
  kvo::Op clear() { return kvo::Op::of(Clear{}); }
  static constexpr std::array<kvo::ScriptStep<RandomScript>, 3> kSteps{
      {{20, "tokens are pushed", &RandomScript::push, true},
       {20, "all tokens are read", &RandomScript::window, true},
       {2, "the ring is cleared", &RandomScript::clear}}};

 private:
  kvo::Tagger tagger_;
};

kvo::GeneratedCase make_case(const kvo::CaseTerms& terms) {
  const std::int64_t capacity = kvo::Draw(terms.seed).size(1, 16);
  return {.setup = {terms.profile, kvo::Record::of(Config{static_cast<std::uint16_t>(capacity)})},
          .ops = std::make_unique<RandomScript>(terms)};
}

// One sequence at a time, and without drafts: what a ring has evicted cannot be taken back.
class Requests final : public kvo::replay::SequenceOps {
 public:
  explicit Requests(const kvo::replay::LoweringInput& input)
      : SequenceOps(input.with_slots(1).without_drafts()) {}

 private:
  void begin(std::int64_t /*slot*/) override { emit(Clear{}); }
  void append(std::int64_t /*slot*/, std::int64_t tokens) override {
    emit(Push{tagger().pair({tokens}).first});
  }
  void reject(std::int64_t /*slot*/, std::int64_t /*tokens*/) override {}
  void read(std::int64_t /*slot*/) override { emit(Window{}); }
  void end(std::int64_t /*slot*/) override {}
};

Config replay_config(const kvo::replay::LoweringInput& input) {
  return {static_cast<std::uint16_t>(input.schedule.chunk_tokens)};
}

}  // namespace

std::vector<kvo::Generator> generators() {
  return {{&tokens_kind(), make_case}};
}

std::vector<kvo::replay::Lowering> lowerings() {
  return {{.kind = &tokens_kind(),
           .setup = kvo::replay::setup_by<replay_config>,
           .lower = kvo::replay::lower_by<Requests>}};
}

}  // namespace ring
