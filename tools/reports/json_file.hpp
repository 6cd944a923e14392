// tools/reports/json_file.hpp: results for programs, as JSON that is the same for the same results.
#pragma once

#include <string>

#include <boost/json.hpp>

namespace kvo::tools {

/// Indented by two; lists and objects of plain values that fit stand on one line. Members keep
/// their order; numbers are in the shortest form that reads back, without a fraction if whole, and
/// null if not finite. What is no UTF-8 in strings is replaced. Ended by LF.
[[nodiscard]] std::string json_text(const boost::json::value& value);

/// Writes json_text to `path`, whole or not at all, or to standard output for "-".
/// Throws FileError when the file cannot be written.
void write_json_file(const std::string& path, const boost::json::value& value);

}  // namespace kvo::tools
