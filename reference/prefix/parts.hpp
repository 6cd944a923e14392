// reference/prefix/parts.hpp: what a cache over one pool of blocks is made of: its requests and the
// pool. The rules of contract `groups` are written over these two classes, so that a cache with
// other structures has the same rules (reference/groups/parts.hpp).
//
// Words    row   of a request: its number in the tables of requests, in the order of their making.
//          key   a number from 0 on. Of a request: that of a content. Of the pool: in contract
//                `groups` key * groups + group, for there a block carries a key for one of several
//                groups of layers, and may carry more than one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/prefix/blocks.hpp"

namespace kvo::prefix {

/// A key of the reference is a number.
[[nodiscard]] inline Key key_of(std::int64_t number) {
  return {.high = 0, .low = static_cast<std::uint64_t>(number)};
}
[[nodiscard]] inline std::int64_t number_of(const Key& key) {
  return static_cast<std::int64_t>(key.low);
}

/// The keys of the first blocks of a text for a group, as the pool counts them.
struct BlockKeys {
  std::span<const Key> units;  ///< of whole blocks
  std::int64_t size = 1;       ///< units of a block
  std::int64_t groups = 1;
  std::int64_t group = 0;

  [[nodiscard]] std::int64_t count() const { return std::ssize(units) / size; }
  [[nodiscard]] std::int64_t operator[](std::int64_t block) const {
    return number_of(units[static_cast<std::size_t>((block + 1) * size - 1)]) * groups + group;
  }
};

/// a / b, rounded down. Requires  b > 0.
[[nodiscard]] constexpr std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
/// a / b, rounded up.
[[nodiscard]] constexpr std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return floor_of(a + b - 1, b);
}

[[nodiscard]] inline Error misuse(std::string what) {
  return fail(Code::kPrecondition, std::move(what));
}
[[nodiscard]] inline Error no_request(std::int64_t request) {
  return misuse("request " + std::to_string(request) + " was never made");
}

/// Requests with their keys (PX-10 to PX-13, PX-41, PX-42). What calls change is restored by
/// roll_back(), and stays after commit().
class RequestTable {
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

  /// What a request says that is made so; its keys are still missing.
  template <class Made>
  [[nodiscard]] static Text text_of(const Made& op) {
    Text text;
    text.tokens = op.tokens;
    text.prompt = std::ssize(op.tokens);
    text.salt = op.salt.value_or("");
    if (op.lora) text.lora.emplace(*op.lora, op.lora_path.value_or(""));
    text.skip_reading = op.skip_reading.value_or(false);
    return text;
  }

  virtual ~RequestTable() = default;

  /// The row of a request, or -1.
  [[nodiscard]] std::int64_t find(std::int64_t request) const {
    const auto number = static_cast<std::size_t>(request);
    return number < row_of_.size() ? row_of_[number] : -1;
  }
  /// The row of each request, by number.
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& rows() const { return rows_; }
  [[nodiscard]] const Text& text(std::int64_t row) const { return at(row).text; }
  [[nodiscard]] const Progress& progress(std::int64_t row) const { return at(row).progress; }
  /// Contents that were ever seen: keys are the numbers below, in the order of their coming.
  [[nodiscard]] virtual std::int64_t keys() const = 0;
  /// Units from the start of its chain that a key stands for.
  [[nodiscard]] std::int64_t depth(std::int64_t key) const {
    return depths_[static_cast<std::size_t>(key)];
  }

  // One of these in a transaction.
  /// Makes a request, or makes it anew. Returns  its row.
  std::int64_t make(std::int64_t request, Text text);
  /// Adds output tokens.
  void append(std::int64_t row, TokensView tokens);
  void set(std::int64_t row, const SetRequest& op);

  /// PX-41.
  void record(std::int64_t row, std::int64_t hits);
  void note_reset() { statistics_.reset = true; }
  [[nodiscard]] BlocksStatistics stats() { return std::exchange(statistics_, {}); }

  void commit() noexcept {
    if (change_ == Change::kReplaced) whole_ = {};
    change_ = Change::kNothing;
  }
  void roll_back() noexcept;

 protected:
  /// What a table remembers of the keys of a request, to add more of them.
  using Chain = std::array<std::uint64_t, 2>;

  explicit RequestTable(bool enable_caching) : enable_caching_(enable_caching) {}
  /// Depths of so many keys can be set from now on. Throws std::bad_alloc.
  void grow_depths(std::int64_t keys) {
    if (keys > std::ssize(depths_)) depths_.resize(static_cast<std::size_t>(keys));
  }
  void set_depth(std::int64_t key, std::int64_t depth) noexcept {
    depths_[static_cast<std::size_t>(key)] = depth;
  }

 private:
  struct Row {
    Text text = {};
    Progress progress = {};
    Chain chain = {};
  };
  /// What the operation changed. It changes one row.
  enum class Change : std::uint8_t { kNothing, kAdded, kReplaced, kAppended, kProgress };

  [[nodiscard]] Row& at(std::int64_t row) { return table_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] const Row& at(std::int64_t row) const {
    return table_[static_cast<std::size_t>(row)];
  }
  /// Adds the keys that the tokens have and the list does not. Throws std::bad_alloc; no content is
  /// new then.
  virtual void add_keys(Text& text, Chain& chain) = 0;

  bool enable_caching_;
  std::vector<std::int64_t> depths_;           ///< [key]
  std::vector<Row> table_;                     ///< [row]
  std::vector<std::int64_t> row_of_;           ///< [request], or -1
  std::map<std::int64_t, std::int64_t> rows_;  ///< the same, without gaps
  BlocksStatistics statistics_;
  // The change of the operation, and what was there before.
  Change change_ = Change::kNothing;
  std::int64_t changed_ = 0;  ///< row; of kAdded: request
  Row whole_;
  std::size_t tokens_before_ = 0;
  std::size_t keys_before_ = 0;
  Chain chain_before_ = {};
  Progress progress_before_;
};

/// Blocks 0 to count - 1, their queue, and who carries a key (PX-14 to PX-17). What calls change is
/// restored by roll_back(), and stays after commit().
class Pool {
 public:
  virtual ~Pool() = default;

  [[nodiscard]] virtual std::int64_t count() const = 0;
  [[nodiscard]] virtual std::int64_t free() const = 0;  ///< length of the queue
  [[nodiscard]] virtual std::int64_t refs(std::int64_t block) const = 0;
  /// How many of these have a count of 0. Null blocks do not.
  [[nodiscard]] virtual std::int64_t unused(IdsView blocks) const = 0;
  /// The main key of a block.
  [[nodiscard]] virtual std::optional<std::int64_t> key(std::int64_t block) const = 0;
  /// All keys of a block, the main one first, further ones in ascending order.
  [[nodiscard]] virtual Ids keys_of(std::int64_t block) const = 0;
  [[nodiscard]] virtual bool carries(std::int64_t block, std::int64_t key) const = 0;
  /// How many blocks come before the first that neither carries the key in its place nor is null.
  [[nodiscard]] virtual std::int64_t carriers(IdsView blocks, const BlockKeys& keys) const = 0;
  /// The block that a lookup of the key finds: the first one (PX-16), but for prefer().
  [[nodiscard]] virtual std::optional<std::int64_t> holder(std::int64_t key) const = 0;
  /// The same for each key, up to the first that no block carries.
  [[nodiscard]] virtual Ids holders(const BlockKeys& keys) const = 0;

  /// Hands out the front of the queue to a user each, and adds it to `blocks`; what loses a key
  /// joins `evicted` (PX-14, PX-35). Requires  count <= free().
  /// Errors  kPrecondition: one of them has a count other than 0; roll back then.
  [[nodiscard]] virtual Status hand_out(std::int64_t count, Ids& blocks, Ids& evicted) = 0;
  /// As of PoolCache.
  virtual void prefer(Ids /*blocks*/) {}
  /// A user of each comes (PX-29).
  virtual void pin(IdsView blocks) = 0;
  /// PX-34. Errors  without kCountsBelowZero kPrecondition: more often than its count; roll back
  /// then.
  [[nodiscard]] virtual Status release(IdsView blocks) = 0;
  /// The block carries `key` from now on, after the others that do; beside a key that it has.
  /// Requires  that it does not.
  virtual void set_key(std::int64_t block, std::int64_t key) = 0;
  /// Takes its keys off, if it has one (PX-36). Returns  whether it had.
  virtual bool take_key(std::int64_t block) = 0;
  /// Moves all keys to a block without one, after the others that carry them; no event.
  virtual void move_keys(std::int64_t from, std::int64_t to) = 0;
  /// Takes all keys off (PX-37).
  virtual void take_all_keys() = 0;
  /// Takes the keys of each off, of any numbers (PX-36); those that had one join `evicted`.
  /// Errors  kOutOfRange, with kEvictTakesAnyNumber kPrecondition: no such block; roll back then.
  [[nodiscard]] Status evict(IdsView blocks, Ids& evicted);

  /// Stores an event, if events are recorded.
  void tell(Event event);
  [[nodiscard]] std::span<const Event> take_events();

  [[nodiscard]] virtual Ids queue() const = 0;  ///< front first
  /// The keys that blocks carry, in ascending order, with these blocks, first come first.
  [[nodiscard]] virtual std::vector<std::pair<std::int64_t, Ids>> cached() const = 0;
  [[nodiscard]] virtual std::optional<std::string> broken_invariant() const = 0;

  void commit() noexcept;
  void roll_back() noexcept;

 protected:
  Pool(bool events, QuirkSet<Quirk> quirks, std::int64_t groups)
      : keeps_events_(events), quirks_(quirks), groups_(groups) {}
  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  /// The key lost a block; `is_held`: others still carry it (PX-40).
  void tell_removed(std::int64_t key, bool is_held);

 private:
  virtual void commit_blocks() noexcept = 0;
  virtual void roll_back_blocks() noexcept = 0;

  bool keeps_events_;
  QuirkSet<Quirk> quirks_;
  std::int64_t groups_;
  std::vector<Event> events_;
  std::vector<Event> taken_;  ///< by the last take_events
  std::size_t events_before_ = 0;
};

}  // namespace kvo::prefix
