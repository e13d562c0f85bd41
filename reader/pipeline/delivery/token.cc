#include "reader/pipeline/delivery/token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace headrace::reader {
namespace {

constexpr size_t kFewestCharacters = 32, kMostFileBytes = 4096;
constexpr const char* kFileVariable = "HEADRACE_TOKEN_FILE";
constexpr const char* kTextVariable = "HEADRACE_TOKEN";

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Token ReadTokenFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO holds nobody
  if (fd < 0) {
    if (errno == ENOENT)
      throw Error(ExitCode::kPrivilege, "the token is not there", path,
                  "copy the dispatcher's, or name another file with --token-file");
    throw ErrnoError(errno, "open", path);
  }
  struct stat status = {};
  const bool is_private = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                          status.st_uid == geteuid() && (status.st_mode & 077) == 0;
  char text[kMostFileBytes];
  const ssize_t got = is_private ? read(fd, text, sizeof text) : 0;
  close(fd);
  if (!is_private)
    throw Error(ExitCode::kPrivilege,
                "the token is to be a file of this user's that nobody else "
                "can read",
                path, "chmod 600 it, or put the token into $HEADRACE_TOKEN");
  return Token(std::string(text, static_cast<size_t>(std::max<ssize_t>(got, 0))), path);
}

// One that is there by now stays.
void MakeTokenFile(const std::string& path) {
  // Complete or not there: whoever finds the name finds the token.
  std::string draft = path + ".XXXXXX";  // mode 0600, and never what somebody else put there
  const int fd = mkostemp(draft.data(), O_CLOEXEC);
  if (fd < 0) throw ErrnoError(errno, "make", draft);
  uint8_t bytes[32];
  FillRandom(bytes);
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  text += '\n';
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int error = written ? 0 : errno;
  if (close(fd) != 0 && error == 0) error = errno;
  const bool is_new = error == 0 && link(draft.c_str(), path.c_str()) == 0;
  if (error == 0 && !is_new && errno != EEXIST) error = errno;
  unlink(draft.c_str());
  if (error != 0) throw ErrnoError(error, "make", path);
}

std::string TokenFile(const std::string& file, const std::string& fallback) {
  if (!file.empty()) return file;
  const std::string variable = Variable(kFileVariable);
  if (!variable.empty()) return variable;
  return Variable(kTextVariable).empty() ? fallback : "";
}

}  // namespace

Token::Token(const std::string& text, const std::string& where) {
  constexpr const char* kWhite = " \t\r\n";
  const size_t first = text.find_first_not_of(kWhite);
  if (first != std::string::npos)
    text_ = text.substr(first, text.find_last_not_of(kWhite) - first + 1);
  if (text_.size() < kFewestCharacters)
    throw Error(
        ExitCode::kPrivilege,
        fmt::format("a token has {} characters or more, not {}", kFewestCharacters, text_.size()),
        where, "make one: openssl rand -hex 32");
}

Token Token::FindOr(const std::string& file, const std::string& fallback,
                    const std::string& to_do) {
  const std::string path = TokenFile(file, fallback);
  if (!path.empty()) return ReadTokenFile(path);
  const std::string text = Variable(kTextVariable);
  if (text.empty()) throw Error(ExitCode::kPrivilege, "no token is given", "", to_do);
  return Token(text, "$HEADRACE_TOKEN");
}

Token Token::Find(const std::string& file, const std::string& fallback) {
  return FindOr(file, fallback,
                "name the dispatcher's with --token-file FILE, $HEADRACE_TOKEN_FILE or "
                "$HEADRACE_TOKEN");
}

Token Token::OfEnvironment() {
  return FindOr("", "",
                "both processes need the same: openssl rand -hex 32 > FILE; chmod 600 FILE; export "
                "HEADRACE_TOKEN_FILE=FILE");
}

Token Token::FindOrMake(const std::string& file, const std::string& fallback) {
  const std::string path = TokenFile(file, fallback);
  if (!path.empty() && access(path.c_str(), F_OK) != 0 && errno == ENOENT) MakeTokenFile(path);
  return Find(file, fallback);
}

Digest Token::Sign(std::span<const std::span<const uint8_t>> parts) const {
  std::vector<uint8_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  Digest digest;
  unsigned size = 0;
  if (HMAC(EVP_sha256(), text_.data(), static_cast<int>(text_.size()), all.data(), all.size(),
           digest.data(), &size) == nullptr ||
      size != digest.size())
    throw Error(ExitCode::kFailure, "the system's OpenSSL makes no HMAC-SHA256");
  return digest;
}

bool AreSame(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void FillRandom(std::span<uint8_t> bytes) {
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw Error(ExitCode::kFailure, "the system's OpenSSL gives no random numbers");
}

}  // namespace headrace::reader
