// Cipher: AES under one data key, chunk by chunk, and the wrapping of data keys. docs/dwrf.md
// describes the scheme.
//
//   IV (96 bits) = stripe | ordinal of the stream in its group | byte of the chunk's header in the
//   stream, 32 bits each: never used twice under one data key, which belongs to one group of one
//   file.
//   GCM: payload, then 16 bytes of tag; what the chunk is (ChunkPlace) is authenticated with it.
//   CTR: the payload alone; whoever can write the file can change what is read.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace headrace::reader::dwrf {

enum class Cipher : uint8_t { kAes128Gcm = 1, kAes256Gcm = 2, kAes128Ctr = 3, kAes256Ctr = 4 };
const char* CipherName(Cipher cipher);  // "aes128-gcm"
bool ParseCipher(const std::string& name, Cipher* cipher);
size_t KeyBytes(Cipher cipher);  // 16 or 32
size_t TagBytes(Cipher cipher);  // 16 for GCM, 0 for CTR

// Key bytes that are wiped when they are destroyed.
class SecretKey {
 public:
  SecretKey() = default;
  explicit SecretKey(std::span<const uint8_t> bytes) : bytes_(bytes.begin(), bytes.end()) {}
  SecretKey(const SecretKey& other) = default;
  SecretKey(SecretKey&& other) noexcept = default;
  SecretKey& operator=(const SecretKey& other);
  SecretKey& operator=(SecretKey&& other) noexcept;
  ~SecretKey();
  std::span<const uint8_t> bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  // From the system's random source. Throws Error kFailure where that fails.
  static SecretKey Random(size_t bytes);

 private:
  std::vector<uint8_t> bytes_;
};

// What a group's data is encrypted with.
struct DataKey {
  Cipher cipher = Cipher::kAes128Gcm;
  SecretKey key;
};

// Identifies a chunk within the file. The first three members make the IV; GCM authenticates all.
struct ChunkPlace {
  uint32_t stripe = 0, ordinal = 0, position = 0;
  uint32_t node = 0, sequence = 0;
  uint8_t kind = 0;
  bool original = false;  // not compressed
};

// Ordinals and stripes of a group's data that are not streams.
constexpr uint32_t kFirstIndexOrdinal = uint32_t{1} << 31;  // row indexes count from here
constexpr uint32_t kFooterOrdinal = UINT32_MAX;             // the group's part of a stripe footer
constexpr uint32_t kStatisticsStripe = UINT32_MAX;          // statistics, by number in the group

// Encrypts and decrypts chunks under one key. Keeps the key's schedule; one thread at a time.
class ChunkCipher {
 public:
  // `key` has KeyBytes(cipher) bytes.
  ChunkCipher(Cipher cipher, const SecretKey& key);
  ~ChunkCipher();
  ChunkCipher(const ChunkCipher&) = delete;
  ChunkCipher& operator=(const ChunkCipher&) = delete;

  size_t tag_bytes() const { return TagBytes(cipher_); }
  // Writes plain.size() + tag_bytes() bytes; `out` may be plain.data().
  void Encrypt(const ChunkPlace& place, std::span<const uint8_t> plain, uint8_t* out);
  // Writes stored.size() - tag_bytes() bytes; `out` may be stored.data(). False where `stored` is
  // shorter than a tag or was changed (GCM only); `out` then holds nothing of use.
  [[nodiscard]] bool Decrypt(const ChunkPlace& place, std::span<const uint8_t> stored,
                             uint8_t* out);

 private:
  struct Context;
  Cipher cipher_;
  std::unique_ptr<Context> context_;
};

// RFC 3394. `wrapping` has 16 or 32 bytes; the result is 8 bytes longer than `key`.
std::string WrapKey(const SecretKey& wrapping, const SecretKey& key);
// An empty key where `wrapped` was not made with `wrapping`.
SecretKey UnwrapKey(const SecretKey& wrapping, std::span<const uint8_t> wrapped);

}  // namespace headrace::reader::dwrf
