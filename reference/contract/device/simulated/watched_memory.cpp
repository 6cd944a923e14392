#include "reference/contract/device/simulated/watched_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <sys/uio.h>
#include <unistd.h>

namespace kvo {

// Through the system, which answers an error where a load would be a crash.
bool read_host(const std::byte* from, std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const iovec local{to.data() + done, to.size() - done};
    // The interface of the system has no const.
    const iovec remote{const_cast<std::byte*>(from + done), to.size() - done};  // NOLINT
    const ssize_t more = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (more < 0 && (errno == ENOSYS || errno == EPERM)) {  // not allowed here
      std::memcpy(to.data() + done, from + done, to.size() - done);
      return true;
    }
    if (more <= 0) return false;
    done += static_cast<std::size_t>(more);
  }
  return true;
}

bool HostWatch::as_it_was(const Watched& watched) {
  if (watched.shared) return true;
  std::vector<std::byte> now(watched.size);
  return read_host(watched.begin, now) && now == watched.holds;
}

void HostWatch::begin(WorkId id, const Work& work) {
  const bool writes = work.kind == Work::Kind::kToHost;
  if (!writes && work.kind != Work::Kind::kToDevice) return;
  Watched fresh{.begin = writes ? work.host_dst : work.host_src,
                .size = static_cast<std::size_t>(work.bytes),
                .written = writes};
  for (auto& [other, watched] : watched_) {
    const bool apart =
        fresh.begin + fresh.size <= watched.begin || watched.begin + watched.size <= fresh.begin;
    if (apart || !(writes || watched.written)) continue;
    fresh.shared = watched.shared = true;
  }
  if (writes && !fresh.shared) std::fill_n(work.host_dst, fresh.size, kPoison);
  if (!fresh.shared) fresh.holds.assign(fresh.begin, fresh.begin + fresh.size);
  watched_.emplace(id, std::move(fresh));
}

bool HostWatch::take(WorkId id, const Work& work, std::vector<std::byte>& bytes) {
  Watched& watched = watched_.at(id);
  bytes.resize(watched.size);
  const bool there = read_host(work.host_src, bytes);
  if (!there) bytes.assign(watched.size, kPoison);
  watched.touched = !there || (!watched.shared && bytes != watched.holds);
  return !watched.touched;
}

bool HostWatch::put(WorkId id, const Work& work, std::span<const std::byte> bytes) {
  Watched& watched = watched_.at(id);
  watched.touched = !as_it_was(watched);
  if (watched.touched) return false;
  std::ranges::copy(bytes, work.host_dst);
  if (!watched.shared) watched.holds.assign(bytes.begin(), bytes.end());
  return true;
}

bool HostWatch::end(WorkId id) {
  const Watched watched = std::move(watched_.at(id));
  watched_.erase(id);
  return watched.touched || as_it_was(watched);
}

std::vector<WorkId> HostWatch::watched() const {
  std::vector<WorkId> all;
  for (const auto& [id, watched] : watched_) all.push_back(id);
  return all;
}

namespace {

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
  last_meant_ = buffers_.end();
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
           {.kind = DeviceReport::Kind::kUseAfterFree,
            .other = user,
            .text = "freed before the host has waited for " + history_.text(user)});
  }
  buffer.freed = true;
  buffer.pages.clear();
  buffer.last_page = {};
  --live_;
  live_bytes_ -= static_cast<std::int64_t>(buffer.size);
  return {};
}

WatchedBuffers::Buffers::iterator WatchedBuffers::meant(DevicePtr ptr) const {
  // The threads of a kernel stay with a buffer for long.
  if (last_meant_ != buffers_.end() && last_meant_->first <= ptr.address) {
    const auto next = std::next(last_meant_);
    if (next == buffers_.end() || ptr.address < next->first) return last_meant_;
  }
  auto found = buffers_.upper_bound(ptr.address);
  return last_meant_ = found == buffers_.begin() ? buffers_.end() : std::prev(found);
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
  Buffer* const buffer = found == buffers_.end() ? nullptr : &found->second;
  const std::uint64_t offset = buffer == nullptr ? ptr.address : ptr.address - found->first;
  if (buffer != nullptr && buffer->freed) {
    report(by, buffer,
           {.kind = DeviceReport::Kind::kUseAfterFree,
            .off = static_cast<std::int64_t>(offset),
            .text = "a freed buffer is used"});
    return {};
  }
  if (buffer == nullptr || offset > buffer->size || bytes > buffer->size - offset) {
    std::string text = std::to_string(bytes) + " bytes";
    if (buffer != nullptr) text.append(" of a buffer of ").append(std::to_string(buffer->size));
    report(by, buffer,
           {.kind = DeviceReport::Kind::kOutOfBounds,
            .off = static_cast<std::int64_t>(offset),
            .text = std::move(text)});
    return {};
  }
  if (buffer->last_user != by.work) buffer->users[history_.lane(by.work)] = by.work;
  buffer->last_user = by.work;
  return {buffer, offset};
}

WatchedBuffers::Page& WatchedBuffers::page(Buffer& buffer, std::uint64_t number) {
  if (buffer.last_page.second != nullptr && buffer.last_page.first == number)
    return *buffer.last_page.second;
  std::unique_ptr<Page>& found = buffer.pages[number];
  if (found == nullptr) {
    found = std::make_unique<Page>();
    found->bytes.fill(buffer.value);
    found->written.fill(buffer.written);
    found->cells.fill({.writer = buffer.writer});
  }
  buffer.last_page = {number, found.get()};
  return *found;
}

template <class Visit>
void WatchedBuffers::each_run(const Place& place, std::size_t bytes, const Visit& visit) {
  std::size_t done = 0;
  while (done < bytes) {
    const std::uint64_t offset = place.offset + done;
    Page& backed = page(*place.buffer, offset / kPage);
    const std::size_t first = offset % kPage;
    const Cell* const begin = &backed.cells[first];
    const Cell* const end = begin + std::min(bytes - done, kPage - first);
    const Cell* const other =
        std::find_if(begin + 1, end, [&](const Cell& cell) { return cell != *begin; });
    const auto count = static_cast<std::size_t>(other - begin);
    visit(Run{&backed, first, count, done, offset});
    done += count;
  }
}

void WatchedBuffers::note_read(const Accessor& by, const Place& at, const Run& run) {
  Cell cell = run.page->cells[run.begin];
  if (cell.writer == by.work) {
    if (by.work != 0 && cell.writer_thread != by.thread)
      report_race(by, by.work, "reads what another thread writes", at, run.offset);
  } else if (!history_.before(cell.writer, *by.clock)) {
    report_race(by, cell.writer, "reads what is written by", at, run.offset);
  }
  const auto readers = history_.members(cell.readers);
  if (readers.empty() || readers.back() != by.work) {
    cell.readers = history_.with(cell.readers, by.work, *by.clock);
    cell.reader_thread = by.thread;
  } else if (cell.reader_thread != by.thread) {
    cell.reader_thread = kManyThreads;
  }
  if (cell != run.page->cells[run.begin]) std::fill_n(&run.page->cells[run.begin], run.count, cell);
}

void WatchedBuffers::note_write(const Accessor& by, const Place& at, std::uint64_t offset,
                                const Cell& cell) {
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
}

void WatchedBuffers::note_write(const Accessor& by, const Place& at, const Run& run) {
  note_write(by, at, run.offset, run.page->cells[run.begin]);
  std::fill_n(&run.page->cells[run.begin], run.count,
              Cell{.writer = by.work, .writer_thread = by.thread});
}

void WatchedBuffers::read(const Accessor& by, DevicePtr from, std::span<std::byte> out) {
  const Place at = place(by, from, out.size());
  if (at.buffer == nullptr) {
    std::ranges::fill(out, kPoison);
    return;
  }
  each_run(at, out.size(), [&](const Run& run) {
    note_read(by, at, run);
    const auto written = run.written();
    if (const auto first = std::ranges::find(written, false); first != written.end())
      report(by, at.buffer,
             {.kind = DeviceReport::Kind::kUnwritten,
              .off = static_cast<std::int64_t>(run.offset) + (first - written.begin())});
    std::ranges::copy(run.bytes(), out.begin() + static_cast<std::ptrdiff_t>(run.done));
  });
}

void WatchedBuffers::write(const Accessor& by, DevicePtr to, std::span<const std::byte> cells) {
  const Place at = place(by, to, cells.size());
  if (at.buffer == nullptr) return;
  each_run(at, cells.size(), [&](const Run& run) {
    note_write(by, at, run);
    std::ranges::fill(run.written(), true);
    std::ranges::copy(cells.subspan(run.done, run.count), run.bytes().begin());
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
           {.kind = DeviceReport::Kind::kOverlap,
            .off = static_cast<std::int64_t>(target.offset),
            .text = std::to_string(bytes) + " bytes, " + std::to_string(gap) + " apart"});
  }
  std::array<std::byte, kPage> values;
  std::array<bool, kPage> written;
  for (std::size_t done = 0; done < size; done += kPage) {
    const std::size_t count = std::min(kPage, size - done);
    each_run({source.buffer, source.offset + done}, count, [&](const Run& run) {
      note_read(by, source, run);
      std::ranges::copy(run.bytes(), &values[run.done]);
      std::ranges::copy(run.written(), &written[run.done]);
    });
    each_run({target.buffer, target.offset + done}, count, [&](const Run& run) {
      note_write(by, target, run);
      std::copy_n(&values[run.done], run.count, run.bytes().begin());
      std::copy_n(&written[run.done], run.count, run.written().begin());
    });
  }
}

void WatchedBuffers::fill(const Accessor& by, DevicePtr to, std::byte value, std::int64_t bytes) {
  const Place at = place(by, to, static_cast<std::size_t>(bytes));
  if (at.buffer == nullptr) return;
  Buffer& buffer = *at.buffer;
  if (at.offset != 0 || static_cast<std::uint64_t>(bytes) != buffer.size) {
    each_run(at, static_cast<std::size_t>(bytes), [&](const Run& run) {
      note_write(by, at, run);
      std::ranges::fill(run.written(), true);
      std::ranges::fill(run.bytes(), value);
    });
    return;
  }
  // All of a buffer, which may be larger than the host: no page need be backed.
  note_write(by, at, 0, {.writer = buffer.writer});
  for (auto& [number, backed] : buffer.pages)
    each_run({&buffer, number * kPage}, kPage, [&](const Run& run) { note_write(by, at, run); });
  buffer.pages.clear();
  buffer.last_page = {};
  buffer.value = value;
  buffer.written = true;
  buffer.writer = by.work;
}

void WatchedBuffers::report_race(const Accessor& by, WorkId other, const char* what,
                                 const Place& at, std::uint64_t offset) {
  if (reports_.knows(DeviceReport::Kind::kRace, by.work, other)) return;
  std::string text = what;
  if (other != by.work) text.append(" ").append(history_.text(other));
  report(by, at.buffer,
         {.kind = DeviceReport::Kind::kRace,
          .other = other,
          .off = static_cast<std::int64_t>(offset),
          .text = std::move(text)});
}

void WatchedBuffers::name_cells(WorkId kernel, const JobArguments& arguments) {
  for (const JobArgument& argument : arguments) {
    if (!argument.is_pointer || !live(argument.pointer, 0)) continue;
    const auto at = meant(argument.pointer);
    Buffer& buffer = at->second;
    if (std::exchange(buffer.named_by, kernel) != kernel) buffer.names.clear();
    buffer.names.push_back(argument);
    buffer.names.back().pointer.address -= at->first;
  }
}

std::string WatchedBuffers::cell_text(const Buffer& buffer, std::int64_t offset) {
  const auto at = static_cast<std::uint64_t>(offset);
  const JobArgument* best = nullptr;
  for (const JobArgument& name : buffer.names)
    if (name.pointer.address <= at &&
        (best == nullptr || name.pointer.address >= best->pointer.address))
      best = &name;
  if (best == nullptr) return "";
  const std::int64_t element =
      static_cast<std::int64_t>(at - best->pointer.address) / best->element_bytes;
  std::string text = ": " + std::string(best->name) + "[";
  if (best->width <= 0) return text + std::to_string(element) + "]";
  const std::int64_t row = element / best->width;
  text += "row " + std::to_string(row) + ", element " + std::to_string(element % best->width) + "]";
  if (best->first_position) text += ", position " + std::to_string(*best->first_position + row);
  return text;
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
  text.append(std::to_string(found.off));
  if (buffer != nullptr) text.append(cell_text(*buffer, found.off));
  found.text = text.append(")");
  reports_.add(std::move(found));
}

}  // namespace kvo
