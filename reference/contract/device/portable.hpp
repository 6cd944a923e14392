// reference/contract/device/portable.hpp: marks what compiles for the host and for a device.
#pragma once

#ifdef __CUDACC__
#define KVO_HD __host__ __device__
#else
#define KVO_HD
#endif
