// tools/probe/serve/cache.hpp: caches of contracts as an engine that serves the probe uses them.
//
// Words    cell      what a row holds in one layer and head: K and V of the probe.
//          pass      some new tokens of one sequence: their rows are stored and read layer by
//          layer. sequence  a text that the cache holds or held; its number is the cache's choice.
// A cache decides which rows a request reuses, where new rows are stored, and which rows each token
// sees. It is driven by operations of its contract alone, so that any subject can be tested.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/subject/inner.hpp"
#include "reference/probe/rows.hpp"
#include "tools/probe/plans.hpp"

namespace kvo::tools {

/// K and V of a row in one layer and head.
struct ServedCell {
  std::int32_t position = 0;  ///< that K is turned to
  probe::Bit key = 0;         ///< the sign in K, or kSinkKey; 0: no query finds it
  probe::Read value = {};
  friend bool operator==(const ServedCell&, const ServedCell&) = default;
};
/// In K of a token that begins a text.
inline constexpr probe::Bit kSinkKey = 2;

/// A row in one layer, and in all layers.
using HeadCells = probe::PerHead<ServedCell>;
using ServedRow = probe::PerLayer<HeadCells>;

/// What the tokens of a pass see in one layer.
struct SeenRows {
  std::vector<HeadCells> rows;     ///< in any order
  std::vector<std::uint8_t> sees;  ///< [token of the pass][row]: whether it does

  [[nodiscard]] bool has(std::size_t token, std::size_t row) const {
    return sees[token * rows.size() + row] != 0;
  }
};

/// Whose rows a request may reuse.
struct RowSharing {
  bool shares = true;  ///< false: no rows of others, and it leaves none
  std::string salt;    ///< it shares with requests of the same salt
};

/// How a request begins.
struct Begun {
  std::int64_t sequence = 0;
  std::size_t reused = 0;  ///< rows that the cache has: those of the first tokens, never all
  /// Rows without content that the prompt gets after its first token. The cache removes them when
  /// the prompt has been read, which moves all later rows.
  std::size_t padding = 0;
};

/// A cache that holds the rows of several sequences.
/// Errors  of every method: those of the subject.
class ServedCache {
 public:
  /// Sequences at once at most.
  static constexpr std::size_t kSequences = 8;
  /// Tokens that a block has, where rows are in blocks.
  static constexpr std::int64_t kBlock = 16;
  static constexpr std::size_t kPadding = 16;
  /// A prefix that is shorter is not reused.
  static constexpr std::size_t kLeastReused = 16;

  ServedCache() = default;
  ServedCache(const ServedCache&) = delete;
  ServedCache& operator=(const ServedCache&) = delete;
  virtual ~ServedCache() = default;

  /// Begins a sequence. Requires  fewer than kSequences are between begin() and end().
  [[nodiscard]] virtual Result<Begun> begin(const ProbeTokens& prompt,
                                            const RowSharing& sharing) = 0;
  /// Begins a pass with tokens at positions `first` and after.
  [[nodiscard]] virtual Status start(std::int64_t sequence, std::span<const probe::Token> tokens,
                                     std::size_t first) = 0;
  /// Stores the rows of the pass in a layer: [token].
  [[nodiscard]] virtual Status put(std::size_t layer, std::span<const HeadCells> rows) = 0;
  /// What the tokens of the pass see in a layer, their own rows included.
  [[nodiscard]] virtual Result<SeenRows> get(std::size_t layer) = 0;
  /// Ends a pass, after all layers.
  [[nodiscard]] virtual Status finish() { return {}; }
  /// All rows of the prompt are stored: removes the padding.
  [[nodiscard]] virtual Status prompt_read(const Begun& /*begun*/, const ProbeTokens& /*prompt*/) {
    return {};
  }
  /// Ends a sequence. `text`: the tokens whose rows others may reuse.
  virtual void end(std::int64_t sequence, const ProbeTokens& text) = 0;
};

/// A session of a subject in profile `original`, driven by operations.
class CalledCache {
 public:
  /// Errors  of the subject.
  [[nodiscard]] static Result<std::unique_ptr<CalledCache>> open(const Subject& subject,
                                                                 Record config) {
    auto called = std::make_unique<CalledCache>();
    called->slot_.set(called->probe_);
    auto inner = Inner::open(subject, Setup{.profile = Profile::kOriginal}, called->slot_,
                             std::move(config));
    if (!inner) return inner.error();
    called->inner_.emplace(*std::move(inner));
    return called;
  }
  /// Carries out one operation. Errors  those that it observes.
  template <class T>
  [[nodiscard]] Result<typename T::Returns> operator()(T op) {
    return (*inner_)(std::move(op));
  }

 private:
  Probe probe_;
  ProbeSlot slot_;
  std::optional<Inner> inner_;
};

/// How much a cache holds.
struct ServedSize {
  std::int64_t rows = 0;  ///< a multiple of ServedCache::kBlock
  /// Positions that a token sees, itself included; none: all.
  std::optional<std::size_t> window = std::nullopt;

  /// Whether the token at a position sees the row at another one.
  [[nodiscard]] bool sees(std::size_t token, std::size_t row) const {
    return row <= token && (!window || token - row < *window);
  }
};

/// Opens a cache. Errors  of the subject.
using OpenServed = Result<std::unique_ptr<ServedCache>> (*)(const Subject& subject,
                                                            const ServedSize& size);
[[nodiscard]] Result<std::unique_ptr<ServedCache>> open_served_blocks(const Subject& subject,
                                                                      const ServedSize& size);
[[nodiscard]] Result<std::unique_ptr<ServedCache>> open_served_causal(const Subject& subject,
                                                                      const ServedSize& size);
[[nodiscard]] Result<std::unique_ptr<ServedCache>> open_served_views(const Subject& subject,
                                                                     const ServedSize& size);
[[nodiscard]] Result<std::unique_ptr<ServedCache>> open_served_cells(const Subject& subject,
                                                                     const ServedSize& size);

/// A cache kind that can be served.
struct ServedKind {
  std::string_view name;
  OpenServed open;
};
[[nodiscard]] std::span<const ServedKind> served_kinds();

// ---- Cells as elements of tensors ----

/// Elements of K, and of V, in one layer and head.
inline constexpr std::size_t kCellElements = 2;

/// K is [key + position, position], so that a cache that adds an offset moves it; V has its bits.
void write_cell(const ServedCell& cell, std::span<float> key, std::span<float> value);
/// The cell of some elements. Elements that no cell has are a K that no query finds.
[[nodiscard]] ServedCell cell_of(float moved_key, float position, const std::array<float, 2>& bits);

}  // namespace kvo::tools
