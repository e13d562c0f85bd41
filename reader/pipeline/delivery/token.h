// Token: the secret that the processes of a job share when they meet over a network. It is never
// sent: each side proves that it has it (handshake.h).
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace headrace::reader {

using Digest = std::array<uint8_t, 32>;

// Immutable.
class Token {
 public:
  // At least 32 characters; white space around them does not count. `where` names the source in
  // errors. Throws Error kPrivilege for a shorter one.
  Token(const std::string& text, const std::string& where);

  // Whose token it is to be: `file`; without one that of $HEADRACE_TOKEN_FILE, the text of
  // $HEADRACE_TOKEN, or the file `fallback`, in this order. Throws Error kPrivilege when there is
  // none, or when others than its user can read the file.
  static Token Find(const std::string& file, const std::string& fallback);
  // The same; a file that is not there is made, with mode 0600 and 32 random bytes as hexadecimal
  // digits.
  static Token FindOrMake(const std::string& file, const std::string& fallback);
  // As Find, of a process that has no options for it: that of the two variables.
  static Token OfEnvironment();

  // HMAC-SHA256 of the parts, one behind the other.
  Digest Sign(std::span<const std::span<const uint8_t>> parts) const;

 private:
  static Token FindOr(const std::string& file, const std::string& fallback,
                      const std::string& to_do);
  std::string text_;
};

// In a time that says nothing of where they differ.
bool AreSame(const Digest& a, const Digest& b);

// `bytes` from the system's generator. Throws Error kFailure when it gives none.
void FillRandom(std::span<uint8_t> bytes);

}  // namespace headrace::reader
