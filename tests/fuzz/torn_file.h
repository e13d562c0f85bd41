// TornFile: a DWRF file taken apart and put together again with other metadata, whose lengths,
// offsets and checksums are right.
#pragma once
#include <fmt/format.h>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "reader/dwrf/chunk.h"
#include "reader/dwrf/encode/chunk_encoder.h"
#include "reader/dwrf/stripe.h"
#include "reader/dwrf/tail.h"
#include "reader/source/source.h"
#include "tests/fuzz/wire_mutation.h"

namespace headrace::fuzz {

namespace dwrf = reader::dwrf;
namespace proto = dwrf::proto;

// A file taken apart: stripes' streams and footers as they are stored, and the metadata unframed.
class TornFile {
 public:
  explicit TornFile(std::string bytes) : bytes_(std::move(bytes)) {
    tail_ = dwrf::ReadTail(*reader::MemorySource("torn.dwrf", bytes_));
    for (const proto::StripeInformation& info : tail_.footer.stripes()) {
      Stripe stripe;
      const uint64_t streams = info.index_length() + info.data_length();
      stripe.streams = bytes_.substr(info.offset(), streams);
      stripe.footer = Unframed(bytes_.substr(info.offset() + streams, info.footer_length()));
      stripes_.push_back(std::move(stripe));
    }
  }

  // One damage of a kind drawn by the dice; what it is.
  std::string Damage(Dice* dice) {
    const uint64_t kind = Below(dice, stripes_.empty() ? 3 : 12);
    if (kind == 0) {
      mutate_postscript_ = [dice](const std::string& b, std::string* s) {
        return Mutate(b, dice, s);
      };
      return "postscript";
    }
    if (kind < 3) {
      mutate_footer_ = [dice](const std::string& b, std::string* s) { return Mutate(b, dice, s); };
      return "footer";
    }
    drop_cache_ = true;
    const size_t index = Below(dice, stripes_.size());
    Stripe& stripe = stripes_[index];
    std::string said = fmt::format("stripe {}", index);
    if (kind < 6) {
      said += " footer";
      stripe.footer = Mutate(stripe.footer, dice, &said);
      return said;
    }
    if (kind == 10) {
      BloatIndex(index, dice, &said);
      return said;
    }
    if (kind == 11) {
      const uint32_t inner = FlattenInner(index);
      if (inner != 0) return said + fmt::format(" map {} flattened below another", inner);
    }
    // Two of three: a row index; else data.
    MutateStream(index, kind < 9, dice, &said);
    return said;
  }

  void Rename(const std::string& name) {
    drop_cache_ = true;
    int number = 0;
    const auto next = [&] { return name + std::to_string(number++); };
    for (auto& type : *tail_.footer.mutable_types())
      for (auto& field : *type.mutable_field_names()) field = next();
    for (auto& item : *tail_.footer.mutable_metadata()) {
      item.set_name(name);
      item.set_value(name);
    }
    for (auto& statistics : *tail_.footer.mutable_statistics()) {
      if (!statistics.has_string_statistics()) continue;
      statistics.mutable_string_statistics()->set_minimum(name);
      statistics.mutable_string_statistics()->set_maximum(name);
    }
    for (Stripe& stripe : stripes_) {
      proto::StripeFooter footer;
      HR_CHECK(footer.ParseFromString(stripe.footer), "a sound stripe footer");
      for (auto& encoding : *footer.mutable_encoding())
        if (encoding.key().has_bytes_key()) encoding.mutable_key()->set_bytes_key(next());
      stripe.footer = footer.SerializeAsString();
    }
  }

  void RaiseMaxima() {
    for (auto& statistics : *tail_.footer.mutable_statistics()) {
      if (!statistics.has_int_statistics()) continue;
      auto* integers = statistics.mutable_int_statistics();
      integers->set_maximum(integers->maximum() + 1);
    }
  }

  proto::Footer* footer() { return &tail_.footer; }

  // Changes the footer of a stripe.
  void EditStripeFooter(size_t stripe, const std::function<void(proto::StripeFooter*)>& edit) {
    drop_cache_ = true;
    proto::StripeFooter footer;
    HR_CHECK(footer.ParseFromString(stripes_[stripe].footer), "a sound stripe footer");
    edit(&footer);
    stripes_[stripe].footer = footer.SerializeAsString();
  }

  // Replaces the unframed bytes of a stream by edit(them); its length in the stripe's footer and
  // the places of the streams after it follow. Nothing where there is no such stream. Not
  // compressed, unless `packed`.
  void EditStream(size_t stripe_index, dwrf::StreamKind kind, uint32_t node, uint32_t sequence,
                  const std::function<std::string(std::string)>& edit, bool packed = false) {
    drop_cache_ = true;
    Stripe& stripe = stripes_[stripe_index];
    proto::StripeFooter footer;
    HR_CHECK(footer.ParseFromString(stripe.footer), "a sound stripe footer");
    std::string streams;
    uint64_t running = 0;
    for (proto::Stream& stream : *footer.mutable_streams()) {
      if (stream.has_offset()) running = stream.offset();
      std::string part =
          stripe.streams.substr(std::min<size_t>(running, stripe.streams.size()), stream.length());
      running += stream.length();
      stream.clear_offset();  // now one after another
      if (stream.kind() == static_cast<uint32_t>(kind) && stream.node() == node &&
          stream.sequence() == sequence) {
        part = edit(Unframed(part));
        part = packed ? Packed(part) : Framed(part);
        stream.set_length(part.size());
      }
      streams += part;
    }
    stripe.streams = std::move(streams);
    stripe.footer = footer.SerializeAsString();
  }

  // Makes all row indexes of a stripe one stored stream of the bytes `plain`, by its place, and
  // compressed where the file is: a few stored bytes then stand for any number of long indexes.
  void ShareIndex(size_t stripe_index, const std::string& plain) {
    Stripe& stripe = stripes_[stripe_index];
    const std::string stored = Packed(plain);
    EditStripeFooter(stripe_index, [&](proto::StripeFooter* footer) {
      uint64_t running = 0;
      for (proto::Stream& stream : *footer->mutable_streams()) {
        if (stream.has_offset()) running = stream.offset();
        stream.set_offset(running);
        running += stream.length();
        if (stream.kind() != static_cast<uint32_t>(dwrf::StreamKind::kRowIndex)) continue;
        stream.set_offset(stripe.streams.size());
        stream.set_length(stored.size());
      }
    });
    stripe.streams += stored;
  }

  // Says of a map below a flattened one that it is flattened too, with a key at the sequence of a
  // key above it that no row has. Its node; 0 where there is no such map.
  uint32_t FlattenInner(size_t stripe_index) {
    uint32_t inner = 0;
    EditStripeFooter(stripe_index, [&](proto::StripeFooter* footer) {
      for (const proto::ColumnEncoding& encoding : footer->encoding())
        if (inner == 0 && encoding.kind() == static_cast<uint32_t>(dwrf::EncodingKind::kMapFlat))
          inner = MapBelow(encoding.node());
      if (inner == 0) return;
      const uint32_t value = tail_.schema.node(inner).children[1];
      Encoding(footer, inner, 0)->set_kind(static_cast<uint32_t>(dwrf::EncodingKind::kMapFlat));
      const reader::TypeKind kind = tail_.schema.node(tail_.schema.node(inner).children[0]).kind;
      if (kind == reader::TypeKind::kString) {
        Encoding(footer, value, 1)->mutable_key()->set_bytes_key("inner");
      } else {
        Encoding(footer, value, 1)->mutable_key()->set_int_key(1);
      }
      proto::Stream* in_map = footer->add_streams();
      in_map->set_kind(static_cast<uint32_t>(dwrf::StreamKind::kInMap));
      in_map->set_node(value);
      in_map->set_sequence(1);
      in_map->set_length(0);
    });
    return inner;
  }

  // The file put together: lengths, offsets and checksums as they are now.
  std::string Bytes(std::string* said) {
    std::string out = "ORC";
    for (size_t i = 0; i < stripes_.size(); ++i) PutStripe(i, &out);
    proto::PostScript ps = tail_.postscript;
    if (drop_cache_) {
      ps.clear_cache_mode();
      ps.clear_cache_size();
      tail_.footer.clear_stripe_cache_offsets();
    } else {
      out += bytes_.substr(tail_.footer_offset - ps.cache_size(), ps.cache_size());
    }
    std::string footer = tail_.footer.SerializeAsString();
    if (mutate_footer_) footer = mutate_footer_(footer, said);
    footer = Framed(footer);
    out += footer;
    ps.set_footer_length(footer.size());
    std::string postscript = ps.SerializeAsString();
    if (mutate_postscript_) postscript = mutate_postscript_(postscript, said);
    postscript.resize(std::min<size_t>(postscript.size(), 255));
    return out + postscript + static_cast<char>(postscript.size());
  }

 private:
  struct Stripe {
    std::string streams;  // as stored: index and data
    std::string footer;   // unframed
  };

  bool framed() const { return tail_.compression != dwrf::CompressionKind::kNone; }
  std::string Unframed(const std::string& stored) const {
    Buffer out;
    dwrf::Unframe({reinterpret_cast<const uint8_t*>(stored.data()), stored.size()},
                  {tail_.compression, tail_.block_size, "section", 0}, &out);
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  }
  // In chunks that are not compressed.
  std::string Framed(const std::string& plain) const {
    if (!framed()) return plain;
    std::string out;
    const size_t most = std::min<uint64_t>(std::max<uint64_t>(tail_.block_size, 1), 1 << 22);
    for (size_t at = 0; at < plain.size(); at += most) {
      const std::string part = plain.substr(at, most);
      const auto header = static_cast<uint32_t>(part.size() << 1 | 1);
      for (int shift = 0; shift < 24; shift += 8) out.push_back(static_cast<char>(header >> shift));
      out += part;
    }
    return out;
  }

  // In compressed chunks, where there is an encoder for the file's compression.
  std::string Packed(const std::string& plain) const {
    using dwrf::CompressionKind;
    if (tail_.compression == CompressionKind::kLzo || tail_.compression == CompressionKind::kGzip)
      return Framed(plain);
    dwrf::WriterOptions options;
    options.compression = tail_.compression;
    options.block_size = std::clamp<uint64_t>(tail_.block_size, 1, (8 << 20) - 1);
    dwrf::ByteSink sink;
    dwrf::ChunkEncoder(options).Encode(
        {reinterpret_cast<const uint8_t*>(plain.data()), plain.size()}, true, &sink);
    return {reinterpret_cast<const char*>(sink.data()), sink.size()};
  }

  // The first map below the value of the map `node`; 0 where there is none.
  uint32_t MapBelow(uint32_t node) const {
    if (node >= tail_.schema.size() || tail_.schema.node(node).kind != reader::TypeKind::kMap)
      return 0;
    for (uint32_t below = tail_.schema.node(node).children[1];
         below <= tail_.schema.node(node).last; ++below)
      if (tail_.schema.node(below).kind == reader::TypeKind::kMap) return below;
    return 0;
  }
  // The encoding of (node, sequence), added where there is none.
  static proto::ColumnEncoding* Encoding(proto::StripeFooter* footer, uint32_t node,
                                         uint32_t sequence) {
    for (proto::ColumnEncoding& encoding : *footer->mutable_encoding())
      if (encoding.node() == node && encoding.sequence() == sequence) return &encoding;
    proto::ColumnEncoding* added = footer->add_encoding();
    added->set_kind(static_cast<uint32_t>(dwrf::EncodingKind::kDirect));
    added->set_node(node);
    added->set_sequence(sequence);
    return added;
  }

  // A long row index for all columns of the stripe, of as many entries as it has rows or strides:
  // short ones, or with numbers that take eight times their bytes in memory.
  void BloatIndex(size_t stripe, Dice* dice, std::string* said) {
    const uint64_t rows = tail_.footer.stripes(static_cast<int>(stripe)).number_of_rows();
    if (Below(dice, 2) == 0) tail_.footer.set_row_index_stride(1);
    const uint64_t stride = std::max<uint64_t>(tail_.footer.row_index_stride(), 1);
    const uint64_t entries = std::min<uint64_t>((rows + stride - 1) / stride, 1 << 20);
    proto::RowIndex index;
    for (uint64_t i = 0; i < entries; ++i) index.add_entry();
    if (entries > 0 && Below(dice, 2) == 0)
      index.mutable_entry(0)->mutable_positions()->Resize(1 << 19, 0);
    ShareIndex(stripe, index.SerializeAsString());
    *said += fmt::format(" one row index of {} bytes in strides of {} for all columns",
                         index.ByteSizeLong(), stride);
  }

  // A row index or a data stream, drawn by the dice.
  void MutateStream(size_t stripe, bool index, Dice* dice, std::string* said) {
    proto::StripeFooter footer;
    if (!footer.ParseFromString(stripes_[stripe].footer)) return;
    std::vector<int> choices;
    for (int i = 0; i < footer.streams_size(); ++i) {
      const auto kind = static_cast<dwrf::StreamKind>(footer.streams(i).kind());
      if (dwrf::IsIndexStream(kind) == index && footer.streams(i).length() > 0)
        choices.push_back(i);
    }
    if (choices.empty()) return;
    const proto::Stream stream = footer.streams(choices[Below(dice, choices.size())]);
    *said += fmt::format(" stream kind {} node {} sequence {}", stream.kind(), stream.node(),
                         stream.sequence());
    EditStream(stripe, static_cast<dwrf::StreamKind>(stream.kind()), stream.node(),
               stream.sequence(), [&](std::string plain) {
                 if (index) return Mutate(plain, dice, said);
                 ChangeBytes(&plain, dice);
                 return plain;
               });
  }

  void PutStripe(size_t index, std::string* out) {
    auto* info = tail_.footer.mutable_stripes(static_cast<int>(index));
    const Stripe& stripe = stripes_[index];
    const std::string footer = Framed(stripe.footer);
    const uint64_t before = info->index_length() + info->data_length();
    info->set_offset(out->size());
    // Where the border between index and data lies matters to nobody who reads streams by the
    // footer.
    if (stripe.streams.size() != before) {
      info->set_index_length(std::min<uint64_t>(info->index_length(), stripe.streams.size()));
      info->set_data_length(stripe.streams.size() - info->index_length());
    }
    info->set_footer_length(footer.size());
    const std::string bytes = stripe.streams + footer;
    *out += bytes;
    if (!info->has_checksum()) return;
    const auto kind = static_cast<dwrf::ChecksumKind>(tail_.footer.checksum_algorithm());
    if (kind == dwrf::ChecksumKind::kXxHash)
      info->set_checksum(static_cast<int64_t>(XXH64(bytes.data(), bytes.size(), 0)));
    if (kind == dwrf::ChecksumKind::kCrc32)
      info->set_checksum(static_cast<int64_t>(crc32_z(
          crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size())));
  }

  std::string bytes_;
  dwrf::FileTail tail_;
  std::vector<Stripe> stripes_;
  bool drop_cache_ = false;
  std::function<std::string(const std::string&, std::string*)> mutate_footer_, mutate_postscript_;
};

}  // namespace headrace::fuzz
