// properties/views/readings.hpp: laws that hold one way to read a cache against another.
#pragma once

#include "properties/campaign/metamorphic.hpp"

namespace kvo::views {

/// Views, packed views and contiguous rows of a layer show the same tokens (MK-21, MK-22), and so
/// do the views of an append (MK-15).
[[nodiscard]] const MetamorphicLaw& readings_agree();
/// A cache whose block is as long as its sequence, the contiguous one of MK-9, shows the same.
[[nodiscard]] const MetamorphicLaw& paging_does_not_show();

}  // namespace kvo::views
