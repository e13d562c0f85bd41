// The trainer's kernels for AVX2 and FMA (flags: ../CMakeLists.txt).
#define HR_KERNELS kAvx2Kernels
#define HR_TILE_ROWS 3
#define HR_TILE_VECTORS 1
#include "workloads/trainer/kernels-inl.h"
