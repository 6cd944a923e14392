// properties/runner/parallel_ordered_map.hpp: work on several threads whose results arrive in order
// of index.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kvo {

/// Calls produce(first), produce(first + 1), ... on `jobs` threads and consume(index, result) on
/// the calling thread in order of index, so that what is consumed does not depend on `jobs`. Stops
/// at `count`, or once consume returns false. An exception of either ends the work and is thrown
/// here.
template <class Result>
void parallel_ordered_map(std::uint64_t first, std::uint64_t count, unsigned jobs,
                          const std::function<Result(std::uint64_t)>& produce,
                          const std::function<bool(std::uint64_t, Result)>& consume) {
  constexpr std::uint64_t kAhead = 64;  // finished results that wait for an earlier one, a thread
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, Result> done;
  std::exception_ptr failure;
  std::uint64_t next = first;
  std::uint64_t consumed = first;
  bool stop = false;

  const auto work = [&] {
    while (true) {
      std::uint64_t index = 0;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock,
                     [&] { return stop || next >= count || next < consumed + kAhead * jobs; });
        if (stop || next >= count) return;
        index = next++;
      }
      try {
        Result result = produce(index);
        const std::scoped_lock lock(mutex);
        done.emplace(index, std::move(result));
      } catch (const std::exception&) {
        const std::scoped_lock lock(mutex);
        if (!failure) failure = std::current_exception();
        stop = true;
      }
      changed.notify_all();
    }
  };

  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < jobs; ++i) threads.emplace_back(work);
  while (consumed < count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return failure != nullptr || done.contains(consumed); });
    if (failure) break;
    auto ready = done.extract(consumed);
    lock.unlock();
    bool more = false;
    try {
      more = consume(consumed, std::move(ready.mapped()));
    } catch (const std::exception&) {
      const std::scoped_lock again(mutex);
      failure = std::current_exception();
    }
    lock.lock();
    ++consumed;
    if (!more) break;
    changed.notify_all();
  }
  {
    const std::scoped_lock lock(mutex);
    stop = true;
  }
  changed.notify_all();
  threads.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace kvo
