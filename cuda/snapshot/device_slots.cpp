#include "cuda/snapshot/device_slots.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cuda/jobs/cells.hpp"
#include "cuda/jobs/rows.hpp"
#include "cuda/memory/staging.hpp"
#include "reference/contract/values/thrown.hpp"

namespace kvo::cuda {

using snapshot::Array;
using snapshot::Pair;
using snapshot::RowForm;
using snapshot::SidesChange;
using snapshot::SlotsChange;

Result<RowBlockPtr> RowBlock::make(const std::shared_ptr<Device>& device, const RowForm& form,
                                   std::int64_t capacity) {
  const Shape shape{capacity, form.batch, form.heads, form.dim,
                    static_cast<std::int64_t>(dtype_bytes(form.type))};
  const auto bytes = element_count(shape);
  if (!bytes) return fail(Code::kOutOfMemory, "device memory");
  auto cells = make_cells(device, *bytes / kCellBytes + 1);
  if (!cells) return cells.error();
  return std::make_shared<RowBlock>(device, form, capacity, std::move(*cells));
}

RowRange RowRange::part(std::int64_t from, std::int64_t to) const {
  const auto bound = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + count : at, std::int64_t{0}, count);
  };
  const std::int64_t first = bound(from);
  return {block, begin + first, std::max<std::int64_t>(bound(to) - first, 0), form};
}

Array RowRange::array() const {
  Array made;
  made.view.shape = {form.batch, form.heads, count, form.dim};
  made.view.strides = {0, 0, 0, 0};
  made.view.dtype = form.type;
  return made;
}

ReadBack::ReadBack(const RowForm& form, std::int64_t count)
    : form_(form),
      count_(count),
      bytes_(std::make_shared<std::vector<std::byte>>(
          static_cast<std::size_t>(count * form.bytes()))) {}

Status ReadBack::queue(Device& device, DevicePtr from) const {
  if (bytes_->empty()) return {};
  return device.to_host_async(*bytes_, from, Stream());
}

Array ReadBack::array() const {
  return {.view = {{form_.batch, form_.heads, count_, form_.dim},
                   {form_.heads * form_.dim, form_.dim, form_.elements(), 1},
                   form_.type,
                   bytes_->data()},
          .memory = bytes_};
}

namespace {

constexpr std::int64_t kWidest = 16;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kWidest - 1) / kWidest * kWidest;
}

// Queues the copy of `count` rows, whose elements become those of `form`.
Status copy_rows(Device& device, DevicePtr to, const RowForm& form, const RowBlock& of,
                 std::int64_t first, std::int64_t count) {
  if (form.type != of.form().type)
    return device.run(
        convert_cells(to, form.type, of.row(first), of.form().type, count * form.elements()));
  return device.copy(to, of.row(first), count * form.bytes());
}

// Whether the elements lie one behind the other.
bool is_packed(const StridedView& view) {
  std::int64_t stride = 1;
  for (std::size_t axis = view.shape.size(); axis-- > 0; stride *= view.shape[axis])
    if (view.shape[axis] != 1 && view.strides[axis] != stride) return false;
  return true;
}

}  // namespace

// ---- one side ----

RowRange DeviceSlots::shared(std::int64_t begin, std::int64_t end) {
  const RowRange rows = range(begin, end);
  block_->used = std::max(block_->used, rows.begin + rows.count);
  return rows;
}

bool DeviceSlots::holds(const RowRange& rows, std::int64_t at) const {
  return block_ == rows.block && begin_ + at == rows.begin && at + rows.count <= size_;
}

Result<RowBlockPtr> DeviceSlots::room_for(const SlotsChange& change) const {
  if (!change.exists()) return RowBlockPtr();
  const auto& [front, behind] = change.parts();
  const std::int64_t begin = begin_ + front.begin;
  const bool outgrown = block_ && begin + change.size() > block_->capacity();
  if (block_ && !outgrown && behind.size() == 0 && form() == change.form()) {
    const bool grows = change.size() > front.size();
    const bool behind_used = (!grows || begin + front.size() >= block_->used) &&
                             (!change.puts() || begin + change.put_begin() >= block_->used);
    const bool mine = block_->writer == this || (!grows && !change.puts());
    if ((mine && behind_used) || block_.use_count() == 1) return RowBlockPtr();
  }
  std::int64_t capacity = change.size();
  if (outgrown) capacity = std::max(capacity, std::min(2 * capacity, most_));
  return RowBlock::make(device_, change.form(), capacity);
}

DevicePtr DeviceSlots::slot(const SlotsChange& change, const RowBlockPtr& room,
                            std::int64_t at) const {
  return room ? room->row(at) : block_->row(begin_ + change.parts()[0].begin + at);
}

Status DeviceSlots::move(const SlotsChange& change, const RowBlockPtr& room) {
  if (!change.exists()) return {};
  if (!room) return clear_tail(change);
  const auto& [front, behind] = change.parts();
  room->writer = this;
  room->used = std::max(change.kept(), change.puts() ? change.put_end() : 0);
  if (change.kept() == 0 || form().bytes() == 0) return {};
  const bool turned = behind.size() > 0 && behind.begin == 0 && front.end == size_;
  if (turned && form() == change.form()) {
    return device_->run(move_rows<false>(room->row(0), block_->row(begin_), RingPlace{size_},
                                         form().bytes(), front.begin, change.kept()));
  }
  Status copied = copy_part(front, *room, 0);
  return copied ? copy_part(behind, *room, front.size()) : copied;
}

Status DeviceSlots::clear_tail(const SlotsChange& change) {
  const bool grows = change.size() > change.kept();
  if (!grows && !change.puts()) return {};
  const std::int64_t begin = begin_ + change.parts()[0].begin;
  const std::int64_t kept = begin + change.kept();
  const std::int64_t dirty = std::min(block_->used, begin + change.size());
  block_->writer = this;
  if (change.puts()) block_->used = std::max(block_->used, begin + change.put_end());
  if (!grows || dirty <= kept || form().bytes() == 0) return {};
  return device_->fill_async(block_->row(kept), {}, (dirty - kept) * form().bytes(), Stream());
}

Status DeviceSlots::copy_part(const SlotsChange::Part& part, RowBlock& room,
                              std::int64_t at) const {
  // The rest of the part are zeros, as in the new block.
  const std::int64_t rows =
      std::clamp<std::int64_t>(block_->used - begin_ - part.begin, 0, part.size());
  if (rows == 0) return {};
  return copy_rows(*device_, room.row(at), room.form(), *block_, begin_ + part.begin, rows);
}

void DeviceSlots::become(const SlotsChange& change, RowBlockPtr room) noexcept {
  if (!change.exists()) return;
  begin_ = room ? 0 : begin_ + change.parts()[0].begin;
  if (room) block_ = std::move(room);
  size_ = change.size();
}

void DeviceSlots::replace(const RowRange& rows) noexcept {
  block_ = rows.block;
  begin_ = rows.begin;
  size_ = rows.count;
}

void DeviceSlots::clear() noexcept {
  block_ = nullptr;
  begin_ = size_ = 0;
}

// ---- both ----

Status DeviceSides::stores(const StorageFormat& format) {
  if (!in_groups(format.type) && dtype_bytes(dtype_of(format.type)) >= sizeof(std::uint16_t))
    return {};
  return not_on_device(format.type);
}

Result<Pair> DeviceSides::encoded(const Array& k_rows, const Array& v_rows,
                                  QuirkSet<snapshot::Quirk> quirks) const {
  auto rows = snapshot::as_stored(storage_, k_rows, v_rows, quirks);
  if (!rows) return rows;
  for (const Array* array : {&rows->k, &rows->v})
    if (dtype_bytes(array->view.dtype) < sizeof(std::uint16_t))
      return fail(Code::kNotSupported,
                  "dtype: " + std::string(dtype_name(array->view.dtype)) + " on a device");
  return rows;
}

Pair DeviceSides::look(const RowRange& k_rows, const RowRange& v_rows) {
  Device& device = *k_rows.block->device();
  const ReadBack keys(k_rows.form, k_rows.count);
  const ReadBack values(v_rows.form, v_rows.count);
  Status queued = keys.queue(device, k_rows.block->row(k_rows.begin));
  if (queued) queued = values.queue(device, v_rows.block->row(v_rows.begin));
  const Status done = device.synchronize(Stream());  // in any case: the memory goes
  for (const Status& status : {queued, done})
    if (!status) demand(error_of_device(status.error()));
  return {keys.array(), values.array()};
}

Result<Pair> DeviceSides::apply(const SidesChange& change, std::int64_t end) {
  Work work{.changes = {&change.k, &change.v}};
  for (const std::size_t which : {0U, 1U}) {
    const SlotsChange& one = *work.changes[which];
    if (!one.puts() || one.form().bytes() == 0) continue;
    Source& source = work.sources[which];
    const StridedView& view = one.rows()->view;
    if (!is_packed(view)) source.packed = materialize(view);
    const std::byte* const first = is_packed(view) ? view.data : source.packed.bytes.data();
    source.bytes = {first, static_cast<std::size_t>(snapshot::bytes_of(*one.rows()))};
  }
  if (Status ready = prepare(work); !ready) return ready.error();
  std::array<std::optional<ReadBack>, 2> shown;
  for (const std::size_t which : {0U, 1U}) {
    const SlotsChange& one = *work.changes[which];
    const std::int64_t seen =
        std::clamp<std::int64_t>(end < 0 ? end + one.size() : end, 0, one.size());
    shown[which].emplace(one.form(), seen);
  }
  Status done = staging_.carry_out([&]() -> Status {
    if (Status queued = queue(work); !queued) return queued;
    for (const std::size_t which : {0U, 1U}) {
      const DevicePtr first = side(which).slot(*work.changes[which], work.rooms[which], 0);
      if (Status queued = shown[which]->queue(*device_, first); !queued) return queued;
    }
    return {};
  });
  if (!done) return done.error();
  become(work);
  return Pair{shown[0]->array(), shown[1]->array()};
}

Status DeviceSides::put_shared(const SidesChange& change, std::int64_t from, const RowRange& k_rows,
                               const RowRange& v_rows) {
  if (k_rows.count == v_rows.count && k.holds(k_rows, from) && v.holds(v_rows, from)) return {};
  Work work{.changes = {&change.k, &change.v}};
  work.sources[0].rows = &k_rows;
  work.sources[1].rows = &v_rows;
  if (Status ready = prepare(work); !ready) return ready;
  Status done = staging_.carry_out([&] { return queue(work); });
  if (done) become(work);
  return done;
}

Result<RowRange> DeviceSides::joined(const RowRange& first, const RowRange& second,
                                     const RowForm& form) const {
  const std::int64_t count = first.count + second.count;
  auto made = RowBlock::make(device_, form, count);
  if (!made) return made.error();
  RowBlock& block = **made;
  block.used = count;
  std::int64_t at = 0;
  Status queued;
  for (const RowRange* rows : {&first, &second}) {
    if (queued && rows->count > 0 && form.bytes() > 0)
      queued = copy_rows(*device_, block.row(at), form, *rows->block, rows->begin, rows->count);
    at += rows->count;
  }
  const Status done = device_->synchronize(Stream());
  if (!queued) return error_of_device(queued.error());
  if (!done) return error_of_device(done.error());
  return RowRange{*made, 0, count, form};
}

Status DeviceSides::prepare(Work& work) {
  std::int64_t bytes = 0;
  for (const std::size_t which : {0U, 1U}) {
    const SlotsChange& change = *work.changes[which];
    auto room = side(which).room_for(change);
    if (!room) return room.error();
    work.rooms[which] = std::move(*room);
    if (!change.puts()) continue;
    // The rows as they were given, and behind them as the slots have them.
    const Array& rows = *change.rows();
    const bool casts = rows.view.dtype != change.form().type;
    const std::int64_t cast = casts ? snapshot::tokens_of(rows) * change.form().bytes() : 0;
    bytes = std::max(bytes, aligned(std::ssize(work.sources[which].bytes)) + cast);
  }
  return staging_.reserve(bytes);
}

Status DeviceSides::queue(const Work& work) {
  Status queued;
  for (const std::size_t which : {0U, 1U}) {
    const SlotsChange& change = *work.changes[which];
    if (queued) queued = side(which).move(change, work.rooms[which]);
    if (queued && change.puts() && change.form().bytes() > 0) queued = put(which, work);
  }
  return queued;
}

Status DeviceSides::put(std::size_t which, const Work& work) {
  const SlotsChange& change = *work.changes[which];
  const Source& source = work.sources[which];
  const RowForm& form = change.form();
  const DType type = change.rows()->view.dtype;
  const std::int64_t given = snapshot::tokens_of(*change.rows());
  const std::int64_t count = change.put_end() - change.put_begin();
  const std::int64_t planes = form.batch * form.heads;
  const DevicePtr to = side(which).slot(change, work.rooms[which], change.put_begin());
  const bool turned = source.rows == nullptr && planes > 1 && given > 1;
  const bool casts = type != form.type;
  const bool in_place = !work.rooms[which] && change.size() == change.kept();
  if (source.rows == nullptr && in_place && !turned && !casts && given == count)
    return staging_.upload(which, to, source.bytes);  // nothing else is under way to these slots

  DevicePtr from;
  if (source.rows != nullptr) {
    from = source.rows->block->row(source.rows->begin);
  } else {
    from = staging_.room(which);
    if (Status queued = staging_.upload(which, from, source.bytes); !queued) return queued;
  }
  if (casts) {
    const DevicePtr cast = staging_.room(which) + aligned(std::ssize(source.bytes));
    Status queued =
        device_->run(convert_cells(cast, form.type, from, type, given * form.elements()));
    if (!queued) return queued;
    from = cast;
  }
  if (turned) {  // given == count: one row is never turned
    const auto dim = form.dim * static_cast<std::int64_t>(dtype_bytes(form.type));
    return device_->run(pack_head_major(to, from, planes, given, dim, 0, planes));
  }
  if (given == count) return device_->copy(to, from, count * form.bytes());
  for (std::int64_t i = 0; i < count; ++i)  // MR-A3
    if (Status queued = device_->copy(to + i * form.bytes(), from, form.bytes()); !queued)
      return queued;
  return {};
}

void DeviceSides::become(Work& work) noexcept {
  for (const std::size_t which : {0U, 1U})
    side(which).become(*work.changes[which], std::move(work.rooms[which]));
}

}  // namespace kvo::cuda
