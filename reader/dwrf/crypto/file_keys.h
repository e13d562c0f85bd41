// FileKeys: the encryption groups of one open file: which columns each covers, with which cipher
// and key, and the data keys of those that the ring of keys opens. A group that cannot be opened
// is locked: its columns cannot be read, all others can.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/dwrf/crypto/cipher.h"
#include "reader/dwrf/crypto/key_ring.h"
#include "reader/dwrf/tail.h"

namespace headrace::reader::dwrf {

// An encryption group to write: top-level `columns` encrypted under one data key, which is wrapped
// by the ring's key `key_id`.
struct EncryptionGroupSpec {
  std::string name;
  std::vector<std::string> columns;
  std::string key_id;
  Cipher cipher = Cipher::kAes256Gcm;

  // "pii=sparse,weighted:KEY_ID:aes256-gcm"; the cipher may be left out. Throws Error kUsage.
  static EncryptionGroupSpec Parse(const std::string& text);
};

// The opaque keyMetadata of our scheme: cipher, key id, and the data key wrapped.
std::string MakeKeyMetadata(const EncryptionGroupSpec& group, const SecretKey& ring_key,
                            const SecretKey& data_key);

class FileKeys {
 public:
  struct Group {
    std::vector<uint32_t> nodes;  // roots of its subtrees
    bool ours = false;            // made by this scheme; name, key_id and cipher are then known
    std::string name, key_id;
    Cipher cipher = Cipher::kAes128Gcm;
    std::string why_locked;  // empty where it is open in every stripe
  };

  // `ring` may be null. Throws Error kBadData where the file's groups contradict the format.
  FileKeys(const FileTail& tail, const std::string& file, const KeyRing* ring);

  const std::vector<Group>& groups() const { return groups_; }
  // 0: not encrypted; else 1 + the index of its group.
  uint32_t GroupOf(uint32_t node) const { return group_of_[node]; }
  // Null where the group cannot be opened in that stripe.
  std::shared_ptr<const DataKey> Key(size_t stripe, size_t group) const;
  // The same for the file's statistics.
  std::shared_ptr<const DataKey> StatisticsKey(size_t group) const;
  bool Locked(uint32_t node) const;
  // The first node of the subtree at `node` that is locked; nothing: all of it can be read.
  std::optional<uint32_t> FirstLocked(const Schema& schema, uint32_t node) const;
  // "sparse is encrypted (group pii, key ads-2026): key 'ads-2026' is not in keys.txt", as an
  // Error kPrivilege, where the node or anything below it is locked.
  void CheckReadable(const Schema& schema, uint32_t node, const std::string& file) const;

 private:
  using KeySet = std::vector<std::shared_ptr<const DataKey>>;  // per group
  KeySet Open(const std::vector<std::string>& metadata, const KeyRing* ring);

  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_;  // per node
  std::vector<KeySet> sets_;
  std::vector<size_t> set_of_stripe_;
  KeySet statistics_;
};

}  // namespace headrace::reader::dwrf
