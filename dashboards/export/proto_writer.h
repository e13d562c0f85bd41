// Protocol buffers' wire format, written and read without generated code: a handful of messages of
// Perfetto, pprof and OpenTelemetry do not need their whole schemas. Field numbers stand where they
// are used.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headrace::dashboards {

// The bytes of one message, appended field by field.
class ProtoWriter {
 public:
  void Whole(uint32_t field, uint64_t value);        // uint32, uint64, bool, enum
  void Signed(uint32_t field, int64_t value);        // int64, as two's complement
  void Fixed64(uint32_t field, uint64_t value);      // fixed64, sfixed64
  void Double(uint32_t field, double value);         // double
  void Text(uint32_t field, std::string_view text);  // string: what is not UTF-8 becomes U+FFFD
  void Bytes(uint32_t field, std::string_view bytes);
  void Message(uint32_t field, const ProtoWriter& message);
  // Repeated numbers in one field (packed); nothing where there are none.
  void Packed(uint32_t field, std::span<const uint64_t> values);

  const std::string& bytes() const { return bytes_; }

 private:
  void Tag(uint32_t field, uint32_t wire_type);
  void Varint(uint64_t value);

  std::string bytes_;
};

// One field as it lies on the wire.
struct ProtoField {
  uint32_t number = 0;
  uint32_t wire_type = 0;  // 0 varint, 1 fixed64, 2 bytes, 5 fixed32
  uint64_t value = 0;      // of 0, 1 and 5
  std::string_view bytes;  // of 2; points into what the reader was given
  double as_double() const;
};

// Reads the fields of one message in order. Bytes come from anyone: a damaged message ends the
// fields early, and nothing outside of it is read.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}
  // The next field; nothing at the end, or where the bytes are no message (then damaged()).
  std::optional<ProtoField> Next();
  bool damaged() const { return damaged_; }

 private:
  bool Varint(uint64_t* value);
  bool Fixed(size_t size, uint64_t* value);

  std::string_view rest_;
  bool damaged_ = false;
};

}  // namespace headrace::dashboards
