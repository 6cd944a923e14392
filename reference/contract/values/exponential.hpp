// reference/contract/values/exponential.hpp: e to the power of x, the same on every machine.
//
// The standard library's differs in its last bits from one library to the next, and within one
// library between processors with and without fused multiply-add. A choice that hangs on such a
// bit would differ too.
#pragma once

namespace kvo {

/// e^x by additions and multiplications in a fixed order, at most one unit in the last place from
/// the true value. NaN gives the one quiet NaN without sign, below the smallest subnormal 0.
/// Source  argument reduction by two-part ln 2: Cody and Waite, Software Manual for the Elementary
///         Functions, 1980; its constants as in fdlibm.
[[nodiscard]] double exponential(double x);

}  // namespace kvo
