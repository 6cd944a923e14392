// properties/campaign/random_script.hpp: the generators as RapidCheck sees them.
#pragma once

#include <ostream>

#include <rapidcheck.h>

#include "properties/campaign/random_case.hpp"

namespace kvo {

/// A drawn script with the case it belongs to.
struct RandomScript {
  CasePlan plan;
  Script script;
};

/// Prints the operations, one log line each.
inline void showValue(const RandomScript& random, std::ostream& out) {  // NOLINT: RapidCheck's name
  for (const Op& op : random.script) out << "\n  " << op_text(op);
}

/// Scripts of `law` for `subject`, as the answers of its reference lead to them; shrunk by leaving
/// operations out and making their numbers smaller.
[[nodiscard]] rc::Gen<RandomScript> random_scripts(const Contracts& contracts, const Law& law,
                                                   const Subject& subject, Profile profile);

}  // namespace kvo
