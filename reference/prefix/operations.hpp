// reference/prefix/operations.hpp: the operations of contract `prefix`, all kinds.
#pragma once

#include "reference/prefix/blocks_operations.hpp"
#include "reference/prefix/radix_operations.hpp"
