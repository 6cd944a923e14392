// properties/contract_parts.hpp: what each contract gives to its row of properties/contracts.cpp.
//
// generators    one for each kind that random cases are drawn for; then those of single kinds
// lowerings     how requests become operations, one or several for each kind
// _oracle       the oracle of a case; null for kinds of other contracts. Its file says what it
//               judges
// laws          laws of this contract alone
// mutants       subjects with a known fault
#pragma once

#include <memory>
#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/replay/lowering.hpp"
#include "properties/runner/law.hpp"
#include "properties/runner/oracle.hpp"

namespace kvo::layered {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::layered

namespace kvo::block_pool {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::block_pool

namespace kvo::provider {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] Generator contiguous_generator();
[[nodiscard]] Generator paged_generator();
[[nodiscard]] Generator device_generator();
[[nodiscard]] Generator tensor_generator();
[[nodiscard]] Generator tracing_generator();
[[nodiscard]] Generator context_generator();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::provider

namespace kvo::positional {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::positional

namespace kvo::snapshot {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<Generator> rows_generators();
[[nodiscard]] Generator recurrent_generator();
[[nodiscard]] Generator trie_generator();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::snapshot

namespace kvo::sampling {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::unique_ptr<Oracle> definition_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::sampling

namespace kvo::generation {
[[nodiscard]] std::vector<kvo::Generator> generators();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> recompute_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::generation

namespace kvo::views {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::views

namespace kvo::prefix {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] Generator blocks_generator();
[[nodiscard]] Generator radix_generator();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::prefix

namespace kvo::groups {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::groups

namespace kvo::cells {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] Generator meta_generator();
[[nodiscard]] Generator recurrent_generator();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::cells

namespace kvo::dynamic {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::dynamic

namespace kvo::mlx_lm {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::vector<replay::Lowering> lowerings();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::mlx_lm

namespace kvo::events {
[[nodiscard]] std::vector<Generator> generators();
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);
[[nodiscard]] std::vector<const Law*> laws();
[[nodiscard]] std::vector<Mutant> mutants();
}  // namespace kvo::events
