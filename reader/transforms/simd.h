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
             "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#define HR_AVX512_IFMA                         \
  __attribute__((                              \
      target("avx2,fma,bmi,bmi2,popcnt,lzcnt," \
             "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512ifma")))
#define HR_INLINE inline __attribute__((always_inline))

namespace headrace::reader {

// How many of `n` elements come before the first one at a 64-byte border, so that the whole vectors
// stored after them do not straddle cache lines, which halves store bandwidth.
template <typename T>
size_t UnalignedHead(const T* data, size_t n) {
  const size_t bytes = (0 - reinterpret_cast<uintptr_t>(data)) & 63;
  return bytes / sizeof(T) < n ? bytes / sizeof(T) : n;
}

// Asks for the memory that a kernel working its way up in place comes to 2 KiB from now. Long
// kernels keep too few loads under way, and hardware prefetchers need not help: SigridHash over
// memory that was not in the cache took 3.6 ns an id without, 1.2 with this, the same as within it.
HR_INLINE void PrefetchAhead(const void* place) {
  _mm_prefetch(static_cast<const char*>(place) + 2048, _MM_HINT_T0);
}

// Which lanes of a vector of 16 or 8 the last `left` elements fill.
inline __mmask16 FirstLanes16(size_t left) {
  return static_cast<__mmask16>(left >= 16 ? 0xffffu : (1u << left) - 1);
}
inline __mmask8 FirstLanes8(size_t left) {
  return static_cast<__mmask8>(left >= 8 ? 0xffu : (1u << left) - 1);
}

// As AVX2 wants it for masked loads and stores of 32-bit elements.
HR_AVX2 HR_INLINE __m256i FirstLanesMask8(size_t left) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(left >= 8 ? 8 : left)), lane);
}

// Whether AVX-512 kernels may use 52-bit multiplications, which not every CPU with AVX-512 has.
inline bool HasIfma() {
  static const bool has = __builtin_cpu_supports("avx512ifma");
  return has;
}

// Each 64-bit lane rotated right by kBits. CPUs with two 512-bit ports do shifts and
// multiplications on one of them and this on the other: a kernel bound by the first gains by moving
// shifts to the second.
template <int kBits>
HR_AVX512 HR_INLINE __m512i RotateRight(__m512i x) {
  constexpr auto kByte = [](int i) { return static_cast<int64_t>((kBits + 8 * i) % 64) << 8 * i; };
  constexpr int64_t kFrom =
      kByte(0) | kByte(1) | kByte(2) | kByte(3) | kByte(4) | kByte(5) | kByte(6) | kByte(7);
  return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(kFrom), x);
}

// x ^ (x >> kBits) without a shift.
template <int kBits>
HR_AVX512 HR_INLINE __m512i XorShift(__m512i x) {
  constexpr int kXorAnd = 0x78;  // a ^ (b & c)
  const __m512i kept = _mm512_set1_epi64(static_cast<int64_t>(~uint64_t{0} >> kBits));
  return _mm512_ternarylogic_epi64(x, RotateRight<kBits>(x), kept, kXorAnd);
}

}  // namespace headrace::reader
#endif
