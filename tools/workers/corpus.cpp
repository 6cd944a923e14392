#include "tools/workers/corpus.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/file.h>

#include "properties/campaign/conform.hpp"
#include "properties/campaign/random_case.hpp"
#include "properties/runner/led_reference.hpp"
#include "reference/contract/describe/parse_json.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/found_or_added.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
using traces::TraceResult;

constexpr std::int64_t kCorpusVersion = 1;
constexpr std::string_view kStateFile = "corpus.json";
constexpr std::chrono::seconds kBetweenSaves{10};
constexpr const char* kPlainLaw = "agrees_with_reference";

// The law that a log names; a plain comparison where it names none. Null: it is not known.
const Law* law_of(const Contracts& contracts, const traces::CaseHeader& header) {
  const bool plain = header.law.empty() || header.law == agreement().name();
  return contracts.find_law(plain ? kPlainLaw : header.law);
}

// As long as nothing is wrong; what was read before that stays.
TraceResult<void> read_cases(const std::string& path, const Contracts& contracts,
                             std::vector<traces::Case>& cases) {
  auto log = traces::LogReader::open(path, contracts.kind_finder());
  if (!log) return log.error();
  while (true) {
    auto next = log->next_whole_case();
    if (!next) return next.error();
    if (!*next) return {};
    traces::Case& read = **next;
    if (law_of(contracts, read.header) == nullptr)
      return traces::error_at({path, read.header.line}, "law", read.header.law, "is no known law");
    cases.push_back(std::move(read));
  }
}

std::vector<const Subject*> subjects_of(const Comparison& comparison) {
  std::vector<const Subject*> subjects{comparison.reference};
  subjects.insert(subjects.end(), comparison.subjects.begin(), comparison.subjects.end());
  return subjects;
}

CasePlan plan_of(const Contracts& contracts, const traces::Case& script, const Law& law,
                 const Comparison& comparison) {
  std::vector<Op> ops;
  for (const traces::Step& step : script.steps) ops.push_back(step.op);
  CasePlan plan{.kind = script.header.kind,
                .name = script.header.name,
                .note = script.header.note,
                .setup = kvo::setup_of(script.header, std::nullopt),
                .law = &law,
                .baseline = comparison.reference,
                .subjects = subjects_of(comparison),
                .reference_of = contracts.reference_finder(),
                .history = contracts.oracle_of(*script.header.kind),
                .ops = [ops = std::move(ops)] { return std::make_unique<ListedOps>(ops); }};
  if (!law.judges_reference()) std::erase(plan.subjects, plan.baseline);
  lead(plan);
  return plan;
}

bool among(const std::vector<const Law*>& laws, const Law& law, const CacheKind& kind) {
  return std::ranges::find(laws, &law) != laws.end() && law.applies_to(kind);
}

}  // namespace

Corpus::Corpus(const std::string& folder, const Contracts& contracts)
    : contracts_(contracts), folder_(folder) {
  check_outputs({{"--corpus", folder}}, {});
  std::error_code failed;
  if (fs::exists(folder, failed) && !fs::is_directory(folder, failed))
    throw UsageError(fmt::format("--corpus {}: is no folder", printable(folder)));
  fs::create_directories(folder, failed);
  if (failed) throw FileError(fmt::format("{}: {}", printable(folder), failed.message()));
  lock_.reset(opendir(folder.c_str()));
  if (!lock_) throw FileError(fmt::format("{}: {}", printable(folder), std::strerror(errno)));
  must(lock_or_refuse(dirfd(lock_.get()), folder));
  check_entries();
  state_.kvoracle = kVersion;
  read_state();
  read_scripts(contracts);
  for (const CorpusScript& script : state_.scripts)
    for (const std::string& alike : script.alike) failures_.emplace(script.subject, alike);
  save();  // what cannot be written is reported before hours are spent
}

void Corpus::Unlock::operator()(DIR* folder) const {
  (void)flock(dirfd(folder),
              LOCK_UN);  // a process that a subject left behind may have it open, too
  (void)closedir(folder);
}

// Anything else could be endless, or lead a script that is written out of the folder.
void Corpus::check_entries() {
  std::error_code failed;
  const fs::path inside = fs::canonical(folder_, failed);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, failed)) {
    const std::string name = entry.path().filename().string();
    const bool log = name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
    if (!log && name != kStateFile) continue;
    std::error_code none;
    const fs::path target = fs::canonical(entry.path(), none);
    if (none || !fs::is_regular_file(target, none) ||
        std::ranges::mismatch(inside, target).in1 != inside.end())
      throw FileError(fmt::format("{}: is no regular file in the corpus folder, and no link to one",
                                  printable(entry.path().string())));
    if (log) files_.insert(name);
  }
  if (failed) throw FileError(fmt::format("{}: {}", printable(folder_), failed.message()));
}

void Corpus::read_state() {
  const fs::path path = fs::path(folder_) / kStateFile;
  std::error_code none;
  if (!fs::exists(path, none)) return;
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const auto damaged = [&](const std::string& how) {
    return FileError(fmt::format(
        "{}: {}; without this file only known states and positions are lost, the scripts stay",
        printable(path.string()), how));
  };
  boost::system::error_code torn;
  const boost::json::value value = parse_json(text.str(), torn);
  if (torn || !value.is_object()) throw damaged("is not JSON, or damaged");
  const boost::json::value* version = value.get_object().if_contains("corpus");
  if (version == nullptr || !version->is_int64()) throw damaged("is not the file of a corpus");
  if (version->get_int64() != kCorpusVersion)
    throw damaged(fmt::format("corpus: {}: this kvoracle reads version {}", version->get_int64(),
                              kCorpusVersion));
  CorpusState read;
  JsonFault fault;
  if (!read_json(value, read, fault))
    throw damaged(fmt::format("{}: {}: {}", fault.field, printable(fault.value), fault.problem));
  if (read.kvoracle != kVersion) {
    print_error(
        fmt::format("{}: made by kvoracle {}, which may draw other cases: {} cases and {} "
                    "positions of campaigns are forgotten, the scripts stay",
                    printable(path.string()), printable(read.kvoracle), read.cases.size(),
                    read.campaigns.size()));
    read.cases.clear();
    read.campaigns.clear();
    read.kvoracle = kVersion;
  }
  state_ = std::move(read);
}

void Corpus::read_scripts(const Contracts& contracts) {
  for (const std::string& file : files_) {
    const std::string path = (fs::path(folder_) / file).string();
    if (const auto read = read_cases(path, contracts, scripts_); !read)
      print_error(fmt::format("{}; what follows there is left out", read.error().text()));
  }
  // Whoever removes a script wants its failure to be reported again.
  std::erase_if(state_.scripts,
                [&](const CorpusScript& script) { return !files_.contains(script.file); });
}

std::vector<CasePlan> Corpus::replays(const std::vector<Comparison>& comparisons,
                                      const std::vector<const Law*>& laws, Profile profile) const {
  std::vector<CasePlan> plans;
  for (const traces::Case& script : scripts_) {
    const auto chosen = std::ranges::find(comparisons, script.header.kind, &Comparison::kind);
    const Law& law = *law_of(contracts_, script.header);  // reading refused others
    if (chosen != comparisons.end() && among(laws, law, *script.header.kind) &&
        script.header.profile.value_or(Profile::kOriginal) == profile)
      plans.push_back(plan_of(contracts_, script, law, *chosen));
  }
  for (const CorpusCase& one : state_.cases) {
    const auto chosen = std::ranges::find_if(comparisons, [&](const Comparison& comparison) {
      return comparison.kind->name() == one.kind;
    });
    const Law* law = contracts_.find_law(one.law);
    if (chosen == comparisons.end() || law == nullptr || one.profile != profile ||
        !among(laws, *law, *chosen->kind) || contracts_.generator_of(*chosen->kind) == nullptr)
      continue;
    plans.push_back(random_case(contracts_, *law, subjects_of(*chosen), one.seed, one.index,
                                profile, scale_of(*law, one.nth)));
  }
  return plans;
}

std::uint64_t Corpus::next_case(const CorpusCampaign& campaign) const {
  for (const CorpusCampaign& known : state_.campaigns)
    if (known.what_decides() == campaign.what_decides()) return known.next;
  return 0;
}

void Corpus::replayed(CaseResult& record, Profile profile) {
  for (const std::string& label : record.labels) reached_.emplace(record.kind, label);
  // The case may go another way than it did when it was kept.
  for (CorpusCase& one : state_.cases)
    if (record.name == fmt::format("seed{}-case{}", one.seed, one.index) &&
        one.kind == record.kind && one.law == record.law && one.profile == profile &&
        !record.labels.empty())
      one.labels = record.labels;
  for (SubjectResult& subject : record.subjects)
    if (subject.verdict.failed()) keep_failure(record, subject, false);
}

void Corpus::begin(const CorpusCampaign& campaign) {
  campaign_ = campaign;
  begin_ = saved_ = Clock::now();
}

double Corpus::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Corpus::found(CaseResult& record, std::uint64_t index, std::uint64_t nth) {
  keep_case(record, index, nth);
  for (SubjectResult& subject : record.subjects)
    if (subject.verdict.failed()) keep_failure(record, subject, true);
  CorpusCampaign& own = found_or_added(state_.campaigns, campaign_, &CorpusCampaign::what_decides);
  own.next = std::max(own.next, index + 1);
  if (Clock::now() - saved_ >= kBetweenSaves) save();
}

void Corpus::keep_case(const CaseResult& record, std::uint64_t index, std::uint64_t nth) {
  bool more = false;
  for (const std::string& label : record.labels) {
    if (!reached_.emplace(record.kind, label).second) continue;
    more = true;
    finds_.push_back({seconds(), true, fmt::format("{}: {}", record.kind, label)});
  }
  if (more)
    state_.cases.push_back(
        {record.kind, record.law, campaign_.profile, campaign_.seed, index, nth, record.labels});
}

void Corpus::keep_failure(const CaseResult& record, SubjectResult& subject, bool is_new) {
  const std::string group = subject.group(record.law);
  const bool first = failures_.emplace(subject.subject, group).second;
  if (first && is_new)
    finds_.push_back(
        {seconds(), false,
         fmt::format("{} in case {}: {}", subject.subject, record.name, subject.verdict.text())});
  if (!subject.repro) return;
  const std::string file = fs::path(*subject.repro).filename().string();
  const auto known = std::ranges::find(state_.scripts, file, &CorpusScript::file);
  const auto shows = [&](const CorpusScript& script) {
    return script.subject == subject.subject &&
           std::ranges::find(script.alike, group) != script.alike.end();
  };
  const auto other = std::ranges::find_if(state_.scripts, shows);
  if (known != state_.scripts.end()) {
    if (!shows(*known)) known->alike.push_back(group);
  } else if (other == state_.scripts.end()) {
    state_.scripts.push_back({file, subject.subject, {group}});
  } else if (!files_.contains(file)) {
    std::error_code none;
    fs::remove(*subject.repro, none);
    subject.repro = (fs::path(folder_) / other->file).string();
  }
}

void Corpus::thin_cases() {
  std::map<std::pair<Profile, StateKey>, int> reached_by;
  const auto count = [&](const CorpusCase& one, int by) {
    for (const std::string& label : one.labels) reached_by[{one.profile, {one.kind, label}}] += by;
  };
  for (const CorpusCase& one : state_.cases) count(one, 1);
  std::erase_if(state_.cases, [&](const CorpusCase& one) {
    const bool needed = std::ranges::any_of(one.labels, [&](const std::string& label) {
      return reached_by[{one.profile, {one.kind, label}}] == 1;
    });
    if (!needed) count(one, -1);
    return !needed;
  });
}

void Corpus::save() {
  thin_cases();
  const std::string path = (fs::path(folder_) / kStateFile).string();
  write_json_file(path, write_json(state_));
  saved_ = Clock::now();
}

}  // namespace kvo::tools
