// Rates of one thread at what readers do to every byte: decompress, hash, decrypt. The libraries
// are those of the reference reader.
#include <fmt/format.h>
#include <libdeflate.h>
#include <lz4.h>
#include <openssl/evp.h>
#include <snappy.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "base/clock.h"
#include "probes/calibration/calibration.h"

namespace headrace::probes {
namespace {

constexpr size_t kBlockBytes = 256 << 10, kNumBlocks = 16;
constexpr size_t kHashBytes = 64 << 10;

// Like a column of a recommendation table: ids of a skewed distribution, four bytes each, which
// compress to about half.
std::string SyntheticColumn(size_t bytes) {
  std::mt19937_64 random(20260101);
  std::string data;
  while (data.size() < bytes) {
    const double u = std::generate_canonical<double, 53>(random);
    const auto id = static_cast<uint32_t>(std::min(4e9, std::pow(1 - u, -1.6)));
    data.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  data.resize(bytes);
  return data;
}

struct Codec {
  const char* name;
  std::function<std::string(const std::string&)> compress;  // "" if refused
  std::function<bool(const std::string& packed, char* out, size_t size)> decompress;
};

std::vector<Codec> Codecs() {
  std::vector<Codec> codecs;
  const std::shared_ptr<ZSTD_DCtx> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  codecs.push_back(
      {"zstd",
       [](const std::string& data) {
         std::string packed(ZSTD_compressBound(data.size()), '\0');
         const size_t n = ZSTD_compress(packed.data(), packed.size(), data.data(), data.size(), 3);
         packed.resize(ZSTD_isError(n) ? 0 : n);
         return packed;
       },
       [context](const std::string& packed, char* out, size_t size) {
         return ZSTD_decompressDCtx(context.get(), out, size, packed.data(), packed.size()) == size;
       }});
  codecs.push_back({"lz4",
                    [](const std::string& data) {
                      const int size = static_cast<int>(data.size());
                      std::string packed(static_cast<size_t>(LZ4_compressBound(size)), '\0');
                      const int n = LZ4_compress_default(data.data(), packed.data(), size,
                                                         static_cast<int>(packed.size()));
                      packed.resize(static_cast<size_t>(std::max(n, 0)));
                      return packed;
                    },
                    [](const std::string& packed, char* out, size_t size) {
                      return LZ4_decompress_safe(packed.data(), out,
                                                 static_cast<int>(packed.size()),
                                                 static_cast<int>(size)) == static_cast<int>(size);
                    }});
  codecs.push_back({"snappy",
                    [](const std::string& data) {
                      std::string packed;
                      snappy::Compress(data.data(), data.size(), &packed);
                      return packed;
                    },
                    [](const std::string& packed, char* out, size_t) {
                      return snappy::RawUncompress(packed.data(), packed.size(), out);
                    }});
  const std::shared_ptr<libdeflate_decompressor> inflater(libdeflate_alloc_decompressor(),
                                                          libdeflate_free_decompressor);
  codecs.push_back(
      {"zlib",
       [](const std::string& data) {
         const std::shared_ptr<libdeflate_compressor> deflater(libdeflate_alloc_compressor(6),
                                                               libdeflate_free_compressor);
         std::string packed(libdeflate_zlib_compress_bound(deflater.get(), data.size()), '\0');
         packed.resize(libdeflate_zlib_compress(deflater.get(), data.data(), data.size(),
                                                packed.data(), packed.size()));
         return packed;
       },
       [inflater](const std::string& packed, char* out, size_t size) {
         return libdeflate_zlib_decompress(inflater.get(), packed.data(), packed.size(), out, size,
                                           nullptr) == LIBDEFLATE_SUCCESS;
       }});
  return codecs;
}

// Bytes a second of a body that handles `bytes`, run as often as fits into `limit_ns`.
template <typename Body>
double Rate(size_t bytes, int64_t limit_ns, Body body) {
  const int64_t begin = MonotonicNs();
  int64_t now = begin, rounds = 0;
  do {
    body();
    rounds++;
    now = MonotonicNs();
  } while (now - begin < limit_ns);
  return static_cast<double>(bytes) * static_cast<double>(rounds) /
         (static_cast<double>(std::max<int64_t>(1, now - begin)) * 1e-9);
}

Ceiling RateOf(const char* metric, const char* subject, int64_t size) {
  Ceiling ceiling;
  ceiling.metric = metric;
  ceiling.unit = "B/s";
  ceiling.subject = subject;
  ceiling.threads_count = 1;
  ceiling.size_bytes = size;
  return ceiling;
}

void CalibrateCodec(const CalibrationOptions& options, const Codec& codec,
                    const std::string& column, Calibration* out) {
  std::vector<std::string> packed;
  size_t packed_bytes = 0;
  for (size_t i = 0; i < kNumBlocks; i++) {
    packed.push_back(codec.compress(column.substr(i * kBlockBytes, kBlockBytes)));
    packed_bytes += packed.back().size();
  }
  std::string block(kBlockBytes, '\0');
  bool sound = true;
  for (size_t i = 0; i < kNumBlocks && sound; i++) {
    sound = codec.decompress(packed[i], block.data(), block.size()) &&
            column.compare(i * kBlockBytes, kBlockBytes, block) == 0;
  }
  if (!sound) {
    out->skips.push_back({fmt::format("codec {}", codec.name), "a round trip changed the data",
                          "another build of the library"});
    return;
  }
  Ceiling ceiling = RateOf("decompress_bytes_per_s", codec.name, kBlockBytes);
  ceiling.note =
      fmt::format("decompressed bytes; compressed to {:.2f} of their size",
                  static_cast<double>(packed_bytes) / static_cast<double>(column.size()));
  Repeat(
      ceiling, true, options.part_ns / 4,
      [&] {
        return Rate(column.size(), options.part_ns / 40, [&] {
          for (const std::string& p : packed) codec.decompress(p, block.data(), block.size());
        });
      },
      out);
}

void CalibrateCipher(const CalibrationOptions& options, const char* name, const EVP_CIPHER* cipher,
                     Calibration* out) {
  const std::shared_ptr<EVP_CIPHER_CTX> context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const std::string from(kHashBytes, 'x');
  std::string to(kHashBytes + 64, '\0');
  const unsigned char key[32] = {1}, vector[16] = {2};
  const auto* in = reinterpret_cast<const unsigned char*>(from.data());
  auto* result = reinterpret_cast<unsigned char*>(to.data());
  bool works = context != nullptr;
  const auto decrypt = [&] {
    int n = 0;
    works = works && EVP_DecryptInit_ex(context.get(), cipher, nullptr, key, vector) == 1 &&
            EVP_DecryptUpdate(context.get(), result, &n, in, static_cast<int>(from.size())) == 1;
  };
  decrypt();
  if (!works) {
    out->skips.push_back({fmt::format("cipher {}", name), "EVP_DecryptUpdate refuses",
                          "an OpenSSL with this cipher"});
    return;
  }
  Repeat(
      RateOf("decrypt_bytes_per_s", name, kHashBytes), true, options.part_ns / 6,
      [&] { return Rate(kHashBytes, options.part_ns / 60, decrypt); }, out);
}

}  // namespace

void CalibrateCodecs(const CalibrationOptions& options, Calibration* out) {
  const std::string column = SyntheticColumn(kBlockBytes * kNumBlocks);
  double fraction = 0;
  for (const Codec& codec : Codecs()) {
    if (options.interrupted && options.interrupted()) return;
    if (options.progress) options.progress(fraction, fmt::format("codec {}", codec.name));
    fraction += 0.15;
    CalibrateCodec(options, codec, column, out);
  }
  if (options.progress) options.progress(fraction, "hash and cipher");
  uint64_t kept = 0;
  const auto hash = [&](const char* name, auto function) {
    Repeat(
        RateOf("hash_bytes_per_s", name, kHashBytes), true, options.part_ns / 6,
        [&] {
          return Rate(kHashBytes, options.part_ns / 60,
                      [&] { kept += function(column.data(), kHashBytes); });
        },
        out);
  };
  hash("xxh3-64", [](const char* data, size_t size) { return XXH3_64bits(data, size); });
  hash("xxh64", [](const char* data, size_t size) { return XXH64(data, size, 0); });
  asm volatile("" ::"r"(kept));
  CalibrateCipher(options, "aes-128-ctr", EVP_aes_128_ctr(), out);
  CalibrateCipher(options, "aes-256-gcm", EVP_aes_256_gcm(), out);
}

}  // namespace headrace::probes
