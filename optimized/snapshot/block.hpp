// optimized/snapshot/block.hpp: memory of rows that a cache and snapshots share.
//
// Words    row     what one token has: [B, H, D] elements, one behind the other. The token axis of
// a
//                  block is the slowest one, so that a token is added by one copy behind the
//                  others, and any range of tokens is an array without moving it.
// Threads  none, but for LiveBytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <boost/intrusive/list.hpp>

#include "reference/snapshot/cache.hpp"
#include "reference/snapshot/slots_change.hpp"

namespace kvo::optimized {

/// Bytes of all rows that blocks hold, those that several share once; not the room behind them.
class LiveBytes {
 public:
  [[nodiscard]] std::int64_t now() const { return now_.load(std::memory_order_relaxed); }
  void add(std::int64_t bytes) { now_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> now_ = 0;
};
using LiveBytesPtr = std::shared_ptr<LiveBytes>;

using snapshot::bound;
using snapshot::RowForm;

/// A block that grows gets addresses for kReserved bytes at once, and memory only as rows are
/// written, if it is larger than kMostCopied bytes, or its rows are at least kLargeRow bytes: it
/// then grows without moving. Smaller ones are copied when they are full.
inline constexpr std::size_t kReserved = std::size_t{1} << 30U;
inline constexpr std::size_t kMostCopied = std::size_t{1} << 20U;
inline constexpr std::int64_t kLargeRow = 1024;
inline constexpr std::int64_t kAhead = 32 << 10;

class Block;
using BlockPtr = std::shared_ptr<Block>;

/// Some rows of a block.
struct RowRange {
  BlockPtr block = nullptr;  ///< null: no row was ever stored
  std::int64_t begin = 0;
  std::int64_t count = 0;
  RowForm form = {};

  /// [B, H, count, D], not a copy.
  [[nodiscard]] snapshot::Array array() const;
  /// Rows [from, to) of these, bounds as in MR-A2.
  [[nodiscard]] RowRange part(std::int64_t from, std::int64_t to) const;
};

/// Rows that a snapshot keeps. A block that no cache writes to any more, and that kept rows fill to
/// less than a half, is given up: each keeper takes its rows to a block that they fill. So what
/// snapshots keep costs at most twice the bytes that they count for.
class KeptRows : public boost::intrusive::list_base_hook<> {
 public:
  explicit KeptRows(RowRange rows);
  ~KeptRows() { drop(); }
  KeptRows(const KeptRows&) = delete;
  KeptRows& operator=(const KeptRows&) = delete;

  [[nodiscard]] const RowRange& rows() const { return rows_; }
  /// Gives the rows up.
  void drop() noexcept;

 private:
  friend void give_up_if_sparse(const BlockPtr& block) noexcept;
  void join() noexcept;
  [[nodiscard]] BlockPtr leave() noexcept;
  RowRange rows_;
};

/// Room for rows. Those up to `written` have a value; only who holds the block alone may change
/// them, anybody may add the next ones.
class Block {
 public:
  /// A block that grows has room for more than it is asked for: see kMostCopied.
  enum class Growth : std::uint8_t { kNone, kGrows };

  /// Throws std::bad_alloc.
  Block(const RowForm& form, std::int64_t capacity, Growth growth, LiveBytesPtr live);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  [[nodiscard]] const RowForm& form() const { return form_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  [[nodiscard]] std::byte* row(std::int64_t at) { return bytes_.get() + at * form_.bytes(); }
  [[nodiscard]] const LiveBytesPtr& live() const { return live_; }
  /// Rows with a value.
  [[nodiscard]] std::int64_t written() const { return written_; }
  /// There are so many now.
  void wrote(std::int64_t rows);
  /// The most that there ever were: what the block costs.
  [[nodiscard]] std::int64_t held() const { return held_; }

  std::int64_t writers = 0;  ///< caches whose rows are here
  boost::intrusive::list<KeptRows, boost::intrusive::constant_time_size<false>> keepers = {};

 private:
  struct Free {
    std::size_t mapped = 0;  ///< bytes of addresses; 0: from operator new
    void operator()(std::byte* bytes) const;
  };
  /// Asks for the memory of the rows that come next, kAhead bytes at once: a page by a fault of its
  /// own costs twice as much.
  void ask_ahead();
  using Bytes = std::unique_ptr<std::byte, Free>;
  [[nodiscard]] static Bytes mapped(std::size_t bytes);

  RowForm form_;
  std::int64_t capacity_;
  std::int64_t written_ = 0;
  std::int64_t held_ = 0;
  std::int64_t ready_ = 0;  ///< rows whose memory was asked for ahead
  LiveBytesPtr live_;
  Bytes bytes_{nullptr, Free{}};
};

/// What KeptRows says, for a block that a cache has left; null: nothing.
void give_up_if_sparse(const BlockPtr& block) noexcept;

/// Copies `count` rows of `from`, [B, H, S, D], from token `first` on, to rows of a block from `at`
/// on, cast to its type (MR-A3).
void put_rows(Block& to, std::int64_t at, const snapshot::Array& from, std::int64_t first,
              std::int64_t count);

/// Encodes rows into memory of its own, which the next ones take again.
class RowEncoder {
 public:
  explicit RowEncoder(const StorageFormat& format) : format_(format) {}

  /// Whether rows are encoded at all.
  [[nodiscard]] bool encodes() const { return format_.type != StorageType::kF32; }
  /// K and V, [B, H, S, D] with tokens as the slowest axis in memory. They change with the next
  /// call, unless somebody keeps them. Throws std::bad_alloc.
  /// Errors  as snapshot::as_stored.
  [[nodiscard]] Result<snapshot::Pair> encoded(const snapshot::Array& k, const snapshot::Array& v,
                                               QuirkSet<snapshot::Quirk> quirks);

 private:
  using Bytes = std::shared_ptr<std::vector<std::byte>>;
  /// Whether rows can be encoded.
  [[nodiscard]] bool takes(const snapshot::Array& rows) const;
  [[nodiscard]] snapshot::Array encoded(const snapshot::Array& rows, Bytes& bytes) const;

  StorageFormat format_;
  Bytes k_bytes_ = nullptr;
  Bytes v_bytes_ = nullptr;
};

}  // namespace kvo::optimized
