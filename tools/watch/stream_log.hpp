// tools/watch/stream_log.hpp: a stream of events as an operation log of contract `events`.
//
// The log has batches as they were published and delivered, for the reference of `events.dynamo` in
// profile documented, whose answers it records. After a batch it has queries of the sequences that
// the batch is about. Names of blocks are numbers. The tokens of a block are two numbers, a keyed
// hash of them: equal blocks stay equal, and the text cannot be read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "properties/campaign/contracts.hpp"
#include "properties/runner/verdict.hpp"
#include "reference/events/operations.hpp"
#include "tools/watch/sequences.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::tools {

class StreamLog {
 public:
  /// What a log may hold; events beyond are counted and left out.
  static constexpr std::int64_t kMostEvents = 1'000'000;
  /// Tokens of all its queries together, and queries of one batch.
  static constexpr std::int64_t kMostAsked = 4'194'304;
  static constexpr std::int64_t kMostQueries = 4;
  /// Tokens that the log has in the place of a block's.
  static constexpr std::int64_t kHashTokens = 2;

  /// `key`: of the hash. `replay`: whether the publisher answers requests for batches.
  StreamLog(const Contracts& contracts, std::string key, bool replay);

  /// The engine published a batch of that number, and the follower gets it unless `delivered` is
  /// false. Numbers between were published and are lost.
  void batch(const events::Engine& engine, std::int64_t number, const events::Batch& batch,
             std::int64_t block_size, bool delivered);
  /// The engine began again.
  void restart(const events::Engine& engine);

  [[nodiscard]] std::string text() const;
  /// How a follower with a stream answers the log so far, beside the reference.
  [[nodiscard]] Verdict judged(const Subject& follower) const;
  [[nodiscard]] std::int64_t left_out() const { return left_out_; }

 private:
  struct Numbers {
    std::int64_t base = 0;  ///< number of the publisher's batch 0
    std::int64_t next = 0;  ///< of the log
  };

  void add(Op op);
  [[nodiscard]] events::Event hashed(const events::Event& event, std::int64_t block_size) const;
  void ask_about(const events::Batch& batch);

  std::string key_;
  traces::Case log_;
  std::unique_ptr<Session> session_;
  std::map<events::Engine, Numbers> numbers_ = {};
  Sequences sequences_ = {};
  std::int64_t asked_ = 0;
  std::int64_t events_ = 0;
  std::int64_t left_out_ = 0;
};

}  // namespace kvo::tools
