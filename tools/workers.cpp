#include "tools/workers.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT: sigaction is POSIX

#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

// What an answer begins with.
constexpr char kGiven = 'g';
constexpr char kFileFault = 'f';
constexpr char kUsageFault = 'u';
constexpr char kFault = 'x';

// So many cases may be done before the oldest one under way is.
constexpr std::uint64_t kMostAhead = 256;

std::string answered(const Work& work, std::string_view request) {
  const bool apart = request.ends_with('a');
  const std::uint64_t index = std::stoull(std::string(request));
  try {
    try {
      return kGiven + work.answer(index, apart);
    } catch (const std::bad_alloc&) {
      if (apart) throw;
      return kGiven + work.answer(index, true);
    }
  } catch (const std::bad_alloc&) {
    return kFileFault +
           fmt::format("case {} needs more memory than it may have (--case-memory)", index);
  } catch (const FileError& error) {
    return kFileFault + std::string(error.what());
  } catch (const UsageError& error) {
    return kUsageFault + std::string(error.what());
  } catch (const std::exception& error) {
    return kFault + std::string(error.what());
  }
}

std::string opened(const std::string& answer) {
  const std::string text = answer.substr(1);
  switch (answer.front()) {
    case kFileFault:
      throw FileError(text);
    case kUsageFault:
      throw UsageError(text);
    case kFault:
      throw std::runtime_error(text);
    default:
      return text;
  }
}

struct Worker {
  std::unique_ptr<Child> child = nullptr;
  std::optional<std::uint64_t> index = std::nullopt;  ///< of the case under way
  bool apart = false;
};

class Pool {
 public:
  Pool(std::uint64_t first, std::uint64_t last, unsigned jobs, ChildLimits limits, const Work& work)
      : work_(work), limits_(limits), next_(first), taken_(first), last_(last) {
    workers_.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(jobs, std::max<std::uint64_t>(last - first, 1))));
  }

  void run() {
    while (taken_ < last_ && !interrupted()) {
      for (Worker& worker : workers_) give(worker);
      wait();
      if (work_.waiting) work_.waiting();
      for (Worker& worker : workers_) look_at(worker);
      if (!take_all()) return;
    }
  }

 private:
  void ask(Worker& worker, std::uint64_t index, bool apart) {
    if (!worker.child)
      worker.child = std::make_unique<Child>(
          [this](std::string_view request) { return answered(work_, request); }, limits_);
    worker.index = index;
    worker.apart = apart;
    worker.child->ask(std::to_string(index) + (apart ? "a" : ""));
  }
  void give(Worker& worker) {
    if (worker.index || next_ >= last_ || next_ - taken_ >= kMostAhead) return;
    ask(worker, next_, false);
    ++next_;
  }
  void wait() {
    std::vector<pollfd> entries;
    for (const Worker& worker : workers_)
      if (worker.index) entries.push_back({worker.child->answers(), POLLIN, 0});
    (void)poll(entries.data(), entries.size(), static_cast<int>(kBetweenLooks.count()));
  }
  void look_at(Worker& worker) {
    if (!worker.index) return;
    switch (worker.child->look()) {
      case Child::State::kBusy:
        return;
      case Child::State::kAnswered:
        done_[*worker.index] = worker.child->take_answer();
        break;
      case Child::State::kDead: {
        const Death death = worker.child->death();
        worker.child.reset();
        if (!worker.apart) return ask(worker, *worker.index, true);
        done_[*worker.index] = kGiven + work_.lost(*worker.index, death);
      }
    }
    worker.index.reset();
  }
  bool take_all() {
    while (!done_.empty() && done_.begin()->first == taken_) {
      const auto node = done_.extract(done_.begin());
      if (!work_.take(taken_++, opened(node.mapped()))) return false;
    }
    return true;
  }

  const Work& work_;
  ChildLimits limits_;
  std::vector<Worker> workers_;
  std::map<std::uint64_t, std::string> done_;
  std::uint64_t next_;
  std::uint64_t taken_;
  std::uint64_t last_;
};

volatile std::sig_atomic_t asked_to_end = 0;

extern "C" void kvo_on_interruption(int /*number*/) {
  asked_to_end = 1;
}

}  // namespace

void work_in_order(std::uint64_t first, std::uint64_t last, unsigned jobs, ChildLimits limits,
                   const Work& work) {
  Pool(first, last, std::max(jobs, 1U), limits, work).run();
}

bool interrupted() {
  return asked_to_end != 0;
}

Interruptible::Interruptible() {
  struct sigaction action {};
  action.sa_handler = kvo_on_interruption;
  action.sa_flags = SA_RESETHAND;  // the second one ends at once
  (void)sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM}) (void)sigaction(number, &action, nullptr);
}

Interruptible::~Interruptible() {
  for (const int number : {SIGINT, SIGTERM}) (void)std::signal(number, SIG_DFL);
}

}  // namespace kvo::tools
