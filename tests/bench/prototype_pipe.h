// The rival of pipe_bench and whole_bench: the prototype pipeline this reader started from, as it
// was: trusted input, one zstd frame per stream, AVX-512, no framing, no nulls. Data are made in
// memory to a given shape. `whole` adds to reading, zstd and decoding what it did before
// (AES-128-CTR, a message per stream) and after them (SigridHash of all ids, clamp and a cheap
// logit of all dense values, transpose, copy into a buffer to send). Not part of the product.
#pragma once
#include <immintrin.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12's own AVX-512 header
#endif
#define PROTOTYPE_TARGET \
  __attribute__((target( \
      "bmi,bmi2,lzcnt,popcnt,avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")))

namespace headrace::prototype {

struct Shape {
  int sparse = 19, dense = 76;
  double mean_length = 26, coverage = 0.45;
  size_t rows = 4096;
  int level = 1;
  double min_ratio = 1;  // streams that shrink less stay as they are
  bool whole = false;
};
struct Times {
  double read = 0, aes = 0, zstd = 0, decode = 0, hash = 0, dense = 0, transpose = 0, send = 0;
  double total() const { return read + aes + zstd + decode + hash + dense + transpose + send; }
};

inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- data

struct Zipf {
  double s;
  uint64_t n;
  std::mt19937_64 g;
  uint64_t operator()() {
    const double u = std::generate_canonical<double, 53>(g), e = 1 - s;
    const double x = std::pow(u * (std::pow(static_cast<double>(n), e) - 1) + 1, 1 / e);
    const auto r = static_cast<uint64_t>(x);
    return r >= n ? n - 1 : r;
  }
};
inline uint64_t Mix(uint64_t k) {
  k ^= k >> 33, k *= 0xff51afd7ed558ccdULL, k ^= k >> 33, k *= 0xc4ceb9fe1a85ec53ULL;
  return k ^ k >> 33;
}
// 0: small categorical (zipf 1.1 over 16k); 1: zipf 1.05 over 100M scattered into 27 bits; 2: over
// 500M hashed to 63 bits.
inline std::vector<int64_t> MakeIds(int kind, size_t n, uint64_t seed) {
  std::vector<int64_t> v(n);
  Zipf z{kind == 0 ? 1.1 : 1.05,
         kind == 0   ? 16384u
         : kind == 1 ? 100000000u
                     : 500000000u,
         std::mt19937_64(seed)};
  for (int64_t& x : v)
    x = static_cast<int64_t>(kind == 0 ? z() : kind == 1 ? Mix(z()) % 134217728u : Mix(z()) >> 1);
  return v;
}
inline std::vector<int64_t> MakeLengths(size_t n, double mean, uint64_t seed) {
  std::mt19937_64 g(seed);
  std::lognormal_distribution<double> d(std::log(mean) - 0.5 * 0.8 * 0.8, 0.8);
  std::vector<int64_t> v(n);
  for (int64_t& x : v) x = std::max(1, static_cast<int>(d(g) + .5));
  return v;
}
inline std::vector<float> MakeDense(size_t n, uint64_t seed) {
  std::mt19937_64 g(seed);
  std::normal_distribution<double> d(0, 1);
  std::vector<float> v(n);
  int k = 0;
  for (float& x : v) {
    const int m = (k++ >> 14) % 4;
    const double r = d(g);
    x = static_cast<float>(m == 0   ? std::floor(std::exp(r * 2))
                           : m == 1 ? 1 / (1 + std::exp(-r))
                           : m == 2 ? std::round(r * 100) / 100
                                    : r);
  }
  return v;
}
using Bytes = std::vector<uint8_t>;
inline Bytes EncodeRle(const std::vector<int64_t>& v, bool is_signed) {
  Bytes o;
  const size_t n = v.size();
  size_t i = 0, literals = 0;
  const auto encode = [&](int64_t x) {
    uint64_t u = is_signed ? (static_cast<uint64_t>(x) << 1) ^ static_cast<uint64_t>(x >> 63)
                           : static_cast<uint64_t>(x);
    for (; u >= 128; u >>= 7) o.push_back(static_cast<uint8_t>(u | 128));
    o.push_back(static_cast<uint8_t>(u));
  };
  const auto flush = [&](size_t e) {
    while (literals < e) {
      const size_t k = std::min<size_t>(128, e - literals);
      o.push_back(static_cast<uint8_t>(256 - k));
      for (size_t j = 0; j < k; ++j) encode(v[literals + j]);
      literals += k;
    }
  };
  const auto step = [&](size_t k) {
    return static_cast<int64_t>(static_cast<uint64_t>(v[k + 1]) - static_cast<uint64_t>(v[k]));
  };
  while (i < n) {
    if (i + 2 < n && step(i) >= -128 && step(i) <= 127) {
      size_t r = 2;
      while (i + r < n && r < 130 && step(i + r - 1) == step(i)) ++r;
      if (r >= 3) {
        flush(i);
        o.push_back(static_cast<uint8_t>(r - 3));
        o.push_back(static_cast<uint8_t>(step(i)));
        encode(v[i]);
        i += r;
        literals = i;
        continue;
      }
    }
    ++i;
  }
  flush(n);
  return o;
}

// ---- kernels

PROTOTYPE_TARGET inline size_t DecodePext(const uint8_t* p, uint64_t* o) {
  uint64_t w;
  std::memcpy(&w, p, 8);
  const uint64_t t = ~w & 0x8080808080808080ull;
  if (t != 0) {
    *o = _pext_u64(w, (t ^ (t - 1)) & 0x7f7f7f7f7f7f7f7full);
    return (_tzcnt_u64(t) >> 3) + 1;
  }
  uint64_t v = _pext_u64(w, 0x7f7f7f7f7f7f7f7full) | static_cast<uint64_t>(p[8] & 0x7f) << 56;
  size_t used = 9;
  if (p[8] & 0x80) v |= static_cast<uint64_t>(p[used++] & 1) << 63;
  *o = v;
  return used;
}

template <bool ZZ>
PROTOTYPE_TARGET size_t DecodeAvx512(const uint8_t* in, size_t n, uint64_t* o) {
  const uint8_t* q = in;
  alignas(64) uint8_t steps[64];
  for (int i = 0; i < 64; ++i) steps[i] = static_cast<uint8_t>(i);
  const __m512i iota8 = _mm512_load_si512(steps);
  const __m512i bc = _mm512_set4_epi32(0x08080808, 0x08080808, 0, 0),
                k07 = _mm512_set1_epi64(0x0706050403020100ll);
  const __m512i mul1 = _mm512_set1_epi16(static_cast<short>(0x8001)),
                mul2 = _mm512_set1_epi32(0x40000001);
  const __m512i m7f = _mm512_set1_epi8(0x7f), ones = _mm512_set1_epi64(-1),
                one = _mm512_set1_epi64(1), lo32 = _mm512_set1_epi64(0xffffffffll);
  const auto zz = [&](__m512i w) PROTOTYPE_TARGET {
    return ZZ ? _mm512_xor_si512(_mm512_srli_epi64(w, 1),
                                 _mm512_sub_epi64(_mm512_setzero_si512(), _mm512_and_si512(w, one)))
              : w;
  };
  alignas(64) uint8_t sb[128], lb[128];
  size_t left = n;
  while (left) {
    const __m512i z0 = _mm512_loadu_si512(q);
    const uint64_t m = ~_mm512_movepi8_mask(z0);
    if (m == ~0ull && left >= 64) {
      for (int k = 0; k < 8; k++)
        _mm512_storeu_si512(
            o + 8 * k,
            zz(_mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q + 8 * k)))));
      o += 64, q += 64, left -= 64;
      continue;
    }
    const auto c = static_cast<unsigned>(_mm_popcnt_u64(m));
    const unsigned take = c < left ? c : static_cast<unsigned>(left);
    if (c <= 10) {
      uint64_t mm = m;
      unsigned st = 0;
      for (unsigned k = 0; k < take; k++) {
        const auto e = static_cast<unsigned>(_tzcnt_u64(mm));
        mm &= mm - 1;
        const unsigned L = e - st + 1;
        uint64_t w;
        uint16_t h;
        std::memcpy(&w, q + st, 8);
        std::memcpy(&h, q + st + 8, 2);
        const unsigned b1 = L > 8 ? 64 : L * 8;
        uint64_t v = _pext_u64(b1 == 64 ? w : _bzhi_u64(w, b1), 0x7f7f7f7f7f7f7f7full);
        v |= _pext_u64(_bzhi_u64(h, L > 8 ? (L - 8) * 8 : 0), 0x017full) << 56;
        o[k] = ZZ ? (v >> 1) ^ (0 - (v & 1)) : v;
        st = e + 1;
      }
      o += take, left -= take, q += st;
      continue;
    }
    const __m512i z1 = _mm512_loadu_si512(q + 64);
    const __m512i ends = _mm512_maskz_compress_epi8(m, iota8),
                  starts = _mm512_maskz_compress_epi8((m << 1) | 1, iota8);
    _mm512_store_si512(sb, starts);
    _mm512_store_si512(lb, _mm512_add_epi8(_mm512_sub_epi8(ends, starts), _mm512_set1_epi8(1)));
    const uint64_t cb = ~m, r2 = cb & (cb >> 1), r4 = r2 & (r2 >> 2), r8 = r4 & (r4 >> 4);
    for (unsigned k = 0; k < take; k += 8) {
      const __m512i st =
          _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(sb + k)));
      const __m512i ln =
          _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(lb + k)));
      const __m512i idx = _mm512_add_epi8(_mm512_shuffle_epi8(st, bc), k07);
      __m512i w = _mm512_and_si512(_mm512_permutex2var_epi8(z0, idx, z1), m7f);
      w = _mm512_andnot_si512(_mm512_sllv_epi64(ones, _mm512_slli_epi64(ln, 3)), w);
      w = _mm512_madd_epi16(_mm512_maddubs_epi16(mul1, w), mul2);
      w = _mm512_or_si512(_mm512_and_si512(w, lo32),
                          _mm512_slli_epi64(_mm512_srli_epi64(w, 32), 28));
      if (r8 != 0) {
        const __m512i x =
            _mm512_permutex2var_epi8(z0, _mm512_add_epi8(idx, _mm512_set1_epi8(8)), z1);
        const __mmask8 g8 = _mm512_cmpgt_epi64_mask(ln, _mm512_set1_epi64(8)),
                       g9 = _mm512_cmpgt_epi64_mask(ln, _mm512_set1_epi64(9));
        w = _mm512_or_si512(
            w, _mm512_or_si512(
                   _mm512_maskz_slli_epi64(g8, _mm512_and_si512(x, _mm512_set1_epi64(0x7f)), 56),
                   _mm512_maskz_slli_epi64(g9, _mm512_srli_epi64(x, 8), 63)));
      }
      _mm512_storeu_si512(o + k, zz(w));
    }
    o += take, left -= take;
    q += left ? 64 - _lzcnt_u64(m) : static_cast<unsigned>(lb[take - 1] + sb[take - 1]);
  }
  return static_cast<size_t>(q - in);
}

template <bool ZZ>
PROTOTYPE_TARGET size_t DecodeRle(const uint8_t* p, const uint8_t* e, int64_t* o) {
  int64_t* const o0 = o;
  while (p < e) {
    const auto c = static_cast<int8_t>(*p++);
    if (c >= 0) {
      const auto n = static_cast<size_t>(c) + 3;
      const int64_t dl = static_cast<int8_t>(*p++);
      uint64_t v;
      p += DecodePext(p, &v);
      const int64_t b =
          ZZ ? static_cast<int64_t>((v >> 1) ^ (0 - (v & 1))) : static_cast<int64_t>(v);
      for (size_t i = 0; i < n; i++) o[i] = b + static_cast<int64_t>(i) * dl;
      o += n;
    } else {
      const auto n = static_cast<size_t>(-c);
      p += DecodeAvx512<ZZ>(p, n, reinterpret_cast<uint64_t*>(o));
      o += n;
    }
  }
  return static_cast<size_t>(o - o0);
}

// ---- transforms

PROTOTYPE_TARGET inline __m512i MulHigh(__m512i a, __m512i b) {
  const __m512i m32 = _mm512_set1_epi64(0xffffffffll);
  const __m512i ah = _mm512_srli_epi64(a, 32), bh = _mm512_srli_epi64(b, 32);
  const __m512i ll = _mm512_mul_epu32(a, b), lh = _mm512_mul_epu32(a, bh),
                hl = _mm512_mul_epu32(ah, b), hh = _mm512_mul_epu32(ah, bh);
  const __m512i t = _mm512_add_epi64(hl, _mm512_srli_epi64(ll, 32));
  const __m512i u = _mm512_add_epi64(lh, _mm512_and_si512(t, m32));
  return _mm512_add_epi64(_mm512_add_epi64(hh, _mm512_srli_epi64(t, 32)), _mm512_srli_epi64(u, 32));
}

constexpr int64_t kHashMax = 10000019, kHashSalt = 77;

// floor(x / kHashMax) for 0 <= x < 2^63 is mulhi(magic, x) >> 23 (Granlund & Montgomery).
PROTOTYPE_TARGET inline void Hash(const int64_t* x, int64_t* o, size_t n) {
  const auto magic =
      static_cast<uint64_t>((static_cast<unsigned __int128>(1) << 87) / kHashMax) + 1;
  const __m512i k1 = _mm512_set1_epi64(static_cast<int64_t>(0x9ddfea08eb382d69ULL)),
                salt = _mm512_set1_epi64(kHashSalt),
                m = _mm512_set1_epi64(static_cast<int64_t>(magic)),
                max = _mm512_set1_epi64(kHashMax), ones = _mm512_set1_epi64(-1);
  for (size_t i = 0; i < n; i += 8) {  // buffers have room beyond n
    __m512i k = _mm512_loadu_si512(x + i);
    k = _mm512_add_epi64(_mm512_sub_epi64(ones, k), _mm512_slli_epi64(k, 21));
    k = _mm512_xor_si512(k, _mm512_srli_epi64(k, 24));
    k = _mm512_add_epi64(_mm512_add_epi64(k, _mm512_slli_epi64(k, 3)), _mm512_slli_epi64(k, 8));
    k = _mm512_xor_si512(k, _mm512_srli_epi64(k, 14));
    k = _mm512_add_epi64(_mm512_add_epi64(k, _mm512_slli_epi64(k, 2)), _mm512_slli_epi64(k, 4));
    k = _mm512_xor_si512(k, _mm512_srli_epi64(k, 28));
    k = _mm512_add_epi64(k, _mm512_slli_epi64(k, 31));
    __m512i a = _mm512_mullo_epi64(_mm512_xor_si512(k, salt), k1);
    a = _mm512_xor_si512(a, _mm512_srli_epi64(a, 47));
    __m512i b = _mm512_mullo_epi64(_mm512_xor_si512(salt, a), k1);
    b = _mm512_xor_si512(b, _mm512_srli_epi64(b, 47));
    const __m512i h = _mm512_mullo_epi64(b, k1), s = _mm512_srai_epi64(h, 63);
    const __m512i q =
        _mm512_xor_si512(s, _mm512_srli_epi64(MulHigh(m, _mm512_xor_si512(s, h)), 23));
    _mm512_storeu_si512(o + i, _mm512_sub_epi64(h, _mm512_mullo_epi64(q, max)));
  }
}

// Clamp and logit: the cost of them, not the accuracy.
PROTOTYPE_TARGET inline void ClampLogit(float* values, size_t n) {
  for (size_t i = 0; i < n; i += 16) {
    const __m512 p =
        _mm512_min_ps(_mm512_max_ps(_mm512_loadu_ps(values + i), _mm512_set1_ps(1e-6f)),
                      _mm512_set1_ps(.999999f));
    const __m512 x = _mm512_div_ps(p, _mm512_sub_ps(_mm512_set1_ps(1), p));
    const __m512 e = _mm512_getexp_ps(x),
                 m = _mm512_sub_ps(_mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src),
                                   _mm512_set1_ps(1));
    __m512 q = _mm512_set1_ps(0.07f);
    for (int k = 0; k < 7; k++) q = _mm512_fmadd_ps(q, m, _mm512_set1_ps(0.3f));
    _mm512_storeu_ps(values + i, _mm512_fmadd_ps(e, _mm512_set1_ps(.6931f), q));
  }
}

// ---- the pipeline

class Pipe {
 public:
  explicit Pipe(const Shape& shape) : shape_(shape) {
    for (int f = 0; f < shape.sparse + shape.dense; ++f) AddFeature(f);
    for (const Stream& s : streams_) {
      offsets_.push_back(file_.size());
      file_.insert(file_.end(), s.stored.begin(), s.stored.end());
    }
    io_ = Huge(file_.size() + 4096), raw_ = Huge(max_raw_ + 4096);
    values_ = reinterpret_cast<int64_t*>(Huge(ids_ * 8 + 65536));
    lengths_ = reinterpret_cast<uint32_t*>(
        Huge(static_cast<size_t>(shape.sparse) * shape.rows * 4 + 4096));
    dense_ =
        reinterpret_cast<float*>(Huge(static_cast<size_t>(shape.dense) * shape.rows * 4 + 4096));
    if (shape.whole) {
      plain_ = Huge(file_.size() + 4096);
      hashed_ = reinterpret_cast<int64_t*>(Huge(ids_ * 8 + 65536));
      row_major_ =
          reinterpret_cast<float*>(Huge(static_cast<size_t>(shape.dense) * shape.rows * 4 + 4096));
      sent_ = Huge(sent_bytes());
    }
    scratch_.resize(shape.rows + 256);
    bitmap_.resize(shape.rows / 8 + 64);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ZSTD_freeDCtx(context_);
    EVP_CIPHER_CTX_free(cipher_);
    for (uint8_t* p : {io_, raw_, plain_, sent_, reinterpret_cast<uint8_t*>(values_),
                       reinterpret_cast<uint8_t*>(hashed_), reinterpret_cast<uint8_t*>(lengths_),
                       reinterpret_cast<uint8_t*>(dense_), reinterpret_cast<uint8_t*>(row_major_)})
      free(p);
  }

  // One pass over the stripe; false when the ids do not come out in their number.
  PROTOTYPE_TARGET bool Run(Times* times) {
    const size_t rows = shape_.rows;
    double a = Now();
    std::memcpy(io_, file_.data(), file_.size());
    double b = Now();
    times->read += b - a;
    const uint8_t* const stored = shape_.whole ? plain_ : io_;
    if (shape_.whole) {
      for (size_t i = 0; i < streams_.size(); ++i)
        Crypt(io_ + offsets_[i], plain_ + offsets_[i], streams_[i].stored.size());
      times->aes += Now() - b;
    }
    int64_t* vp = values_;
    size_t f = 0, df = 0;
    for (size_t i = 0; i < streams_.size(); ++i) {
      const Stream& s = streams_[i];
      a = Now();
      const uint8_t* r = stored + offsets_[i];
      if (s.stored.size() != s.raw) {
        ZSTD_decompressDCtx(context_, raw_, max_raw_ + 64, r, s.stored.size());
        r = raw_;
      }
      b = Now();
      times->zstd += b - a;
      if (s.kind == kBitmap) {
        std::memcpy(bitmap_.data(), r, rows / 8);
      } else if (s.kind == kLengths) {
        DecodeRle<false>(r, r + s.raw, scratch_.data());
        uint32_t* o = lengths_ + f++ * rows;
        const int64_t* v = scratch_.data();
        for (size_t k = 0; k < rows; k += 8) {
          const uint8_t m = bitmap_[k >> 3];
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(o + k),
                              _mm512_cvtepi64_epi32(_mm512_maskz_expandloadu_epi64(m, v)));
          v += _mm_popcnt_u32(m);
        }
      } else if (s.kind == kIds) {
        vp += DecodeRle<true>(r, r + s.raw, vp);
      } else {
        const auto* v = reinterpret_cast<const uint8_t*>(r);
        float* o = dense_ + df++ * rows;
        for (size_t k = 0; k < rows; k += 16) {
          uint16_t m;
          std::memcpy(&m, bitmap_.data() + k / 8, 2);
          _mm512_storeu_ps(o + k, _mm512_maskz_expandloadu_ps(m, v));
          v += 4 * static_cast<unsigned>(_mm_popcnt_u32(m));
        }
      }
      times->decode += Now() - b;
    }
    if (shape_.whole) Finish(times);
    return static_cast<size_t>(vp - values_) == ids_;
  }

  size_t stored_bytes() const { return file_.size(); }
  size_t raw_bytes() const { return total_raw_; }
  size_t ids() const { return ids_; }
  size_t sent_bytes() const {
    return ids_ * 8 + static_cast<size_t>(shape_.sparse + shape_.dense) * shape_.rows * 4;
  }
  const Shape& shape() const { return shape_; }

 private:
  enum Kind { kBitmap, kLengths, kIds, kFloats };
  struct Stream {
    Kind kind;
    Bytes stored;
    size_t raw;
  };

  // In counter mode both ways are one.
  void Crypt(const uint8_t* from, uint8_t* to, size_t size) {
    static constexpr uint8_t kKey[16] = {1}, kIv[16] = {2};
    int written = 0;
    EVP_DecryptInit_ex(cipher_, keyed_ ? nullptr : EVP_aes_128_ctr(), nullptr,
                       keyed_ ? nullptr : kKey, kIv);
    keyed_ = true;
    EVP_DecryptUpdate(cipher_, to, &written, from, static_cast<int>(size));
  }

  // From decoded values to a sent batch.
  PROTOTYPE_TARGET void Finish(Times* times) {
    const size_t rows = shape_.rows, columns = static_cast<size_t>(shape_.dense);
    double a = Now();
    Hash(values_, hashed_, ids_);
    double b = Now();
    times->hash += b - a;
    ClampLogit(dense_, columns * rows);
    a = Now();
    times->dense += a - b;
    for (size_t r0 = 0; r0 < rows; r0 += 16)
      for (size_t c0 = 0; c0 + 16 <= columns; c0 += 16)
        for (size_t r = r0; r < r0 + 16; r++) {
          float* q = row_major_ + r * columns + c0;
          const float* v = dense_ + c0 * rows + r;
          for (size_t k = 0; k < 16; k++) q[k] = v[k * rows];
        }
    b = Now();
    times->transpose += b - a;
    const size_t lists = static_cast<size_t>(shape_.sparse) * rows * 4;
    std::memcpy(sent_, hashed_, ids_ * 8);
    std::memcpy(sent_ + ids_ * 8, lengths_, lists);
    std::memcpy(sent_ + ids_ * 8 + lists, row_major_, columns * rows * 4);
    asm volatile("" : : "r"(sent_) : "memory");
    times->send += Now() - b;
  }

  static uint8_t* Huge(size_t n) {
    n = (n + (2 << 20) - 1) & ~static_cast<size_t>((2 << 20) - 1);
    void* p = nullptr;
    if (posix_memalign(&p, 2 << 20, n) != 0) abort();
    madvise(p, n, MADV_HUGEPAGE);
    std::memset(p, 1, n);
    return static_cast<uint8_t*>(p);
  }

  void Add(Kind kind, const Bytes& plain) {
    Stream s{kind, Bytes(ZSTD_compressBound(plain.size())), plain.size()};
    const size_t n =
        ZSTD_compress(s.stored.data(), s.stored.size(), plain.data(), plain.size(), shape_.level);
    if (static_cast<double>(n) * shape_.min_ratio >= static_cast<double>(plain.size())) {
      s.stored = plain;
    } else {
      s.stored.resize(n);
    }
    if (shape_.whole) {
      const Bytes clear = s.stored;
      Crypt(clear.data(), s.stored.data(), clear.size());
    }
    total_raw_ += s.raw;
    max_raw_ = std::max(max_raw_, s.raw);
    streams_.push_back(std::move(s));
  }

  void AddFeature(int f) {
    std::mt19937_64 g(static_cast<uint64_t>(f));
    Bytes bits(shape_.rows / 8);
    size_t present = 0;
    for (size_t r = 0; r < shape_.rows / 8 * 8; ++r) {
      if (static_cast<double>(g() % 1000) >= shape_.coverage * 1000) continue;
      bits[r >> 3] |= static_cast<uint8_t>(1 << (r & 7));
      ++present;
    }
    Add(kBitmap, bits);
    const auto seed = static_cast<uint64_t>(f);
    if (f >= shape_.sparse) {
      const std::vector<float> d = MakeDense(present, seed);
      const auto* p = reinterpret_cast<const uint8_t*>(d.data());
      return Add(kFloats, Bytes(p, p + 4 * d.size()));
    }
    const std::vector<int64_t> lengths = MakeLengths(present, shape_.mean_length, seed);
    size_t total = 0;
    for (const int64_t x : lengths) total += static_cast<size_t>(x);
    Add(kLengths, EncodeRle(lengths, false));
    Add(kIds, EncodeRle(MakeIds(f % 10 < 3 ? 0 : f % 10 < 8 ? 1 : 2, total, seed), true));
    ids_ += total;
  }

  Shape shape_;
  std::vector<Stream> streams_;
  std::vector<size_t> offsets_;
  Bytes file_, bitmap_;
  std::vector<int64_t> scratch_;
  size_t total_raw_ = 0, max_raw_ = 0, ids_ = 0;
  uint8_t *io_ = nullptr, *raw_ = nullptr, *plain_ = nullptr, *sent_ = nullptr;
  int64_t *values_ = nullptr, *hashed_ = nullptr;
  uint32_t* lengths_ = nullptr;
  float *dense_ = nullptr, *row_major_ = nullptr;
  bool keyed_ = false;
  EVP_CIPHER_CTX* cipher_ = EVP_CIPHER_CTX_new();
  ZSTD_DCtx* context_ = ZSTD_createDCtx();
};

}  // namespace headrace::prototype
