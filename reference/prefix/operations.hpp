// reference/prefix/operations.hpp: the operations of contract `prefix`, all kinds.
#pragma once

#include "reference/prefix/blocks.hpp"
#include "reference/prefix/radix.hpp"
