// traces/figures/validate.hpp: whether a trace as a whole makes sense.
//
// A reader refuses what is no request; this finds what is wrong between requests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include "traces/formats/request.hpp"

namespace kvo::traces {

/// How bad a finding is: a warning may be meant, an error makes prefix results meaningless.
enum class Severity { kWarning, kError };
BOOST_DESCRIBE_ENUM(Severity, kWarning, kError)

/// What can be wrong with a trace.
enum class FindingKind {
  kBlockCount,   ///< ids of a request are not ceil(input_tokens / block_size)
  kTwoPrefixes,  ///< one id stands behind two different ids
  kTwoLengths,   ///< one id stands for blocks of different numbers of tokens
  kOrder,        ///< a request arrives before its predecessor
  kNoInput,      ///< a prompt of no tokens
  kNoOutput,     ///< an answer of no tokens
};
BOOST_DESCRIBE_ENUM(FindingKind, kBlockCount, kTwoPrefixes, kTwoLengths, kOrder, kNoInput,
                    kNoOutput)
inline constexpr std::size_t kFindingKinds = 6;

/// A name for options and reports, such as "block-count".
[[nodiscard]] std::string_view name(FindingKind kind);

[[nodiscard]] Severity severity(FindingKind kind);

/// One thing wrong in one line.
struct Finding {
  FindingKind kind;
  std::uint64_t line;   ///< where it shows, counted from 1
  std::string message;  ///< what is wrong, with the values

  friend bool operator==(const Finding&, const Finding&) = default;
};
BOOST_DESCRIBE_STRUCT(Finding, (), (kind, line, message))

/// One line, "FILE:LINE: error: block-count: what is wrong".
[[nodiscard]] std::string text(std::string_view file, const Finding& finding);

struct ValidateOptions {
  std::int64_t block_size = 512;  ///< tokens a block, at least 1
  std::size_t max_findings = 20;  ///< kept of each kind; further ones are only counted
};

/// What a validation found.
struct Validation {
  std::uint64_t requests = 0;
  std::vector<Finding> findings;  ///< in the order in which they showed, the first of each kind
  /// By kind: how often. An id is counted once in kTwoPrefixes and once in kTwoLengths, however
  /// many requests use it.
  std::array<std::uint64_t, kFindingKinds> counts = {};

  [[nodiscard]] std::uint64_t count(FindingKind kind) const;
  [[nodiscard]] std::uint64_t errors() const;
  [[nodiscard]] std::uint64_t warnings() const;
};

/// Looks at the requests of a trace one by one. Memory grows with the number of distinct ids.
class Validator {
 public:
  /// Requires options.block_size >= 1; less is taken for 1.
  explicit Validator(const ValidateOptions& options = {});

  /// Looks at the next request.
  void add(const Request& request);

  /// All findings so far.
  [[nodiscard]] Validation result() const;

 private:
  struct Seen {
    std::optional<std::uint64_t> parent;
    std::int64_t tokens = 0;
    std::uint64_t line = 0;
    bool two_prefixes = false;
    bool two_lengths = false;
  };

  void check_counts(const Request& request);
  void check_block(const Request& request, std::size_t index);
  void report(Validation& to, FindingKind kind, std::uint64_t line, std::string message) const;

  ValidateOptions options_;
  Validation found_;
  Validation without_ids_;  // held back: no fault in a format that has no ids at all
  bool any_ids_ = false;
  std::optional<std::int64_t> last_arrival_us_;
  boost::unordered_flat_map<std::uint64_t, Seen> seen_;
};

}  // namespace kvo::traces
