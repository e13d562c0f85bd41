// The four value encodings of FORMAT section 7, read from a ByteStream in any portions: the
// reference decoders of the general reader (the bulk kernels of the fast path are varint_simd.h,
// rle_simd.h and bool_expand.h).
//
// All are values: a copy continues independently. Seek takes effect with the next read, as
// positions may point past the last value. Reading past the end throws Error kBadData.
#pragma once
#include <cstdint>
#include <cstring>

#include "reader/dwrf/decode/byte_stream.h"
#include "reader/dwrf/decode/rle_simd.h"

namespace headrace::reader::dwrf {

// One integer as `format` stores it, without runs.
inline int64_t ReadInteger(ByteStream* in, IntegerFormat format) {
  if (format.fixed_width == 0) {
    const uint64_t u = in->ReadVarint();
    if (!format.is_signed) return static_cast<int64_t>(u);
    return static_cast<int64_t>(u >> 1) ^ -static_cast<int64_t>(u & 1);
  }
  uint8_t bytes[8] = {};
  in->Read(bytes, format.fixed_width);
  uint64_t u;
  std::memcpy(&u, bytes, 8);
  const int unused = 64 - 8 * format.fixed_width;
  if (format.is_signed) return static_cast<int64_t>(u << unused) >> unused;
  return static_cast<int64_t>(u);
}

// Direct integers (7.4): one after the other.
class DirectDecoder {
 public:
  DirectDecoder() = default;
  DirectDecoder(ByteStream in, IntegerFormat format) : in_(std::move(in)), format_(format) {}
  int64_t Next() { return ReadInteger(&in_, format_); }
  void Skip(uint64_t count) {
    if (format_.fixed_width > 0) return in_.Skip(count * format_.fixed_width);
    for (; count > 0; --count) in_.ReadVarint();
  }
  void Seek(uint64_t stored, uint64_t within) { in_.Seek(stored, within); }
  ByteStream& stream() { return in_; }

 private:
  ByteStream in_;
  IntegerFormat format_;
};

// Integer RLE version 1 (7.3).
class RleDecoder {
 public:
  RleDecoder() = default;
  RleDecoder(ByteStream in, IntegerFormat format) : in_(std::move(in)), format_(format) {}
  int64_t Next() {
    if (pending_ > 0) SkipPending();
    if (left_ == 0) ReadHeader();
    --left_;
    if (!is_run_) return ReadInteger(&in_, format_);
    const int64_t value = value_;
    value_ = static_cast<int64_t>(static_cast<uint64_t>(value_) + static_cast<uint64_t>(delta_));
    return value;
  }
  void Skip(uint64_t count) {
    if (pending_ > 0) SkipPending();
    while (count > 0) {
      if (left_ == 0) ReadHeader();
      const uint64_t n = count < left_ ? count : left_;
      if (is_run_) {
        value_ =
            static_cast<int64_t>(static_cast<uint64_t>(value_) + static_cast<uint64_t>(delta_) * n);
      } else if (format_.fixed_width > 0) {
        in_.Skip(n * format_.fixed_width);
      } else {
        for (uint64_t i = 0; i < n; ++i) in_.ReadVarint();
      }
      left_ -= static_cast<uint32_t>(n);
      count -= n;
    }
  }
  void Seek(uint64_t stored, uint64_t within, uint64_t values) {
    in_.Seek(stored, within);
    left_ = 0;
    pending_ = values;
  }
  ByteStream& stream() { return in_; }

 private:
  void ReadHeader() {
    const uint8_t control = in_.ReadByte();
    is_run_ = control < 128;
    if (is_run_) {
      left_ = control + 3u;
      delta_ = static_cast<int8_t>(in_.ReadByte());
      value_ = ReadInteger(&in_, format_);
    } else {
      left_ = 256u - control;
    }
  }
  void SkipPending() {
    const uint64_t count = pending_;
    pending_ = 0;
    if (count > 130) in_.Throw("the row index skips more values than a run has");
    Skip(count);
  }

  ByteStream in_;
  IntegerFormat format_;
  uint32_t left_ = 0;
  bool is_run_ = false;
  int64_t value_ = 0, delta_ = 0;
  uint64_t pending_ = 0;
};

// Byte RLE (7.1).
class ByteRleDecoder {
 public:
  ByteRleDecoder() = default;
  explicit ByteRleDecoder(ByteStream in) : in_(std::move(in)) {}
  uint8_t Next() {
    if (pending_ > 0) SkipPending();
    if (left_ == 0) ReadHeader();
    --left_;
    return is_run_ ? value_ : in_.ReadByte();
  }
  void Skip(uint64_t count) {
    if (pending_ > 0) SkipPending();
    while (count > 0) {
      if (left_ == 0) ReadHeader();
      const uint64_t n = count < left_ ? count : left_;
      if (!is_run_) in_.Skip(n);
      left_ -= static_cast<uint32_t>(n);
      count -= n;
    }
  }
  // The bytes at hand that are all the same: their number (at least 1), and the byte.
  uint32_t NextRun(uint32_t most, uint8_t* value) {
    if (pending_ > 0) SkipPending();
    if (left_ == 0) ReadHeader();
    if (!is_run_) {
      --left_;
      *value = in_.ReadByte();
      return 1;
    }
    const uint32_t n = most < left_ ? most : left_;
    left_ -= n;
    *value = value_;
    return n;
  }
  void Seek(uint64_t stored, uint64_t within, uint64_t values) {
    in_.Seek(stored, within);
    left_ = 0;
    pending_ = values;
  }
  ByteStream& stream() { return in_; }

 private:
  void ReadHeader() {
    const uint8_t control = in_.ReadByte();
    is_run_ = control < 128;
    if (is_run_) {
      left_ = control + 3u;
      value_ = in_.ReadByte();
    } else {
      left_ = 256u - control;
    }
  }
  void SkipPending() {
    const uint64_t count = pending_;
    pending_ = 0;
    if (count > 130) in_.Throw("the row index skips more bytes than a run has");
    Skip(count);
  }

  ByteStream in_;
  uint32_t left_ = 0;
  bool is_run_ = false;
  uint8_t value_ = 0;
  uint64_t pending_ = 0;
};

// Boolean streams (7.2): most significant bit first.
class BoolDecoder {
 public:
  BoolDecoder() = default;
  explicit BoolDecoder(ByteStream in) : bytes_(std::move(in)) {}
  // `count` bits into out[0, count) as 0 and 1; returns how many are set. A null `out` skips them.
  uint64_t Read(uint64_t count, uint8_t* out) {
    uint64_t set = 0;
    while (count > 0) {
      if (left_ == 0) {
        if (pending_bits_ == 0 && count >= 8) {
          const uint64_t bytes = count / 8;
          uint8_t value;
          const uint32_t n =
              bytes_.NextRun(bytes > 1u << 20 ? 1u << 20 : static_cast<uint32_t>(bytes), &value);
          set += uint64_t{n} * static_cast<uint64_t>(__builtin_popcount(value));
          if (out != nullptr) {
            for (uint32_t i = 0; i < n; ++i) {
              for (int bit = 7; bit >= 0; --bit) *out++ = (value >> bit) & 1;
            }
          }
          count -= uint64_t{n} * 8;
          continue;
        }
        LoadByte();
        continue;
      }
      --left_;
      const uint8_t bit = (byte_ >> left_) & 1;
      set += bit;
      if (out != nullptr) *out++ = bit;
      --count;
    }
    return set;
  }
  uint64_t Skip(uint64_t count) { return Read(count, nullptr); }
  void Seek(uint64_t stored, uint64_t within, uint64_t bytes, uint64_t bits) {
    if (bits > 8) bytes_.stream().Throw("the row index skips more bits than a byte has");
    bytes_.Seek(stored, within, bytes);
    left_ = 0;
    pending_bits_ = static_cast<uint32_t>(bits);
  }
  ByteStream& stream() { return bytes_.stream(); }

 private:
  void LoadByte() {
    byte_ = bytes_.Next();
    left_ = 8 - pending_bits_;
    pending_bits_ = 0;
  }

  ByteRleDecoder bytes_;
  uint8_t byte_ = 0;
  uint32_t left_ = 0, pending_bits_ = 0;
};

}  // namespace headrace::reader::dwrf
