#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "properties/arenas/arena_mutants.hpp"
#include "properties/layered/contract.hpp"
#include "reference/layered/cache.hpp"
#include "reference/layered/vector_cache.hpp"

namespace kvo::layered {
namespace {

/// A mutant whose caches are `Faulty`, a VectorCache with one method done wrong.
template <class Faulty>
Mutant mutant_of(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const Geometry& geometry, std::optional<std::uint64_t> max_seq_len,
                       const Behaviour& behaviour) -> Result<std::unique_ptr<Cache>> {
    auto sound = VectorCache::make(geometry, max_seq_len, behaviour);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(static_cast<VectorCache&&>(**sound));
  };
  return {.subject = make_subject("mutant:" + name, std::string(fault), make),
          .fault = std::string(fault),
          .origin = std::string(origin)};
}

/// Base of the faulty caches: takes over a sound one, and is copied by clone.
template <class Faulty>
class FaultyCache : public VectorCache {
 public:
  explicit FaultyCache(VectorCache&& sound) : VectorCache(std::move(sound)) {}
  [[nodiscard]] std::unique_ptr<Cache> clone() const override {
    return std::make_unique<Faulty>(static_cast<const Faulty&>(*this));
  }
};

/// Puts V of the last layer back.
class ClearKeepsRows final : public FaultyCache<ClearKeepsRows> {
 public:
  using FaultyCache::FaultyCache;
  void clear() override {
    const auto kept = layers_.empty() ? std::vector<std::byte>() : layers_.back().v;
    VectorCache::clear();
    if (!layers_.empty()) layers_.back().v = kept;
  }
};

/// Copies as many rows as len says.
class CloneDropsPending final : public FaultyCache<CloneDropsPending> {
 public:
  using FaultyCache::FaultyCache;
  [[nodiscard]] std::unique_ptr<Cache> clone() const override {
    auto copy = std::make_unique<CloneDropsPending>(*this);
    for (Layer& layer : copy->layers_) {
      const std::uint64_t elements = geometry_.num_kv_heads * geometry_.head_dim * len_;
      const std::size_t counted = stored_bytes_of(geometry_, elements, behaviour_.storage);
      const std::size_t kept = std::min(layer.k.size(), counted);
      layer.k.resize(kept);
      layer.v.resize(std::min(layer.v.size(), kept));
    }
    return copy;
  }
};

/// Moves each V row on to the next layer.
class ValuesInWrongLayer final : public FaultyCache<ValuesInWrongLayer> {
 public:
  using FaultyCache::FaultyCache;
  [[nodiscard]] Status append(const Append& op) override {
    const Status done = VectorCache::append(op);
    if (!done || layers_.size() < 2) return done;
    std::vector<std::byte>& from = layers_[op.layer].v;
    std::vector<std::byte>& to = layers_[(op.layer + 1) % layers_.size()].v;
    const std::size_t bytes = stored(op.v.floats()).size();
    to.insert(to.end(), from.end() - static_cast<std::ptrdiff_t>(bytes), from.end());
    from.resize(from.size() - bytes);
    return done;
  }
};

/// Stores K before there is room for V.
class AppendNotAtomic final : public FaultyCache<AppendNotAtomic> {
 public:
  using FaultyCache::FaultyCache;
  [[nodiscard]] Status append(const Append& op) override {
    if (op.layer >= layers_.size() || !has(Quirk::kSecondAppendTaken))
      return VectorCache::append(op);
    if (!entry_size() || !check_lengths(op)) return VectorCache::append(op);
    Layer& to = layers_[op.layer];
    const std::vector<std::byte> key = stored(op.k.floats());
    const std::vector<std::byte> value = stored(op.v.floats());
    to.k.insert(to.k.end(), key.begin(), key.end());
    to.v.insert(to.v.end(), value.begin(), value.end());
    return {};
  }
};

}  // namespace

// The first is the canary.
std::vector<Mutant> mutants() {
  std::vector<Mutant> made{
      mutant_of<ClearKeepsRows>("clear_keeps_rows",
                                "clear leaves the V rows of the last layer behind",
                                "B026, F04: transformers took a crop to 0 for no crop at all"),
      mutant_of<CloneDropsPending>(
          "clone_drops_pending", "a clone lacks the rows that were not yet advanced",
          "B030, F04: a cancel left Ollama's cache ahead of its log of tokens"),
      mutant_of<ValuesInWrongLayer>(
          "values_in_wrong_layer", "values are stored one layer further than keys",
          "B081, F09: a kernel of zerfoo read heads packed in a row with the wrong stride"),
      mutant_of<AppendNotAtomic>("append_not_atomic",
                                 "a failed allocation for V leaves the K row behind",
                                 "B033, F04: a cancelled prefill left Ollama's target caches one "
                                 "token past the draft caches"),
  };
  made.back().profile = Profile::kOriginal;  // it breaks a rule that documented does not have
  const auto fast = arenas::mutants_of("layered");
  made.insert(made.end(), fast.begin(), fast.end());
  return made;
}

}  // namespace kvo::layered
