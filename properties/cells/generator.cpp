// Random cases for the caches of contract cells.
#include <utility>

#include "properties/contract_parts.hpp"

namespace kvo::cells {

std::vector<Generator> generators() {
  std::vector<Generator> all{meta_generator()};
  for (Generator& one : kv_generators()) all.push_back(std::move(one));
  all.push_back(recurrent_generator());
  return all;
}

}  // namespace kvo::cells
