#include "properties/generation/faulty_caches.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "properties/campaign/metamorphic.hpp"
#include "reference/generation/operations.hpp"
#include "reference/provider/contiguous_operations.hpp"

namespace kvo::generation {
namespace {

/// What a session remembers between two operations.
struct Memory {
  bool made = false;           ///< there has been a cache
  std::int64_t positions = 0;  ///< of the last update
};

/// A fault: what an operation is changed to before the cache sees it, nothing to leave it out, and
/// what is shown of its rows.
struct Tampering {
  std::string_view name;
  std::string_view fault;
  std::string_view origin;
  std::function<std::optional<Op>(const Op& op, const Memory& memory)> before = nullptr;
  std::function<Tensor(const Tensor& rows, const Memory& memory)> shown = nullptr;
};

constexpr std::size_t kPositions = 1;  // axis of rows

std::optional<Op> cut_elsewhere(const Op& op, std::int64_t (*to)(std::int64_t n)) {
  const auto* truncate = op.as<provider::Truncate>();
  return truncate == nullptr ? op : Op::of(provider::Truncate{truncate->cache, to(truncate->n)});
}

/// Positions [from, from + count) of rows, as far as they are there.
Tensor part(const Tensor& rows, std::int64_t from, std::int64_t count) {
  const std::int64_t there = rows.shape[kPositions];
  const std::int64_t begin = std::clamp<std::int64_t>(from, 0, there);
  return axis_range(rows, kPositions, begin, std::min(begin + count, there));
}

const std::vector<Tampering>& tamperings() {
  static const std::vector<Tampering> kAll{
      {.name = "rollback_keeps_one",
       .fault = "a rollback leaves the first token that was refused",
       .origin = "B031, F04: mlx-lm kept tokens of an interrupted answer in the reused prefix",
       .before = [](const Op& op, const Memory& /*memory*/) -> std::optional<Op> {
         return cut_elsewhere(op, [](std::int64_t n) { return n + 1; });
       }},
      {.name = "rollback_to_nothing",
       .fault = "a rollback drops prompt and text, too",
       .origin = "B038, F04: aprender reset the length on the device to 0 instead of rolling back",
       .before = [](const Op& op, const Memory& /*memory*/) -> std::optional<Op> {
         return cut_elsewhere(op, [](std::int64_t /*n*/) { return std::int64_t{0}; });
       }},
      {.name = "rollback_forgotten",
       .fault = "what was refused stays in the cache",
       .origin = "B030, F04: a cancel left Ollama's cache ahead of its log of tokens",
       .before = [](const Op& op, const Memory& /*memory*/) -> std::optional<Op> {
         if (op.as<provider::Truncate>() != nullptr) return std::nullopt;
         return op;
       }},
      {.name = "reissued_with_content",
       .fault = "a cache that is made for the next call still holds the last one's tokens",
       .origin = "B059, F07: a block that vLLM issued again still counted as computed",
       .before = [](const Op& op, const Memory& memory) -> std::optional<Op> {
         if (op.as<provider::NewContiguous>() != nullptr && memory.made) return std::nullopt;
         return op;
       }},
      {.name = "shown_before_written",
       .fault = "the rows of the last update show as they were before it: zeros",
       .origin = "B067, F07: zerfoo freed an fp16 buffer before the copy from it was done",
       .shown =
           [](const Tensor& rows, const Memory& memory) {
             Tensor shown = rows;
             const std::int64_t stale = std::min(memory.positions, rows.shape[kPositions]);
             const auto cells = shown.floats();
             std::ranges::fill(cells.last(static_cast<std::size_t>(stale * rows.shape[2])), 0.0F);
             return shown;
           }},
      {.name = "step_overwrites_first",
       .fault = "the row of a decode step shows in the place of the first one",
       .origin = "B065, F07: zerfoo's counter on the device stayed 0 after a prefill, so decoding "
                 "wrote at position 0",
       .shown =
           [](const Tensor& rows, const Memory& memory) {
             Tensor shown = rows;
             const auto dim = static_cast<std::size_t>(rows.shape[2]);
             if (memory.positions == 1)
               std::ranges::copy(rows.floats().last(dim), shown.floats().begin());
             return shown;
           }},
      {.name = "newest_unseen",
       .fault = "the newest row is masked",
       .origin = "B107, F12: lengths of mlx-lm's batched prefill were off by the token in flight",
       .shown = [](const Tensor& rows,
                   const Memory& /*memory*/) { return part(rows, 0, rows.shape[kPositions] - 1); }},
      {.name = "mask_without_prefix",
       .fault = "the mask of a later pass covers its own tokens only",
       .origin = "B109, F12: candle is reported to have built the mask of a later chunk without "
                 "the prefix",
       .shown =
           [](const Tensor& rows, const Memory& memory) {
             return part(rows, rows.shape[kPositions] - memory.positions, memory.positions);
           }},
      {.name = "first_masked",
       .fault = "the mask begins one row late",
       .origin = "B106, F12: the chunked mask of Llama 4 in transformers was off by one",
       .shown = [](const Tensor& rows,
                   const Memory& /*memory*/) { return part(rows, 1, rows.shape[kPositions] - 1); }},
  };
  return kAll;
}

class TamperedSession final : public Session {
 public:
  TamperedSession(std::unique_ptr<Session> sound, const Tampering& tampering)
      : sound_(std::move(sound)), tampering_(tampering) {}

  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    const std::optional<Op> done =
        tampering_.before ? tampering_.before(op, memory_) : std::optional(op);
    if (op.as<provider::NewContiguous>() != nullptr) memory_.made = true;
    if (const auto* update = op.as<provider::Update>(); update != nullptr && update->k.has_value())
      memory_.positions = update->k->shape[kPositions];
    if (!done) return {.returns = Record::of(Nothing())};
    Observation seen = sound_->apply(*done, probe);
    const auto* found = seen.returns ? seen.returns.get_if<provider::Found>() : nullptr;
    if (!tampering_.shown || found == nullptr || !found->k) return seen;
    provider::Found shown = *found;
    shown.k = tampering_.shown(*found->k, memory_);
    shown.v = tampering_.shown(*found->v, memory_);
    return {.returns = Record::of(std::move(shown))};
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return sound_->broken_invariant();
  }

 private:
  std::unique_ptr<Session> sound_;
  const Tampering& tampering_;
  Memory memory_;
};

}  // namespace

std::vector<Mutant> faulty_caches() {
  const Subject sound = reference_caches().contiguous;
  std::vector<Mutant> made;
  for (const Tampering& tampering : tamperings()) {
    Subject faulty = sound;
    faulty.variant = "mutant:" + std::string(tampering.name);
    faulty.doc = tampering.fault;
    faulty.open = [sound, &tampering](const Setup& setup) -> Result<std::unique_ptr<Session>> {
      auto session = sound.open(setup);
      if (!session) return session.error();
      return std::make_unique<TamperedSession>(std::move(*session), tampering);
    };
    made.push_back({.subject = std::move(faulty),
                    .fault = std::string(tampering.fault),
                    .origin = std::string(tampering.origin)});
  }
  return made;
}

}  // namespace kvo::generation
