// reference/contract/device/simulated/watched_memory.hpp: what a simulated device watches: its own
// buffers, and the host memory that copies use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/device/job.hpp"
#include "reference/contract/device/simulated/report.hpp"
#include "reference/contract/device/streams.hpp"
#include "reference/contract/values/result.hpp"

namespace kvo {

/// Copies host memory that may be gone. False: it is.
[[nodiscard]] bool read_host(const std::byte* from, std::span<std::byte> to);

/// Compares the host memory of each copy with what it must hold: from when it is queued until the
/// host has waited for it. What a copy will write is poisoned meanwhile, so that reading it too
/// early shows. Memory that two queued copies share, one of them writing, is not watched.
class HostWatch {
 public:
  static constexpr std::byte kPoison{0xFF};

  /// Begins with a copy that is queued; other work has no host memory.
  void begin(WorkId id, const Work& work);
  /// The bytes of a copy to the device, as they are now. Whether they are those of begin().
  [[nodiscard]] bool take(WorkId id, const Work& work, std::vector<std::byte>& bytes);
  /// Writes what a copy to the host brings, unless the memory was touched, which false says.
  [[nodiscard]] bool put(WorkId id, const Work& work, std::span<const std::byte> bytes);
  /// Ends with a copy that the host has waited for. False: the memory was touched.
  [[nodiscard]] bool end(WorkId id);
  /// The copies that have begun and not ended.
  [[nodiscard]] std::vector<WorkId> watched() const;

 private:
  struct Watched {
    const std::byte* begin = nullptr;
    std::size_t size = 0;
    bool written = false;  ///< by the copy
    bool shared = false;   ///< with another copy
    bool touched = false;  ///< that was said already
    std::vector<std::byte> holds = {};
  };
  [[nodiscard]] static bool as_it_was(const Watched& watched);

  std::map<WorkId, Watched> watched_;
};

/// Who accesses memory.
struct Accessor {
  WorkId work = 0;
  std::uint32_t thread = 0;  ///< of a kernel
  const Clock* clock = nullptr;
};

/// Buffers with addresses far apart, which are never given twice. Pages are backed when they are
/// touched, so that buffers may be as large as 2^40 bytes together. Faults are reported, not
/// errors: a read outside of a buffer yields poison, a write is dropped.
class WatchedBuffers {
 public:
  static constexpr std::byte kPoison{0xFF};

  /// What fresh memory holds.
  struct Fresh {
    bool poison = false;            ///< kPoison instead of zeros
    bool report_unwritten = false;  ///< reads of it are reported
  };

  WatchedBuffers(History& history, ReportList& reports, Fresh fresh)
      : history_(history), reports_(reports), fresh_(fresh) {}

  [[nodiscard]] DevicePtr alloc(std::int64_t bytes);
  /// now: what has happened before the host frees. Errors  other:bad_pointer: it is not live.
  [[nodiscard]] Status free(DevicePtr ptr, const Clock& now);

  /// Whether all bytes lie inside one live buffer.
  [[nodiscard]] bool live(DevicePtr ptr, std::int64_t bytes) const;
  [[nodiscard]] std::size_t live_buffers() const { return live_; }
  [[nodiscard]] std::int64_t live_bytes() const { return live_bytes_; }
  [[nodiscard]] std::int64_t backed_bytes() const;

  /// Reports name cells by the arguments of the last kernel that has one into their buffer.
  void name_cells(WorkId kernel, const JobArguments& arguments);

  void read(const Accessor& by, DevicePtr from, std::span<std::byte> out);
  void write(const Accessor& by, DevicePtr to, std::span<const std::byte> cells);
  /// Unwritten cells stay unwritten in the copy, and are not reported.
  void copy(const Accessor& by, DevicePtr to, DevicePtr from, std::int64_t bytes);
  void fill(const Accessor& by, DevicePtr to, std::byte value, std::int64_t bytes);

 private:
  static constexpr std::size_t kPage = 4096;

  /// Who touched a byte. Reads that happened before the last write are forgotten.
  struct Cell {
    WorkId writer = 0;
    std::uint32_t writer_thread = 0;
    History::Set readers = 0;
    std::uint32_t reader_thread = 0;  ///< of the last one
    friend bool operator==(const Cell&, const Cell&) = default;
  };
  struct Page {
    std::array<std::byte, kPage> bytes = {};
    std::array<bool, kPage> written = {};
    std::array<Cell, kPage> cells = {};
  };
  struct Buffer {
    std::int64_t number = 0;
    std::uint64_t size = 0;
    bool freed = false;
    std::byte value = {};  ///< of pages that are not backed: what a fill of the whole buffer left
    bool written = false;
    WorkId writer = 0;
    std::map<std::uint64_t, std::unique_ptr<Page>> pages = {};
    std::pair<std::uint64_t, Page*> last_page = {};  ///< looked for; null: none
    std::map<std::size_t, WorkId> users = {};        ///< the last of each lane
    WorkId last_user = 0;
    std::vector<JobArgument> names = {};  ///< pointers into it, from its beginning
    WorkId named_by = 0;
  };
  using Buffers = std::map<std::uint64_t, Buffer>;

  /// The buffer that an address was meant for, or the end.
  [[nodiscard]] Buffers::iterator meant(DevicePtr ptr) const;
  /// Where an access of live memory begins; null after a report.
  struct Place {
    Buffer* buffer = nullptr;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] Place place(const Accessor& by, DevicePtr ptr, std::size_t bytes);
  [[nodiscard]] static Page& page(Buffer& buffer, std::uint64_t number);
  /// Bytes of a page that have been touched alike.
  struct Run {
    Page* page = nullptr;
    std::size_t begin = 0;  ///< in the page
    std::size_t count = 0;
    std::size_t done = 0;      ///< bytes of the range before it
    std::uint64_t offset = 0;  ///< in the buffer
    [[nodiscard]] std::span<std::byte> bytes() const { return {&page->bytes[begin], count}; }
    [[nodiscard]] std::span<bool> written() const { return {&page->written[begin], count}; }
  };
  /// Calls visit(run) for a range, which is nearly always few runs: what is the same for all bytes
  /// of one is done once.
  template <class Visit>
  static void each_run(const Place& place, std::size_t bytes, const Visit& visit);
  void note_read(const Accessor& by, const Place& at, const Run& run);
  void note_write(const Accessor& by, const Place& at, const Run& run);
  void note_write(const Accessor& by, const Place& at, std::uint64_t offset, const Cell& cell);
  void report_race(const Accessor& by, WorkId other, const char* what, const Place& at,
                   std::uint64_t offset);
  /// ": rows[row 1, element 0]", or nothing where no argument says so.
  [[nodiscard]] static std::string cell_text(const Buffer& buffer, std::int64_t offset);
  /// Adds who, where and the words for it to what was found: kind, other, off, text.
  void report(const Accessor& by, const Buffer* buffer, DeviceReport found);

  History& history_;
  ReportList& reports_;
  Fresh fresh_;
  mutable Buffers buffers_;  ///< freed ones, too
  mutable Buffers::iterator last_meant_ = buffers_.end();
  std::uint64_t next_address_ = std::uint64_t{1} << 36U;
  std::size_t live_ = 0;
  std::int64_t live_bytes_ = 0;
};

}  // namespace kvo
