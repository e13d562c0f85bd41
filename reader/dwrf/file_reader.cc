#include "reader/dwrf/file_reader.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "reader/dwrf/chunk.h"

namespace headrace::reader::dwrf {
namespace {

// As for file footers: no honest one packs to a thousandth.
uint64_t MaxStripeFooterBytes(uint64_t stored) { return (uint64_t{1} << 20) + 256 * stored; }

// Checks and translates one stripe's footer.
class StripeBuilder {
 public:
  StripeBuilder(const Source& source, const FileTail& tail, Stripe* stripe)
      : source_(source), tail_(tail), stripe_(stripe) {}

  void Build(const proto::StripeFooter& footer) {
    AddStreams(footer);
    AddEncodings(footer);
    SortKeys();
  }

 private:
  Error Bad(uint64_t offset, const std::string& what) const {
    return Error(ExitCode::kBadData, what,
                 fmt::format("{}: stripe {}, byte {}", source_.name(), stripe_->index, offset),
                 "the file is damaged");
  }
  uint64_t footer_offset() const {
    return stripe_->offset + stripe_->index_length + stripe_->data_length;
  }

  void AddStreams(const proto::StripeFooter& footer) {
    const uint64_t area = stripe_->index_length + stripe_->data_length;
    uint64_t running = 0;
    stripe_->streams.reserve(static_cast<size_t>(footer.streams_size()));
    for (const proto::Stream& stream : footer.streams()) {
      if (stream.has_offset()) running = stream.offset();
      const std::string place =
          fmt::format("stream {} (node {}, sequence {}, kind {})", stripe_->streams.size(),
                      stream.node(), stream.sequence(), stream.kind());
      if (stream.kind() > static_cast<uint32_t>(StreamKind::kInMap))
        throw Bad(footer_offset(), place + " has an unknown kind");
      if (stream.node() >= tail_.schema.size())
        throw Bad(footer_offset(),
                  place + fmt::format(" is of no type, the file has {}", tail_.schema.size()));
      if (running > area || stream.length() > area - running) {
        throw Bad(footer_offset(),
                  fmt::format("{}: {} bytes at {} pass the stripe's {} bytes of streams", place,
                              stream.length(), running, area));
      }
      StreamInfo info;
      info.node = stream.node();
      info.sequence = stream.sequence();
      info.kind = static_cast<StreamKind>(stream.kind());
      info.offset = stripe_->offset + running;
      info.length = stream.length();
      info.use_vints = stream.use_vints();
      info.column = stream.column();
      running += stream.length();
      stripe_->lookup.push_back(
          {info.node, info.sequence, info.kind, static_cast<uint32_t>(stripe_->streams.size())});
      stripe_->streams.push_back(info);
    }
    const auto order = [](const Stripe::StreamKey& k) {
      return std::tuple(k.node, k.sequence, k.kind);
    };
    std::sort(stripe_->lookup.begin(), stripe_->lookup.end(),
              [&](const auto& a, const auto& b) { return order(a) < order(b); });
    for (size_t i = 1; i < stripe_->lookup.size(); ++i) {
      if (order(stripe_->lookup[i - 1]) == order(stripe_->lookup[i])) {
        const auto& key = stripe_->lookup[i];
        throw Bad(footer_offset(), fmt::format("two {} streams of node {} sequence {}",
                                               StreamKindName(key.kind), key.node, key.sequence));
      }
    }
  }

  void AddEncodings(const proto::StripeFooter& footer) {
    uint32_t position = 0;
    for (const proto::ColumnEncoding& encoding : footer.encoding()) {
      const uint32_t node = encoding.has_node() ? encoding.node() : position;
      ++position;
      if (node >= tail_.schema.size())
        throw Bad(footer_offset(),
                  fmt::format("encoding of node {}, the file has {}", node, tail_.schema.size()));
      if (encoding.kind() != 0 && encoding.kind() != 1 && encoding.kind() != 4) {
        throw Bad(
            footer_offset(),
            fmt::format("node {} has encoding {}, which DWRF does not have{}", node,
                        encoding.kind(), encoding.kind() <= 3 ? " (Apache ORC's version 2)" : ""));
      }
      const Encoding value{static_cast<EncodingKind>(encoding.kind()), encoding.dictionary_size()};
      if (!stripe_->encodings.emplace(std::pair(node, encoding.sequence()), value).second) {
        throw Bad(footer_offset(),
                  fmt::format("two encodings of node {} sequence {}", node, encoding.sequence()));
      }
      if (encoding.sequence() > 0 && encoding.has_key()) AddKey(node, encoding);
    }
  }

  // The key belongs to the map whose value subtree `node` is the root of; entries that repeat it
  // below are ignored.
  void AddKey(uint32_t node, const proto::ColumnEncoding& encoding) {
    if (node == 0) return;
    const SchemaNode& map = tail_.schema.node(tail_.schema.node(node).parent);
    if (map.kind != TypeKind::kMap || map.children[1] != node) return;
    const TypeKind key_kind = tail_.schema.node(map.children[0]).kind;
    FlatKey key;
    key.sequence = encoding.sequence();
    if (key_kind == TypeKind::kString || key_kind == TypeKind::kBinary) {
      key.key = MapKey::Of(encoding.key().bytes_key());
    } else if (IsInteger(key_kind)) {
      key.key = MapKey::Of(encoding.key().int_key());
    } else {
      throw Bad(footer_offset(), fmt::format("flattened map {} has keys of type {}", map.id,
                                             TypeKindName(key_kind)));
    }
    pending_[map.id].push_back(std::move(key));
  }

  void SortKeys() {
    for (auto& [map, keys] : pending_) {
      if (!stripe_->IsFlatMap(map))
        continue;  // a nested map below a flattened one repeats keys, harmlessly
      std::sort(keys.begin(), keys.end(),
                [](const FlatKey& a, const FlatKey& b) { return a.sequence < b.sequence; });
      const uint32_t value = tail_.schema.node(map).children[1];
      for (const FlatKey& key : keys) {
        if (stripe_->Find(value, key.sequence, StreamKind::kInMap) == nullptr) {
          throw Bad(footer_offset(), fmt::format("key {} of map {} has no IN_MAP stream",
                                                 key.key.ToString(), tail_.schema.Path(map)));
        }
      }
      stripe_->flat_keys[map] = std::move(keys);
    }
  }

  const Source& source_;
  const FileTail& tail_;
  Stripe* stripe_;
  std::map<uint32_t, std::vector<FlatKey>> pending_;
};

}  // namespace

FileReader::FileReader(std::shared_ptr<const Source> source, FileTail tail,
                       const OpenOptions& options)
    : source_(std::move(source)), tail_(std::move(tail)) {
  uint64_t row = 0;
  for (const proto::StripeInformation& stripe : tail_.footer.stripes()) {
    first_rows_.push_back(row);
    row += stripe.number_of_rows();
  }
  first_rows_.push_back(row);
  if (options.use_cache && tail_.cache_length > 0) {
    cache_.Resize(tail_.cache_length);
    source_->ReadAt(tail_.cache_offset, cache_.span());
  }
}

std::shared_ptr<const FileReader> FileReader::Open(std::shared_ptr<const Source> source,
                                                   const OpenOptions& options) {
  FileTail tail = ReadTail(*source);
  return std::shared_ptr<const FileReader>(
      new FileReader(std::move(source), std::move(tail), options));
}

std::optional<std::span<const uint8_t>> FileReader::CacheSection(size_t section) const {
  const auto& offsets = tail_.footer.stripe_cache_offsets();
  if (cache_.size() == 0 || section + 1 >= static_cast<size_t>(offsets.size())) return std::nullopt;
  const uint32_t begin = offsets.Get(static_cast<int>(section)),
                 end = offsets.Get(static_cast<int>(section) + 1);
  return cache_.span().subspan(begin, end - begin);
}

std::shared_ptr<const Stripe> FileReader::ReadStripe(size_t index) const {
  const proto::StripeInformation& info = tail_.footer.stripes(static_cast<int>(index));
  auto stripe = std::make_shared<Stripe>();
  stripe->index = static_cast<uint32_t>(index);
  stripe->first_row = first_rows_[index];
  stripe->rows = info.number_of_rows();
  stripe->offset = info.offset();
  stripe->index_length = info.index_length();
  stripe->data_length = info.data_length();
  stripe->footer_length = info.footer_length();
  const uint64_t footer_offset = info.offset() + info.index_length() + info.data_length();

  const auto mode = static_cast<CacheMode>(tail_.postscript.cache_mode());
  std::optional<std::span<const uint8_t>> cached;
  if (mode == CacheMode::kFooter) cached = CacheSection(index);
  if (mode == CacheMode::kBoth) cached = CacheSection(2 * index + 1);
  Buffer read;
  if (!cached || cached->size() != info.footer_length()) {
    read.Resize(info.footer_length());
    source_->ReadAt(footer_offset, read.span());
    cached = read.span();
  }
  Buffer footer;
  const std::string where = fmt::format("{}: stripe {}, footer", source_->name(), index);
  Unframe(*cached, {tail_.compression, tail_.block_size, where, footer_offset}, &footer,
          MaxStripeFooterBytes(cached->size()));
  proto::StripeFooter message;
  if (!message.ParseFromArray(footer.data(), static_cast<int>(footer.size()))) {
    throw Error(ExitCode::kBadData,
                fmt::format("the {} bytes of the stripe footer cannot be parsed", footer.size()),
                fmt::format("{} at byte {}", where, footer_offset), "the file is damaged");
  }
  StripeBuilder(*source_, tail_, stripe.get()).Build(message);
  return stripe;
}

Buffer FileReader::ReadIndexArea(size_t index) const {
  const proto::StripeInformation& info = tail_.footer.stripes(static_cast<int>(index));
  const auto mode = static_cast<CacheMode>(tail_.postscript.cache_mode());
  std::optional<std::span<const uint8_t>> cached;
  if (mode == CacheMode::kIndex) cached = CacheSection(index);
  if (mode == CacheMode::kBoth) cached = CacheSection(2 * index);
  Buffer area(info.index_length());
  if (cached && cached->size() == info.index_length()) {
    std::copy(cached->begin(), cached->end(), area.data());
  } else if (info.index_length() > 0) {
    source_->ReadAt(info.offset(), area.span());
  }
  return area;
}

Buffer FileReader::ReadStream(const Stripe& stripe, const StreamInfo& stream) const {
  const auto mode = static_cast<CacheMode>(tail_.postscript.cache_mode());
  std::optional<std::span<const uint8_t>> cached;
  if (mode == CacheMode::kIndex) cached = CacheSection(stripe.index);
  if (mode == CacheMode::kBoth) cached = CacheSection(2 * size_t{stripe.index});
  const uint64_t begin = stream.offset - stripe.offset;
  Buffer bytes(stream.length);
  if (cached && cached->size() == stripe.index_length && begin + stream.length <= cached->size()) {
    std::copy_n(cached->begin() + static_cast<ptrdiff_t>(begin), stream.length, bytes.data());
  } else if (stream.length > 0) {
    source_->ReadAt(stream.offset, bytes.span());
  }
  return bytes;
}

bool FileReader::VerifyChecksum(size_t index) const {
  const proto::StripeInformation& info = tail_.footer.stripes(static_cast<int>(index));
  const auto kind = static_cast<ChecksumKind>(tail_.footer.checksum_algorithm());
  if (!info.has_checksum() || (kind != ChecksumKind::kXxHash && kind != ChecksumKind::kCrc32))
    return false;
  uint64_t left = info.index_length() + info.data_length() + info.footer_length(),
           at = info.offset();
  Buffer block(std::min<uint64_t>(left, 4 << 20));
  const std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> xx(XXH64_createState(),
                                                                             XXH64_freeState);
  XXH64_reset(xx.get(), 0);
  uint32_t crc = static_cast<uint32_t>(crc32(0, nullptr, 0));
  while (left > 0) {
    const std::span<uint8_t> part = block.span().first(std::min<uint64_t>(left, block.size()));
    source_->ReadAt(at, part);
    if (kind == ChecksumKind::kXxHash) {
      XXH64_update(xx.get(), part.data(), part.size());
    } else {
      crc = static_cast<uint32_t>(crc32(crc, part.data(), static_cast<uInt>(part.size())));
    }
    at += part.size();
    left -= part.size();
  }
  const int64_t actual = kind == ChecksumKind::kXxHash
                             ? static_cast<int64_t>(XXH64_digest(xx.get()))
                             : static_cast<int64_t>(crc);
  if (actual != info.checksum()) {
    throw Error(
        ExitCode::kBadData,
        fmt::format("stripe {} does not match its checksum: expected {}, actual {}", index,
                    info.checksum(), actual),
        fmt::format("{}: bytes {} to {}", source_->name(), info.offset(), at),
        "the file is damaged; --no-verify reads it all the same, --skip-bad leaves the stripe out");
  }
  return true;
}

}  // namespace headrace::reader::dwrf
