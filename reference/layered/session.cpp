// What a session of the contract does beside calling its caches: it numbers them, shows their rows,
// and follows which addresses RS-13 guarantees.
#include <map>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {
namespace {

// What RS-13 guarantees about one side of a layer. The harness follows it; the subject does not.
struct Guarantee {
  std::uint64_t bytes = 0;         ///< reserved, or the largest length so far
  const std::byte* pin = nullptr;  ///< remembered address
  bool promised = false;           ///< the pin must still hold
};

struct Slot {
  std::unique_ptr<Cache> cache;
  std::map<std::uint64_t, std::array<Guarantee, 2>> guarantees = {};
  std::uint64_t reserved = 0;  ///< bytes of a side

  [[nodiscard]] Cache* operator->() const { return cache.get(); }
  std::array<Guarantee, 2>& of(std::uint64_t layer) {
    const auto [it, fresh] = guarantees.try_emplace(layer);
    if (fresh) it->second[0].bytes = it->second[1].bytes = reserved;
    return it->second;
  }
  void note_growth(std::uint64_t layer) {
    const auto note = [&](Guarantee& side, std::size_t length) {
      if (length <= side.bytes) return;
      side.bytes = length;
      side.promised = false;
    };
    const auto k = cache->k({.layer = layer});
    const auto v = cache->v({.layer = layer});
    if (k) note(of(layer)[0], k->size());
    if (v) note(of(layer)[1], v->size());
  }
};

class LayeredSession final : public DispatchSession<LayeredSession, Ops> {
 public:
  LayeredSession(MakeCache make, const Behaviour& behaviour)
      : make_(std::move(make)), behaviour_(behaviour) {}

  // A cache whose memory does not have the storage type does not support the case.
  Observation apply(const Op& op, Probe& probe) override {
    Observation result = DispatchSession::apply(op, probe);
    const bool makes = op.as<New>() != nullptr || op.as<WithCapacity>() != nullptr;
    result.unsupported |= makes && result.failed_with(Code::kNotSupported);
    return result;
  }
  template <class T>
  Result<Cache*> cache_of(const T& op) {
    const auto found = slot(op.cache);
    if (!found) return found.error();
    return (*found)->cache.get();
  }

  Result<CacheNumber> operator()(const New& op) {
    return make({op.num_layers, op.num_kv_heads, op.head_dim}, std::nullopt);
  }
  Result<CacheNumber> operator()(const WithCapacity& op) {
    return make({op.num_layers, op.num_kv_heads, op.head_dim}, op.max_seq_len);
  }
  Status operator()(const Append& op) {
    for (const Tensor* rows : {&op.k, &op.v})
      if (rows->dtype != DType::kF32) return fail(Code::kPrecondition, "rows are f32");
    const auto found = slot(op.cache);
    if (!found) return found.error();
    const Status done = probe()([&] { return op.call(*(*found)->cache); });
    if (done) (*found)->note_growth(op.layer);
    return done;
  }
  Result<KeysOfLayer> operator()(const Keys& op) { return shown_side<KeysOfLayer>(op); }
  Result<ValuesOfLayer> operator()(const Values& op) { return shown_side<ValuesOfLayer>(op); }
  Result<CacheNumber> operator()(const Clone& op) {
    const auto source = slot(op.cache);
    if (!source) return source.error();
    return add(clone_of(**source));
  }
  Status operator()(const CloneFrom& op) {
    const auto target = slot(op.cache);
    const auto source = slot(op.source);
    if (!target) return target.error();
    if (!source) return source.error();
    if (*target == *source) return fail(Code::kPrecondition, "source is the cache itself");
    **target = clone_of(**source);
    return {};
  }
  Result<Text> operator()(const Debug& op) {
    const auto cache = slot(op.cache);
    if (!cache) return cache.error();
    return Text{debug_text(*(*cache)->cache, behaviour_.storage, op.pretty)};
  }
  Status operator()(const Pin& op) {
    const auto found = find_sides(op.cache, op.layer);
    if (!found) return found.error();
    auto& sides = found->slot->of(op.layer);
    found->slot->note_growth(op.layer);
    for (const std::size_t side : {0U, 1U})
      sides[side] = {sides[side].bytes, found->data[side], sides[side].bytes > 0};
    return {};
  }
  Result<Sameness> operator()(const Pinned& op) {
    const auto found = find_sides(op.cache, op.layer);
    if (!found) return found.error();
    const auto& sides = found->slot->of(op.layer);
    if (!sides[0].promised || !sides[1].promised) return Sameness{};
    return Sameness{found->data[0] == sides[0].pin && found->data[1] == sides[1].pin};
  }

 private:
  struct Sides {
    Slot* slot;
    std::array<const std::byte*, 2> data;  ///< base addresses of K and V
  };
  Result<Slot*> slot(std::uint64_t cache) { return slots_.at(static_cast<std::int64_t>(cache)); }
  Result<Sides> find_sides(std::uint64_t cache, std::uint64_t layer) {
    const auto found = slot(cache);
    if (!found) return found.error();
    const auto k = (*found)->cache->k({.layer = layer});
    const auto v = (*found)->cache->v({.layer = layer});
    if (!k) return k.error();
    if (!v) return v.error();
    return Sides{*found, {k->data(), v->data()}};
  }
  template <class Shown, class T>
  Result<Shown> shown_side(const T& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    const auto rows = probe()([&] { return op.call(**cache); });
    if (!rows) return rows.error();
    return Shown{shown_rows((*cache)->geometry(), behaviour_.storage, *rows)};
  }
  // A clone's guaranteed capacity is its length, whatever happens before it is read (RS-13, RS-15).
  Slot clone_of(const Slot& source) {
    Slot clone{probe()([&] { return source.cache->clone(); })};
    for (const auto& [layer, sides] : source.guarantees) clone.note_growth(layer);
    return clone;
  }
  Result<CacheNumber> add(Slot slot) {
    const auto number = slots_.add(std::move(slot));
    if (!number) return number.error();
    return CacheNumber{static_cast<std::uint64_t>(*number)};
  }
  Result<CacheNumber> make(const Geometry& geometry, std::optional<std::uint64_t> max_seq_len) {
    const StorageFormat& storage = behaviour_.storage;
    if (Status checked = check(storage); !checked) return checked.error();
    auto made = probe()([&] { return make_(geometry, max_seq_len, behaviour_); });
    if (!made) return made.error();
    const auto reserved = max_seq_len ? reserved_elements(geometry, *max_seq_len, behaviour_)
                                      : Result<std::uint64_t>(0);
    // A subject may accept what the rules refuse: then nothing is guaranteed of it.
    Slot slot{std::move(*made)};
    slot.reserved = reserved ? stored_bytes_of(geometry, *reserved, storage) : 0;
    return add(std::move(slot));
  }

  MakeCache make_;
  Behaviour behaviour_;
  NumberedCaches<Slot> slots_;
};

Behaviour behaviour_of(const Setup& setup, QuirkSet<Quirk> quirks) {
  const auto config = setup.config_as<Config>();
  Behaviour behaviour{.build = config.build.value_or(Build::kRelease),
                      .quirks = quirks,
                      .storage = config.rows.format()};
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
  return subject_of<Quirk>(
      vector_kind(), std::move(variant), std::move(doc),
      [make = std::move(make)](const Setup& setup, QuirkSet<Quirk> quirks) {
        return std::make_unique<LayeredSession>(make, behaviour_of(setup, quirks));
      },
      kQuirkRows);
}

}  // namespace kvo::layered

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_LAYERED_OPERATIONS)
}  // namespace kvo
