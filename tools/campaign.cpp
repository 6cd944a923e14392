#include "tools/campaign.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <optional>

#include "properties/runner/parallel_ordered_map.hpp"
#include "tools/crash_guard.hpp"
#include "tools/progress.hpp"

namespace kvo::tools {
namespace {

using traces::TraceResult;

// "provider.paged@mutant:x" becomes part of a file name.
std::string file_word(std::string_view name) {
  std::string word;
  for (const char c : name)
    word += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ? c : '_';
  return word;
}

TraceResult<std::string> write_repro(const std::string& folder, const SubjectResult& subject) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const traces::CaseHeader& header = subject.repro->script.header;
  // Scripts of other laws and profiles may have the same seed and case.
  const std::string name = file_word(subject.subject) + "-" + file_word(header.name) + "-" +
                           file_word(header.law) +
                           (header.profile == Profile::kDocumented ? "-documented" : "") + ".jsonl";
  std::string path = (std::filesystem::path(folder) / name).string();
  if (auto written = traces::write_case(path, subject.repro->script); !written)
    return std::move(written).error();
  return {boost::system::in_place_value, std::move(path)};
}

class Collector {
 public:
  Collector(const CampaignOptions& options, std::optional<RunFile> file)
      : options_(options), file_(std::move(file)) {
    if (!file_) return;
    for (const CaseRecord& record : file_->earlier()) summary_.add(record);
  }

  [[nodiscard]] std::uint64_t first() const { return summary_.cases(); }

  // False when nothing more can be written.
  bool take(std::uint64_t index, const CaseResult& result) {
    CaseRecord record = record_of(index, result);
    for (std::size_t i = 0; i < result.subjects.size(); ++i) {
      if (!result.subjects[i].repro) continue;
      auto path = write_repro(options_.repro_folder, result.subjects[i]);
      if (!path) return stop(std::move(path).error());
      record.subjects[i].repro = std::move(*path);
    }
    summary_.add(record);
    if (!file_) return true;
    auto written = file_->append(record);
    return written.has_value() || stop(std::move(written).error());
  }

  TraceResult<Summary> result() && {
    if (failure_) return std::move(*failure_);
    return std::move(summary_);
  }

 private:
  bool stop(traces::TraceError error) {
    failure_ = std::move(error);
    return false;
  }

  const CampaignOptions& options_;
  std::optional<RunFile> file_;
  Summary summary_;
  std::optional<traces::TraceError> failure_;
};

}  // namespace

TraceResult<Summary> run_campaign(const RunHeader& header, const CampaignOptions& options,
                                  const std::function<CasePlan(std::uint64_t)>& plan) {
  std::optional<RunFile> file;
  if (!options.output.empty()) {
    auto opened = RunFile::open(options.output, header, options.resume);
    if (!opened) return std::move(opened).error();
    file = std::move(*opened);
  }
  Collector collector(options, std::move(file));
  const auto start = std::chrono::steady_clock::now();
  const auto in_time = [&] {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return options.seconds <= 0 || spent.count() < options.seconds;
  };
  std::optional<std::uint64_t> total;
  if (options.cases != CampaignOptions::kEndless) total = options.cases;
  Progress progress("cases", total);
  const std::uint64_t first = collector.first();
  if (first < options.cases) {
    parallel_ordered_map<CaseResult>(
        first, options.cases, std::max(1U, options.jobs),
        [&](std::uint64_t index) {
          const CasePlan planned = plan(index);
          const Activity activity(planned.kind->name() + " case " + planned.name, planned.repeat);
          // A nested activity for each attempt: shrinking may take long, but it does not hang.
          const auto alive = [&] {
            const Activity attempt("shrinking " + planned.name, planned.repeat);
          };
          return run_case(planned, {.attempts = options.shrink_attempts, .alive = alive});
        },
        [&](std::uint64_t index, const CaseResult& result) {
          progress.advance();
          return collector.take(index, result) && in_time();
        });
  }
  return std::move(collector).result();
}

}  // namespace kvo::tools
