#include "properties/snapshot/history.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "reference/contract/values/strided_view.hpp"
#include "reference/snapshot/arrays.hpp"

namespace kvo::snapshot {
namespace {

// Of one token in one head of one sequence.
std::size_t row_bytes(const Side& side) {
  return static_cast<std::size_t>(side.shape[3]) * dtype_bytes(side.type);
}

std::size_t planes(const Side& side) {
  return static_cast<std::size_t>(side.shape[0] * side.shape[1]);
}

}  // namespace

Side Side::of(const Tensor& tensor) {
  Side side{.shape = tensor.shape, .type = tensor.dtype};
  const auto count = static_cast<std::size_t>(std::exchange(side.shape[kTokenAxis], 0));
  const std::size_t row = row_bytes(side);
  for (std::size_t token = 0; token < count; ++token) {
    auto elements = std::make_shared<std::vector<std::byte>>(planes(side) * row);
    for (std::size_t plane = 0; plane < planes(side) && row > 0; ++plane)
      std::memcpy(elements->data() + plane * row,
                  tensor.bytes.data() + (plane * count + token) * row, row);
    side.tokens.push_back(std::move(elements));
  }
  return side;
}

Tensor Side::shown(std::size_t first) const {
  Shape whole = shape;
  whole[kTokenAxis] = static_cast<std::int64_t>(tokens.size());
  Tensor tensor = make_tensor(whole, type);
  const std::size_t row = row_bytes(*this);
  for (std::size_t at = 0; at < tokens.size() && row > 0; ++at)
    for (std::size_t plane = 0; plane < planes(*this); ++plane)
      std::memcpy(tensor.bytes.data() + (plane * tokens.size() + at) * row,
                  tokens[(first + at) % tokens.size()]->data() + plane * row, row);
  return tensor;
}

Side Side::part(std::int64_t begin, std::int64_t end) const {
  return {.shape = shape, .type = type, .tokens = {tokens.begin() + begin, tokens.begin() + end}};
}

Side Side::cast(DType to) const {
  if (to == type) return *this;
  Side side{.shape = shape, .type = to};
  const std::size_t from_bytes = dtype_bytes(type);
  const std::size_t to_bytes = dtype_bytes(to);
  for (const auto& token : tokens) {
    const std::size_t count = token->size() / from_bytes;
    auto elements = std::make_shared<std::vector<std::byte>>(count * to_bytes);
    for (std::size_t i = 0; i < count; ++i)
      store_element(to, load_element(type, token->data() + i * from_bytes),
                    elements->data() + i * to_bytes);
    side.tokens.push_back(std::move(elements));
  }
  return side;
}

std::int64_t TokenRows::bytes() const {
  std::size_t sum = 0;
  for (const Side* side : {&k, &v}) sum += planes(*side) * row_bytes(*side) * side->tokens.size();
  return static_cast<std::int64_t>(sum);
}

TokenRows TokenRows::newest(std::int64_t most) const {
  return part(std::max<std::int64_t>(count() - most, 0), count());
}

void TokenRows::widen(const TokenRows& more, const Update::Returns* shown) {
  for (auto [side, given, got] :
       {std::tuple(&k, more.k.type, shown != nullptr ? shown->k.dtype : more.k.type),
        std::tuple(&v, more.v.type, shown != nullptr ? shown->v.dtype : more.v.type)})
    if (got == given && wider(given, side->type)) *side = side->cast(given);
}

void TokenRows::append(const TokenRows& more) {
  for (auto side : {&TokenRows::k, &TokenRows::v}) {
    const Side cast = (more.*side).cast((this->*side).type);
    (this->*side).tokens.insert((this->*side).tokens.end(), cast.tokens.begin(), cast.tokens.end());
  }
}

bool are_rows(const Tensor& k, const Tensor& v) {
  return k.shape.size() == kArrayAxes && v.shape.size() == kArrayAxes &&
         std::equal(k.shape.begin(), k.shape.begin() + 3, v.shape.begin());
}

Words JudgedAnswers::judge(const Observation& want, const Observation& seen) {
  judged();
  const auto difference = observation_difference(want, seen);
  if (!difference) return std::nullopt;
  return "by the history " + difference->text();
}

LayerHistory::Used LayerHistory::use(const Nullable<std::int64_t>& number) {
  if (!number.has_value()) return {};
  if (*number < 1 || *number >= next_number()) return {.error = Code::kPrecondition};
  Kept& kept = known(*number);
  if (kept.life == Kept::Life::kClosed) return {.error = closed_code()};
  return {.kept = &kept, .unknown = kept.life == Kept::Life::kUnknown};
}

LayerHistory::Sides LayerHistory::use(const Merge& op) {
  Sides sides{use(op.parent), use(op.child)};
  for (const Used* side : {&sides.child, &sides.parent})
    if (side->error && sides.error != Code::kPrecondition) sides.error = side->error;
  return sides;
}

void LayerHistory::Sides::lose() const {
  for (const Used* side : {&parent, &child})
    if (side->kept != nullptr) side->kept->life = Kept::Life::kUnknown;
}

std::optional<Code> LayerHistory::refusal_of(const Update& op) const {
  const auto any = [&](const auto& is) { return is(op.k) || is(op.v); };
  if (any([](const Tensor& side) { return side.dtype == DType::kI32; })) return Code::kPrecondition;
  if (any([&](const Tensor& side) {
        return side.shape.size() != kArrayAxes ||
               (storage_.type != StorageType::kF32 && side.dtype != DType::kF32);
      }))
    return has(Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape;
  return std::nullopt;
}

Tensor LayerHistory::as_shown(const Tensor& rows) const {
  if (storage_.type == StorageType::kF32) return rows;
  Tensor shown = make_tensor(rows.shape, dtype_of(storage_.type));
  const auto dim = static_cast<std::size_t>(rows.shape.back());
  const std::size_t element = dtype_bytes(shown.dtype);
  for (std::size_t at = 0; at < rows.floats().size(); at += dim)
    show_stored(storage_, rows.floats().subspan(at, dim), shown.bytes.data() + at * element);
  return shown;
}

std::int64_t LayerHistory::bytes_of(const TokenRows& rows) const {
  if (!in_groups(storage_.type)) return rows.bytes();
  const auto row = [&](const Side& side) {
    return side.shape[0] * side.shape[1] *
           static_cast<std::int64_t>(
               stored_bytes(storage_, static_cast<std::size_t>(side.shape[3])));
  };
  return rows.count() * (row(rows.k) + row(rows.v));
}

void LayerHistory::remember(const Numbered& seen, Kept kept) {
  if (!seen.handle.has_value() || *seen.handle != next_number()) return;
  kept.contents = seen.shown;
  snapshots_.push_back(std::move(kept));
}

Numbered LayerHistory::add(Kept kept, std::int64_t from, std::int64_t to,
                           std::optional<std::int64_t> idx) {
  auto [k, v] = kept.rows->shown(
      static_cast<std::size_t>(kept.rows->count() - idx.value_or(kept.rows->count())));
  Numbered one{next_number(),
               {.from = from,
                .to = to,
                .idx = idx,
                .size = bytes_of(*kept.rows),
                .k = std::move(k),
                .v = std::move(v)}};
  remember(one, std::move(kept));
  return one;
}

void LayerHistory::remember_pair(const Update& op, const Observation& seen, bool changes) {
  pair_.reset();
  if (op.keep.value_or(false)) pair_ = std::ssize(pairs_) + 1;
  if (seen.error) return;
  const auto& shown = seen.as<Update::Returns>();
  if (shown.handle) pairs_[*shown.handle] = {{.k = shown.k, .v = shown.v}, changes};
}

// MR-4, MR-48
Words LayerHistory::observe(const Close& op, const Observation& seen) {
  const Used used = use(op.handle);
  const bool closed = used.error && op.handle >= 1 && op.handle < next_number();
  if (closed && has(Quirk::kSharedReference)) return skip();
  if (used.error) return must_fail(*used.error, seen);
  if (used.unknown) return skip();
  used.kept->life = Kept::Life::kClosed;
  return must_succeed(seen);
}

// MR-1, MR-3: whatever came between, it is what it was.
Words LayerHistory::observe(const Reread& op, const Observation& seen) {
  if (next_number() == 1) {
    const auto pair = pairs_.find(op.handle);
    if (pair == pairs_.end()) return must_fail(Code::kPrecondition, seen);
    return pair->second.changes ? skip() : must_show(pair->second.contents, seen);
  }
  const Used used = use(op.handle);
  if (used.error) return must_fail(*used.error, seen);
  return used.unknown ? skip() : must_show(used.kept->contents, seen);
}

Words LayerHistory::saw_whole(const Merge& op, const Observation& seen) {
  const Sides sides = use(op);
  const auto& [parent, child, error] = sides;
  if (error) return must_fail(*error, seen);
  const bool itself = parent.kept != nullptr && parent.kept == child.kept;
  const bool lost = parent.kept != nullptr && child.kept == nullptr;
  if (parent.unknown || child.unknown || (itself && has(Quirk::kSecondCloseAborts)) ||
      (lost && has(Quirk::kMergeDestroysParent))) {
    sides.lose();
    return skip();
  }
  if (itself) return must_fail(Code::kBadPosition, seen);
  if (lost) return must_show(Numbered{op.parent, parent.kept->contents}, seen);
  if (parent.kept != nullptr) parent.kept->life = Kept::Life::kClosed;
  return must_show(child.kept != nullptr ? Numbered{op.child, child.kept->contents} : Numbered(),
                   seen);
}

Words LayerHistory::saw_whole(const Split& op, const Observation& seen) {
  const Used whole = use(op.handle);
  if (whole.error) return must_fail(*whole.error, seen);
  if (whole.unknown) return skip();
  Split::Returns halves;
  if (whole.kept != nullptr) halves.child = Numbered{op.handle, whole.kept->contents};
  return must_show(std::move(halves), seen);
}

}  // namespace kvo::snapshot
