#include "tools/campaign.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <optional>

#include "tools/apart.hpp"
#include "tools/in_child.hpp"
#include "tools/progress.hpp"
#include "tools/usage.hpp"
#include "tools/workers.hpp"

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
  if (failed) return traces::error_at({folder}, "", "", "cannot make it: " + failed.message());
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

/// What a worker says of a case.
struct CaseAnswer {
  CaseRecord record;
  std::optional<std::string> fault = std::nullopt;  ///< why a failing script could not be written
};
BOOST_DESCRIBE_STRUCT(CaseAnswer, (), (record, fault))

CaseAnswer run_planned(std::uint64_t index, const CasePlan& plan, const CampaignOptions& options,
                       bool apart) {
  CaseAnswer answer;
  const auto keep = [&](const SubjectResult& subject, SubjectRecord& record) {
    auto path = write_repro(options.repro_folder, subject);
    if (path)
      record.repro = std::move(*path);
    else
      answer.fault = path.error().text();
  };
  if (apart) {
    answer.record = run_case_apart(index, plan, options.shrink_attempts, options.limits, keep);
  } else {
    const CaseResult result = run_case(plan, {.attempts = options.shrink_attempts});
    answer.record = record_of(index, result);
    for (std::size_t i = 0; i < result.subjects.size(); ++i)
      if (result.subjects[i].repro) keep(result.subjects[i], answer.record.subjects[i]);
  }
  for (SubjectRecord& subject : answer.record.subjects)
    if (failed(subject.outcome) && !plan.repeat.empty()) subject.repeat = plan.repeat;
  return answer;
}

}  // namespace

CaseRecord lost_record(std::uint64_t index, const Death& death) {
  CaseRecord record{.index = index,
                    .name = "case" + std::to_string(index),
                    .kind = death.subject != nullptr ? death.subject->kind->name() : "",
                    .law = ""};
  record.subjects.push_back(
      {.subject = death.subject != nullptr ? death.subject->name() : "harness",
       .outcome = Outcome::kDied,
       .problem = death.how,
       .alike = "died"});
  return record;
}

Campaign run_campaign(const RunHeader& header, const CampaignOptions& options,
                      const std::function<CasePlan(std::uint64_t)>& plan,
                      const std::function<void(const CaseRecord&)>& seen) {
  Campaign campaign;
  std::optional<RunFile> file;
  const auto existing = options.resume      ? RunFile::Existing::kResumed
                        : options.overwrite ? RunFile::Existing::kReplaced
                                            : RunFile::Existing::kRefused;
  if (!options.output.empty()) file = must(RunFile::open(options.output, header, existing));
  const auto add = [&](const CaseRecord& record) {
    campaign.summary.add(record);
    if (seen) seen(record);
  };
  if (file)
    for (const CaseRecord& record : file->earlier()) add(record);
  const auto start = std::chrono::steady_clock::now();
  const auto in_time = [&] {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return options.seconds <= 0 || spent.count() < options.seconds;
  };
  std::optional<std::uint64_t> total;
  if (options.cases != CampaignOptions::kEndless) total = options.cases;
  Progress progress("cases", total, options.seconds);
  const auto answer = [&](std::uint64_t index, bool apart) {
    return packed(run_planned(index, plan(index), options, apart));
  };
  const auto lost = [](std::uint64_t index, const Death& death) {
    return packed(CaseAnswer{lost_record(index, death)});
  };
  const auto take = [&](std::uint64_t /*index*/, const std::string& text) {
    const auto answered = unpacked<CaseAnswer>(text);
    progress.advance();
    add(answered.record);
    if (answered.fault) throw FileError(*answered.fault);
    if (file) must(file->append(answered.record));
    return in_time();
  };
  const Interruptible interruptible;
  try {
    work_in_order(
        campaign.summary.cases(), options.cases, options.jobs, options.limits,
        {.answer = answer, .lost = lost, .take = take, .waiting = [&] { progress.advance(0); }});
    if (file) must(file->finish());
  } catch (const FileError& error) {
    campaign.fault = error.what();
  }
  campaign.interrupted = interrupted();
  return campaign;
}

}  // namespace kvo::tools
