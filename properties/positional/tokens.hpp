// properties/positional/tokens.hpp: the tokens of one causal cache, from what was put alone.
//
// Nothing here knows of cells: a sequence is a list of tokens, a token its position and the rows
// put for it. What a cache may have given up, or what a failed call left unknown, is marked, and
// rows of the batch that might see such tokens are skipped. See properties/positional/oracle.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "properties/runner/oracle.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {

/// One layer of a token, rounded to the storage type.
struct TokenRows {
  std::vector<float> k = {};  ///< [heads * k_dim]
  std::vector<float> v = {};  ///< [heads * v_dim]
  std::int64_t heads = 0;
  std::int32_t put_at = 0;   ///< the token's position when they were put
  std::uint64_t shifts = 0;  ///< moves since then
};

/// A token, shared by the sequences that hold it (OK-2).
struct Token {
  std::int32_t position = 0;
  bool doubtful = false;  ///< a failed remove may have moved it (OK-66, OK-67)
  std::map<std::int64_t, TokenRows> layers = {};
};

/// The tokens of one cache, and what each row of the present pass must see.
class MemberTokens {
 public:
  /// `member` as in the config, before OK-10.
  MemberTokens(MemberOptions member, bool documented);

  /// Fixes window and memory (OK-10 to OK-12).
  void init(const Init& init);
  /// A start_forward that succeeded (OK-16).
  void started(const StartForward& pass);
  /// One that failed with its evictions done (OK-22); `unwound` if members may have dropped tokens
  /// of the batch (OK-83).
  void failed(const StartForward& pass, bool unwound);
  void put(std::int64_t layer, const Put& rows);
  void set_causal(const SetCausal& call);
  void copy_prefix(const CopyPrefix& copy);
  void removed(const Remove& remove);
  /// A remove that may be half done (OK-66, OK-67).
  void remove_failed(const Remove& remove);
  /// Words if attention over what is shown differs from attention over the history.
  [[nodiscard]] std::optional<std::string> shown(std::int64_t layer, const Get::Returns& shown,
                                                 bool permuted_v);

  [[nodiscard]] const OracleCounts& counts() const { return counts_; }

 private:
  struct Held {
    std::shared_ptr<Token> token;
    bool maybe_lost = false;  ///< evicted, if the cache evicts as much as it may (OK-18, OK-19)
  };
  struct Sequence {
    std::vector<Held> tokens;
    bool unknown = false;  ///< until it is cleared
  };
  struct BatchRow {
    std::int64_t sequence = 0;
    std::int32_t position = 0;
    bool unknown = false;  ///< its sequence was, or one of those it would see may be lost
    std::vector<std::shared_ptr<Token>> sees = {};
  };
  /// K and V of what a row must see.
  struct History {  // NOLINT(bugprone-exception-escape): as Tensor
    Tensor k;
    Tensor v;
    std::uint64_t shifts = 0;
    float largest_k = 0;
    float largest_v = 0;
  };

  void give_up(const StartForward& pass);
  void rebuild();
  [[nodiscard]] bool sees(std::size_t row, std::int32_t position) const;
  [[nodiscard]] bool shared(const Token* token, std::int64_t but) const;
  /// A row of `heads` heads, as the cache shows it once it is stored.
  [[nodiscard]] std::vector<float> stored(std::span<const float> row, std::int64_t heads) const;
  [[nodiscard]] std::optional<History> history(const BatchRow& row, std::int64_t layer) const;
  [[nodiscard]] std::optional<std::vector<float>> keys_now(const Token& token,
                                                           std::int64_t layer) const;
  [[nodiscard]] std::optional<std::string> judge(const BatchRow& row, const History& history,
                                                 const Get::Returns& shown,
                                                 std::span<const double> mask, bool permuted_v);

  MemberOptions member_;
  bool documented_;
  StorageFormat storage_;
  std::map<std::int64_t, Sequence> sequences_;
  // The pass.
  std::vector<std::shared_ptr<Token>> targets_;  // empty in a reserve pass
  std::vector<BatchRow> rows_;
  std::vector<std::int64_t> except_;
  std::vector<std::int64_t> built_with_;  // documented: the list that the mask knows
  bool disturbed_ = false;                // sequences have changed since the pass began
  bool unknown_ = false;                  // the mask was rebuilt after that
  OracleCounts counts_;
};

}  // namespace kvo::positional
