#include "traces/figures/validate.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace kvo::traces {

namespace {

struct KindRow {
  std::string_view name;
  Severity severity;
};

// In the order of FindingKind.
constexpr std::array<KindRow, kFindingKinds> kKinds{{
    {"block-count", Severity::kError},
    {"two-prefixes", Severity::kError},
    {"two-lengths", Severity::kError},
    {"order", Severity::kWarning},
    {"no-input", Severity::kWarning},
    {"no-output", Severity::kWarning},
}};

std::size_t index_of(FindingKind kind) {
  return static_cast<std::size_t>(kind);
}

std::string name_of(std::optional<std::uint64_t> parent) {
  return parent ? fmt::format("id {}", *parent) : "the beginning";
}

}  // namespace

std::string_view name(FindingKind kind) {
  return kKinds[index_of(kind)].name;
}

Severity severity(FindingKind kind) {
  return kKinds[index_of(kind)].severity;
}

std::string text(std::string_view file, const Finding& finding) {
  const auto* const word = severity(finding.kind) == Severity::kError ? "error" : "warning";
  return fmt::format("{}:{}: {}: {}: {}", file, finding.line, word, name(finding.kind),
                     finding.message);
}

std::uint64_t Validation::count(FindingKind kind) const {
  return counts[index_of(kind)];
}

std::uint64_t Validation::errors() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kFindingKinds; ++i) {
    if (kKinds[i].severity == Severity::kError) sum += counts[i];
  }
  return sum;
}

std::uint64_t Validation::warnings() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) - errors();
}

Validator::Validator(const ValidateOptions& options) : options_(options) {
  options_.block_size = std::max<std::int64_t>(options_.block_size, 1);
}

void Validator::add(const Request& request) {
  ++found_.requests;
  if (last_arrival_us_ && request.arrival_us < *last_arrival_us_) {
    report(found_, FindingKind::kOrder, request.line,
           fmt::format("arrives at {} us, its predecessor at {} us", request.arrival_us,
                       *last_arrival_us_));
  }
  last_arrival_us_ = request.arrival_us;
  if (request.input_tokens == 0) {
    report(found_, FindingKind::kNoInput, request.line, "a prompt of no tokens");
  }
  if (request.output_tokens == 0) {
    report(found_, FindingKind::kNoOutput, request.line, "an answer of no tokens");
  }
  check_counts(request);
  for (std::size_t i = 0; i < request.block_ids.size(); ++i) check_block(request, i);
}

void Validator::check_counts(const Request& request) {
  const bool has_ids = !request.block_ids.empty();
  any_ids_ = any_ids_ || has_ids;
  const std::int64_t wanted = request.input_tokens / options_.block_size +
                              (request.input_tokens % options_.block_size == 0 ? 0 : 1);
  if (static_cast<std::int64_t>(request.block_ids.size()) == wanted) return;
  report(has_ids ? found_ : without_ids_, FindingKind::kBlockCount, request.line,
         fmt::format("{} ids for {} tokens in blocks of {}, which are {} blocks",
                     request.block_ids.size(), request.input_tokens, options_.block_size, wanted));
}

void Validator::check_block(const Request& request, std::size_t index) {
  const auto& ids = request.block_ids;
  // A shortage of tokens has been reported as kBlockCount; it shall not show as lengths again.
  const auto begin = std::min(static_cast<std::int64_t>(index), kMaxTokens / options_.block_size) *
                     options_.block_size;
  const std::int64_t tokens = std::min(options_.block_size, request.input_tokens - begin);
  std::optional<std::uint64_t> parent;
  if (index != 0) parent = ids[index - 1];

  const auto [entry, is_new] =
      seen_.try_emplace(ids[index], Seen{.parent = parent, .tokens = tokens, .line = request.line});
  Seen& first = entry->second;
  if (is_new) return;
  if (first.parent != parent && !first.two_prefixes) {
    first.two_prefixes = true;
    report(found_, FindingKind::kTwoPrefixes, request.line,
           fmt::format("id {} stands behind {}, in line {} behind {}", ids[index], name_of(parent),
                       first.line, name_of(first.parent)));
  }
  const bool known = tokens > 0 && first.tokens > 0;
  if (known && first.tokens != tokens && !first.two_lengths) {
    first.two_lengths = true;
    report(found_, FindingKind::kTwoLengths, request.line,
           fmt::format("id {} stands for {} tokens, in line {} for {}", ids[index], tokens,
                       first.line, first.tokens));
  }
}

void Validator::report(Validation& to, FindingKind kind, std::uint64_t line,
                       std::string message) const {
  auto& count = to.counts[index_of(kind)];
  if (++count > options_.max_findings) return;
  to.findings.push_back({.kind = kind, .line = line, .message = std::move(message)});
}

Validation Validator::result() const {
  Validation all = found_;
  if (!any_ids_) return all;
  for (const auto& finding : without_ids_.findings) {
    const auto kept = std::count_if(all.findings.begin(), all.findings.end(),
                                    [&](const Finding& f) { return f.kind == finding.kind; });
    if (static_cast<std::size_t>(kept) < options_.max_findings) all.findings.push_back(finding);
  }
  for (std::size_t i = 0; i < kFindingKinds; ++i) all.counts[i] += without_ids_.counts[i];
  std::stable_sort(all.findings.begin(), all.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.line < b.line; });
  return all;
}

}  // namespace kvo::traces
