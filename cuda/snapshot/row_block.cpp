#include "cuda/snapshot/row_block.hpp"

#include <algorithm>
#include <utility>

#include "cuda/memory/staging.hpp"

namespace kvo::cuda {

using snapshot::Array;
using snapshot::RowForm;

Result<RowBlockPtr> RowBlock::make(const std::shared_ptr<Device>& device, const RowForm& form,
                                   std::int64_t capacity) {
  const Shape shape{capacity, form.batch, form.heads, form.dim,
                    static_cast<std::int64_t>(dtype_bytes(form.type))};
  const auto bytes = element_count(shape);
  if (!bytes) return fail(Code::kOutOfMemory, "device memory");
  auto cells = make_cells(device, *bytes / kCellBytes + 1);
  if (!cells) return cells.error();
  return std::make_shared<RowBlock>(form, capacity, std::move(*cells));
}

RowRange RowRange::part(std::int64_t from, std::int64_t to) const {
  const auto bound = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + count : at, std::int64_t{0}, count);
  };
  const std::int64_t first = bound(from);
  return {block, begin + first, std::max<std::int64_t>(bound(to) - first, 0)};
}

Array RowRange::form() const {
  const RowForm& rows = block->form();
  Array made;
  made.view.shape = {rows.batch, rows.heads, count, rows.dim};
  made.view.strides = {0, 0, 0, 0};
  made.view.dtype = rows.type;
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

Result<snapshot::Pair> read_rows(Device& device, const RowRange& k, const RowRange& v) {
  const ReadBack keys(k.block->form(), k.count);
  const ReadBack values(v.block->form(), v.count);
  Status queued = keys.queue(device, k.block->row(k.begin));
  if (queued) queued = values.queue(device, v.block->row(v.begin));
  const Status done = device.synchronize(Stream());  // in any case: the memory goes
  if (!queued) return error_of_device(queued.error());
  if (!done) return error_of_device(done.error());
  return snapshot::Pair{keys.array(), values.array()};
}

}  // namespace kvo::cuda
