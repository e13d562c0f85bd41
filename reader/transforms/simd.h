// What the kernels of this folder share: target attributes for run-time dispatch, so that no file
// needs a global -march.
#pragma once

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes _mm512_undefined_epi32 in its own header for a use of an uninitialised value.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#define HR_X86 1
#define HR_AVX2 __attribute__((target("avx2,fma,bmi,bmi2,popcnt,lzcnt")))
#define HR_AVX512                              \
  __attribute__((                              \
      target("avx2,fma,bmi,bmi2,popcnt,lzcnt," \
             "avx512f,avx512bw,avx512dq,avx512vl")))
#define HR_INLINE inline __attribute__((always_inline))
#endif
