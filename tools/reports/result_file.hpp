// tools/reports/result_file.hpp: what `--json` writes: a result beside what it was made by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json.hpp>

namespace kvo::tools {

/// The version of results and run files, which docs/schema/kvoracle.schema.json describes. Any
/// member that comes, goes or changes its meaning raises it.
inline constexpr std::int64_t kFormatVersion = 2;

/// The words of the command line, for results; of a --header its name alone. To be called once,
/// before any thread is started.
void set_command_words(int argc, const char* const* argv);

/// Writes a result as write_json_file does, behind the members that all results have:
/// format_version, result, command, environment. `result` is the definition of the schema that
/// describes it. Throws FileError.
void write_result(const std::string& path, std::string_view result,
                  const boost::json::object& members);

}  // namespace kvo::tools
