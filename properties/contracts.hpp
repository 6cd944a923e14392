// properties/contracts.hpp: the contracts of this tree.
#pragma once

#include <vector>

#include "properties/campaign/contracts.hpp"

namespace kvo {

/// One row a contract; a new contract is its folders and one row.
[[nodiscard]] std::vector<ContractRow> contract_rows();

/// These and nothing else.
[[nodiscard]] const Contracts& contracts();

}  // namespace kvo
