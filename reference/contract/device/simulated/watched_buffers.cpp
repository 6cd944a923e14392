#include "reference/contract/device/simulated/watched_buffers.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace kvo {
namespace {

using Kind = DeviceReport::Kind;

// Between buffers there is more than an offset of 32 bits leaps over.
constexpr std::uint64_t kApart = std::uint64_t{1} << 36U;

// They read a cell; one that writes it does so beside another.
constexpr std::uint32_t kManyThreads = ~0U;

}  // namespace

DevicePtr WatchedBuffers::alloc(std::int64_t bytes) {
  const auto size = static_cast<std::uint64_t>(bytes);
  const DevicePtr made{next_address_};
  next_address_ += (size / kApart + 2) * kApart;
  buffers_.emplace(made.address, Buffer{.number = static_cast<std::int64_t>(buffers_.size()),
                                        .size = size,
                                        .value = fresh_.poison ? kPoison : std::byte{0},
                                        .written = !fresh_.report_unwritten});
  ++live_;
  live_bytes_ += bytes;
  return made;
}

Status WatchedBuffers::free(DevicePtr ptr, const Clock& now) {
  const auto found = buffers_.find(ptr.address);
  if (found == buffers_.end() || found->second.freed) return fail_other("bad_pointer");
  Buffer& buffer = found->second;
  for (const auto& [lane, user] : buffer.users) {
    if (history_.before(user, now)) continue;
    report({}, &buffer,
           {.kind = Kind::kUseAfterFree,
            .other = user,
            .text = "freed before the host has waited for " + history_.text(user)});
  }
  buffer.freed = true;
  buffer.pages.clear();
  --live_;
  live_bytes_ -= static_cast<std::int64_t>(buffer.size);
  return {};
}

WatchedBuffers::Buffers::const_iterator WatchedBuffers::meant(DevicePtr ptr) const {
  auto found = buffers_.upper_bound(ptr.address);
  return found == buffers_.begin() ? buffers_.end() : std::prev(found);
}

bool WatchedBuffers::live(DevicePtr ptr, std::int64_t bytes) const {
  const auto found = meant(ptr);
  if (found == buffers_.end() || found->second.freed || bytes < 0) return false;
  const std::uint64_t offset = ptr.address - found->first;
  const std::uint64_t size = found->second.size;
  return offset <= size && static_cast<std::uint64_t>(bytes) <= size - offset;
}

std::int64_t WatchedBuffers::backed_bytes() const {
  std::size_t pages = 0;
  for (const auto& [address, buffer] : buffers_) pages += buffer.pages.size();
  return static_cast<std::int64_t>(pages * kPage);
}

WatchedBuffers::Place WatchedBuffers::place(const Accessor& by, DevicePtr ptr, std::size_t bytes) {
  const auto found = meant(ptr);
  Buffer* const buffer = found == buffers_.end() ? nullptr : &buffers_.find(found->first)->second;
  const std::uint64_t offset = buffer == nullptr ? ptr.address : ptr.address - found->first;
  if (buffer != nullptr && buffer->freed) {
    report(by, buffer,
           {.kind = Kind::kUseAfterFree,
            .off = static_cast<std::int64_t>(offset),
            .text = "a freed buffer is used"});
    return {};
  }
  if (buffer == nullptr || offset > buffer->size || bytes > buffer->size - offset) {
    std::string text = std::to_string(bytes) + " bytes";
    if (buffer != nullptr) text.append(" of a buffer of ").append(std::to_string(buffer->size));
    report(by, buffer,
           {.kind = Kind::kOutOfBounds,
            .off = static_cast<std::int64_t>(offset),
            .text = std::move(text)});
    return {};
  }
  buffer->users[history_.lane(by.work)] = by.work;
  return {buffer, offset};
}

WatchedBuffers::Page& WatchedBuffers::page(Buffer& buffer, std::uint64_t number) {
  std::unique_ptr<Page>& found = buffer.pages[number];
  if (found == nullptr) {
    found = std::make_unique<Page>();
    found->bytes.fill(buffer.value);
    if (buffer.written) found->written.set();
    found->cells.fill({.writer = buffer.writer});
  }
  return *found;
}

template <class Visit>
void WatchedBuffers::each_byte(const Place& place, std::size_t bytes, const Visit& visit) {
  std::size_t done = 0;
  while (done < bytes) {
    const std::uint64_t offset = place.offset + done;
    Page& backed = page(*place.buffer, offset / kPage);
    const std::size_t first = offset % kPage;
    const std::size_t count = std::min(bytes - done, kPage - first);
    for (std::size_t i = 0; i < count; ++i) visit(backed, first + i, done + i, offset + i);
    done += count;
  }
}

void WatchedBuffers::note_read(const Accessor& by, const Place& at, std::uint64_t offset,
                               Cell& cell) {
  if (cell.writer == by.work) {
    if (by.work != 0 && cell.writer_thread != by.thread)
      report_race(by, by.work, "reads what another thread writes", at, offset);
  } else if (!history_.before(cell.writer, *by.clock)) {
    report_race(by, cell.writer, "reads what is written by", at, offset);
  }
  const auto readers = history_.members(cell.readers);
  if (readers.empty() || readers.back() != by.work) {
    cell.readers = history_.with(cell.readers, by.work, *by.clock);
    cell.reader_thread = by.thread;
  } else if (cell.reader_thread != by.thread) {
    cell.reader_thread = kManyThreads;
  }
}

void WatchedBuffers::note_write(const Accessor& by, const Place& at, std::uint64_t offset,
                                Cell& cell) {
  if (cell.writer == by.work) {
    if (cell.writer_thread != by.thread)
      report_race(by, by.work, "writes what another thread writes", at, offset);
  } else if (!history_.before(cell.writer, *by.clock)) {
    report_race(by, cell.writer, "writes what is written by", at, offset);
  }
  for (const WorkId reader : history_.members(cell.readers)) {
    if (reader == by.work) {
      if (cell.reader_thread != by.thread)
        report_race(by, by.work, "writes what another thread reads", at, offset);
    } else if (!history_.before(reader, *by.clock)) {
      report_race(by, reader, "writes what is read by", at, offset);
    }
  }
  cell = {.writer = by.work, .writer_thread = by.thread};
}

void WatchedBuffers::read(const Accessor& by, DevicePtr from, std::span<std::byte> out) {
  std::ranges::fill(out, kPoison);
  const Place at = place(by, from, out.size());
  if (at.buffer == nullptr) return;
  each_byte(at, out.size(),
            [&](Page& backed, std::size_t i, std::size_t index, std::uint64_t offset) {
              note_read(by, at, offset, backed.cells[i]);
              if (!backed.written[i]) {
                report(by, at.buffer,
                       {.kind = Kind::kUnwritten, .off = static_cast<std::int64_t>(offset)});
              }
              out[index] = backed.bytes[i];
            });
}

void WatchedBuffers::write(const Accessor& by, DevicePtr to, std::span<const std::byte> cells) {
  const Place at = place(by, to, cells.size());
  if (at.buffer == nullptr) return;
  each_byte(at, cells.size(),
            [&](Page& backed, std::size_t i, std::size_t index, std::uint64_t offset) {
              note_write(by, at, offset, backed.cells[i]);
              backed.written[i] = true;
              backed.bytes[i] = cells[index];
            });
}

void WatchedBuffers::copy(const Accessor& by, DevicePtr to, DevicePtr from, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  const Place source = place(by, from, size);
  const Place target = place(by, to, size);
  if (source.buffer == nullptr || target.buffer == nullptr) return;
  const std::uint64_t gap = std::max(to.address, from.address) - std::min(to.address, from.address);
  if (gap < size) {
    report(by, target.buffer,
           {.kind = Kind::kOverlap,
            .off = static_cast<std::int64_t>(target.offset),
            .text = std::to_string(bytes) + " bytes, " + std::to_string(gap) + " apart"});
  }
  std::vector<std::byte> values(std::min(size, kPage));
  std::vector<bool> written(values.size());
  for (std::size_t done = 0; done < size; done += kPage) {
    const std::size_t count = std::min(kPage, size - done);
    each_byte({source.buffer, source.offset + done}, count,
              [&](Page& backed, std::size_t i, std::size_t index, std::uint64_t offset) {
                note_read(by, source, offset, backed.cells[i]);
                values[index] = backed.bytes[i];
                written[index] = backed.written[i];
              });
    each_byte({target.buffer, target.offset + done}, count,
              [&](Page& backed, std::size_t i, std::size_t index, std::uint64_t offset) {
                note_write(by, target, offset, backed.cells[i]);
                backed.bytes[i] = values[index];
                backed.written[i] = written[index];
              });
  }
}

void WatchedBuffers::fill(const Accessor& by, DevicePtr to, std::byte value, std::int64_t bytes) {
  const Place at = place(by, to, static_cast<std::size_t>(bytes));
  if (at.buffer == nullptr) return;
  Buffer& buffer = *at.buffer;
  if (at.offset != 0 || static_cast<std::uint64_t>(bytes) != buffer.size) {
    each_byte(at, static_cast<std::size_t>(bytes),
              [&](Page& backed, std::size_t i, std::size_t /*index*/, std::uint64_t offset) {
                note_write(by, at, offset, backed.cells[i]);
                backed.written[i] = true;
                backed.bytes[i] = value;
              });
    return;
  }
  // All of a buffer, which may be larger than the host: no page need be backed.
  Cell unbacked{.writer = buffer.writer};
  note_write(by, at, 0, unbacked);
  for (auto& [number, backed] : buffer.pages)
    for (std::size_t i = 0; i < kPage; ++i)
      note_write(by, at, number * kPage + i, backed->cells[i]);
  buffer.pages.clear();
  buffer.value = value;
  buffer.written = true;
  buffer.writer = by.work;
}

void WatchedBuffers::report_race(const Accessor& by, WorkId other, const char* what,
                                 const Place& at, std::uint64_t offset) {
  if (reports_.knows(Kind::kRace, by.work, other)) return;
  std::string text = what;
  if (other != by.work) text.append(" ").append(history_.text(other));
  report(by, at.buffer,
         {.kind = Kind::kRace,
          .other = other,
          .off = static_cast<std::int64_t>(offset),
          .text = std::move(text)});
}

void WatchedBuffers::report(const Accessor& by, const Buffer* buffer, DeviceReport found) {
  found.work = by.work;
  if (reports_.knows(found.kind, found.work, found.other)) return;
  std::string text = by.work == 0 ? "the host" : history_.text(by.work);
  if (!found.text.empty()) text.append(": ").append(found.text);
  text.append(" (");
  if (buffer != nullptr) {
    found.buf = buffer->number;
    text.append("buffer ").append(std::to_string(buffer->number)).append(" at byte ");
  } else {
    text.append("address ");
  }
  found.text = text.append(std::to_string(found.off)).append(")");
  reports_.add(std::move(found));
}

}  // namespace kvo
