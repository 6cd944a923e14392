#include "properties/replay/engine.hpp"

#include <algorithm>

namespace kvo::replay {
namespace {

constexpr std::string_view kContextShifted = "context shifted";
constexpr std::string_view kPrefixCopied = "prefix copied from another sequence";
constexpr std::string_view kPrefixKept = "prefix of the slot kept";

}  // namespace

Engine::Engine(const LoweringInput& input)
    : input_(input), schedule_(input.requests, input.schedule, input.seed) {}

std::optional<Op> Engine::next() {
  while (queue_.empty()) {
    if (schedule_.step().empty() && !schedule_.next()) return std::nullopt;
    lower(schedule_.step());
  }
  current_ = std::move(queue_.front());
  queue_.pop_front();
  return std::move(current_.op);
}

void Engine::observe(const Op& /*op*/, const Observation& seen, Labels& labels) {
  if (const Then then = std::exchange(current_.then, nullptr)) then(seen);
  labels.insert(reached_.begin(), reached_.end());
  reached_.clear();
}

void Engine::preempt(std::int64_t slot) {
  queue_.clear();
  schedule_.preempt(slot);
  reach(kPreempted);
}

// ---- Rows ----

std::pair<Tensor, Tensor> tagged(std::span<const TaggedRow> rows, const Shape& shape,
                                 std::int64_t heads, ElementType type) {
  std::pair<Tensor, Tensor> made{make_tensor(shape), make_tensor(shape)};
  const auto [keys, values] = std::pair(made.first.floats(), made.second.floats());
  if (rows.empty()) return made;
  const std::size_t dim = keys.size() / rows.size() / static_cast<std::size_t>(heads);
  std::size_t at = 0;
  for (std::uint64_t head = 0; head < static_cast<std::uint64_t>(heads); ++head) {
    for (const TaggedRow& row : rows) {
      if (row.first == 0) {
        at += dim;
        continue;
      }
      for (std::size_t i = 0; i < dim; ++i, ++at) {
        keys[at] = storable(tag(row.first + head * row.stride + i), type);
        values[at] = -keys[at];
      }
    }
  }
  return made;
}

std::pair<Tensor, Tensor> next_tags(Tagger& tagger, const Shape& shape, ElementType type) {
  auto made = tagger.pair(shape);
  if (type == ElementType::kF32) return made;
  for (Tensor* side : {&made.first, &made.second})
    for (float& element : side->floats()) element = storable(element, type);
  return made;
}

Tensor as_stored(const Tensor& elements, ElementType type) {
  const StorageFormat format{static_cast<StorageType>(type)};
  Tensor shown = make_tensor(elements.shape, dtype_of(format.type));
  show_stored(format, elements.floats(), shown.bytes.data());
  return shown;
}

// ---- Sequence by sequence ----

void SequenceOps::lower(Step& step) {
  while (!step.begins.empty()) {
    const std::int64_t slot = step.begins.front();
    step.begins.pop_front();
    cut(slot, 0);
    begin(slot);
  }
  if (step.turns.empty()) return;
  const Turn turn = step.turns.front();
  step.turns.pop_front();
  if (turn.draft) save(turn.slot);
  if (turn.append > 0) append(turn.slot, turn.append);
  if (turn.rejected > 0) reject(turn.slot, turn.rejected);
  if (turn.read) read(turn.slot);
  if (turn.end) end(turn.slot);
}

std::pair<Tensor, Tensor> SequenceOps::grow(std::int64_t slot, std::int64_t layer,
                                            std::int64_t tokens) {
  const std::uint64_t first = tagger().last() + 1;
  auto made = next_tags(tagger(), shape(tokens), stored());
  const auto head_rows = static_cast<std::uint64_t>(tokens * heads());
  const std::uint64_t dim = (tagger().last() + 1 - first) / head_rows;
  for (std::uint64_t token = 0; token < static_cast<std::uint64_t>(tokens); ++token)
    rows(slot, layer).push_back({first + token * dim, static_cast<std::uint64_t>(tokens) * dim});
  return made;
}

void SequenceOps::cut(std::int64_t slot, std::int64_t length) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer)
    rows(slot, layer).resize(static_cast<std::size_t>(length));
}

// ---- Batch by batch ----

// Begins and context shifts one by one, for the result of one decides what follows. Then all that
// is appended as one batch, which stays in the step until the cache has stored it.
void BatchOps::lower(Step& step) {
  if (!step.begins.empty()) {
    const std::int64_t slot = step.begins.front();
    step.begins.pop_front();
    return begin(slot);
  }
  for (const Turn& turn : step.turns) {
    if (!turn.end) continue;
    at(turn.slot).running = false;
    read_due_ |= turn.read;
  }
  std::erase_if(step.turns, [](const Turn& turn) { return turn.end; });
  for (const Turn& turn : step.turns)
    if (at(turn.slot).length() + turn.append > context_) return shift_context(turn.slot);
  if (!prepare(step) && !step.turns.empty()) forward(step);
}

// In whole blocks; the last token of a prompt is always computed.
std::int64_t BatchOps::shared_tokens(const Slot& held, const Request& request) const {
  const auto [ours, theirs] = std::ranges::mismatch(request.block_ids, held.ids);
  const auto blocks = ours - request.block_ids.begin();
  if (blocks == 0) return 0;
  const std::int64_t prompt = input().prompt(request);
  const std::int64_t tokens = prompt * blocks / std::ssize(request.block_ids);
  return std::max<std::int64_t>(
      0, std::min({tokens, held.prompt, held.intact, held.length(), prompt - 1}));
}

// Looks for the longest beginning of the prompt that a slot holds, first of all its own.
void BatchOps::begin(std::int64_t slot) {
  const Request& request = schedule().running(slot);
  std::int64_t source = slot;
  std::int64_t common = 0;
  for (std::int64_t other = 0; other < slots(); ++other) {
    const std::int64_t shared = shared_tokens(at(other), request);
    if (shared < common || shared == 0 || (shared == common && other != slot)) continue;
    common = shared;
    source = other;
  }
  Slot& own = at(slot);
  own.running = true;
  own.shifted = false;
  own.copied = source != slot;
  own.ids = request.block_ids;
  own.prompt = input().prompt(request);
  if (common == 0) {
    clear(slot);
    return begun(slot, 0);
  }
  share(slot, source, common);
  if (own.copied) {
    Slot& other = at(source);
    own.tags.assign(other.tags.begin(), other.tags.begin() + common);
    own.shared = common;
    other.shared = std::max(other.shared, common);
  } else {
    own.tags.resize(static_cast<std::size_t>(common));
  }
}

void BatchOps::resume(std::int64_t slot, bool can) {
  Slot& own = at(slot);
  reach(!can ? names_.lost : own.copied ? kPrefixCopied : kPrefixKept);
  if (!can) {
    clear(slot);
    return begun(slot, 0);
  }
  own.intact = own.length();
  begun(slot, own.intact);
  schedule().skip(slot, own.intact);
}

void BatchOps::shift_context(std::int64_t slot) {
  Slot& own = at(slot);
  const std::int64_t kept = context_ / 8;
  const std::int64_t end = kept + (own.length() - kept) / 2;
  if (!movable(own, end)) {
    clear(slot);
    return schedule().give_up(slot);
  }
  shift(slot, static_cast<std::int32_t>(kept), static_cast<std::int32_t>(end));
  own.tags.erase(own.tags.begin() + kept, own.tags.begin() + end);
  own.shared = std::min(own.shared, kept);
  own.intact = std::min(own.intact, kept);
  own.shifted = true;
}

void BatchOps::shifted(std::int64_t slot, bool done) {
  reach(done ? kContextShifted : names_.refused);
  if (done) return;
  clear(slot);
  schedule().give_up(slot);
}

void BatchOps::stored(bool done) {
  if (!done) return make_room();
  Step& step = schedule().step();
  bool read = false;
  for (const Turn& turn : step.turns) {
    read |= turn.read;
    for (std::int64_t i = 0; i < turn.append; ++i) at(turn.slot).tags.push_back(++tags_);
  }
  settle(read);
  for (const Turn& turn : step.turns) {
    Slot& own = at(turn.slot);
    own.tags.resize(own.tags.size() - static_cast<std::size_t>(turn.rejected));
    own.intact = own.shifted ? std::min(own.intact, own.length()) : own.length();
    if (turn.rejected > 0) drop(turn.slot, own.length());
  }
  step.turns.clear();
  settled(read);
}

// The batch failed. It is emitted again with fewer tokens in its way.
void BatchOps::make_room() {
  reach(names_.full);
  const auto idle = std::ranges::find_if(
      slots_, [](const Slot& slot) { return !slot.running && slot.length() > 0; });
  if (idle != slots_.end()) return clear(idle - slots_.begin());
  const std::int64_t victim = schedule().step().turns.back().slot;
  ++preemptions_;
  preempt(victim);
  clear(victim);
}

void BatchOps::clear(std::int64_t slot) {
  Slot& own = at(slot);
  if (own.length() > 0) drop(slot, -1);
  own.tags.clear();
  own.intact = own.shared = 0;
}

}  // namespace kvo::replay
