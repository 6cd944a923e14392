// tools/kvo_main.hpp: the whole command, for a program of one's own.
#pragma once

#include <vector>

#include "properties/campaign/contracts.hpp"

namespace kvo {

/// Every command of `kvoracle` with its crash guard, over the contracts of this tree, and beside
/// them caches of one's own (`subjects`) and whole contracts of one's own. To be returned from
/// main. Link kvoracle::allocation_hook, too, or no allocation can be made to fail.
/// Returns  the exit status of the command line (docs/command.md).
[[nodiscard]] int main(int argc, char** argv, std::vector<Subject> subjects = {},
                       std::vector<ContractRow> contracts = {});

}  // namespace kvo
