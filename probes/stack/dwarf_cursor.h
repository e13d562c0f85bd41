// DwarfCursor: reads the numbers of .eh_frame from bytes whose address is known.
//
// The bytes are untrusted: after a read beyond the end, or of a form that does not occur, ok() is
// false and all that follows is 0.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace headrace::probes::stack {

class DwarfCursor {
 public:
  DwarfCursor(std::span<const uint8_t> bytes, uint64_t address)
      : bytes_(bytes), address_(address) {}

  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size() - at_; }
  size_t position() const { return at_; }
  uint64_t address() const { return address_ + at_; }
  void Skip(uint64_t n) {
    if (n > left())
      Fail();
    else
      at_ += n;
  }
  template <typename T>
  T Value() {
    T value{};
    if (left() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint64_t Unsigned() {  // LEB128
    uint64_t value = 0;
    for (int shift = 0; ok_; shift += 7) {
      const uint8_t byte = Value<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
      if (shift > 70) Fail();
    }
    return value;
  }
  int64_t Signed() {
    uint64_t value = 0;
    for (int shift = 0; ok_; shift += 7) {
      const uint8_t byte = Value<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) {
        if (shift + 7 < 64 && (byte & 0x40) != 0) value |= ~0ull << (shift + 7);
        break;
      }
      if (shift > 70) Fail();
    }
    return static_cast<int64_t>(value);
  }
  std::string Text() {
    std::string text;
    while (ok_) {
      const char c = Value<char>();
      if (c == 0) break;
      text += c;
      if (text.size() > 16) Fail();
    }
    return text;
  }
  // A pointer in one of the encodings of .eh_frame (Linux Standard Base, "DWARF Extensions").
  // `data` is the base of data-relative ones. Indirect pointers are not followed.
  uint64_t Pointer(uint8_t encoding, uint64_t data) {
    if (encoding == 0xff) return 0;
    const uint64_t here = address();
    uint64_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
        value = Value<uint64_t>();
        break;
      case 0x01:
        value = Unsigned();
        break;
      case 0x02:
        value = Value<uint16_t>();
        break;
      case 0x03:
        value = Value<uint32_t>();
        break;
      case 0x04:
        value = Value<uint64_t>();
        break;
      case 0x09:
        value = static_cast<uint64_t>(Signed());
        break;
      case 0x0a:
        value = static_cast<uint64_t>(int64_t{Value<int16_t>()});
        break;
      case 0x0b:
        value = static_cast<uint64_t>(int64_t{Value<int32_t>()});
        break;
      case 0x0c:
        value = Value<uint64_t>();
        break;
      default:
        Fail();
    }
    switch (encoding & 0x70) {
      case 0x00:
        break;
      case 0x10:
        value += here;
        break;
      case 0x30:
        value += data;
        break;
      default:
        Fail();
    }
    return value;
  }

 private:
  void Fail() {
    ok_ = false;
    at_ = bytes_.size();
  }
  std::span<const uint8_t> bytes_;
  uint64_t address_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace headrace::probes::stack
