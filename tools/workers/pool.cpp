#include "tools/workers/pool.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tools/workers/crash_guard.hpp"

namespace kvo::tools {
namespace {

// So many cases may be done before the oldest one under way is.
constexpr std::uint64_t kMostAhead = 256;
// The harness itself may be busy for so long between two steps of isolating a case.
constexpr std::chrono::minutes kIsolating{10};

/// A request: a case, and whether it is to be isolated, after which death.
struct Request {
  std::uint64_t index = 0;
  bool isolated = false;
  std::optional<Death> first = std::nullopt;
};

struct Worker {
  std::unique_ptr<Process> process = nullptr;
  std::optional<Request> request = std::nullopt;  ///< under way
  std::uint64_t generation = 0;
};

class Pool {
 public:
  Pool(std::uint64_t first, std::uint64_t last, unsigned jobs, const Limits& limits,
       const Work& work)
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
  void ask(Worker& worker, Request request) {
    const std::uint64_t index = request.index;
    if (request.isolated) {
      Limits limits = limits_;
      limits.memory_bytes = 0;
      limits.silence = kIsolating;
      const std::optional<Death>& first = request.first;
      worker.process = std::make_unique<Process>(
          [this, index, first](std::string_view) {
            return answered([&] {
              return Message{Message::Kind::kLastAnswer,
                             work_.isolated(index, first ? &*first : nullptr)};
            });
          },
          limits);
    } else if (!worker.process) {
      worker.process = std::make_unique<Process>(
          [this](std::string_view text) {
            return answered([&] { return work_.answer(std::stoull(std::string(text))); },
                            Message::Kind::kAgain);
          },
          limits_);
    }
    worker.request = std::move(request);
    worker.process->ask(std::to_string(index));
  }
  void give(Worker& worker) {
    if (worker.request || next_ >= last_ || next_ - taken_ >= kMostAhead) return;
    const std::uint64_t generation = work_.generation ? work_.generation() : 0;
    if (std::exchange(worker.generation, generation) != generation) worker.process.reset();
    ask(worker, {.index = next_++});
  }
  void wait() {
    entries_.clear();
    for (const Worker& worker : workers_)
      if (worker.request) worker.process->add_to(entries_);
    (void)poll(entries_.data(), entries_.size(), static_cast<int>(kBetweenLooks.count()));
  }
  void look_at(Worker& worker) {
    if (!worker.request) return;
    const Request request = *worker.request;
    switch (worker.process->look()) {
      case Process::State::kBusy:
        return;
      case Process::State::kAnswered: {
        Message message = worker.process->take_answer();
        if (message.kind != Message::Kind::kAnswer) worker.process.reset();
        if (message.kind == Message::Kind::kAgain)
          return ask(worker, {.index = request.index, .isolated = true});
        done_[request.index] = std::move(message);
        break;
      }
      case Process::State::kDead: {
        Death death = worker.process->death();
        worker.process.reset();
        if (interrupted()) return worker.request.reset();
        if (!request.isolated)
          return ask(worker, {.index = request.index, .isolated = true, .first = std::move(death)});
        done_[request.index] = {Message::Kind::kAnswer, work_.lost(request.index, death)};
      }
    }
    worker.request.reset();
  }
  bool take_all() {
    while (!done_.empty() && done_.begin()->first == taken_) {
      const auto node = done_.extract(done_.begin());
      throw_fault(node.mapped());
      if (!work_.take(taken_++, node.mapped().text)) return false;
    }
    return true;
  }

  const Work& work_;
  Limits limits_;
  std::vector<Worker> workers_;
  std::vector<pollfd> entries_;
  std::map<std::uint64_t, Message> done_;
  std::uint64_t next_;
  std::uint64_t taken_;
  std::uint64_t last_;
};

// For debuggers: a crash is theirs to show.
void work_here(std::uint64_t first, std::uint64_t last, const Work& work) {
  forget_crash_guard();
  for (std::uint64_t index = first; index < last && !interrupted(); ++index)
    if (!work.take(index, work.answer(index).text)) return;
}

}  // namespace

void work_in_order(std::uint64_t first, std::uint64_t last, unsigned jobs, const Limits& limits,
                   const Work& work) {
  if (!limits.isolated) return work_here(first, last, work);
  Pool(first, last, std::max(jobs, 1U), limits, work).run();
  end_strays();
}

}  // namespace kvo::tools
