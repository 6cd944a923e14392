// reference/block_pool/subjects.hpp: the reference of each cache kind of contract `block_pool`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::block_pool {

/// One subject a kind, in the order in which kinds are listed.
[[nodiscard]] std::vector<Subject> references();

}  // namespace kvo::block_pool
