#include "tools/watch/watcher.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The stream of one endpoint.
class Worker {
 public:
  Worker(std::int64_t number, const std::string& endpoint, const std::string& replay)
      : number_(number), live_(ZeroMqSocket::Kind::kSubscriber) {
    live_.connect(endpoint);
    if (replay.empty()) return;
    replay_ = std::make_unique<ZeroMqSocket>(ZeroMqSocket::Kind::kDealer);
    replay_->connect(replay);
  }

  [[nodiscard]] std::int64_t number() const { return number_; }
  [[nodiscard]] bool has_replay() const { return replay_ != nullptr; }
  [[nodiscard]] std::optional<Frames> next(milliseconds patience) {
    return live_.receive(patience);
  }

  /// The batches from a number on that the publisher still has: number and payload.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::string>> replayed(std::int64_t from,
                                                                           milliseconds patience) {
    constexpr std::size_t kMost = 100'000;
    std::vector<std::pair<std::int64_t, std::string>> all;
    replay_->send({"", number_frame(from)});
    while (auto frames = replay_->receive(patience)) {
      // ("",) topic?, number, payload
      if (frames->size() < 2) break;
      const auto number = batch_number((*frames)[frames->size() - 2]);
      if (!number || *number < 0 || all.size() >= kMost) break;
      all.emplace_back(*number, std::move(frames->back()));
    }
    return all;
  }

 private:
  std::int64_t number_;
  ZeroMqSocket live_;
  std::unique_ptr<ZeroMqSocket> replay_ = nullptr;
};

/// Judges and records what comes.
class Watcher {
 public:
  Watcher(const WatchOptions& options, StreamLog* log,
          const std::function<void(const StreamFinding&)>& found)
      : options_(options), log_(log), found_(found), judge_(options.block_size) {}

  void take(Worker& worker, const Frames& frames) {
    ++seen_.messages;
    if (frames.size() < 2 || frames.size() > 3)
      return judge_.undecodable(
          worker.number(), -1,
          fmt::format("{} frames: topic, number and payload are expected", frames.size()));
    if (frames.size() == 3 && seen_.topics.size() < kMostTopics)
      seen_.topics.insert(printable(frames.front(), 100));
    const auto number = batch_number(frames[frames.size() - 2]);
    if (!number || *number < 0)
      return judge_.undecodable(worker.number(), -1,
                                fmt::format("number of the batch: {} bytes: 8 bytes of a number "
                                            "from 0 are expected",
                                            frames[frames.size() - 2].size()));
    if (auto batch = read(worker, *number, frames.back()))
      follow(worker, {worker.number(), batch->rank}, *number, *batch);
  }

  /// Asks the engine, if its time has come and nothing waits to be read.
  void probe(Clock::time_point now) {
    if (options_.prober == nullptr || now < next_probe_) return;
    if (answered_) {  // what changed meanwhile has been read
      const std::int64_t size = judge_.block_size().value_or(1);
      const std::int64_t now_held = judge_.held_of(kProbed, answered_->asked.keys);
      const auto [least, most] = std::minmax(now_held, held_before_);
      if ((answered_->reused < least * size && judge_.is_plain(kProbed)) ||
          answered_->reused > most * size)
        judge_.reuses(kProbed, true,
                      fmt::format("{} of {} tokens are announced, {} were reused", most * size,
                                  answered_->asked.tokens.size(), answered_->reused));
      answered_.reset();
    }
    next_probe_ = now + options_.between_probes;
    // The engine may change what it holds before, while and after it answers.
    auto answer = options_.prober->ask();
    if (!answer) return;
    if (!answer->failure.empty()) return judge_.reuses(kProbed, false, answer->failure);
    held_before_ = judge_.held_of(kProbed, answer->asked.keys);
    answered_ = std::move(answer);
  }

  void tell() {
    for (; shown_ < judge_.findings().size(); ++shown_) found_(judge_.findings()[shown_]);
  }

  [[nodiscard]] Watched result() {
    seen_.engines = judge_.held();
    seen_.findings = judge_.findings();
    seen_.block_size = judge_.block_size();
    return std::move(seen_);
  }

 private:
  static constexpr std::size_t kMostTopics = 100;
  static constexpr events::Engine kProbed{0, 0};

  std::optional<WireBatch> read(const Worker& worker, std::int64_t number,
                                const std::string& payload) {
    auto batch = decoded(payload, keys_);
    if (auto* good = std::get_if<WireBatch>(&batch)) return std::move(*good);
    judge_.undecodable(worker.number(), number,
                       fmt::format("batch {}: {}", number, std::get<std::string>(batch)));
    return std::nullopt;
  }

  void follow(Worker& worker, const events::Engine& engine, std::int64_t number,
              const WireBatch& batch) {
    const bool is_new = known_.insert(engine).second;
    const Arrival came = judge_.arrival(engine, number, batch);
    const bool misses = (is_new && number > 0) || came == Arrival::kGap;
    if (misses && worker.has_replay())
      ask(worker, engine, is_new ? 0 : judge_.first_missing(engine), number);
    if (came == Arrival::kRestart && log_ != nullptr) log_->restart(engine);
    judge_.apply(engine, number, batch, false);
    if (options_.prober != nullptr && engine == kProbed)
      options_.prober->note(batch.events, judge_.block_size().value_or(1));
    if (log_ != nullptr)
      log_->batch(engine, number, batch.events, judge_.block_size().value_or(1), true);
  }

  /// The batches before `end`, as far as the publisher has them.
  void ask(Worker& worker, const events::Engine& engine, std::int64_t from, std::int64_t end) {
    bool first = true;
    for (const auto& [number, payload] : worker.replayed(from, options_.patience)) {
      if (number >= end) break;
      const auto batch = read(worker, number, payload);
      if (!batch || batch->rank != engine.rank) continue;
      if (std::exchange(first, false) && number == 0) judge_.joined_from_start(engine);
      judge_.apply(engine, number, *batch, true);
      if (log_ != nullptr)
        log_->batch(engine, number, batch->events, judge_.block_size().value_or(1), false);
    }
  }

  const WatchOptions& options_;
  StreamLog* log_;
  const std::function<void(const StreamFinding&)>& found_;
  StreamJudge judge_;
  KeyNumbers keys_;
  std::set<events::Engine> known_;
  std::size_t shown_ = 0;
  Clock::time_point next_probe_{};
  std::optional<Prober::Answer> answered_;
  std::int64_t held_before_ = 0;  ///< blocks of it that were announced before it was sent
  Watched seen_;
};

}  // namespace

Watched watch(const WatchOptions& options, StreamLog* log, const std::function<bool()>& stop,
              const std::function<void(const StreamFinding&)>& found) {
  constexpr milliseconds kBetweenShows{50};
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < options.endpoints.size(); ++i)
    workers.push_back(
        std::make_unique<Worker>(static_cast<std::int64_t>(i), options.endpoints[i],
                                 i < options.replays.size() ? options.replays[i] : ""));
  Watcher watcher(options, log, found);
  const auto begin = Clock::now();
  std::int64_t taken = 0;
  while (!stop() && (options.batches == 0 || taken < options.batches)) {
    const auto now = Clock::now();
    if (options.time.count() > 0 && now - begin >= options.time) break;
    bool quiet = true;
    for (const auto& worker : workers) {
      const milliseconds patience = kBetweenShows / static_cast<int>(workers.size());
      const auto frames = worker->next(std::max(patience, milliseconds{1}));
      if (!frames) continue;
      quiet = false;
      watcher.take(*worker, *frames);
      watcher.tell();
      if (++taken == options.batches) break;
    }
    if (quiet) watcher.probe(Clock::now());
  }
  return watcher.result();
}

}  // namespace kvo::tools
