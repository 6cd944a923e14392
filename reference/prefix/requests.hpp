// reference/prefix/requests.hpp: requests of the references, with their keys (PX-10 to PX-13,
// PX-41, PX-42). Contract `groups` has the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/prefix/blocks.hpp"
#include "reference/prefix/journal.hpp"

namespace kvo::prefix {

/// A key of the reference is a number.
[[nodiscard]] inline Key key_of(std::int64_t number) {
  return {.high = 0, .low = static_cast<std::uint64_t>(number)};
}
[[nodiscard]] inline std::int64_t number_of(const Key& key) {
  return static_cast<std::int64_t>(key.low);
}

/// a / b, rounded down.
[[nodiscard]] inline std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
/// a / b, rounded up.
[[nodiscard]] inline std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return floor_of(a + b - 1, b);
}

[[nodiscard]] inline Error misuse(std::string what) {
  return fail(Code::kPrecondition, std::move(what));
}
[[nodiscard]] inline Error no_request(std::int64_t request) {
  return misuse("request " + std::to_string(request) + " was never made");
}

/// Tables of requests by row. What calls change is restored by roll_back(), and stays after
/// commit().
class Requests {
 public:
  /// What a request says, and what follows from that.
  struct Text {
    Tokens tokens;
    std::int64_t prompt = 0;  ///< tokens of the prompt
    std::string salt;
    std::optional<std::pair<std::string, std::string>> lora;  ///< name and path
    bool skip_reading = false;
    bool report = false;    ///< whether a hit is announced; only in contract groups
    std::vector<Key> keys;  ///< [unit]
  };
  /// Where a request stands.
  struct Progress {
    std::int64_t computed = 0;
    RequestStatus status = RequestStatus::kWaiting;
    std::int64_t in_flight = 0;
    std::optional<std::int64_t> boundary;
    std::int64_t preemptions = 0;
  };

  /// Keys stand for `unit` tokens, and hold the `lookahead` tokens that follow.
  Requests(std::int64_t unit, std::int64_t lookahead, bool enable_caching)
      : unit_(unit), lookahead_(lookahead), enable_caching_(enable_caching) {}

  /// The row of a request, or -1.
  [[nodiscard]] std::int64_t find(std::int64_t request) const;
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& rows() const { return rows_; }
  [[nodiscard]] const Text& text(std::int64_t row) const { return texts_[row]; }
  [[nodiscard]] const Progress& progress(std::int64_t row) const { return progress_[row]; }
  /// Contents that were ever seen: keys are the numbers below.
  [[nodiscard]] std::int64_t keys() const { return std::ssize(contents_); }
  /// Units from the start of its chain that a key stands for.
  [[nodiscard]] std::int64_t depth(std::int64_t key) const {
    return depths_[static_cast<std::size_t>(key)];
  }

  /// Makes a request, or makes it anew; one in a transaction. Returns  its row.
  std::int64_t make(const MakeRequest& op, bool report = false);
  /// Adds output tokens.
  void append(std::int64_t row, TokensView tokens);
  void set(std::int64_t row, const SetRequest& op);

  /// PX-41.
  void record(std::int64_t row, std::int64_t hits);
  void note_reset() { statistics_.reset = true; }
  [[nodiscard]] BlocksStatistics stats() { return std::exchange(statistics_, {}); }

  void commit() noexcept;
  void roll_back() noexcept;

 private:
  /// What a key stands for: the unit before it, its tokens, and extras (PX-10, PX-12, PX-13).
  using Content = std::tuple<std::int64_t, Tokens, std::string,
                             std::optional<std::pair<std::string, std::string>>>;

  void add_keys(Text& text);

  std::int64_t unit_;
  std::int64_t lookahead_;
  bool enable_caching_;
  std::map<Content, std::int64_t> contents_;   ///< number of each content that was ever seen
  std::vector<std::int64_t> depths_;           ///< [key], units from the start of its chain
  std::map<std::int64_t, std::int64_t> rows_;  ///< of the tables below, by request
  std::optional<std::int64_t> added_;          ///< request of a row that is not committed
  Journaled<Text> texts_;
  Journaled<Progress> progress_;
  BlocksStatistics statistics_;
};

}  // namespace kvo::prefix
