#include "dashboards/export/proto_writer.h"

#include <bit>

#include "dashboards/export/escape.h"

namespace headrace::dashboards {
namespace {

constexpr uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

}  // namespace

void ProtoWriter::Varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void ProtoWriter::Tag(uint32_t field, uint32_t wire_type) {
  Varint(uint64_t{field} << 3 | wire_type);
}

void ProtoWriter::Whole(uint32_t field, uint64_t value) {
  Tag(field, kVarint);
  Varint(value);
}

void ProtoWriter::Signed(uint32_t field, int64_t value) {
  Whole(field, static_cast<uint64_t>(value));
}

void ProtoWriter::Fixed64(uint32_t field, uint64_t value) {
  Tag(field, kFixed64);
  for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
}

void ProtoWriter::Double(uint32_t field, double value) {
  Fixed64(field, std::bit_cast<uint64_t>(value));
}

void ProtoWriter::Text(uint32_t field, std::string_view text) { Bytes(field, Utf8(text)); }

void ProtoWriter::Bytes(uint32_t field, std::string_view bytes) {
  Tag(field, kBytes);
  Varint(bytes.size());
  bytes_ += bytes;
}

void ProtoWriter::Message(uint32_t field, const ProtoWriter& message) {
  Bytes(field, message.bytes());
}

void ProtoWriter::Packed(uint32_t field, std::span<const uint64_t> values) {
  if (values.empty()) return;
  ProtoWriter packed;
  for (const uint64_t value : values) packed.Varint(value);
  Bytes(field, packed.bytes());
}

double ProtoField::as_double() const { return std::bit_cast<double>(value); }

bool ProtoReader::Varint(uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < rest_.size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>(rest_[i]);
    *value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool ProtoReader::Fixed(size_t size, uint64_t* value) {
  if (rest_.size() < size) return false;
  *value = 0;
  for (size_t i = 0; i < size; ++i) *value |= uint64_t{static_cast<uint8_t>(rest_[i])} << (8 * i);
  rest_.remove_prefix(size);
  return true;
}

std::optional<ProtoField> ProtoReader::Next() {
  if (rest_.empty() || damaged_) return std::nullopt;
  ProtoField field;
  uint64_t tag = 0;
  bool good = Varint(&tag) && tag >> 3 != 0 && tag >> 3 < (uint64_t{1} << 29);
  field.number = static_cast<uint32_t>(tag >> 3);
  field.wire_type = static_cast<uint32_t>(tag & 7);
  if (good && field.wire_type == kVarint) {
    good = Varint(&field.value);
  } else if (good && field.wire_type == kFixed64) {
    good = Fixed(8, &field.value);
  } else if (good && field.wire_type == kFixed32) {
    good = Fixed(4, &field.value);
  } else if (good && field.wire_type == kBytes) {
    uint64_t size = 0;
    good = Varint(&size) && size <= rest_.size();
    if (good) {
      field.bytes = rest_.substr(0, size);
      rest_.remove_prefix(size);
    }
  } else {
    good = false;
  }
  damaged_ = !good;
  if (damaged_) return std::nullopt;
  return field;
}

}  // namespace headrace::dashboards
