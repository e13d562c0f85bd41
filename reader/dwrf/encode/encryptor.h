// Encryptor: the encryption groups of one file being written: a data key for each, drawn when the
// writer starts, and the metadata that the file stores about it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/dwrf/encode/chunk_encoder.h"
#include "reader/dwrf/layout_policy.h"

namespace headrace::reader::dwrf {

class Encryptor {
 public:
  explicit Encryptor(const WriterOptions& options) {
    for (const EncryptionGroupSpec& spec : options.encryption) {
      const SecretKey data_key = SecretKey::Random(KeyBytes(spec.cipher));
      ciphers_.push_back(std::make_unique<ChunkCipher>(spec.cipher, data_key));
      metadata_.push_back(MakeKeyMetadata(spec, *options.keys->Find(spec.key_id), data_key));
    }
  }

  size_t num_groups() const { return ciphers_.size(); }
  const std::vector<std::string>& key_metadata() const { return metadata_; }
  // `group` counts from 1.
  ChunkSeal Seal(uint32_t group, const ChunkPlace& place) const {
    return {ciphers_[group - 1].get(), place};
  }

 private:
  std::vector<std::unique_ptr<ChunkCipher>> ciphers_;
  std::vector<std::string> metadata_;
};

}  // namespace headrace::reader::dwrf
