// The trainer's kernels for AVX-512 (flags: ../CMakeLists.txt).
#define HR_KERNELS kAvx512Kernels
#define HR_TILE_ROWS 8
#define HR_TILE_VECTORS 2
#include "workloads/trainer/kernels-inl.h"
