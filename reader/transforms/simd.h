// What the kernels of this folder share: target attributes for run-time dispatch, so that no file
// needs a global -march.
#pragma once
#include <cstddef>
#include <cstdint>

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

namespace headrace::reader {

// How many of `n` elements come before the first one at a 64-byte border, so that the whole vectors
// stored after them do not straddle cache lines, which halves store bandwidth.
template <typename T>
size_t UnalignedHead(const T* data, size_t n) {
  const size_t bytes = (0 - reinterpret_cast<uintptr_t>(data)) & 63;
  return bytes / sizeof(T) < n ? bytes / sizeof(T) : n;
}

// Which lanes of a vector of 16 or 8 the last `left` elements fill.
inline __mmask16 FirstLanes16(size_t left) {
  return static_cast<__mmask16>(left >= 16 ? 0xffffu : (1u << left) - 1);
}
inline __mmask8 FirstLanes8(size_t left) {
  return static_cast<__mmask8>(left >= 8 ? 0xffu : (1u << left) - 1);
}

}  // namespace headrace::reader
#endif
