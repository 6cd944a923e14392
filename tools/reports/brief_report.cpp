#include "tools/reports/brief_report.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/reports/console.hpp"
#include "tools/reports/found_or_added.hpp"
#include "tools/reports/quantities.hpp"

namespace kvo::tools {
namespace {

std::string contract_of(const std::string& subject) {
  return subject.substr(0, subject.find('.'));
}

bool is_reference(const std::string& subject) {
  return subject == reference_name(subject);
}

}  // namespace

bool is_beside_reference(const std::string& subject) {
  return !is_reference(subject) && subject.find('/') == std::string::npos &&
         subject.find("@mutant:") == std::string::npos;
}

namespace {

bool is_long_enough(const OperationSummary& row) {
  constexpr std::uint64_t kLeastNanoseconds = 100;
  return row.median_nanoseconds >= kLeastNanoseconds;
}

bool is_slower(const OperationSummary& row) {
  // Of few cases there is no interval.
  constexpr float kClearly = 1.25F;
  if (!row.ratio_to_reference || !is_long_enough(row)) return false;
  return row.ratio_low ? *row.ratio_low > 1 : *row.ratio_to_reference > kClearly;
}

// "12.4 M"
std::string rough_count(std::uint64_t count) {
  static constexpr std::array<std::pair<double, std::string_view>, 2> kUnits{
      {{1e9, "G"}, {1e6, "M"}}};
  for (const auto& [size, unit] : kUnits)
    if (static_cast<double>(count) >= size)
      return fmt::format("{:.3g} {}", static_cast<double>(count) / size, unit);
  return count_text(count);
}

/// The subjects of one contract.
struct BriefRow {
  std::string contract;
  std::uint64_t cases = 0;
  std::uint64_t operations = 0;
  std::vector<float> ratios = {};
};

std::vector<BriefRow> rows_of(const std::vector<SubjectSummary>& subjects) {
  std::vector<BriefRow> rows;
  for (const SubjectSummary& subject : subjects) {
    const std::string contract = contract_of(subject.subject);
    BriefRow& row = found_or_added(rows, {contract}, &BriefRow::contract);
    if (is_reference(subject.subject)) row.cases += subject.cases;
    row.operations += subject.operations;
    if (subject.time_ratio && is_beside_reference(subject.subject))
      row.ratios.push_back(*subject.time_ratio);
  }
  return rows;
}

std::string median_text(std::vector<float> ratios) {
  if (ratios.empty()) return "";
  std::ranges::sort(ratios);
  return ratio_text(ratios[ratios.size() / 2]);
}

// The operation of a contract whose time over the reference's is largest, faster ones included.
std::string slowest_text(const std::vector<SubjectSummary>& subjects, const std::string& contract) {
  const OperationSummary* slowest = nullptr;
  const SubjectSummary* of = nullptr;
  for (const SubjectSummary& subject : subjects) {
    if (contract_of(subject.subject) != contract || !is_beside_reference(subject.subject)) continue;
    for (const OperationSummary& row : subject.timings) {
      if (!row.ratio_to_reference || !is_long_enough(row)) continue;
      if (slowest != nullptr && *row.ratio_to_reference <= *slowest->ratio_to_reference) continue;
      slowest = &row;
      of = &subject;
    }
  }
  return slowest == nullptr ? ""
                            : fmt::format("{} {} {}", of->subject, slowest->op,
                                          ratio_text(*slowest->ratio_to_reference));
}

}  // namespace

std::vector<SlowerOperation> slower_operations(const std::vector<SubjectSummary>& subjects) {
  std::vector<SlowerOperation> slower;
  for (const SubjectSummary& subject : subjects) {
    if (!is_beside_reference(subject.subject)) continue;
    for (const OperationSummary& row : subject.timings)
      if (is_slower(row)) slower.push_back({subject.subject, row.op, *row.ratio_to_reference});
  }
  std::ranges::sort(slower, std::greater(), &SlowerOperation::ratio);
  return slower;
}

std::string verdict_line(const Summary& summary, const std::vector<SubjectSummary>& subjects) {
  std::set<std::string> caches;
  std::uint64_t operations = 0;
  for (const SubjectSummary& subject : subjects) {
    caches.insert(subject.subject.substr(0, subject.subject.find('@')));
    operations += subject.operations;
  }
  const bool failed = summary.failed() > 0;
  const Paint paint(stdout);
  return fmt::format(
      "{}: {}, {}, {}, {} operations, {}\n",
      failed ? paint(Colour::kRed, "FAIL") : paint(Colour::kGreen, "PASS"),
      count_text(caches.size(), "cache"), count_text(subjects.size(), "subject"),
      count_text(summary.cases(), "case"), rough_count(operations),
      failed ? count_text(summary.failed(), "case") + (summary.failed() == 1 ? " fails" : " fail")
             : "no difference");
}

std::string contracts_table(const std::vector<SubjectSummary>& subjects) {
  Table table({column("contract"), numbers("cases"), numbers("operations", 2),
               numbers("time / reference"), column("slowest operation", 1)});
  for (const BriefRow& row : rows_of(subjects))
    table.row({row.contract, count_text(row.cases), count_text(row.operations),
               median_text(row.ratios), slowest_text(subjects, row.contract)});
  return table.text(0, output_columns());
}

std::string slower_text(const std::vector<SlowerOperation>& slower) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(slower.size(), kMost); ++i)
    text += fmt::format("{}{} {} {}", i == 0 ? "slower than the reference: " : "; ",
                        slower[i].subject, slower[i].op, ratio_text(slower[i].ratio));
  if (slower.size() > kMost) text += fmt::format("; {} more", slower.size() - kMost);
  return text;
}

}  // namespace kvo::tools
