// properties/contracts.hpp: the contracts of this tree.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "traces/io/embedded_file.hpp"

namespace kvo {

/// One row a contract; a new contract is its folders and one row.
[[nodiscard]] std::vector<ContractRow> contract_rows();

/// These and nothing else.
[[nodiscard]] const Contracts& contracts();

/// Their rule cases: reference/CONTRACT/cases/NAME.cases.
[[nodiscard]] std::span<const traces::EmbeddedFile> rule_case_files();

/// The log or the file of rule cases `path`; where there is no such file, that of
/// rule_case_files(). Errors   as LogReader::open
[[nodiscard]] traces::TraceResult<traces::LogReader> open_log(const std::string& path,
                                                              const Contracts& contracts);

}  // namespace kvo
