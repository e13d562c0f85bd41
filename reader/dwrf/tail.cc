#include "reader/dwrf/tail.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "reader/dwrf/chunk.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint64_t kTailRead = 256 << 10;
constexpr uint64_t kMaxBlockBytes = 64 << 20;

Error At(const Source& source, uint64_t offset, const std::string& what,
         const std::string& fix = "the file is truncated or damaged") {
  return Error(ExitCode::kBadData, what, fmt::format("{}: byte {}", source.name(), offset), fix);
}

Error ForeignFile(const Source& source, uint64_t offset, const std::string& format) {
  return At(source, offset, fmt::format("this is {}, not DWRF", format),
            "convert it, or give a DWRF file");
}

// What else a table's file could be, by the bytes that its format puts at its ends. Of those of
// other people's, the formats' own documents: Parquet "PAR1" (with an encrypted footer "PARE"),
// Arrow IPC "ARROW1" and Feather's first version "FEA1" at both ends; Nimble 0xA1FA, little endian,
// at the end.
struct Magic {
  std::string_view bytes;
  const char* format;
};
constexpr Magic kMagicsAtEnd[] = {{"PAR1", "Parquet"},
                                  {"PARE", "Parquet (encrypted)"},
                                  {"ARROW1", "Arrow IPC (Feather)"},
                                  {"FEA1", "Feather version 1"},
                                  {"\xfa\xa1", "Nimble"}};
constexpr Magic kMagicsAtStart[] = {{"PAR1", "Parquet"},
                                    {"PARE", "Parquet (encrypted)"},
                                    {"ARROW1", "Arrow IPC (Feather)"},
                                    {"FEA1", "Feather version 1"},
                                    {std::string_view("Obj\x01", 4), "Avro"},
                                    {"\x1f\x8b", "a gzip file"},
                                    {"\x28\xb5\x2f\xfd", "a zstd file"},
                                    {"\xfd"
                                     "7zXZ",
                                     "an xz file"},
                                    {"BZh", "a bzip2 file"},
                                    {"\x04\x22\x4d\x18", "an lz4 file"},
                                    {"PK\x03\x04", "a zip file"},
                                    {"SQLite format 3", "an SQLite database"}};

// Null where the bytes name no other format. What ends like another format is asked only of files
// that do not begin like DWRF.
const Magic* OtherFormat(std::span<const uint8_t> head, std::span<const uint8_t> tail) {
  const std::string_view begin(reinterpret_cast<const char*>(head.data()), head.size());
  const std::string_view end(reinterpret_cast<const char*>(tail.data()), tail.size());
  if (begin.starts_with("ORC")) return nullptr;
  for (const Magic& magic : kMagicsAtStart)
    if (begin.starts_with(magic.bytes)) return &magic;
  for (const Magic& magic : kMagicsAtEnd)
    if (end.ends_with(magic.bytes)) return &magic;
  return nullptr;
}

// The clues of the format's section 2: field 8000, or field 4 as a packed list, is Apache ORC.
bool LooksLikeApacheOrc(std::span<const uint8_t> postscript) {
  google::protobuf::io::CodedInputStream in(postscript.data(), static_cast<int>(postscript.size()));
  while (uint32_t tag = in.ReadTag()) {
    const uint32_t field = tag >> 3, wire = tag & 7;
    if (field == 8000 || (field == 4 && wire == 2)) return true;
    uint64_t number;
    uint32_t length;
    switch (wire) {
      case 0:
        if (!in.ReadVarint64(&number)) return false;
        break;
      case 1:
        if (!in.Skip(8)) return false;
        break;
      case 2:
        if (!in.ReadVarint32(&length) || !in.Skip(static_cast<int>(length))) return false;
        break;
      case 5:
        if (!in.Skip(4)) return false;
        break;
      default:
        return false;
    }
  }
  return false;
}

// [offset, offset + length), from the speculative tail read where it covers it.
Buffer ReadRange(const Source& source, uint64_t offset, uint64_t length,
                 std::span<const uint8_t> tail, uint64_t tail_offset) {
  Buffer bytes(length);
  if (length == 0) return bytes;
  if (offset >= tail_offset) {
    std::memcpy(bytes.data(), tail.data() + (offset - tail_offset), length);
  } else {
    source.ReadAt(offset, bytes.span());
  }
  return bytes;
}

Schema SchemaOf(const Source& source, const FileTail& tail) {
  std::vector<SchemaNode> nodes;
  nodes.reserve(static_cast<size_t>(tail.footer.types_size()));
  for (const proto::Type& type : tail.footer.types()) {
    if (type.kind() > static_cast<uint32_t>(TypeKind::kUnion)) {
      // Apache ORC's further kinds: DECIMAL, DATE, VARCHAR, CHAR.
      throw At(source, tail.footer_offset,
               fmt::format("footer: type {} has kind {}, which DWRF does not have", nodes.size(),
                           type.kind()),
               type.kind() <= 18 ? "this may be Apache ORC, not DWRF" : "the file is damaged");
    }
    SchemaNode node;
    node.kind = static_cast<TypeKind>(type.kind());
    node.children.assign(type.subtypes().begin(), type.subtypes().end());
    node.field_names.assign(type.field_names().begin(), type.field_names().end());
    nodes.push_back(std::move(node));
  }
  try {
    return Schema(std::move(nodes));
  } catch (const Error& error) {
    throw At(source, tail.footer_offset, "footer: " + error.fact());
  }
}

void CheckStripes(const Source& source, FileTail* tail) {
  const uint64_t end = tail->cache_length > 0 ? tail->cache_offset : tail->footer_offset;
  int index = 0;
  for (const proto::StripeInformation& stripe : tail->footer.stripes()) {
    uint64_t at = stripe.offset();
    for (uint64_t length : {stripe.index_length(), stripe.data_length(), stripe.footer_length()}) {
      if (at > end || length > end - at) {
        throw At(
            source, stripe.offset(),
            fmt::format(
                "footer says stripe {} of {} has {} + {} + {} bytes, the stripes end at byte {}",
                index, tail->footer.stripes_size(), stripe.index_length(), stripe.data_length(),
                stripe.footer_length(), end));
      }
      at += length;
    }
    if (stripe.number_of_rows() > UINT64_MAX / 4 - tail->number_of_rows)
      throw At(source, stripe.offset(),
               fmt::format("stripe {}: {} rows", index, stripe.number_of_rows()));
    tail->number_of_rows += stripe.number_of_rows();
    ++index;
  }
  if (tail->footer.has_number_of_rows() && tail->footer.number_of_rows() != tail->number_of_rows) {
    throw At(source, tail->footer_offset,
             fmt::format("footer says {} rows, its stripes have {}", tail->footer.number_of_rows(),
                         tail->number_of_rows));
  }
}

void MarkEncryptedNodes(const Source& source, FileTail* tail) {
  tail->encrypted_nodes.assign(tail->schema.size(), false);
  for (const proto::EncryptionGroup& group : tail->footer.encryption().encryption_groups()) {
    for (uint32_t node : group.nodes()) {
      if (node >= tail->schema.size())
        throw At(source, tail->footer_offset,
                 fmt::format("footer: encrypted node {} of {}", node, tail->schema.size()));
      for (uint32_t id = node; id <= tail->schema.node(node).last; ++id)
        tail->encrypted_nodes[id] = true;
    }
  }
}

// Where the stripe cache is usable, its place; otherwise length 0. A wrong cache is ignored: it is
// an optimisation.
void LocateCache(FileTail* tail) {
  const uint64_t size = tail->postscript.cache_size();
  tail->cache_offset = tail->footer_offset - size;
  const auto& offsets = tail->footer.stripe_cache_offsets();
  const uint32_t mode = tail->postscript.cache_mode();
  if (size == 0 || size > kMaxMetadataBytes || offsets.size() < 2 || mode == 0 || mode > 3) return;
  if (offsets.Get(0) != 0 || offsets.Get(offsets.size() - 1) > size ||
      !std::is_sorted(offsets.begin(), offsets.end()))
    return;
  tail->cache_length = size;
}

// The postscript, before the file's last byte, which is its length; and what it says of the
// footer's place. `tail_bytes`: the last of the file.
void ReadPostscript(const Source& source, std::span<const uint8_t> tail_bytes, FileTail* tail) {
  const uint64_t size = tail->file_size;
  const uint64_t postscript_length = tail_bytes.back();
  if (postscript_length == 0 || postscript_length + 4 > size) {
    throw At(source, size - 1,
             fmt::format("postscript length {} does not fit a file of {} bytes", postscript_length,
                         size),
             "the file is truncated, or not DWRF");
  }
  const uint64_t postscript_offset = size - 1 - postscript_length;
  const std::span<const uint8_t> postscript =
      tail_bytes.subspan(tail_bytes.size() - 1 - postscript_length, postscript_length);
  if (LooksLikeApacheOrc(postscript)) throw ForeignFile(source, postscript_offset, "Apache ORC");
  if (!tail->postscript.ParseFromArray(postscript.data(), static_cast<int>(postscript.size()))) {
    throw At(source, postscript_offset,
             fmt::format("the {} bytes of the postscript cannot be parsed", postscript_length),
             "the file is truncated, or not DWRF");
  }
  const proto::PostScript& ps = tail->postscript;
  if (ps.compression() > static_cast<uint32_t>(CompressionKind::kGzip))
    throw At(source, postscript_offset,
             fmt::format("postscript: unknown compression {}", ps.compression()));
  tail->compression = static_cast<CompressionKind>(ps.compression());
  tail->block_size = ps.has_compression_block_size() ? ps.compression_block_size() : 256 << 10;
  if (tail->block_size > kMaxBlockBytes) {
    throw At(source, postscript_offset,
             fmt::format("postscript: compression block size {} exceeds the {} supported",
                         tail->block_size, kMaxBlockBytes));
  }
  // All three lengths are below 2^63 once compared with the file's size one by one.
  if (ps.footer_length() > postscript_offset ||
      ps.cache_size() > postscript_offset - ps.footer_length()) {
    throw At(source, postscript_offset,
             fmt::format("postscript says footer {} + cache {} bytes, only {} bytes are before it",
                         ps.footer_length(), ps.cache_size(), postscript_offset));
  }
  if (ps.footer_length() == 0)
    throw At(source, postscript_offset, "postscript says the footer has 0 bytes",
             "the file is truncated, or not DWRF");
  tail->footer_length = ps.footer_length();
  tail->footer_offset = postscript_offset - tail->footer_length;
}

FileTail ReadDwrfTail(const Source& source) {
  FileTail tail;
  const uint64_t size = tail.file_size = source.size();
  if (size == 0)
    throw Error(ExitCode::kBadData, "0 bytes: the file is empty", source.name(),
                "write it again, or make a table with 'headrace generate rm1 -o DIR'");
  if (size < 5) throw At(source, 0, fmt::format("{} bytes are too few for a DWRF file", size));
  const uint64_t tail_offset = size - std::min(size, kTailRead);
  Buffer tail_bytes(size - tail_offset);
  source.ReadAt(tail_offset, tail_bytes.span());
  ReadPostscript(source, tail_bytes.span(), &tail);
  CheckMetadataBytes(tail.footer_length, source.name() + ": footer", tail.footer_offset);
  const Buffer framed =
      ReadRange(source, tail.footer_offset, tail.footer_length, tail_bytes.span(), tail_offset);
  Buffer footer;
  Unframe(framed.span(),
          {tail.compression, tail.block_size, source.name() + ": footer", tail.footer_offset},
          &footer, MaxMetadataBytes(tail.footer_length));
  if (!tail.footer.ParseFromArray(footer.data(), static_cast<int>(footer.size()))) {
    throw At(source, tail.footer_offset,
             fmt::format("the {} bytes of the footer cannot be parsed", footer.size()),
             "the file is damaged, or not DWRF");
  }
  tail.schema = SchemaOf(source, tail);
  if (tail.footer.statistics_size() != 0 &&
      tail.footer.statistics_size() != static_cast<int>(tail.schema.size())) {
    throw At(source, tail.footer_offset,
             fmt::format("footer: {} statistics for {} types", tail.footer.statistics_size(),
                         tail.schema.size()));
  }
  LocateCache(&tail);
  CheckStripes(source, &tail);
  MarkEncryptedNodes(source, &tail);
  return tail;
}

}  // namespace

FileTail ReadTail(const Source& source) {
  try {
    return ReadDwrfTail(source);
  } catch (const Error& error) {
    // Only now: a sound file costs no read of its beginning, which may be far away.
    if (error.code() != ExitCode::kBadData || source.size() == 0) throw;
    const uint64_t size = std::min<uint64_t>(source.size(), 16);
    Buffer head(size), end(size);
    source.ReadAt(0, head.span());
    source.ReadAt(source.size() - size, end.span());
    const Magic* magic = OtherFormat(head.span(), end.span());
    if (magic == nullptr) throw;
    throw ForeignFile(source, 0, magic->format);
  }
}

}  // namespace headrace::reader::dwrf
