// Marks functions that are compiled for the host and, by nvcc, for the device.
#pragma once

#if defined(__CUDACC__)
#define GROVE_ANYWHERE __host__ __device__
#else
#define GROVE_ANYWHERE
#endif
