// The example files of other writers, and SHA-256 to compare their rows with the published hashes.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reader/dwrf/row_reader.h"
#include "reader/dwrf/text.h"

namespace headrace::reader::dwrf {

inline std::filesystem::path SharedFolder() {
  const char* set = std::getenv("HEADRACE_DWRF_FILES");
  return set != nullptr
             ? std::filesystem::path(set)
             : std::filesystem::path(HEADRACE_SOURCE_DIR) / ".." / "shared" / "dwrf" / "files";
}

#define HR_NEEDS_SHARED_FILES()                       \
  if (!std::filesystem::is_directory(SharedFolder())) \
  GTEST_SKIP() << "no folder " << SharedFolder().string() << "; HEADRACE_DWRF_FILES names it"

inline std::shared_ptr<const FileReader> OpenShared(const std::string& name,
                                                    const OpenOptions& options = {}) {
  return FileReader::Open(OpenFileSource((SharedFolder() / name).string()), options);
}

// Names of the files that have a NAME.expected.json, sorted.
inline std::vector<std::string> SharedNames() {
  std::vector<std::string> names;
  const std::string suffix = ".expected.json";
  for (const auto& entry : std::filesystem::directory_iterator(SharedFolder())) {
    const std::string name = entry.path().filename().string();
    if (name.size() > suffix.size() && name.ends_with(suffix))
      names.push_back(name.substr(0, name.size() - suffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Sha256 {  // FIPS 180-4
 public:
  void Add(std::string_view text) {
    total_ += text.size();
    while (!text.empty()) {
      const size_t n = std::min(text.size(), 64 - used_);
      std::memcpy(block_.data() + used_, text.data(), n);
      used_ += n;
      text.remove_prefix(n);
      if (used_ == 64) Block();
    }
  }
  std::string Hex() {
    const uint64_t bits = total_ * 8;
    Add(std::string_view("\x80", 1));
    while (used_ != 56) Add(std::string_view("\0", 1));
    std::string length;
    for (int shift = 56; shift >= 0; shift -= 8) length.push_back(static_cast<char>(bits >> shift));
    Add(length);
    std::string hex;
    for (const uint32_t word : h_) {
      for (int shift = 28; shift >= 0; shift -= 4)
        hex.push_back("0123456789abcdef"[(word >> shift) & 15]);
    }
    return hex;
  }

 private:
  static uint32_t Rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }
  void Block() {
    static constexpr uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t w[64];
    for (size_t i = 0; i < 16; ++i) {
      w[i] = uint32_t{block_[4 * i]} << 24 | uint32_t{block_[4 * i + 1]} << 16 |
             uint32_t{block_[4 * i + 2]} << 8 | block_[4 * i + 3];
    }
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t a = Rotate(w[i - 15], 7) ^ Rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const uint32_t b = Rotate(w[i - 2], 17) ^ Rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    std::array<uint32_t, 8> s = h_;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t t1 = s[7] + (Rotate(s[4], 6) ^ Rotate(s[4], 11) ^ Rotate(s[4], 25)) +
                          ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
      const uint32_t t2 = (Rotate(s[0], 2) ^ Rotate(s[0], 13) ^ Rotate(s[0], 22)) +
                          ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
    }
    for (size_t i = 0; i < 8; ++i) h_[i] += s[i];
    used_ = 0;
  }
  std::array<uint32_t, 8> h_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  size_t used_ = 0;
  uint64_t total_ = 0;
};

struct Reading {
  uint64_t batch_rows = 1000, batch_bytes = 8 << 20;
};

// All rows from the reader's place on as text.
inline std::string ReadAll(RowReader& rows, const Reading& reading = {},
                           TextFormat format = TextFormat::kCanonical) {
  std::string text;
  RowPrinter printer(rows.schema(), format, [&](std::string_view piece) { text += piece; });
  Column batch;
  while (rows.NextBatch(reading.batch_rows, reading.batch_bytes, &batch))
    printer.Print(batch, 0, batch.rows);
  printer.Flush();
  return text;
}

inline std::string ReadAll(const std::shared_ptr<const FileReader>& file,
                           RowReaderOptions options = {}, const Reading& reading = {},
                           TextFormat format = TextFormat::kCanonical) {
  RowReader rows(file, std::move(options));
  return ReadAll(rows, reading, format);
}

inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace headrace::reader::dwrf
