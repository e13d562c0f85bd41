// Decrypting chunks: ChunkCipher beside OpenSSL called by hand on the same bytes, by cipher and
// chunk size.
//
//   build/crypto_bench --benchmark_repetitions=7 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <vector>

#include "base/check.h"
#include "reader/dwrf/crypto/cipher.h"

namespace headrace::reader::dwrf {
namespace {

constexpr size_t kTotalBytes = 4 << 20;  // more than a core's level 2 cache, as a stripe is

// Chunks of one size, encrypted.
struct Chunks {
  Chunks(Cipher which, size_t size) : cipher(which), chunk_bytes(size) {
    std::vector<uint8_t> plain(size, 7);
    ChunkCipher encrypting(cipher, key);
    stored_bytes = size + encrypting.tag_bytes();
    bytes.resize(kTotalBytes / size * stored_bytes);
    for (uint32_t i = 0; i < count(); ++i) encrypting.Encrypt(PlaceOf(i), plain, at(i));
    out.resize(stored_bytes);
  }
  uint32_t count() const { return static_cast<uint32_t>(kTotalBytes / chunk_bytes); }
  uint8_t* at(uint32_t i) { return bytes.data() + i * stored_bytes; }
  static ChunkPlace PlaceOf(uint32_t i) { return {1, 2, i, 3, 4, 1, true}; }

  Cipher cipher;
  size_t chunk_bytes, stored_bytes = 0;
  SecretKey key = SecretKey::Random(KeyBytes(cipher));
  std::vector<uint8_t> bytes, out;
};

void Ours(benchmark::State& state) {
  Chunks chunks(static_cast<Cipher>(state.range(0)), static_cast<size_t>(state.range(1)));
  ChunkCipher cipher(chunks.cipher, chunks.key);
  for (auto _ : state) {
    for (uint32_t i = 0; i < chunks.count(); ++i) {
      const bool ok = cipher.Decrypt(Chunks::PlaceOf(i), {chunks.at(i), chunks.stored_bytes},
                                     chunks.out.data());
      HR_CHECK(ok, "what was encrypted is decrypted");
    }
    benchmark::DoNotOptimize(chunks.out.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kTotalBytes));
  state.SetLabel(CipherName(chunks.cipher));
}

void Bare(benchmark::State& state) {
  Chunks chunks(static_cast<Cipher>(state.range(0)), static_cast<size_t>(state.range(1)));
  const EVP_CIPHER* algorithms[] = {nullptr, EVP_aes_128_gcm(), EVP_aes_256_gcm(),
                                    EVP_aes_128_ctr(), EVP_aes_256_ctr()};
  const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> context(EVP_CIPHER_CTX_new(),
                                                                           EVP_CIPHER_CTX_free);
  EVP_DecryptInit_ex(context.get(), algorithms[state.range(0)], nullptr, chunks.key.bytes().data(),
                     nullptr);
  const bool gcm = TagBytes(chunks.cipher) != 0;
  std::array<uint8_t, 16> iv = {1, 0, 0, 0, 2};
  const std::array<uint8_t, 10> data = {3, 0, 0, 0, 4, 0, 0, 0, 1, 1};
  for (auto _ : state) {
    for (uint32_t i = 0; i < chunks.count(); ++i) {
      for (int b = 0; b < 4; ++b) iv[static_cast<size_t>(8 + b)] = static_cast<uint8_t>(i >> 8 * b);
      int n = 0;
      EVP_DecryptInit_ex(context.get(), nullptr, nullptr, nullptr, iv.data());
      if (gcm) {
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, 16,
                            chunks.at(i) + chunks.chunk_bytes);
        EVP_DecryptUpdate(context.get(), nullptr, &n, data.data(), data.size());
      }
      EVP_DecryptUpdate(context.get(), chunks.out.data(), &n, chunks.at(i),
                        static_cast<int>(chunks.chunk_bytes));
      HR_CHECK(EVP_DecryptFinal_ex(context.get(), chunks.out.data() + n, &n) == 1,
               "what was encrypted is decrypted");
    }
    benchmark::DoNotOptimize(chunks.out.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kTotalBytes));
  state.SetLabel(CipherName(chunks.cipher));
}

void Cases(benchmark::internal::Benchmark* bench) {
  for (int cipher = 1; cipher <= 4; ++cipher)
    for (const int64_t size : {1 << 10, 16 << 10, 256 << 10}) bench->Args({cipher, size});
}
BENCHMARK(Ours)->Apply(Cases);
BENCHMARK(Bare)->Apply(Cases);

}  // namespace
}  // namespace headrace::reader::dwrf
BENCHMARK_MAIN();
