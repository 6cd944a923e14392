// properties/cells/rules_case.hpp: what tests of single rules of contract `cells` are written with.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/cells/meta_operations.hpp"
#include "reference/cells/operations.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {

/// A fresh cache of each subject of a kind in each profile: check(case, is_original).
template <class NewOp, class Check>
void in_each(const CacheKind& kind, const Record& config, Check&& check) {
  for (const Subject* subject : contracts().subjects_of(kind))
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const bool original = profile == Profile::kOriginal;
      SCOPED_TRACE(subject->name() + (original ? " original" : " documented"));
      RulesCase made(*subject, profile, config);
      EXPECT_EQ(made.code(NewOp{}), "ok");
      check(made, original);
    }
}

/// So many tokens of a sequence, behind its last one.
inline Decode tokens(std::int64_t seq, std::size_t count, std::int64_t n_ubatch = 64) {
  Decode batch;
  batch.seqs.assign(count, {seq});
  batch.n_ubatch = n_ubatch;
  return batch;
}

/// Tokens at their positions, each with its sequences.
inline Decode tokens_at(std::vector<std::int32_t> positions,
                        std::vector<std::vector<std::int64_t>> seqs, std::int64_t n_ubatch = 64) {
  return {.pos = std::move(positions), .seqs = std::move(seqs), .n_ubatch = n_ubatch};
}

/// "0:5{0} 1:6+2{0,1}": cells with position, shift and owners.
inline std::string text_of(const std::vector<ShownCell>& cells) {
  std::string text;
  for (const ShownCell& cell : cells)
    text += fmt::format("{}{}:{}{}{{{}}}", text.empty() ? "" : " ", cell.cell, cell.pos,
                        cell.shift == 0 ? "" : fmt::format("{:+}", cell.shift),
                        fmt::join(cell.seqs, ","));
  return text;
}

/// The cells of a stream of the base.
inline std::string table(RulesCase& cache, std::size_t stream = 0) {
  return text_of(cache.values(ShowState{}).streams[stream].cells);
}

/// The cells of the window half's first stream.
inline std::string window_table(RulesCase& cache) {
  return text_of(cache.values(ShowState{}).streams_swa->front().cells);
}

using Numbers = std::vector<std::int64_t>;

/// The cells that a token of an ubatch sees.
inline Numbers visible(const ShownUbatch& ubatch, std::size_t token) {
  Numbers seen;
  if (!ubatch.mask) return seen;
  const auto width = static_cast<std::size_t>(ubatch.n_kv);
  for (std::size_t cell = 0; cell < width; ++cell)
    if (std::isfinite(ubatch.mask->floats()[token * width + cell]))
      seen.push_back(static_cast<std::int64_t>(cell));
  return seen;
}

/// The only ubatch of a batch that must succeed.
inline ShownUbatch placed(RulesCase& cache, Decode batch) {
  const auto ubatches = cache.values(std::move(batch)).ubatches;
  if (!ubatches || ubatches->size() != 1) {
    ADD_FAILURE() << "not one ubatch";
    return {};
  }
  return ubatches->front();
}

/// The slots of a batch that must succeed, ubatch by ubatch.
inline Numbers slots(RulesCase& cache, Decode batch) {
  Numbers all;
  const auto ubatches = cache.values(std::move(batch)).ubatches;
  if (ubatches)
    for (const ShownUbatch& ubatch : *ubatches)
      all.insert(all.end(), ubatch.slots.begin(), ubatch.slots.end());
  return all;
}

}  // namespace kvo::cells
