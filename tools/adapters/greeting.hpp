// tools/adapters/greeting.hpp: what an adapter or a library says of itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"

namespace kvo::tools {

/// What an adapter says of the caches of one kind.
KVO_RECORD(GreetedKind, (std::string, kind, "of cache: \"prefix.blocks\""),
           (std::vector<std::string>, operations, "that it has; empty: all",
            std::vector<std::string>(), may_be_absent),
           (std::vector<std::string>, conventions, "rows of a file of conventions",
            std::vector<std::string>(), may_be_absent))

/// What an adapter says of itself.
KVO_RECORD(Greeting, (std::int64_t, protocol, "version of the protocol", 1, may_be_absent),
           (std::string, system, "what is driven: \"vllm\""),
           (std::string, version, "of the system"),
           (std::vector<GreetedKind>, kinds, "whose caches it has"),
           (std::string, conventions_of, "the version whose conventions it has; empty: of this one",
            "", may_be_absent),
           (bool, memory, "whether it takes tensors in shared memory", false, may_be_absent),
           (bool, batches, "whether it takes several operations in a line", false, may_be_absent),
           (bool, stacks, "whether SIGUSR1 makes it write its stacks to standard error", false,
            may_be_absent))

/// Operations of a kind that a greeting leaves out.
[[nodiscard]] std::vector<std::string> missing_operations(const Greeting& greeting,
                                                          const CacheKind& kind);

/// A subject for each kind of a greeting, with its conventions and without a way to open it.
/// `name`: what greets, for errors and as the variant.
/// Throws  UsageError: a kind, an operation or a row of conventions that there is not.
[[nodiscard]] std::vector<Subject> greeted_subjects(const Contracts& contracts,
                                                    const Greeting& greeting,
                                                    const std::string& name);

}  // namespace kvo::tools
