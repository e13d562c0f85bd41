#include "reader/dwrf/crypto/file_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

constexpr const char* kScheme = "headrace-key/1";

std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// False where the blob is of another scheme.
bool ParseMetadata(const std::string& blob, proto::KeyMetadata* out) {
  return out->ParseFromString(blob) && out->scheme() == kScheme &&
         out->cipher() >= static_cast<uint32_t>(Cipher::kAes128Gcm) &&
         out->cipher() <= static_cast<uint32_t>(Cipher::kAes256Ctr);
}

}  // namespace

EncryptionGroupSpec EncryptionGroupSpec::Parse(const std::string& text) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ExitCode::kUsage, what, fmt::format("encryption '{}'", Printable(text, 120)),
                "write NAME=COLUMN[,COLUMN...]:KEY_ID[:CIPHER], such as "
                "pii=sparse,weighted:ads-2026:aes256-gcm");
  };
  EncryptionGroupSpec group;
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse("no name and '='");
  group.name = text.substr(0, equals);
  std::vector<std::string> parts;
  std::istringstream stream(text.substr(equals + 1));
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  if (parts.size() < 2 || parts.size() > 3 || parts[1].empty()) refuse("no columns and key id");
  std::istringstream columns(parts[0]);
  for (std::string column; std::getline(columns, column, ',');)
    if (!column.empty()) group.columns.push_back(column);
  if (group.columns.empty()) refuse("no column");
  group.key_id = parts[1];
  if (parts.size() == 3 && !ParseCipher(parts[2], &group.cipher))
    refuse(fmt::format("unknown cipher '{}': aes128-gcm, aes256-gcm, aes128-ctr or aes256-ctr",
                       Printable(parts[2], 40)));
  return group;
}

std::string MakeKeyMetadata(const EncryptionGroupSpec& group, const SecretKey& ring_key,
                            const SecretKey& data_key) {
  proto::KeyMetadata metadata;
  metadata.set_scheme(kScheme);
  metadata.set_group_name(group.name);
  metadata.set_cipher(static_cast<uint32_t>(group.cipher));
  metadata.set_key_id(group.key_id);
  metadata.set_wrapped_key(WrapKey(ring_key, data_key));
  return metadata.SerializeAsString();
}

FileKeys::FileKeys(const FileTail& tail, const std::string& file, const KeyRing* ring)
    : group_of_(tail.schema.size()) {
  const auto bad = [&](const std::string& what) {
    throw Error(ExitCode::kBadData, what, fmt::format("{}: byte {}", file, tail.footer_offset),
                "the file is damaged");
  };
  for (const proto::EncryptionGroup& group : tail.footer.encryption().encryption_groups()) {
    groups_.push_back({{group.nodes().begin(), group.nodes().end()}, false, {}, {}, {}, {}});
    for (const uint32_t node : group.nodes()) {
      for (uint32_t id = node; id <= tail.schema.node(node).last; ++id) {
        if (group_of_[id] != 0) bad(fmt::format("footer: node {} is in two encryption groups", id));
        group_of_[id] = static_cast<uint32_t>(groups_.size());
      }
    }
  }
  if (groups_.empty()) return;
  std::vector<std::string> metadata;
  for (const proto::EncryptionGroup& group : tail.footer.encryption().encryption_groups())
    if (group.has_key_metadata()) metadata.push_back(group.key_metadata());
  if (!metadata.empty() && metadata.size() != groups_.size())
    bad(fmt::format("footer: {} of {} encryption groups have a key", metadata.size(),
                    groups_.size()));
  if (!metadata.empty()) statistics_ = Open(metadata, ring);
  // A stripe without keys of its own uses those of the nearest earlier one.
  for (const proto::StripeInformation& stripe : tail.footer.stripes()) {
    if (stripe.key_metadata_size() != 0) {
      if (stripe.key_metadata_size() != static_cast<int>(groups_.size()))
        bad(fmt::format("footer: stripe {} has {} keys for {} encryption groups",
                        set_of_stripe_.size(), stripe.key_metadata_size(), groups_.size()));
      sets_.push_back(Open({stripe.key_metadata().begin(), stripe.key_metadata().end()}, ring));
      if (statistics_.empty()) statistics_ = sets_.back();
    }
    if (sets_.empty()) bad("footer: the first stripe has no keys for its encryption groups");
    set_of_stripe_.push_back(sets_.size() - 1);
  }
}

FileKeys::KeySet FileKeys::Open(const std::vector<std::string>& metadata, const KeyRing* ring) {
  KeySet set(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    const auto lock = [&](const std::string& why) {
      if (group.why_locked.empty()) group.why_locked = why;
    };
    proto::KeyMetadata message;
    if (!ParseMetadata(metadata[g], &message)) {
      lock("its key belongs to another key service, which headrace does not know");
      continue;
    }
    group.ours = true;
    group.name = message.group_name();
    group.key_id = message.key_id();
    group.cipher = static_cast<Cipher>(message.cipher());
    if (ring == nullptr) {
      lock("no keys were given");
      continue;
    }
    const SecretKey* ring_key = ring->Find(group.key_id);
    if (ring_key == nullptr) {
      lock(fmt::format("key '{}' is not in {}", Printable(group.key_id, 64), ring->name()));
      continue;
    }
    SecretKey key = UnwrapKey(*ring_key, AsBytes(message.wrapped_key()));
    if (key.bytes().size() != KeyBytes(group.cipher)) {
      lock(fmt::format("key '{}' of {} is not the one it was written with",
                       Printable(group.key_id, 64), ring->name()));
      continue;
    }
    set[g] = std::make_shared<const DataKey>(DataKey{group.cipher, std::move(key)});
  }
  return set;
}

std::shared_ptr<const DataKey> FileKeys::Key(size_t stripe, size_t group) const {
  return stripe < set_of_stripe_.size() ? sets_[set_of_stripe_[stripe]][group] : nullptr;
}

std::shared_ptr<const DataKey> FileKeys::StatisticsKey(size_t group) const {
  return statistics_.empty() ? nullptr : statistics_[group];
}

bool FileKeys::Locked(uint32_t node) const {
  return group_of_[node] != 0 && !groups_[group_of_[node] - 1].why_locked.empty();
}

std::optional<uint32_t> FileKeys::FirstLocked(const Schema& schema, uint32_t node) const {
  if (groups_.empty()) return std::nullopt;
  for (uint32_t id = node; id <= schema.node(node).last; ++id)
    if (Locked(id)) return id;
  return std::nullopt;
}

void FileKeys::CheckReadable(const Schema& schema, uint32_t node, const std::string& file) const {
  const std::optional<uint32_t> locked = FirstLocked(schema, node);
  if (!locked) return;
  const Group& group = groups_[group_of_[*locked] - 1];
  const std::string which = group.ours
                                ? fmt::format(" (group {}, key {}, {})", Printable(group.name, 64),
                                              Printable(group.key_id, 64), CipherName(group.cipher))
                                : "";
  throw Error(ExitCode::kPrivilege,
              fmt::format("column '{}' is encrypted{} and cannot be read: {}",
                          Printable(schema.Path(node)), which, group.why_locked),
              file,
              group.ours ? "give its key, or read other columns; 'headrace inspect' shows which "
                           "are encrypted"
                         : "read other columns; 'headrace inspect' shows which are encrypted");
}

}  // namespace headrace::reader::dwrf
