// StripeFooterReader: what a stripe's footer lists (message StripeFooter of dwrf.proto, and its
// encrypted parts, messages StripeEncryptionGroup), one thing after the other, straight from the
// bytes. A footer of thousands of small messages is read for every stripe: as protobuf's objects
// they take longer to make than to read.
//
// Accepts and refuses what protobuf's parser does; numbers are not checked any further.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headrace::reader::dwrf {

struct FooterStream {
  uint32_t kind = 0, node = 0, sequence = 0, column = 0;
  uint64_t length = 0;
  std::optional<uint64_t> offset;
  bool use_vints = true;
};

struct FooterEncoding {
  uint32_t kind = 0, dictionary_size = 0, sequence = 0;
  std::optional<uint32_t> node;
  bool has_key = false;
  int64_t int_key = 0;
  std::string_view bytes_key;  // into the footer's bytes
};

class StripeFooterReader {
 public:
  enum class Item : uint8_t { kStream, kEncoding, kEncryptionGroup, kEnd, kDamaged };

  // The bytes outlive the reader.
  explicit StripeFooterReader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  // Reads the next thing. What it is, stands below. After kEnd and kDamaged nothing comes.
  Item Next();
  const FooterStream& stream() const { return stream_; }
  const FooterEncoding& encoding() const { return encoding_; }
  std::span<const uint8_t> encryption_group() const { return group_; }

  // How many things of a kind there are, for reserve(); of damaged bytes any number.
  struct Counts {
    size_t streams = 0, encodings = 0;
  };
  Counts Count() const;

 private:
  std::span<const uint8_t> rest_;
  FooterStream stream_;
  FooterEncoding encoding_;
  std::span<const uint8_t> group_;
};

}  // namespace headrace::reader::dwrf
