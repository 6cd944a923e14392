#include "tools/workers/campaign.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/progress.hpp"
#include "tools/workers/isolated.hpp"
#include "tools/workers/pool.hpp"

namespace kvo::tools {
namespace {

// Asks for another process where memory is lacking: others may have used up that of this one.
Message message_of(std::uint64_t index, const CasePlan& plan, const CampaignOptions& options) {
  CaseResult result = run_case(plan, {.attempts = options.shrink_attempts,
                                      .without_memory = !options.limits.isolated,
                                      .time = options.shrink_time});
  result.index = index;
  const bool again = std::ranges::any_of(
      result.subjects, [](const SubjectResult& one) { return one.verdict.lacks_memory(); });
  return {again ? Message::Kind::kAgain : Message::Kind::kAnswer, packed(result)};
}

/// Puts what the processes answered into files and words.
class Taking {
 public:
  Taking(const CampaignOptions& options, const std::function<CasePlan(std::uint64_t)>& plan)
      : options_(options), plan_(plan) {}

  /// Without the subjects that have hung so often that the campaign would wait for nothing else.
  [[nodiscard]] CasePlan plan(std::uint64_t index) const {
    CasePlan plan = plan_(index);
    std::erase_if(plan.subjects, [&](const Subject* subject) {
      return subject != plan.baseline && is_out(subject->name());
    });
    return plan;
  }
  /// How many subjects are out.
  [[nodiscard]] std::uint64_t generation() const { return out_; }
  /// Counts who hangs in the record of the next case.
  void count(CaseResult& record) {
    std::erase_if(record.subjects,
                  [&](const SubjectResult& subject) { return is_out(subject.subject); });
    for (const SubjectResult& subject : record.subjects)
      if (subject.verdict.outcome == Outcome::kDied && subject.verdict.reason.starts_with("hung ("))
        out_ += ++hangs_[subject.subject] == kMostHangs ? 1 : 0;
  }
  void print_who_is_out() const {
    for (const auto& [subject, hangs] : hangs_)
      if (hangs >= kMostHangs)
        print_error(
            fmt::format("{} hung in {} cases: it was left out of the rest", subject, hangs));
  }

  /// Throws FileError when a script cannot be written; `record` is whole all the same.
  void take(CaseResult& record) const {
    name_frames(record);
    std::optional<CasePlan> plan;
    for (SubjectResult& subject : record.subjects) {
      if (!options_.timings) subject.timings.clear();
      const auto log = std::exchange(subject.log, std::nullopt);
      if (!subject.verdict.failed()) continue;
      if (!plan) plan = plan_(record.index);
      if (!plan->repeat.empty()) subject.repeat = plan->repeat;
      if (log) write_script(file_name(record, subject, plan->setup.profile), *log, subject);
    }
  }

 private:
  static constexpr std::uint64_t kMostHangs = 3;
  [[nodiscard]] bool is_out(const std::string& subject) const {
    const auto found = hangs_.find(subject);
    return found != hangs_.end() && found->second >= kMostHangs;
  }
  void write_script(const std::string& name, const std::vector<std::string>& lines,
                    SubjectResult& subject) const {
    namespace fs = std::filesystem;
    constexpr std::size_t kMostWritten = std::size_t{256} << 20U;
    std::size_t bytes = 0;
    for (const std::string& line : lines) bytes += line.size() + 1;
    if (bytes > kMostWritten) {
      if (!subject.trace) subject.trace.emplace();
      subject.trace->push_back(fmt::format(
          "the script takes {} bytes, more than {}: it is not written", bytes, kMostWritten));
      return;
    }
    std::error_code failed;
    fs::create_directories(options_.repro_folder, failed);
    if (failed)
      throw FileError(
          fmt::format("{}: cannot make it: {}", options_.repro_folder, failed.message()));
    std::string path = (fs::path(options_.repro_folder) / name).string();
    write_text_file(path, fmt::format("{}\n", fmt::join(lines, "\n")));
    subject.repro = std::move(path);
  }

  const CampaignOptions& options_;
  const std::function<CasePlan(std::uint64_t)>& plan_;
  std::map<std::string, std::uint64_t> hangs_ = {};
  std::uint64_t out_ = 0;
};

}  // namespace

Campaign run_campaign(const RunHeader& header, const CampaignOptions& options,
                      const std::function<CasePlan(std::uint64_t)>& plan,
                      const std::function<void(const CaseResult&)>& seen) {
  Campaign campaign;
  std::optional<RunFile> file;
  const auto existing = options.resume      ? RunFile::Existing::kResumed
                        : options.overwrite ? RunFile::Existing::kReplaced
                                            : RunFile::Existing::kRefused;
  if (!options.output.empty()) file = must(RunFile::open(options.output, header, existing));
  Taking taking(options, plan);
  std::optional<std::uint64_t> total;
  if (options.cases != CampaignOptions::kEndless) total = options.cases;
  Progress progress("cases", total, options.seconds);
  const auto add = [&](CaseResult& record) {
    taking.count(record);
    const bool first = campaign.summary.failed() == 0;
    campaign.summary.add(record);
    if (first && campaign.summary.failed() > 0 && options.first_failure)
      progress.say_later(options.first_failure(campaign.summary));
    if (seen) seen(record);
  };
  if (file)
    for (CaseResult record : file->earlier()) add(record);
  const auto start = std::chrono::steady_clock::now();
  const auto in_time = [&] {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return options.seconds <= 0 || spent.count() < options.seconds;
  };
  const auto answer = [&](std::uint64_t index) {
    return message_of(index, taking.plan(index), options);
  };
  const auto isolated = [&](std::uint64_t index, const Death* first) {
    return packed(run_case_isolated(index, taking.plan(index),
                                    {.shrink_attempts = options.shrink_attempts,
                                     .shrink_time = options.shrink_time,
                                     .limits = options.limits,
                                     .first = first}));
  };
  const auto lost = [&](std::uint64_t index, const Death& death) {
    return packed(lost_case(index, death, plan(index).subjects));
  };
  const auto take = [&](std::uint64_t /*index*/, const std::string& text) {
    auto record = unpacked<CaseResult>(text);
    std::optional<FileError> fault;
    try {
      taking.take(record);
    } catch (const FileError& error) {
      fault = error;
    }
    progress.advance();
    add(record);
    if (fault) throw FileError(*fault);
    if (file) must(file->append(record));
    return in_time();
  };
  try {
    work_in_order(campaign.summary.cases(), options.cases, options.jobs, options.limits,
                  {.answer = answer,
                   .isolated = isolated,
                   .lost = lost,
                   .take = take,
                   .generation = [&] { return taking.generation(); },
                   .waiting = [&] { progress.advance(0); }});
    if (file) must(file->finish());
  } catch (const FileError& error) {
    if (campaign.summary.cases() == 0) throw;
    campaign.fault = error.what();
  }
  campaign.interrupted = interrupted();
  progress.clear();
  taking.print_who_is_out();
  return campaign;
}

}  // namespace kvo::tools
