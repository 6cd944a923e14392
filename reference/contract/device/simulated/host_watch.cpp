#include "reference/contract/device/simulated/host_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

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

}  // namespace kvo
