// The trainer's kernels for the instructions every CPU of the architecture has.
#define HR_KERNELS kScalarKernels
#define HR_TILE_ROWS 2
#define HR_TILE_VECTORS 2
#include "workloads/trainer/kernels-inl.h"
