#include "optimized/snapshot/rows_snapshot.hpp"

namespace kvo::optimized {

using snapshot::Quirk;

Status rows_fit(const snapshot::Pair& rows, const RowForm* k, const RowForm* v,
                QuirkSet<Quirk> quirks) {
  const bool silent = quirks.has(Quirk::kMisfitIsSilent);
  if (rows.k.view.shape.size() != 4 || rows.v.view.shape.size() != 4)
    return fail(silent ? Code::kPrecondition : Code::kBadShape, "axes");
  if (silent) return {};
  const RowForm given_k = RowForm::of(rows.k);
  const RowForm given_v = RowForm::of(rows.v);
  const bool alike = snapshot::tokens_of(rows.k) == snapshot::tokens_of(rows.v) &&
                     given_k.batch == given_v.batch && given_k.heads == given_v.heads;
  if (!alike || (k != nullptr && (!k->same_shape(given_k) || !v->same_shape(given_v))))
    return fail(Code::kBadShape, "k, v");
  return {};
}

}  // namespace kvo::optimized
