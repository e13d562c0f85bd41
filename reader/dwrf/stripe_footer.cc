#include "reader/dwrf/stripe_footer.h"

namespace headrace::reader::dwrf {
namespace {

// Fields of a protobuf message, one after the other. After damage every field reads as 0, and
// Next() says that there is none.
class FieldReader {
 public:
  enum WireType : uint32_t { kVarint, kFixed64, kBytes, kBeginGroup, kEndGroup, kFixed32 };

  explicit FieldReader(std::span<const uint8_t> bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // Moves to the next field; false at the end, or after damage.
  bool Next() {
    if (at_ == end_) return false;
    tag_ = Tag();
    if (number() == 0 || type() == kEndGroup) Fail();
    return !damaged_;
  }
  uint32_t number() const { return tag_ >> 3; }
  WireType type() const { return static_cast<WireType>(tag_ & 7); }
  bool Is(uint32_t number, WireType type) const { return tag_ == (number << 3 | type); }
  bool damaged() const { return damaged_; }
  std::span<const uint8_t> rest() const { return {at_, end_}; }

  // The value of a field of type kVarint.
  uint64_t Varint() { return Number<uint64_t>(10); }
  // The value of a field of type kBytes.
  std::span<const uint8_t> Bytes() {
    const uint64_t size = Number<uint64_t>(5);
    if (size > static_cast<uint64_t>(end_ - at_)) Fail();
    if (damaged_) return {};
    at_ += size;
    return {at_ - size, size};
  }
  // Passes over the value of a field of any type.
  void Skip() { SkipValue(kMostGroups); }

 private:
  static constexpr int kMostGroups = 100;  // within each other, as protobuf allows

  void Fail() {
    damaged_ = true;
    at_ = end_;
    tag_ = 0;
  }
  // Of at most so many bytes; what T has no bits for is dropped.
  template <typename T>
  T Number(int most_bytes) {
    if (at_ != end_ && *at_ < 0x80) [[likely]]
      return *at_++;
    T value = 0;
    for (int shift = 0; shift < 7 * most_bytes && at_ != end_; shift += 7) {
      const uint8_t byte = *at_++;
      value |= static_cast<T>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail();
    return 0;
  }
  uint32_t Tag() { return Number<uint32_t>(5); }
  void Pass(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(end_ - at_)) Fail();
    if (!damaged_) at_ += bytes;
  }
  void SkipValue(int groups) {
    switch (type()) {
      case kVarint:
        Varint();
        return;
      case kFixed64:
        return Pass(8);
      case kBytes:
        Bytes();
        return;
      case kBeginGroup:
        return SkipGroup(number(), groups);
      case kFixed32:
        return Pass(4);
      default:
        Fail();
    }
  }
  void SkipGroup(uint32_t group, int groups) {
    if (groups == 0) Fail();
    while (!damaged_) {
      if (at_ == end_) Fail();
      tag_ = Tag();
      if (damaged_ || Is(group, kEndGroup)) return;
      if (number() == 0) Fail();
      SkipValue(groups - 1);
    }
  }

  const uint8_t *at_, *end_;
  uint32_t tag_ = 0;
  bool damaged_ = false;
};

// The number of a varint field of 32 bits: higher bits are dropped.
uint32_t Number32(FieldReader* fields) { return static_cast<uint32_t>(fields->Varint()); }

bool ParseStream(std::span<const uint8_t> bytes, FooterStream* stream) {
  FieldReader fields(bytes);
  while (fields.Next()) {
    if (fields.type() != FieldReader::kVarint) {
      fields.Skip();
      continue;
    }
    switch (fields.number()) {
      case 1:
        stream->kind = Number32(&fields);
        break;
      case 2:
        stream->node = Number32(&fields);
        break;
      case 3:
        stream->length = fields.Varint();
        break;
      case 4:
        stream->use_vints = fields.Varint() != 0;
        break;
      case 6:
        stream->sequence = Number32(&fields);
        break;
      case 7:
        stream->column = Number32(&fields);
        break;
      case 8:
        stream->offset = fields.Varint();
        break;
      default:
        fields.Skip();
    }
  }
  return !fields.damaged();
}

bool ParseKey(std::span<const uint8_t> bytes, FooterEncoding* encoding) {
  encoding->has_key = true;
  FieldReader fields(bytes);
  while (fields.Next()) {
    if (fields.Is(1, FieldReader::kVarint)) {
      encoding->int_key = static_cast<int64_t>(fields.Varint());
    } else if (fields.Is(2, FieldReader::kBytes)) {
      const std::span<const uint8_t> key = fields.Bytes();
      encoding->bytes_key = {reinterpret_cast<const char*>(key.data()), key.size()};
    } else {
      fields.Skip();
    }
  }
  return !fields.damaged();
}

bool ParseEncoding(std::span<const uint8_t> bytes, FooterEncoding* encoding) {
  FieldReader fields(bytes);
  while (fields.Next()) {
    if (fields.Is(1, FieldReader::kVarint)) {
      encoding->kind = Number32(&fields);
    } else if (fields.Is(2, FieldReader::kVarint)) {
      encoding->dictionary_size = Number32(&fields);
    } else if (fields.Is(3, FieldReader::kVarint)) {
      encoding->node = Number32(&fields);
    } else if (fields.Is(4, FieldReader::kVarint)) {
      encoding->sequence = Number32(&fields);
    } else if (fields.Is(5, FieldReader::kBytes)) {
      if (!ParseKey(fields.Bytes(), encoding)) return false;
    } else {
      fields.Skip();
    }
  }
  return !fields.damaged();
}

}  // namespace

StripeFooterReader::Item StripeFooterReader::Next() {
  FieldReader fields(rest_);
  bool is_sound = true;
  Item item = Item::kEnd;
  while (item == Item::kEnd && fields.Next()) {
    if (fields.Is(1, FieldReader::kBytes)) {
      item = Item::kStream;
      stream_ = {};
      is_sound = ParseStream(fields.Bytes(), &stream_);
    } else if (fields.Is(2, FieldReader::kBytes)) {
      item = Item::kEncoding;
      encoding_ = {};
      is_sound = ParseEncoding(fields.Bytes(), &encoding_);
    } else if (fields.Is(3, FieldReader::kBytes)) {
      item = Item::kEncryptionGroup;
      group_ = fields.Bytes();
    } else {
      fields.Skip();
    }
  }
  rest_ = fields.rest();
  if (is_sound && !fields.damaged()) return item;
  rest_ = {};
  return Item::kDamaged;
}

StripeFooterReader::Counts StripeFooterReader::Count() const {
  Counts counts;
  for (FieldReader fields(rest_); fields.Next(); fields.Skip()) {
    counts.streams += fields.Is(1, FieldReader::kBytes);
    counts.encodings += fields.Is(2, FieldReader::kBytes);
  }
  return counts;
}

}  // namespace headrace::reader::dwrf
