// The kind `cells.recurrent`. Its session shows where the states of a batch were placed.
#include "reference/cells/recurrent_operations.hpp"
#include "reference/cells/session.hpp"

namespace kvo::cells {
namespace {

class RecurrentSession final
    : public OneCacheSession<RecurrentSession, RecurrentOps, RecurrentMemory, RecurrentOptions> {
 public:
  using OneCacheSession::OneCacheSession;

  Result<NewRecurrent::Returns> operator()(const NewRecurrent& /*op*/) {
    if (const Status made = make_cache(); !made) return made.error();
    return NewRecurrent::Returns{true};
  }
  Result<DecodeStates::Returns> operator()(const DecodeStates& op) {
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
    const Status done = probe()([&] { return cache().decode(batch, see); });
    if (!done) return done.error();
    return shown;
  }
  Result<ShowMemory::Returns> operator()(const ShowMemory& /*op*/) {
    ShownStates shown = cache().shown();
    shown.seqs = sequences_shown([&](std::int64_t seq) { return cache().seq_pos(seq); });
    return shown;
  }
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
  return subject_of<RecurrentSession>(
      recurrent_kind(), std::move(variant), std::move(doc), std::move(make),
      [](const Setup& setup, QuirkSet<Quirk> quirks) {
        const auto& config = setup.config_as<RecurrentConfig>();
        return RecurrentOptions{quirks, config.n_seq_max, config.n_rs_seq.value_or(0)};
      });
}

}  // namespace kvo::cells

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_CELLS_RECURRENT_OPERATIONS)
}  // namespace kvo
