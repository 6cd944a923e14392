// tools/commands/conventions.hpp: the files of conventions that a command line names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>

#include "properties/campaign/contracts.hpp"
#include "tools/reports/verdict_report.hpp"

namespace kvo::tools {

/// Declares --conventions FILE ..
void declare_conventions(CLI::App& app, std::vector<std::string>& files);

/// The conventions of the files, by kind.
/// Throws FileError: as read_conventions. Throws UsageError: two files of one kind.
[[nodiscard]] std::map<const CacheKind*, Conventions> conventions_of(
    const Contracts& contracts, const std::vector<std::string>& files);

/// Gives subjects that are no references the conventions of their kind in the files, in the place
/// of those that they declare. The subjects are copies, which live until the program ends.
/// Throws FileError: as read_conventions. Throws UsageError: conventions of a kind of which there
/// is no such subject, or two files of one kind.
void apply_conventions(const Contracts& contracts, const std::vector<std::string>& files,
                       std::vector<Comparison>& comparisons);

/// apply_conventions for one subject.
[[nodiscard]] const Subject& with_conventions(const Contracts& contracts,
                                              const std::vector<std::string>& files,
                                              const Subject& subject);

/// The conventions of the subjects that have any, for reports.
[[nodiscard]] std::vector<ShownConventions> shown_conventions(
    const std::vector<Comparison>& comparisons);

/// Puts the conventions of the subjects into the options of a run file; nothing without any.
void add_conventions(boost::json::object& options, const std::vector<Comparison>& comparisons);

}  // namespace kvo::tools
