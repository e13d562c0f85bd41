#include "reader/dwrf/crypto/key_ring.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace headrace::reader::dwrf {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20, kMaxIdBytes = 64;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsId(const std::string& text) {
  return !text.empty() && text.size() <= kMaxIdBytes &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

// An empty key where `hex` is not 16 or 32 bytes.
SecretKey ParseHex(const std::string& hex) {
  if (hex.size() != 32 && hex.size() != 64) return {};
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = HexDigit(hex[i]), low = HexDigit(hex[i + 1]);
    if (high < 0 || low < 0) {
      bytes.clear();
      break;
    }
    bytes.push_back(static_cast<uint8_t>(high << 4 | low));
  }
  SecretKey key = bytes.empty() ? SecretKey() : SecretKey(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

}  // namespace

std::shared_ptr<const KeyRing> KeyRing::Parse(const std::string& text, const std::string& name) {
  auto ring = std::make_shared<KeyRing>();
  ring->name_ = name;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string id, hex, more;
    if (!(words >> id) || id[0] == '#') continue;
    words >> hex;
    const bool has_more = static_cast<bool>(words >> more);
    // The text stays out of the message: it may be a key in the wrong place.
    const auto refuse = [&](const std::string& what) {
      throw Error(ExitCode::kBadData, what, fmt::format("{}:{}", name, number),
                  "a line is an id and 16 or 32 bytes in hexadecimal");
    };
    if (!IsId(id))
      refuse(fmt::format("the id is not 1 to {} letters, digits, '-', '_' or '.'", kMaxIdBytes));
    SecretKey key = ParseHex(hex);
    if (key.empty() || has_more) refuse("what follows the id is not one key");
    if (!ring->keys_.emplace(id, std::move(key)).second)
      refuse("a second key has the id of an earlier line");
    OPENSSL_cleanse(hex.data(), hex.size());
    OPENSSL_cleanse(line.data(), line.size());
  }
  if (ring->keys_.empty())
    throw Error(ExitCode::kBadData, "holds no key", name,
                "a line is an id and 16 or 32 bytes in hexadecimal");
  return ring;
}

std::shared_ptr<const KeyRing> KeyRing::Load(const std::string& place) {
  if (place.starts_with("env:")) {
    const std::string variable = place.substr(4);
    const char* text = std::getenv(variable.c_str());
    if (text == nullptr)
      throw Error(ExitCode::kPrivilege, "the environment variable for keys is not set", place,
                  "set it to lines of an id and a key in hexadecimal");
    return Parse(text, place);
  }
  struct stat status = {};
  if (::stat(place.c_str(), &status) != 0) throw ErrnoError(errno, "open the keys", place);
  if (S_ISREG(status.st_mode) && (status.st_mode & 077) != 0) {
    throw Error(ExitCode::kPrivilege,
                fmt::format("keys that others may read (mode {:04o})", status.st_mode & 07777),
                place, fmt::format("chmod 600 {}", place));
  }
  std::string text = ReadWholeFile(place, kMaxFileBytes);
  auto ring = Parse(text, place);
  OPENSSL_cleanse(text.data(), text.size());
  return ring;
}

const SecretKey* KeyRing::Find(const std::string& id) const {
  const auto key = keys_.find(id);
  return key == keys_.end() ? nullptr : &key->second;
}

}  // namespace headrace::reader::dwrf
