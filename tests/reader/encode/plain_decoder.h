// PlainDecoder: a second, slow DWRF decoder for the writer's tests, made from the format
// description alone and sharing no code with the reader. It reads every stripe from its start, and
// decodes every indexed stream again from each stride's position: both must agree.
#pragma once
#include <libdeflate.h>
#include <lz4.h>
#include <snappy.h>
#include <xxhash.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/dwrf.pb.h"
#include "reader/dwrf/stripe.h"
#include "reader/dwrf/tail.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf::plain {

namespace pb = ::headrace::dwrf::proto;

inline void Require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

inline std::string Decompress(uint32_t kind, const std::string& in, size_t limit) {
  std::string out(limit, '\0');
  size_t n = 0;
  switch (static_cast<CompressionKind>(kind)) {
    case CompressionKind::kZstd:
      n = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
      Require(!ZSTD_isError(n), "zstd");
      break;
    case CompressionKind::kZlib: {
      auto* d = libdeflate_alloc_decompressor();
      const auto rc =
          libdeflate_deflate_decompress(d, in.data(), in.size(), out.data(), out.size(), &n);
      libdeflate_free_decompressor(d);
      Require(rc == LIBDEFLATE_SUCCESS, "deflate");
      break;
    }
    case CompressionKind::kLz4: {
      const int size = LZ4_decompress_safe(in.data(), out.data(), static_cast<int>(in.size()),
                                           static_cast<int>(limit));
      Require(size >= 0, "lz4");
      n = static_cast<size_t>(size);
      break;
    }
    case CompressionKind::kSnappy:
      Require(snappy::GetUncompressedLength(in.data(), in.size(), &n) && n <= limit &&
                  snappy::RawUncompress(in.data(), in.size(), out.data()),
              "snappy");
      break;
    default:
      throw std::runtime_error("codec");
  }
  out.resize(n);
  return out;
}

struct Stream {
  std::string bytes;                    // plain
  std::map<uint64_t, uint64_t> chunks;  // stored offset of a header -> plain offset; and the end
  bool framed = false;
  bool vints = true;
  uint64_t num_original = 0, num_compressed = 0;
};

inline Stream Unframe(const std::string& stored, uint32_t compression, uint64_t block_size) {
  Stream stream;
  stream.framed = compression != 0;
  if (!stream.framed) {
    stream.bytes = stored;
    return stream;
  }
  size_t at = 0;
  while (at < stored.size()) {
    Require(at + 3 <= stored.size(), "chunk header");
    const uint32_t h = static_cast<uint8_t>(stored[at]) |
                       static_cast<uint8_t>(stored[at + 1]) << 8 |
                       static_cast<uint8_t>(stored[at + 2]) << 16;
    stream.chunks[at] = stream.bytes.size();
    Require(at + 3 + (h >> 1) <= stored.size(), "chunk length");
    const std::string payload = stored.substr(at + 3, h >> 1);
    ++(h & 1 ? stream.num_original : stream.num_compressed);
    stream.bytes += h & 1 ? payload : Decompress(compression, payload, block_size);
    Require(payload.size() <= block_size, "block size");
    at += 3 + payload.size();
  }
  stream.chunks[at] = stream.bytes.size();
  return stream;
}

// Reads values of one stream from a byte on.
class Bytes {
 public:
  Bytes(const std::string& bytes, size_t at) : bytes_(bytes), at_(at) {}
  uint8_t Octet() {
    Require(at_ < bytes_.size(), "stream ends early");
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  uint64_t Number(bool is_signed, bool vints, uint32_t width) {
    uint64_t u = 0;
    if (!vints) {
      for (uint32_t i = 0; i < width; ++i) u |= static_cast<uint64_t>(Octet()) << (8 * i);
      if (is_signed && width < 8) {
        const uint32_t shift = 64 - 8 * width;
        u = static_cast<uint64_t>(static_cast<int64_t>(u << shift) >> shift);
      }
      return u;
    }
    for (uint32_t shift = 0;; shift += 7) {
      const uint8_t b = Octet();
      Require(shift < 70, "long varint");
      u |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) break;
    }
    return is_signed ? (u >> 1) ^ (0 - (u & 1)) : u;
  }
  std::vector<int64_t> Runs(uint64_t count, bool is_signed, bool vints, uint32_t width) {
    std::vector<int64_t> out;
    while (out.size() < count) {
      const uint8_t c = Octet();
      if (c < 128) {
        const auto delta =
            static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(Octet())));
        uint64_t v = Number(is_signed, vints, width);
        for (int i = 0; i < c + 3; ++i, v += delta) out.push_back(static_cast<int64_t>(v));
      } else {
        for (int i = 0; i < 256 - c; ++i)
          out.push_back(static_cast<int64_t>(Number(is_signed, vints, width)));
      }
    }
    return out;
  }
  std::vector<int64_t> ByteRuns(uint64_t count) {
    std::vector<int64_t> out;
    while (out.size() < count) {
      const uint8_t c = Octet();
      if (c < 128) {
        out.insert(out.end(), static_cast<size_t>(c) + 3, Octet());
      } else {
        for (int i = 0; i < 256 - c; ++i) out.push_back(Octet());
      }
    }
    return out;
  }
  bool AtEnd() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  size_t at_;
};

class PlainDecoder {
 public:
  explicit PlainDecoder(std::string file) : file_(std::move(file)) {
    const auto tail = static_cast<uint8_t>(file_.back());
    Require(postscript.ParseFromString(file_.substr(file_.size() - 1 - tail, tail)), "postscript");
    block_size_ = postscript.compression_block_size();
    const size_t footer_at = file_.size() - 1 - tail - postscript.footer_length();
    const Stream stored = Unframe(file_.substr(footer_at, postscript.footer_length()),
                                  postscript.compression(), block_size_);
    Require(footer.ParseFromString(stored.bytes), "footer");
    std::vector<SchemaNode> nodes;
    for (const auto& type : footer.types()) {
      SchemaNode node;
      node.kind = static_cast<TypeKind>(type.kind());
      node.children.assign(type.subtypes().begin(), type.subtypes().end());
      node.field_names.assign(type.field_names().begin(), type.field_names().end());
      nodes.push_back(node);
    }
    schema = Schema(nodes);
    CheckCache(footer_at - postscript.cache_size());
  }

  Column Stripe(int i) {
    const auto& info = footer.stripes(i);
    const uint64_t length = info.index_length() + info.data_length() + info.footer_length();
    const std::string stripe = file_.substr(info.offset(), length);
    if (footer.checksum_algorithm() == 4)
      Require(static_cast<int64_t>(XXH64(stripe.data(), stripe.size(), 0)) == info.checksum(),
              "checksum");
    stripe_footer = {};
    Require(stripe_footer.ParseFromString(
                Unframe(stripe.substr(info.index_length() + info.data_length()),
                        postscript.compression(), block_size_)
                    .bytes),
            "stripe footer");
    streams.clear();
    uint64_t at = 0;
    for (const auto& s : stripe_footer.streams()) {
      Stream stream = Unframe(stripe.substr(at, s.length()), postscript.compression(), block_size_);
      stream.vints = s.use_vints();
      Require((s.kind() == 6) == (at < info.index_length()), "stream in the wrong area");
      Require(
          streams.emplace(std::tuple(s.node(), s.sequence(), s.kind()), std::move(stream)).second,
          "stream twice");
      at += s.length();
    }
    Require(at == info.index_length() + info.data_length(), "stripe areas");
    const uint64_t stride = footer.row_index_stride();
    std::vector<uint64_t> cuts;
    for (uint64_t row = 0; stride > 0 && row < info.number_of_rows(); row += stride)
      cuts.push_back(row);
    return Node(0, 0, info.number_of_rows(), cuts, nullptr, {});
  }

  pb::PostScript postscript;
  pb::Footer footer;
  Schema schema;
  // Footer and streams of the stripe decoded last.
  pb::StripeFooter stripe_footer;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Stream> streams;

 private:
  std::string file_;
  uint64_t block_size_ = 0;
  using Cuts = std::vector<uint64_t>;
  // The numbers of one row-index entry, taken in order.
  struct Positions {
    const pb::RowIndexEntry* entry;
    int next = 0;
    uint64_t Take() {
      Require(next < entry->positions_size(), "too few positions");
      return entry->positions(next++);
    }
    uint64_t Byte(const Stream& s) {
      const uint64_t a = Take();
      if (!s.framed) return a;
      const auto chunk = s.chunks.find(a);
      Require(chunk != s.chunks.end(), "position at no chunk");
      return chunk->second + Take();
    }
  };

  void CheckCache(size_t at) {
    if (postscript.cache_size() == 0) return;
    Require(postscript.cache_mode() == 3, "cache mode");
    const auto& offsets = footer.stripe_cache_offsets();
    Require(offsets[0] == 0 && offsets[offsets.size() - 1] == postscript.cache_size(),
            "cache offsets");
    for (int i = 0; i + 1 < offsets.size(); ++i) {
      const auto& s = footer.stripes(i / 2);
      const uint64_t from =
          i % 2 == 0 ? s.offset() : s.offset() + s.index_length() + s.data_length();
      const uint64_t length = i % 2 == 0 ? s.index_length() : s.footer_length();
      Require(
          file_.substr(at + offsets[i], offsets[i + 1] - offsets[i]) == file_.substr(from, length),
          "cache section");
    }
  }

  const Stream* Find(uint32_t node, uint32_t sequence, StreamKind kind) {
    const auto it = streams.find({node, sequence, static_cast<uint32_t>(kind)});
    return it == streams.end() ? nullptr : &it->second;
  }
  const Stream& Get(uint32_t node, uint32_t sequence, StreamKind kind) {
    const Stream* s = Find(node, sequence, kind);
    Require(s != nullptr, "no stream kind " + std::to_string(static_cast<int>(kind)) + " of node " +
                              std::to_string(node));
    return *s;
  }

  std::vector<int64_t> Bits(const Stream& s, uint64_t count, const Cuts& cuts,
                            std::vector<Positions>* positions) {
    const auto unpack = [&](size_t at, uint64_t skip_bytes, uint64_t skip_bits, uint64_t n) {
      const uint64_t need = (skip_bits + n + 7) / 8;
      const auto octets =
          n == 0 ? std::vector<int64_t>() : Bytes(s.bytes, at).ByteRuns(skip_bytes + need);
      std::vector<int64_t> out;
      for (uint64_t i = skip_bits; i < skip_bits + n; ++i)
        out.push_back(octets[skip_bytes + i / 8] >> (7 - i % 8) & 1);
      return out;
    };
    const auto all = unpack(0, 0, 0, count);
    for (size_t e = 0; e < positions->size(); ++e) {
      const uint64_t at = (*positions)[e].Byte(s), bytes = (*positions)[e].Take(),
                     bits = (*positions)[e].Take();
      const auto rest = unpack(at, bytes, bits, count - cuts[e]);
      Require(std::equal(rest.begin(), rest.end(), all.begin() + static_cast<int64_t>(cuts[e])),
              "bits from a stride");
    }
    return all;
  }

  // decode(byte, n) -> n or more values from that byte on.
  std::vector<int64_t> Values(
      const Stream& s, uint64_t count, const Cuts& cuts, std::vector<Positions>* positions,
      bool runs, const std::function<std::vector<int64_t>(uint64_t, uint64_t)>& decode) {
    auto all = count == 0 ? std::vector<int64_t>() : decode(0, count);
    Require(all.size() == count, "a run goes past the last value");
    for (size_t e = 0; positions != nullptr && e < positions->size(); ++e) {
      const uint64_t at = (*positions)[e].Byte(s), skip = runs ? (*positions)[e].Take() : 0;
      if (cuts[e] == count) continue;
      const auto rest = decode(at, skip + count - cuts[e]);
      Require(std::equal(rest.begin() + static_cast<int64_t>(skip), rest.end(),
                         all.begin() + static_cast<int64_t>(cuts[e])),
              "values from a stride");
    }
    return all;
  }
  std::vector<int64_t> Runs(const Stream& s, uint64_t count, bool is_signed, uint32_t width,
                            const Cuts& cuts, std::vector<Positions>* positions) {
    return Values(s, count, cuts, positions, true, [&](uint64_t at, uint64_t n) {
      return Bytes(s.bytes, at).Runs(n, is_signed, s.vints, width);
    });
  }
  std::vector<int64_t> Direct(const Stream& s, uint64_t count, uint32_t width, const Cuts& cuts,
                              std::vector<Positions>* positions) {
    return Values(s, count, cuts, positions, false, [&](uint64_t at, uint64_t n) {
      Bytes in(s.bytes, at);
      std::vector<int64_t> out;
      for (uint64_t i = 0; i < n; ++i)
        out.push_back(static_cast<int64_t>(in.Number(true, s.vints, width)));
      Require(in.AtEnd(), "bytes after the last value");
      return out;
    });
  }
  void Raw(const Stream& s, const Cuts& byte_cuts, std::vector<Positions>* positions) {
    for (size_t e = 0; e < positions->size(); ++e)
      Require((*positions)[e].Byte(s) == byte_cuts[e], "raw position of a stride");
  }

  Column Node(uint32_t node, uint32_t sequence, uint64_t count, const Cuts& cuts,
              const Stream* in_map, const Cuts& map_cuts, uint64_t map_values = 0) {
    const SchemaNode& type = schema.node(node);
    pb::RowIndex index;
    std::vector<Positions> positions;
    if (footer.row_index_stride() > 0) {
      Require(index.ParseFromString(Get(node, sequence, StreamKind::kRowIndex).bytes), "row index");
      Require(static_cast<size_t>(index.entry_size()) == cuts.size(),
              "one row-index entry per stride");
      for (const auto& entry : index.entry()) positions.push_back({&entry});
    }
    if (in_map != nullptr) Bits(*in_map, map_values, map_cuts, &positions);
    Column column;
    column.kind = type.kind;
    column.rows = count;
    Cuts value_cuts = cuts;
    uint64_t values = count;
    if (const Stream* present = Find(node, sequence, StreamKind::kPresent)) {
      const auto bits = Bits(*present, count, cuts, &positions);
      column.present.assign(bits.begin(), bits.end());
      for (size_t e = 0; e < cuts.size(); ++e)
        value_cuts[e] = static_cast<uint64_t>(
            std::count(bits.begin(), bits.begin() + static_cast<int64_t>(cuts[e]), 1));
      values = static_cast<uint64_t>(std::count(bits.begin(), bits.end(), 1));
    }
    const pb::ColumnEncoding* encoding = nullptr;
    for (const auto& e : stripe_footer.encoding())
      if (e.node() == node && e.sequence() == sequence) encoding = &e;
    Require(encoding != nullptr, "no encoding");
    Fill(node, sequence, *encoding, values, value_cuts, &positions, &column);
    for (size_t e = 0; e < positions.size(); ++e) {
      Require(positions[e].next == positions[e].entry->positions_size(), "too many positions");
      const uint64_t end = e + 1 < value_cuts.size() ? value_cuts[e + 1] : values;
      Require(positions[e].entry->statistics().number_of_values() == end - value_cuts[e],
              "values of a stride");
    }
    return column;
  }

  // Puts compact values into the slots of present rows.
  template <class T, class U>
  static void Spread(const Column& column, const std::vector<U>& values, std::vector<T>* out) {
    out->assign(column.rows, T{});
    size_t next = 0;
    for (uint64_t row = 0; row < column.rows; ++row)
      if (!column.IsNull(row)) (*out)[row] = static_cast<T>(values[next++]);
  }
  static Cuts Lengths(const Column& column, const std::vector<int64_t>& lengths, const Cuts& cuts,
                      Column* out) {
    Cuts sums = {0};
    for (const int64_t n : lengths) sums.push_back(sums.back() + static_cast<uint64_t>(n));
    out->offsets = {0};
    size_t next = 0;
    for (uint64_t row = 0; row < column.rows; ++row)
      out->offsets.push_back(out->offsets.back() +
                             (column.IsNull(row) ? 0 : static_cast<uint64_t>(lengths[next++])));
    Cuts item_cuts;
    for (const uint64_t cut : cuts) item_cuts.push_back(sums[cut]);
    return item_cuts;
  }

  void Fill(uint32_t node, uint32_t q, const pb::ColumnEncoding& encoding, uint64_t m,
            const Cuts& cuts, std::vector<Positions>* positions, Column* column) {
    const SchemaNode& type = schema.node(node);
    const bool dictionary = encoding.kind() == 1;
    const uint32_t width = type.kind == TypeKind::kShort ? 2 : type.kind == TypeKind::kInt ? 4 : 8;
    switch (type.kind) {
      case TypeKind::kBoolean:
        return Spread(*column, Bits(Get(node, q, StreamKind::kData), m, cuts, positions),
                      &column->integers);
      case TypeKind::kByte: {
        const Stream& s = Get(node, q, StreamKind::kData);
        auto v = Values(s, m, cuts, positions, true,
                        [&](uint64_t at, uint64_t n) { return Bytes(s.bytes, at).ByteRuns(n); });
        for (int64_t& x : v) x = static_cast<int8_t>(x);
        return Spread(*column, v, &column->integers);
      }
      case TypeKind::kShort:
      case TypeKind::kInt:
      case TypeKind::kLong: {
        if (!dictionary)
          return Spread(*column, Direct(Get(node, q, StreamKind::kData), m, width, cuts, positions),
                        &column->integers);
        const Stream* entries = Find(node, q, StreamKind::kDictionaryData);
        if (entries == nullptr) entries = Find(node, 0, StreamKind::kDictionaryData);
        const auto values = entries == nullptr
                                ? std::vector<int64_t>()
                                : Direct(*entries, encoding.dictionary_size(), width, {}, nullptr);
        const Stream* in = Find(node, q, StreamKind::kInDictionary);
        const auto inside =
            in == nullptr ? std::vector<int64_t>(m, 1) : Bits(*in, m, cuts, positions);
        auto rows = Runs(Get(node, q, StreamKind::kData), m, false, width, cuts, positions);
        for (size_t i = 0; i < rows.size(); ++i) {
          if (inside[i]) {
            rows[i] = values.at(static_cast<size_t>(rows[i]));
          } else if (width < 8) {
            const uint32_t shift = 64 - 8 * width;
            rows[i] = static_cast<int64_t>(static_cast<uint64_t>(rows[i]) << shift) >> shift;
          }
        }
        return Spread(*column, rows, &column->integers);
      }
      case TypeKind::kFloat:
      case TypeKind::kDouble: {
        const Stream& s = Get(node, q, StreamKind::kData);
        const size_t size = type.kind == TypeKind::kFloat ? 4 : 8;
        Require(s.bytes.size() == m * size, "size of floats");
        Cuts byte_cuts = cuts;
        for (uint64_t& cut : byte_cuts) cut *= size;
        Raw(s, byte_cuts, positions);
        std::vector<float> floats(size == 4 ? m : 0);
        std::vector<double> doubles(size == 8 ? m : 0);
        if (m > 0)
          std::memcpy(size == 4 ? static_cast<void*>(floats.data()) : doubles.data(),
                      s.bytes.data(), m * size);
        if (size == 4) return Spread(*column, floats, &column->floats);
        return Spread(*column, doubles, &column->doubles);
      }
      case TypeKind::kTimestamp: {
        auto seconds = Runs(Get(node, q, StreamKind::kData), m, true, 8, cuts, positions);
        auto nanos = Runs(Get(node, q, StreamKind::kNanoData), m, false, 8, cuts, positions);
        for (size_t i = 0; i < m; ++i) {
          const int64_t z = nanos[i] & 7;
          nanos[i] >>= 3;
          for (int64_t k = 0; z != 0 && k < z + 1; ++k) nanos[i] *= 10;
          seconds[i] += 1420099200;
          if (seconds[i] < 0 && nanos[i] != 0) --seconds[i];
        }
        Spread(*column, nanos, &column->nanos);
        return Spread(*column, seconds, &column->integers);
      }
      case TypeKind::kString:
      case TypeKind::kBinary:
        return dictionary ? StringDictionary(node, q, encoding, m, cuts, positions, column)
                          : StringDirect(node, q, m, cuts, positions, column);
      case TypeKind::kStruct:
        for (const uint32_t child : type.children) {
          const Column part = Node(child, q, m, cuts, nullptr, {});
          column->children.push_back(part);
        }
        return;
      default:
        break;
    }
    if (encoding.kind() == 4) return FlatMap(node, m, cuts, column);
    const auto lengths = Runs(Get(node, q, StreamKind::kLength), m, false, 4, cuts, positions);
    const Cuts items = Lengths(*column, lengths, cuts, column);
    for (const uint32_t child : type.children)
      column->children.push_back(Node(child, q, column->offsets.back(), items, nullptr, {}));
  }

  void StringDirect(uint32_t node, uint32_t q, uint64_t m, const Cuts& cuts,
                    std::vector<Positions>* positions, Column* column) {
    // The cuts in bytes follow from LENGTH, whose positions come after DATA's.
    const Stream& s = Get(node, q, StreamKind::kData);
    const Stream& l = Get(node, q, StreamKind::kLength);
    const auto lengths =
        m == 0 ? std::vector<int64_t>() : Bytes(l.bytes, 0).Runs(m, false, l.vints, 4);
    Raw(s, Lengths(*column, lengths, cuts, column), positions);
    Runs(l, m, false, 4, cuts, positions);
    column->bytes = s.bytes;
  }

  void StringDictionary(uint32_t node, uint32_t q, const pb::ColumnEncoding& encoding, uint64_t m,
                        const Cuts& cuts, std::vector<Positions>* positions, Column* column) {
    const auto split = [](const std::string& bytes, const std::vector<int64_t>& lengths) {
      std::vector<std::string> out;
      size_t at = 0;
      for (const int64_t n : lengths) {
        out.push_back(bytes.substr(at, static_cast<size_t>(n)));
        at += static_cast<size_t>(n);
      }
      Require(at == bytes.size(), "dictionary bytes");
      return out;
    };
    const auto entries = split(
        Get(node, q, StreamKind::kDictionaryData).bytes,
        Runs(Get(node, q, StreamKind::kLength), encoding.dictionary_size(), false, 4, {}, nullptr));
    std::vector<std::string> stride_entries;
    Cuts first;  // of each stride's dictionary
    const Stream* in = Find(node, q, StreamKind::kInDictionary);
    if (in != nullptr) {
      const Stream& bytes = Get(node, q, StreamKind::kStrideDictionary);
      const Stream& l = Get(node, q, StreamKind::kStrideDictionaryLength);
      std::vector<int64_t> lengths;
      // The counts lie behind the positions of two streams; those are checked once the cuts are
      // known.
      const int at = static_cast<int>((bytes.framed ? 2 : 1) * 2 + 1 + (*positions)[0].next);
      uint64_t total = 0;
      for (const Positions& p : *positions) {
        first.push_back(total);
        total += p.entry->positions(at);
      }
      lengths = total == 0 ? lengths : Bytes(l.bytes, 0).Runs(total, false, l.vints, 4);
      stride_entries = split(bytes.bytes, lengths);
      Cuts byte_cuts;
      for (const uint64_t f : first) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < f; ++i) sum += stride_entries[i].size();
        byte_cuts.push_back(sum);
      }
      Raw(bytes, byte_cuts, positions);
      Runs(l, total, false, 4, first, positions);
      for (Positions& p : *positions) p.Take();
    }
    const auto rows = Runs(Get(node, q, StreamKind::kData), m, false, 4, cuts, positions);
    const auto inside = in == nullptr ? std::vector<int64_t>(m, 1) : Bits(*in, m, cuts, positions);
    std::vector<int64_t> lengths;
    size_t stride = 0;
    for (uint64_t i = 0; i < m; ++i) {
      while (stride + 1 < cuts.size() && cuts[stride + 1] <= i) ++stride;
      const auto place = static_cast<size_t>(rows[i]);
      const std::string& text =
          inside[i] ? entries.at(place) : stride_entries.at(first[stride] + place);
      column->bytes += text;
      lengths.push_back(static_cast<int64_t>(text.size()));
    }
    Lengths(*column, lengths, cuts, column);
  }

  void FlatMap(uint32_t node, uint64_t m, const Cuts& cuts, Column* column);
};

// The rows of a flattened map as an ordinary map column: entries by ascending sequence. The
// children get the kinds of the schema; values are gathered per key in `parts`, since there is no
// common column to slice from.
struct FlatPart {
  Column value;
  std::vector<int64_t> in_map;
  pb::KeyInfo key;
};

// Appends position `i` of `from` to `to`.
inline void AppendOne(const Column& from, uint64_t i, Column* to) {
  to->kind = from.kind;
  if (from.IsNull(i) && to->present.empty()) to->present.assign(to->rows, 1);
  if (!to->present.empty() || from.IsNull(i)) to->present.push_back(!from.IsNull(i));
  ++to->rows;
  if (!from.integers.empty()) to->integers.push_back(from.integers[i]);
  if (!from.nanos.empty()) to->nanos.push_back(from.nanos[i]);
  if (!from.floats.empty()) to->floats.push_back(from.floats[i]);
  if (!from.doubles.empty()) to->doubles.push_back(from.doubles[i]);
  to->children.resize(from.children.size());
  if (from.offsets.empty()) {
    for (size_t c = 0; c < from.children.size(); ++c)
      if (from.kind == TypeKind::kStruct && !from.IsNull(i)) {
        // A struct's children have slots for present rows only (as decoded): find this row's.
        uint64_t slot = 0;
        for (uint64_t r = 0; r < i; ++r) slot += !from.IsNull(r);
        AppendOne(from.children[c], slot, &to->children[c]);
      }
    return;
  }
  if (to->offsets.empty()) to->offsets.push_back(0);
  const uint64_t n = from.offsets[i + 1] - from.offsets[i];
  to->offsets.push_back(to->offsets.back() + n);
  if (from.kind == TypeKind::kString || from.kind == TypeKind::kBinary) {
    to->bytes += from.bytes.substr(from.offsets[i], n);
    return;
  }
  for (size_t c = 0; c < from.children.size(); ++c)
    for (uint64_t k = 0; k < n; ++k)
      AppendOne(from.children[c], from.offsets[i] + k, &to->children[c]);
}

inline void PlainDecoder::FlatMap(uint32_t node, uint64_t m, const Cuts& cuts, Column* column) {
  const uint32_t key_node = schema.node(node).children[0],
                 value_node = schema.node(node).children[1];
  std::vector<FlatPart> parts;
  for (uint32_t q = 1; Find(value_node, q, StreamKind::kInMap) != nullptr; ++q) {
    const Stream& in_map = Get(value_node, q, StreamKind::kInMap);
    FlatPart part;
    std::vector<Positions> none;
    part.in_map = Bits(in_map, m, {}, &none);
    Cuts value_cuts;
    for (const uint64_t cut : cuts)
      value_cuts.push_back(static_cast<uint64_t>(
          std::count(part.in_map.begin(), part.in_map.begin() + static_cast<int64_t>(cut), 1)));
    const auto count = static_cast<uint64_t>(std::count(part.in_map.begin(), part.in_map.end(), 1));
    part.value = Node(value_node, q, count, value_cuts, &in_map, cuts, m);
    for (const auto& e : stripe_footer.encoding())
      if (e.node() == value_node && e.sequence() == q) part.key = e.key();
    parts.push_back(std::move(part));
  }
  const bool text = schema.node(key_node).kind == TypeKind::kString ||
                    schema.node(key_node).kind == TypeKind::kBinary;
  Column keys, values;
  keys.kind = schema.node(key_node).kind;
  values.kind = schema.node(value_node).kind;
  keys.offsets.assign(text ? 1 : 0, 0);
  column->offsets = {0};
  std::vector<uint64_t> next(parts.size());
  uint64_t slot = 0;
  for (uint64_t row = 0; row < column->rows; ++row) {
    if (!column->IsNull(row)) {
      for (size_t p = 0; p < parts.size(); ++p) {
        if (!parts[p].in_map[slot]) continue;
        ++keys.rows;
        if (text) {
          keys.bytes += parts[p].key.bytes_key();
          keys.offsets.push_back(keys.bytes.size());
        } else {
          keys.integers.push_back(parts[p].key.int_key());
        }
        AppendOne(parts[p].value, next[p]++, &values);
      }
      ++slot;
    }
    column->offsets.push_back(keys.rows);
  }
  column->children = {std::move(keys), std::move(values)};
}

}  // namespace headrace::reader::dwrf::plain
