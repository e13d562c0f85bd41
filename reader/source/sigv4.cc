#include "reader/source/sigv4.h"

#include <fmt/format.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"

namespace headrace::reader {
namespace {

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

std::string Sha256(const std::string& text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(),
         reinterpret_cast<uint8_t*>(digest.data()));
  return digest;
}

std::string Hmac(const std::string& key, const std::string& text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  unsigned size = 0;
  const uint8_t* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                             reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                             reinterpret_cast<uint8_t*>(digest.data()), &size);
  HR_CHECK(done != nullptr && size == digest.size(), "HMAC-SHA256 failed");
  return digest;
}

}  // namespace

std::string UriEncode(const std::string& text, bool keep_slash) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const bool plain = (byte < 128 && std::isalnum(byte) != 0) || c == '-' || c == '.' ||
                       c == '_' || c == '~' || (c == '/' && keep_slash);
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return encoded;
}

std::string CanonicalQuery(std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) {
    name = UriEncode(name, false);
    value = UriEncode(value, false);
  }
  std::sort(query.begin(), query.end());
  std::string text;
  for (const auto& [name, value] : query)
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

std::string SigV4Authorization(const SigV4Request& request, const Credentials& credentials,
                               const std::string& region, const std::string& service) {
  auto headers = request.headers;
  std::sort(headers.begin(), headers.end());
  std::string canonical_headers, signed_headers, time;
  for (const auto& [name, value] : headers) {
    canonical_headers += name + ':' + value + '\n';
    signed_headers += (signed_headers.empty() ? "" : ";") + name;
    if (name == "x-amz-date") time = value;
  }
  HR_CHECK(time.size() == 16, "a request is signed with its x-amz-date");
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                                            CanonicalQuery(request.query), canonical_headers,
                                            signed_headers, request.payload_sha256);
  const std::string day = time.substr(0, 8);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, region, service);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, Hex(Sha256(canonical)));
  std::string key = "AWS4" + credentials.secret;
  for (const std::string& part : {day, region, service, std::string("aws4_request")})
    key = Hmac(key, part);
  return fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                     credentials.key_id, scope, signed_headers, Hex(Hmac(key, to_sign)));
}

}  // namespace headrace::reader
