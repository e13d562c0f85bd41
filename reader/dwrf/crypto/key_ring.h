// KeyRing: the keys a process may use, by id. They come from a file or an environment variable,
// never from a table or a pipeline file.
//
//   # headrace keys: id, then 16 or 32 bytes in hexadecimal
//   pii      000102030405060708090a0b0c0d0e0f
//   ads-2026 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
#pragma once
#include <map>
#include <memory>
#include <string>

#include "reader/dwrf/crypto/cipher.h"

namespace headrace::reader::dwrf {

class KeyRing {
 public:
  // `place` is a file, or "env:NAME" for an environment variable with the same text. Throws Error
  // kBadData for a line that is no key (naming the line, never its text), kPrivilege for a file
  // that others may read, and what reading the file throws.
  static std::shared_ptr<const KeyRing> Load(const std::string& place);
  // The same from text; `name` is for messages.
  static std::shared_ptr<const KeyRing> Parse(const std::string& text, const std::string& name);

  // Null when the ring has no such key.
  const SecretKey* Find(const std::string& id) const;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::map<std::string, SecretKey> keys_;
};

}  // namespace headrace::reader::dwrf
