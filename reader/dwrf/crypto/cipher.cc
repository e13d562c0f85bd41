#include "reader/dwrf/crypto/cipher.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

constexpr std::pair<Cipher, const char*> kNames[] = {{Cipher::kAes128Gcm, "aes128-gcm"},
                                                     {Cipher::kAes256Gcm, "aes256-gcm"},
                                                     {Cipher::kAes128Ctr, "aes128-ctr"},
                                                     {Cipher::kAes256Ctr, "aes256-ctr"}};
constexpr size_t kTagBytes = 16;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using EvpContext = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

EvpContext NewContext() {
  EvpContext context(EVP_CIPHER_CTX_new());
  if (!context) throw Error(ExitCode::kResources, "no memory for a cipher context");
  return context;
}

bool IsGcm(Cipher cipher) { return cipher == Cipher::kAes128Gcm || cipher == Cipher::kAes256Gcm; }

const EVP_CIPHER* Algorithm(Cipher cipher) {
  switch (cipher) {
    case Cipher::kAes128Gcm:
      return EVP_aes_128_gcm();
    case Cipher::kAes256Gcm:
      return EVP_aes_256_gcm();
    case Cipher::kAes128Ctr:
      return EVP_aes_128_ctr();
    case Cipher::kAes256Ctr:
      return EVP_aes_256_ctr();
  }
  return nullptr;
}

void PutLittleEndian(uint32_t value, uint8_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(value >> (8 * i));
}

// 16 bytes, of which GCM uses the first 12; CTR counts its blocks in the last 4.
std::array<uint8_t, 16> InitialVector(const ChunkPlace& place) {
  std::array<uint8_t, 16> iv = {};
  PutLittleEndian(place.stripe, iv.data());
  PutLittleEndian(place.ordinal, iv.data() + 4);
  PutLittleEndian(place.position, iv.data() + 8);
  return iv;
}

std::array<uint8_t, 10> Authenticated(const ChunkPlace& place) {
  std::array<uint8_t, 10> data = {};
  PutLittleEndian(place.node, data.data());
  PutLittleEndian(place.sequence, data.data() + 4);
  data[8] = place.kind;
  data[9] = place.original ? 1 : 0;
  return data;
}

}  // namespace

const char* CipherName(Cipher cipher) {
  for (const auto& [value, name] : kNames)
    if (value == cipher) return name;
  return "";
}

bool ParseCipher(const std::string& name, Cipher* cipher) {
  for (const auto& [value, text] : kNames) {
    if (name != text) continue;
    *cipher = value;
    return true;
  }
  return false;
}

size_t KeyBytes(Cipher cipher) {
  return cipher == Cipher::kAes128Gcm || cipher == Cipher::kAes128Ctr ? 16 : 32;
}
size_t TagBytes(Cipher cipher) { return IsGcm(cipher) ? kTagBytes : 0; }

SecretKey::~SecretKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

SecretKey& SecretKey::operator=(const SecretKey& other) {
  if (this == &other) return *this;
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_ = other.bytes_;
  return *this;
}

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_ = std::move(other.bytes_);
  return *this;
}

SecretKey SecretKey::Random(size_t bytes) {
  SecretKey key;
  key.bytes_.resize(bytes);
  if (RAND_bytes(key.bytes_.data(), static_cast<int>(bytes)) != 1)
    throw Error(ExitCode::kFailure, "the system gives no random bytes for a key");
  return key;
}

struct ChunkCipher::Context {
  EvpContext encrypting, decrypting;  // made when first used
};

ChunkCipher::ChunkCipher(Cipher cipher, const SecretKey& key)
    : cipher_(cipher), context_(std::make_unique<Context>()) {
  HR_CHECK(key.bytes().size() == KeyBytes(cipher), "a data key is as long as its cipher wants");
  context_->encrypting = NewContext();
  context_->decrypting = NewContext();
  const bool ok = EVP_EncryptInit_ex(context_->encrypting.get(), Algorithm(cipher), nullptr,
                                     key.bytes().data(), nullptr) == 1 &&
                  EVP_DecryptInit_ex(context_->decrypting.get(), Algorithm(cipher), nullptr,
                                     key.bytes().data(), nullptr) == 1;
  if (!ok)
    throw Error(ExitCode::kFailure,
                std::string("this machine's OpenSSL lacks ") + CipherName(cipher));
}

ChunkCipher::~ChunkCipher() = default;

void ChunkCipher::Encrypt(const ChunkPlace& place, std::span<const uint8_t> plain, uint8_t* out) {
  EVP_CIPHER_CTX* context = context_->encrypting.get();
  const auto iv = InitialVector(place);
  int written = 0, rest = 0;
  bool ok = EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, iv.data()) == 1;
  if (IsGcm(cipher_)) {
    const auto data = Authenticated(place);
    ok = ok && EVP_EncryptUpdate(context, nullptr, &rest, data.data(), data.size()) == 1;
  }
  if (!plain.empty())
    ok = ok && EVP_EncryptUpdate(context, out, &written, plain.data(),
                                 static_cast<int>(plain.size())) == 1;
  ok = ok && EVP_EncryptFinal_ex(context, out + written, &rest) == 1;
  if (IsGcm(cipher_))
    ok = ok &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, out + plain.size()) == 1;
  HR_CHECK(ok, "encrypting a chunk of legal size cannot fail");
}

bool ChunkCipher::Decrypt(const ChunkPlace& place, std::span<const uint8_t> stored, uint8_t* out) {
  if (stored.size() < tag_bytes()) return false;
  EVP_CIPHER_CTX* context = context_->decrypting.get();
  const auto iv = InitialVector(place);
  const std::span<const uint8_t> payload = stored.first(stored.size() - tag_bytes());
  int written = 0, rest = 0;
  bool ok = EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, iv.data()) == 1;
  if (IsGcm(cipher_)) {
    // Copied: `out` may be the stored bytes themselves.
    std::array<uint8_t, kTagBytes> tag;
    std::memcpy(tag.data(), stored.data() + payload.size(), kTagBytes);
    const auto data = Authenticated(place);
    ok = ok && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1 &&
         EVP_DecryptUpdate(context, nullptr, &rest, data.data(), data.size()) == 1;
  }
  if (!payload.empty())
    ok = ok && EVP_DecryptUpdate(context, out, &written, payload.data(),
                                 static_cast<int>(payload.size())) == 1;
  return ok && EVP_DecryptFinal_ex(context, out + written, &rest) == 1;
}

namespace {

const EVP_CIPHER* WrapAlgorithm(const SecretKey& wrapping) {
  return wrapping.bytes().size() == 16 ? EVP_aes_128_wrap() : EVP_aes_256_wrap();
}

}  // namespace

std::string WrapKey(const SecretKey& wrapping, const SecretKey& key) {
  const EvpContext context = NewContext();
  EVP_CIPHER_CTX_set_flags(context.get(), EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
  std::string wrapped(key.bytes().size() + 16, '\0');
  auto* out = reinterpret_cast<uint8_t*>(wrapped.data());
  int written = 0, rest = 0;
  const bool ok = EVP_EncryptInit_ex(context.get(), WrapAlgorithm(wrapping), nullptr,
                                     wrapping.bytes().data(), nullptr) == 1 &&
                  EVP_EncryptUpdate(context.get(), out, &written, key.bytes().data(),
                                    static_cast<int>(key.bytes().size())) == 1 &&
                  EVP_EncryptFinal_ex(context.get(), out + written, &rest) == 1;
  HR_CHECK(ok, "wrapping a key of legal size cannot fail");
  wrapped.resize(static_cast<size_t>(written + rest));
  return wrapped;
}

SecretKey UnwrapKey(const SecretKey& wrapping, std::span<const uint8_t> wrapped) {
  if (wrapped.size() != 24 && wrapped.size() != 40) return {};
  const EvpContext context = NewContext();
  EVP_CIPHER_CTX_set_flags(context.get(), EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
  std::array<uint8_t, 64> out;
  int written = 0, rest = 0;
  const bool ok = EVP_DecryptInit_ex(context.get(), WrapAlgorithm(wrapping), nullptr,
                                     wrapping.bytes().data(), nullptr) == 1 &&
                  EVP_DecryptUpdate(context.get(), out.data(), &written, wrapped.data(),
                                    static_cast<int>(wrapped.size())) == 1 &&
                  EVP_DecryptFinal_ex(context.get(), out.data() + written, &rest) == 1;
  SecretKey key;
  if (ok && static_cast<size_t>(written + rest) == wrapped.size() - 8)
    key = SecretKey(std::span<const uint8_t>(out.data(), wrapped.size() - 8));
  OPENSSL_cleanse(out.data(), out.size());
  return key;
}

}  // namespace headrace::reader::dwrf
