// reference/contract/subject/conventions.hpp: in what a cache lawfully differs from its contract.
//
// Caches refuse the same calls with other classes of errors, and carry out calls that no engine
// makes. A convention says so, one row each; what it does not say is compared as ever. Conventions
// are a closed list: contents of rows, counts and order are not in it. Where several errors apply
// to a call, there may be several rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"

namespace kvo {

/// How an operation that the rules refuse may end in a cache.
KVO_RECORD(RefusalConvention, (std::string, operation, "name of the operation"),
           (std::string, wanted, "code of the error that the rules give"),
           (std::string, because, "text of that error, numbers as #; empty: any"),
           (std::optional<std::string>, given,
            "code that the cache gives; absent: it carries the operation out"))

/// The conventions of a cache.
KVO_RECORD_WITH((bool any() const { return copies || !refusals.empty(); }), Conventions,
                (std::vector<RefusalConvention>, refusals, "how refused operations may end"),
                (bool, copies, "whether results are copies: addresses are not promised"))

/// The text of an error with each number as '#'.
[[nodiscard]] std::string because_of(const Error& error);

/// Whether a cache may answer `given`, a code, or carry the operation out where that is absent, in
/// the place of an error of the rules.
[[nodiscard]] bool may_answer(const Conventions& conventions, std::string_view operation,
                              const Error& wanted, const std::optional<std::string>& given);

/// `got` as a cache without conventions would have answered where conventions allow the answer.
[[nodiscard]] Observation as_promised(const Conventions& conventions, const OpKind& operation,
                                      const Observation& want, Observation got);

}  // namespace kvo
