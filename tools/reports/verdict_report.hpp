// tools/reports/verdict_report.hpp: a summary as people and programs read it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/json.hpp>

#include "properties/campaign/contracts.hpp"
#include "tools/reports/junit.hpp"
#include "tools/reports/summary.hpp"

namespace kvo::tools {

/// The conventions that a subject is judged under.
struct ShownConventions {
  std::string subject;
  std::string contract;
  std::vector<std::string> rows = {};  ///< as a file of conventions says them
};
BOOST_DESCRIBE_STRUCT(ShownConventions, (), (subject, contract, rows))

struct ReportOptions {
  bool timings = false;                 ///< times were measured: they are in JSON and JUnit
  bool timings_table = false;           ///< where it is brief, too: a row an operation and subject
  bool brief = false;                   ///< one screen: the verdict and a line a contract
  bool subjects = false;                ///< also where it is brief, the table of subjects
  bool figures = true;                  ///< the table of figures
  std::vector<std::string> notes = {};  ///< lines below the tables
  std::vector<std::string> convention_files = {};  ///< named in the repeat commands
  std::vector<ShownConventions> conventions = {};  ///< of subjects that have any
  Profile profile = Profile::kOriginal;            ///< named in the repeat commands
  bool laws = false;                    ///< a further table: what the verdict of each law rests on
  bool memory_matters = true;           ///< a case that runs out of memory makes the command fail
  std::string json;                     ///< also write JSON there; empty: no, "-": instead of text
  std::string junit;                    ///< the same for JUnit
  std::vector<JunitSuite> suites = {};  ///< of JUnit beside those of the subjects
  std::string_view result;              ///< the command; the JSON's definition in the schema

  /// Whether people are told on standard output.
  [[nodiscard]] bool text() const;
};

/// Says the first failure of a summary, of a campaign that goes on, with the command that repeats
/// it: lines, none where nothing failed. `contracts` must live as long.
[[nodiscard]] std::function<std::vector<std::string>(const Summary&)> first_failure_text(
    const Contracts& contracts, const ReportOptions& options);

/// Prints the table of subjects, the failures with the command that repeats each, and writes files.
/// `facts` are further members of the JSON. Returns the exit status that the summary calls for: 2
/// for a law that judged nothing, and where there was no case.
/// Throws OutputFailed, UsageError.
[[nodiscard]] int report(const Contracts& contracts, const Summary& summary,
                         const ReportOptions& options, boost::json::object facts = {});

}  // namespace kvo::tools
