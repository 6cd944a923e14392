// tools/workers/corpus.hpp: a folder that keeps what campaigns found, for those that follow.
//
// It holds a log for each kind of failure, and a file of its own, corpus.json: which failures these
// logs show, the cases that reach states which no other of them reaches, and how far each campaign
// came. Logs that somebody else puts there are replayed, too, and left alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <dirent.h>

#include "properties/campaign/contracts.hpp"
#include "properties/runner/run_case.hpp"
#include "tools/reports/run_file.hpp"

namespace kvo::tools {

/// A log that the corpus itself put there.
struct CorpusScript {
  std::string file;  ///< its name in the folder
  std::string subject;
  std::vector<std::string> alike;  ///< what it showed: SubjectResult::group
};
BOOST_DESCRIBE_STRUCT(CorpusScript, (), (file, subject, alike))

/// A random case by what it is drawn from, and the states that it goes through.
struct CorpusCase {
  std::string kind;
  std::string law;
  Profile profile = Profile::kOriginal;
  std::uint64_t seed = 0;
  std::uint64_t index = 0;
  std::uint64_t nth = 0;  ///< of its kind under its law: scale_of
  std::vector<std::string> labels = {};
};
BOOST_DESCRIBE_STRUCT(CorpusCase, (), (kind, law, profile, seed, index, nth, labels))

/// What decides the cases of a campaign, and where it stopped.
struct CorpusCampaign {
  std::uint64_t seed = 0;
  Profile profile = Profile::kOriginal;
  std::uint64_t schedules = 1;
  std::vector<std::string> subjects = {};
  std::vector<std::string> laws = {};
  std::uint64_t next = 0;  ///< index of the first case that was not tried

  /// Campaigns that have this in common have the same cases.
  [[nodiscard]] auto what_decides() const {
    return std::tie(seed, profile, schedules, subjects, laws);
  }
};
BOOST_DESCRIBE_STRUCT(CorpusCampaign, (), (seed, profile, schedules, subjects, laws, next))

/// The content of corpus.json.
struct CorpusState {
  std::int64_t corpus = 1;  ///< version of this format
  std::string kvoracle;     ///< version of the command; another one may draw other cases
  std::vector<CorpusScript> scripts = {};
  std::vector<CorpusCase> cases = {};
  std::vector<CorpusCampaign> campaigns = {};
};
BOOST_DESCRIBE_STRUCT(CorpusState, (), (corpus, kvoracle, scripts, cases, campaigns))

/// What a campaign found that the corpus did not have.
struct CorpusFind {
  double seconds = 0;  ///< since the campaign began
  bool state = false;  ///< a state that matters; else a kind of failure
  std::string what;    ///< "provider.paged: a pool ran dry"
};

class Corpus {
 public:
  /// Opens a folder, or makes one, and locks it as long as this object lives. Warns of logs that
  /// cannot be read, which are left out, and of cases of another version of kvoracle, which are
  /// forgotten.
  /// Throws   UsageError: it is no folder. FileError: it cannot be written; another process has it
  ///          open; a log or corpus.json is no regular file inside of it; corpus.json is damaged or
  ///          of another format, and stays as it is.
  Corpus(const std::string& folder, const Contracts& contracts);

  /// What is to be replayed first: of the chosen kinds, laws and profile.
  [[nodiscard]] std::vector<CasePlan> replays(const std::vector<Comparison>& comparisons,
                                              const std::vector<const Law*>& laws,
                                              Profile profile) const;
  /// Where a campaign of these cases stopped; 0 where there was none.
  [[nodiscard]] std::uint64_t next_case(const CorpusCampaign& campaign) const;

  /// Takes note of a replayed case: what it shows is known. A failure that another script shows
  /// then names that one, and its own is removed.
  void replayed(CaseResult& record, Profile profile);
  /// The campaign begins: time is counted from here.
  void begin(const CorpusCampaign& campaign);
  /// Takes note of its next case, drawn with that index and number (CorpusCase), in the same way.
  /// Now and then the folder is brought up to date. Throws FileError.
  void found(CaseResult& record, std::uint64_t index, std::uint64_t nth);
  /// Leaves cases out that reach nothing more than others do, and brings the folder up to date.
  /// Throws FileError.
  void save();

  [[nodiscard]] const CorpusState& state() const { return state_; }
  [[nodiscard]] const std::vector<CorpusFind>& finds() const { return finds_; }
  /// Since begin().
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Unlock {
    void operator()(DIR* folder) const;
  };
  using StateKey = std::pair<std::string, std::string>;  // kind and label
  void check_entries();
  void read_state();
  void read_scripts(const Contracts& contracts);
  void keep_failure(const CaseResult& record, SubjectResult& subject, bool is_new);
  void keep_case(const CaseResult& record, std::uint64_t index, std::uint64_t nth);
  void thin_cases();

  const Contracts& contracts_;
  std::string folder_;
  std::unique_ptr<DIR, Unlock> lock_;
  CorpusState state_;
  std::vector<traces::Case> scripts_;  // all of the folder
  std::set<std::string> files_;        // logs that were there when it was opened
  std::set<StateKey> reached_;
  std::set<std::pair<std::string, std::string>> failures_;  // subject and what it showed
  std::vector<CorpusFind> finds_;
  CorpusCampaign campaign_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point saved_ = Clock::now();
};

}  // namespace kvo::tools
