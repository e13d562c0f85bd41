// A DWRF file of one stripe spelled out stream by stream, for layouts that no writer of ours
// produces and for damage.
#pragma once
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/dwrf/dwrf.pb.h"
#include "reader/dwrf/file_reader.h"
#include "reader/schema.h"
#include "reader/source/source.h"

namespace headrace::reader::dwrf {

namespace pb = ::headrace::dwrf::proto;
using Bytes = std::string;

struct HandmadeStream {
  uint32_t node, sequence;
  StreamKind kind;
  Bytes bytes;  // plain
  bool use_vints = true;
};
struct HandmadeEncoding {
  uint32_t node, sequence;
  EncodingKind kind;
  uint32_t dictionary_size = 0;
  std::optional<int64_t> key = std::nullopt;
};
struct HandmadeFile {
  std::string schema;
  uint64_t rows = 0;
  std::vector<HandmadeStream> streams;
  std::vector<HandmadeEncoding> encodings;
  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_size = 1024;
  uint32_t row_index_stride = 0;
};

// ---- encoders of plain streams

inline void PutVarint(Bytes* out, uint64_t value) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<char>(value | 128));
  out->push_back(static_cast<char>(value));
}
inline Bytes Plain(const std::vector<int64_t>& values) {  // direct integers
  Bytes out;
  for (const int64_t v : values)
    PutVarint(&out, (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63));
  return out;
}
inline Bytes Rle(const std::vector<uint64_t>& values) {  // unsigned, literals only
  Bytes out;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 128 == 0)
      out.push_back(static_cast<char>(256 - std::min<size_t>(128, values.size() - i)));
    PutVarint(&out, values[i]);
  }
  return out;
}
inline Bytes Bits(const std::vector<int>& bits) {
  Bytes out;
  const size_t num_bytes = (bits.size() + 7) / 8;
  for (size_t i = 0; i < num_bytes; ++i) {
    if (i % 128 == 0) out.push_back(static_cast<char>(256 - std::min<size_t>(128, num_bytes - i)));
    int byte = 0;
    for (size_t k = 0; k < 8; ++k)
      byte = byte << 1 | (8 * i + k < bits.size() ? bits[8 * i + k] : 0);
    out.push_back(static_cast<char>(byte));
  }
  return out;
}
template <typename T>
Bytes Raw(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// ---- the file

inline Bytes Frame(const Bytes& plain, const HandmadeFile& file) {
  if (file.compression == CompressionKind::kNone) return plain;
  Bytes out;
  for (size_t at = 0, chunk = 0; at < plain.size(); at += file.block_size, ++chunk) {
    Bytes payload = plain.substr(at, file.block_size);
    const bool is_original = chunk % 3 == 2;
    if (!is_original) {
      Bytes packed(ZSTD_compressBound(payload.size()), '\0');
      packed.resize(ZSTD_compress(packed.data(), packed.size(), payload.data(), payload.size(), 1));
      payload = packed;
    }
    const size_t header = payload.size() << 1 | size_t{is_original};
    for (int i = 0; i < 3; ++i) out.push_back(static_cast<char>(header >> (8 * i)));
    out += payload;
  }
  return out;
}

inline Bytes BuildFile(const HandmadeFile& file) {
  Bytes out = "ORC";
  pb::StripeFooter stripe_footer;
  for (const HandmadeStream& stream : file.streams) {
    const Bytes stored = Frame(stream.bytes, file);
    pb::Stream* info = stripe_footer.add_streams();
    info->set_kind(static_cast<uint32_t>(stream.kind));
    info->set_node(stream.node);
    info->set_sequence(stream.sequence);
    info->set_length(stored.size());
    info->set_use_vints(stream.use_vints);
    out += stored;
  }
  for (const HandmadeEncoding& encoding : file.encodings) {
    pb::ColumnEncoding* info = stripe_footer.add_encoding();
    info->set_kind(static_cast<uint32_t>(encoding.kind));
    info->set_node(encoding.node);
    info->set_sequence(encoding.sequence);
    info->set_dictionary_size(encoding.dictionary_size);
    if (encoding.key) info->mutable_key()->set_int_key(*encoding.key);
  }
  const uint64_t data_length = out.size() - 3;
  const Bytes stored_footer = Frame(stripe_footer.SerializeAsString(), file);
  out += stored_footer;

  pb::Footer footer;
  footer.set_header_length(3);
  footer.set_content_length(out.size());
  pb::StripeInformation* stripe = footer.add_stripes();
  stripe->set_offset(3);
  stripe->set_index_length(0);
  stripe->set_data_length(data_length);
  stripe->set_footer_length(stored_footer.size());
  stripe->set_number_of_rows(file.rows);
  const Schema schema = Schema::Parse(file.schema);
  for (const SchemaNode& node : schema.nodes()) {
    pb::Type* type = footer.add_types();
    type->set_kind(static_cast<uint32_t>(node.kind));
    for (const uint32_t child : node.children) type->add_subtypes(child);
    for (const std::string& name : node.field_names) type->add_field_names(name);
    footer.add_statistics()->set_number_of_values(0);
  }
  footer.set_number_of_rows(file.rows);
  footer.set_row_index_stride(file.row_index_stride);
  const Bytes stored_tail = Frame(footer.SerializeAsString(), file);
  out += stored_tail;

  pb::PostScript postscript;
  postscript.set_footer_length(stored_tail.size());
  postscript.set_compression(static_cast<uint32_t>(file.compression));
  postscript.set_compression_block_size(file.block_size);
  postscript.set_writer_version(4);
  const Bytes last = postscript.SerializeAsString();
  out += last;
  out.push_back(static_cast<char>(last.size()));
  return out;
}

inline std::shared_ptr<const FileReader> OpenFile(const HandmadeFile& file) {
  return FileReader::Open(MemorySource("handmade.dwrf", BuildFile(file)));
}

}  // namespace headrace::reader::dwrf
