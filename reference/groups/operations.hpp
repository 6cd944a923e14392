// reference/groups/operations.hpp: the operations of contract `groups`, all kinds.
#pragma once

#include "reference/groups/cache.hpp"
#include "reference/groups/plan.hpp"
