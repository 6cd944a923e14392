// properties/campaign/contracts.hpp: what the machine is told of each contract.
//
// A contract is one ContractRow. A program hands its rows to a Contracts, and everything else
// (campaigns, replays, commands) takes that and knows no contract by name.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/replay/lowering.hpp"
#include "properties/runner/law.hpp"
#include "reference/contract/device/device.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo {

/// The subjects of one kind that take part in a run.
struct Comparison {
  const CacheKind* kind = nullptr;
  const Subject* reference = nullptr;         ///< their baseline; null: none
  std::vector<const Subject*> subjects = {};  ///< without the reference
};

/// The variant of subjects over the card of this machine.
inline constexpr std::string_view kCardVariant = "cuda";

/// Subjects over a device, one a kind, by the name of their variant and a way to open one.
using DeviceSubjects = std::vector<Subject> (*)(const std::string& variant, const OpenDevice& open);

/// Everything that is said of one contract. Of the functions only `references` must be there.
struct ContractRow {
  std::string_view name;
  std::vector<Subject> (*references)() = nullptr;  ///< one of each cache kind
  std::vector<Subject> (*optimized)() = nullptr;
  DeviceSubjects devices = nullptr;  ///< variants "cuda-sim" and "cuda" are made of them
  std::vector<Generator> (*generators)() = nullptr;
  std::vector<replay::Lowering> (*lowerings)() = nullptr;
  MakeOracle oracle = nullptr;
  /// Metamorphic laws of its own. Laws of several contracts may have one name: they are one law.
  std::vector<const Law*> (*laws)() = nullptr;
  std::vector<Mutant> (*mutants)() = nullptr;
  std::vector<DeviceMutant> (*device_mutants)() = nullptr;  ///< tried over simulated devices
  bool guest = false;  ///< none of this tree's; so are its subjects
};

/// A name that is not allowed: it would garble tables, commands or file names.
class InvalidName : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// All that a program knows: contracts, cache kinds, subjects, laws, mutants. Does not change.
class Contracts {
 public:
  /// `more`: subjects beside those of the rows, for instance caches of one's own. Their kinds must
  /// be those of the rows. `card` opens the card of this machine; null: there are no subjects over
  /// one.
  /// Throws  InvalidName: of a contract, a cache or a variant.
  explicit Contracts(std::vector<ContractRow> rows, std::vector<Subject> more = {},
                     const OpenDevice& card = nullptr);
  Contracts(const Contracts&) = delete;
  Contracts& operator=(const Contracts&) = delete;

  /// All cache kinds, in the order of the rows and their references.
  [[nodiscard]] const std::vector<const CacheKind*>& kinds() const { return kinds_; }
  /// The kind of a contract and a cache, or null.
  [[nodiscard]] const CacheKind* find_kind(std::string_view contract, std::string_view cache) const;

  /// find_kind for readers of logs; valid as long as this object.
  [[nodiscard]] traces::FindKind kind_finder() const;

  /// References first, then the other subjects, then references over each usual subject of another
  /// kind that they can have inside and that is no reference. Mutants are not among them.
  [[nodiscard]] const std::vector<const Subject*>& subjects() const { return listed_; }
  /// Those of them that take part where nobody is named.
  [[nodiscard]] std::vector<const Subject*> usual_subjects() const;
  /// The subject of that full name ("provider.paged@optimized"), mutants included, or null. With a
  /// slash, a subject over another one: both are found, and composed if they can be.
  /// Threads  safe.
  [[nodiscard]] const Subject* find_subject(std::string_view name) const;
  /// The reference of a kind, which must be one of kinds().
  [[nodiscard]] const Subject& reference_of(const CacheKind& kind) const;
  /// reference_of as a function; valid as long as this object.
  [[nodiscard]] std::function<const Subject&(const CacheKind&)> reference_finder() const {
    return [this](const CacheKind& kind) -> const Subject& { return reference_of(kind); };
  }
  /// The usual subjects of a kind, its reference first.
  [[nodiscard]] std::vector<const Subject*> subjects_of(const CacheKind& kind) const;

  /// All subjects of a kind that need no card, those over simulated devices with them.
  [[nodiscard]] std::vector<const Subject*> subjects_without_card(const CacheKind& kind) const;

  [[nodiscard]] const std::vector<Mutant>& mutants() const { return mutants_; }
  /// The mutant that every run of the tests must catch: if it gets away, the harness is broken.
  /// Requires  there are mutants.
  [[nodiscard]] const Mutant& canary() const { return mutants_.front(); }

  /// The generator of a kind, or null.
  [[nodiscard]] const Generator* generator_of(const CacheKind& kind) const;
  /// The lowerings of a kind, in the order of its contract.
  [[nodiscard]] std::vector<const replay::Lowering*> lowerings_of(const CacheKind& kind) const;
  [[nodiscard]] const std::vector<replay::Lowering>& lowerings() const { return lowerings_; }
  /// The oracle of a kind's contract, or null.
  [[nodiscard]] MakeOracle oracle_of(const CacheKind& kind) const;

  /// Every law, those of all contracts first.
  [[nodiscard]] const std::vector<const Law*>& laws() const { return laws_; }
  /// Those that apply to a kind.
  [[nodiscard]] std::vector<const Law*> laws_of(const CacheKind& kind) const;
  /// The law of that name, or null.
  [[nodiscard]] const Law* find_law(std::string_view name) const;

 private:
  void add(const ContractRow& row);
  void add(Generator generator);
  void add(const Law& law);
  /// Lists the references over what they can have inside.
  void compose();
  [[nodiscard]] const Subject* find_uncomposed(std::string_view name) const;

  std::vector<ContractRow> rows_;
  std::deque<Subject> subjects_;  ///< do not move
  std::vector<const Subject*> listed_;
  std::vector<const CacheKind*> kinds_;
  std::vector<Generator> generators_;
  std::vector<replay::Lowering> lowerings_;
  std::deque<LockstepLaw> oracle_laws_;
  std::deque<std::unique_ptr<Law>> joined_laws_;
  std::vector<const Law*> laws_;
  std::vector<Mutant> mutants_;
  mutable std::mutex composing_;
  mutable std::deque<Subject> composed_;  ///< those that were asked for by name; do not move
};

}  // namespace kvo
