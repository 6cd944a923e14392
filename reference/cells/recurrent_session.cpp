// The kind `cells.recurrent`. Its session shows where the states of a batch were placed.
#include "reference/cells/recurrent_operations.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::cells {
namespace {

Error no_memory() {
  return fail(Code::kPrecondition, "no memory");
}

class RecurrentSession final : public DispatchSession<RecurrentSession, RecurrentOps> {
 public:
  RecurrentSession(MakeRecurrent make, const RecurrentOptions& options)
      : make_(std::move(make)), options_(options) {}

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return memory_ ? memory_->broken_invariant() : std::nullopt;
  }

  template <class T>
  [[nodiscard]] Result<RecurrentMemory*> cache_of(const T& /*op*/) const {
    if (!memory_) return no_memory();
    return memory_.get();
  }
  Result<NewRecurrent::Returns> operator()(const NewRecurrent& /*op*/) {
    if (const Status checked = check_options(options_); !checked) return checked.error();
    auto made = probe()([&] { return make_(options_); });
    if (!made) return made.error();
    memory_ = std::move(*made);
    return NewRecurrent::Returns{true};
  }
  Result<DecodeStates::Returns> operator()(const DecodeStates& op) {
    if (!memory_) return no_memory();
    const BatchSequences sequences(op.seqs);
    Batch batch = sequences.batch();
    if (op.pos.has_value()) batch.positions = *op.pos;
    batch.n_ubatch = op.n_ubatch;
    DecodeStates::Returns shown;
    const SeeStates see = [&](const PlacedStates& placed) {
      const HarnessWork work;
      shown.ubatches.push_back({{placed.rows.begin(), placed.rows.end()},
                                placed.head,
                                placed.n,
                                placed.zero,
                                {placed.copy.begin(), placed.copy.end()}});
    };
    const Status done = probe()([&] { return memory_->decode(batch, see); });
    if (!done) return done.error();
    return shown;
  }
  Status operator()(const SeqCp& op) {
    if (!memory_) return no_memory();
    probe()([&] { memory_->seq_cp(op.src, op.dst); });
    return {};
  }
  Result<ShowMemory::Returns> operator()(const ShowMemory& /*op*/) {
    if (!memory_) return no_memory();
    ShownStates states = memory_->shown();
    return ShowMemory::Returns{
        std::move(states.cells), states.head, states.used, std::move(states.rollback),
        sequences_shown([&](std::int64_t seq) { return memory_->seq_pos(seq); })};
  }

 private:
  MakeRecurrent make_;
  RecurrentOptions options_;
  std::unique_ptr<RecurrentMemory> memory_;
};

}  // namespace

const CacheKind& recurrent_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kRecurrentQuirks);
  static const CacheKind kKind{.contract = "cells",
                               .cache = "recurrent",
                               .doc = "one state a sequence (llama.cpp recurrent memory)",
                               .operations = op_kinds(RecurrentOps()),
                               .config = &type_of<RecurrentConfig>(),
                               .quirks = kRows};
  return kKind;
}

Subject make_recurrent_subject(std::string variant, std::string doc, MakeRecurrent make) {
  return {.kind = &recurrent_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            const auto config = setup.config_as<RecurrentConfig>();
            return std::make_unique<RecurrentSession>(
                make, RecurrentOptions{*quirks, config.n_seq_max, config.n_rs_seq.value_or(0)});
          }};
}

}  // namespace kvo::cells

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_CELLS_RECURRENT_OPERATIONS)
}  // namespace kvo
