// traces/formats/csv_reader.hpp: traces with a row a request, CSV.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string_view>

#include "traces/formats/reader.hpp"
#include "traces/io/csv_rows.hpp"

namespace kvo::traces {

/// Names of the columns with the time of arrival, the prompt's tokens and the answer's.
using CsvColumns = std::array<std::string_view, 3>;

/// Microseconds from a cell of the first column.
using CsvArrival = std::function<TraceResult<std::int64_t>(Place place, std::string_view column,
                                                           std::string_view cell)>;

/// Whether a header has the columns of tokens.
[[nodiscard]] bool has_token_columns(std::string_view first_line, const CsvColumns& columns);

/// Begins to read a trace. `skips_failed`: rows without tokens of an answer are counted and passed
/// over. `columns` must outlive the reader. There are no block ids.
[[nodiscard]] TraceResult<std::unique_ptr<Reader>> open_csv(TextSource source,
                                                            const CsvColumns& columns,
                                                            CsvArrival arrival, bool skips_failed);

}  // namespace kvo::traces
