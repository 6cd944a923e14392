// How operations of the contract reach a cache: one overload an operation.
#include <map>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/layered/operations.hpp"

namespace kvo::layered {
namespace {

constexpr std::size_t kMostCaches = 4096;

// What RS-13 guarantees about one side of a layer: kept by the harness, not asked of the subject.
struct Guarantee {
  std::uint64_t bytes = 0;         ///< reserved, or the largest length so far
  const std::byte* pin = nullptr;  ///< remembered address
  bool promised = false;           ///< the pin must still hold
};

struct Slot {
  std::unique_ptr<Cache> cache;
  std::map<std::uint64_t, std::array<Guarantee, 2>> guarantees = {};
  std::uint64_t reserved = 0;  ///< bytes of a side

  std::array<Guarantee, 2>& of(std::uint64_t layer) {
    const auto [it, fresh] = guarantees.try_emplace(layer);
    if (fresh) it->second[0].bytes = it->second[1].bytes = reserved;
    return it->second;
  }
  void grown(std::uint64_t layer) {
    const auto note = [&](Guarantee& side, std::size_t length) {
      if (length <= side.bytes) return;
      side.bytes = length;
      side.promised = false;
    };
    const auto k = cache->k(layer);
    const auto v = cache->v(layer);
    if (k) note(of(layer)[0], k->size());
    if (v) note(of(layer)[1], v->size());
  }
};

class LayeredSession final : public DispatchSession<LayeredSession, Ops> {
 public:
  LayeredSession(MakeCache make, const Behaviour& behaviour)
      : make_(std::move(make)), behaviour_(behaviour) {}

  // A cache whose memory does not know the storage type says nothing about the rules.
  Observation apply(const Op& op, Probe& probe) override {
    Observation seen = DispatchSession::apply(op, probe);
    const bool makes = op.as<New>() != nullptr || op.as<WithCapacity>() != nullptr;
    seen.unsupported |= makes && seen.failed_with(Code::kNotSupported);
    return seen;
  }
  Result<CacheNumber> operator()(const New& op) {
    return add({op.num_layers, op.num_kv_heads, op.head_dim}, std::nullopt);
  }
  Result<CacheNumber> operator()(const WithCapacity& op) {
    return add({op.num_layers, op.num_kv_heads, op.head_dim}, op.max_seq_len);
  }
  Status operator()(const Append& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    for (const Tensor* rows : {&op.k, &op.v})
      if (rows->dtype != DType::kF32) return fail(Code::kPrecondition, "rows are f32");
    const Status done =
        probe()([&] { return slot->cache->append(op.layer, op.k.floats(), op.v.floats()); });
    if (done) slot->grown(op.layer);
    return done;
  }
  Status operator()(const Advance& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    return probe()([&] { return slot->cache->advance(); });
  }
  Result<Keys::Returns> operator()(const Keys& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    const auto seen = probe()([&] { return slot->cache->k(op.layer); });
    if (!seen) return seen.error();
    return Keys::Returns{shown(*slot, *seen)};
  }
  Result<Values::Returns> operator()(const Values& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    const auto seen = probe()([&] { return slot->cache->v(op.layer); });
    if (!seen) return seen.error();
    return Values::Returns{shown(*slot, *seen)};
  }
  Result<Len::Returns> operator()(const Len& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    return Len::Returns{probe()([&] { return slot->cache->len(); })};
  }
  Result<IsEmpty::Returns> operator()(const IsEmpty& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    return IsEmpty::Returns{probe()([&] { return slot->cache->len() == 0; })};
  }
  Result<NumLayers::Returns> operator()(const NumLayers& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    return NumLayers::Returns{probe()([&] { return slot->cache->geometry().num_layers; })};
  }
  Result<EntrySize::Returns> operator()(const EntrySize& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    const auto size = probe()([&] { return slot->cache->entry_size(); });
    if (!size) return size.error();
    return EntrySize::Returns{*size};
  }
  Status operator()(const Clear& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    probe()([&] { slot->cache->clear(); });
    return {};
  }
  Result<CacheNumber> operator()(const Clone& op) {
    const Slot* source = find(op.cache);
    if (source == nullptr) return no_cache(op.cache);
    if (slots_.size() == kMostCaches) return too_many();
    Slot clone = clone_of(*source);
    slots_.push_back(std::move(clone));
    return CacheNumber{slots_.size() - 1};
  }
  Status operator()(const CloneFrom& op) {
    Slot* target = find(op.cache);
    const Slot* source = find(op.source);
    if (target == nullptr) return no_cache(op.cache);
    if (source == nullptr) return no_cache(op.source);
    if (target == source) return fail(Code::kPrecondition, "source is the cache itself");
    *target = clone_of(*source);
    return {};
  }
  Result<Debug::Returns> operator()(const Debug& op) {
    const Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    return Debug::Returns{debug_text(*slot->cache, behaviour_.storage, op.pretty)};
  }
  Status operator()(const Pin& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    const auto k = slot->cache->k(op.layer);
    const auto v = slot->cache->v(op.layer);
    if (!k) return k.error();
    if (!v) return v.error();
    auto& sides = slot->of(op.layer);
    slot->grown(op.layer);
    sides[0] = {sides[0].bytes, k->data(), sides[0].bytes > 0};
    sides[1] = {sides[1].bytes, v->data(), sides[1].bytes > 0};
    return {};
  }
  Result<Pinned::Returns> operator()(const Pinned& op) {
    Slot* slot = find(op.cache);
    if (slot == nullptr) return no_cache(op.cache);
    const auto k = slot->cache->k(op.layer);
    const auto v = slot->cache->v(op.layer);
    if (!k) return k.error();
    if (!v) return v.error();
    const auto& sides = slot->of(op.layer);
    if (!sides[0].promised || !sides[1].promised) return Pinned::Returns{};
    return Pinned::Returns{k->data() == sides[0].pin && v->data() == sides[1].pin};
  }

 private:
  [[nodiscard]] Tensor shown(const Slot& slot, std::span<const std::byte> rows) const {
    return shown_rows(slot.cache->geometry(), behaviour_.storage, rows);
  }
  Slot* find(std::uint64_t number) { return number < slots_.size() ? &slots_[number] : nullptr; }
  static Error no_cache(std::uint64_t number) {
    return fail(Code::kPrecondition, "no cache " + std::to_string(number));
  }
  static Error too_many() { return fail(Code::kPrecondition, "too many caches in a case"); }
  // A clone's guaranteed capacity is its length, whatever becomes of that before somebody looks
  // (RS-13, RS-15).
  Slot clone_of(const Slot& source) {
    Slot clone{probe()([&] { return source.cache->clone(); })};
    for (const auto& [layer, sides] : source.guarantees) clone.grown(layer);
    return clone;
  }
  Result<CacheNumber> keep(std::unique_ptr<Cache> cache, std::uint64_t reserved = 0) {
    if (slots_.size() == kMostCaches) return too_many();
    Slot slot{std::move(cache)};
    slot.reserved = reserved;
    slots_.push_back(std::move(slot));
    return CacheNumber{slots_.size() - 1};
  }
  Result<CacheNumber> add(const Geometry& geometry, std::optional<std::uint64_t> max_seq_len) {
    if (Status known = check(behaviour_.storage); !known) return known.error();
    auto made = probe()([&] { return make_(geometry, max_seq_len, behaviour_); });
    if (!made) return made.error();
    const auto reserved = max_seq_len ? reserved_elements(geometry, *max_seq_len, behaviour_)
                                      : Result<std::uint64_t>(0);
    // A subject may take what the rules refuse: then nothing is guaranteed of it.
    const StorageFormat& storage = behaviour_.storage;
    return keep(std::move(*made), reserved ? stored_bytes_of(geometry, *reserved, storage) : 0);
  }

  MakeCache make_;
  Behaviour behaviour_;
  std::vector<Slot> slots_;
};

Result<Behaviour> behaviour_of(const Setup& setup) {
  const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
  if (!quirks) return quirks.error();
  const auto config = setup.config_as<Config>();
  Behaviour behaviour{.build = config.build.value_or(Build::kRelease),
                      .quirks = *quirks,
                      .storage = storage_format(config.storage, config.group, config.offset)};
  // Rows of any length, of heads of any size, have no groups: the followed cache stores f32.
  if (behaviour.storage.type != StorageType::kF32)
    for (const Quirk quirk : {Quirk::kSizesUnchecked, Quirk::kLengthsUnchecked})
      behaviour.quirks.remove(quirk);
  return behaviour;
}

}  // namespace

const CacheKind& vector_kind() {
  static const CacheKind kKind{.contract = "layered",
                               .cache = "vector",
                               .doc = "one growing K and V a layer (a Rust KVCache)",
                               .operations = op_kinds(Ops()),
                               .config = &type_of<Config>(),
                               .quirks = kQuirkRows};
  return kKind;
}

Subject make_subject(std::string variant, std::string doc, MakeCache make) {
  return {.kind = &vector_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto behaviour = behaviour_of(setup);
            if (!behaviour) return behaviour.error();
            return std::make_unique<LayeredSession>(make, *behaviour);
          }};
}

}  // namespace kvo::layered

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_LAYERED_OPERATIONS)
}  // namespace kvo
