#include "reader/dwrf/file_reader.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "reader/dwrf/chunk.h"
#include "reader/dwrf/stripe_footer.h"

namespace headrace::reader::dwrf {
namespace {

bool Fits(int64_t number, TypeKind kind) {
  switch (kind) {
    case TypeKind::kByte:
      return number == static_cast<int8_t>(number);
    case TypeKind::kShort:
      return number == static_cast<int16_t>(number);
    case TypeKind::kInt:
      return number == static_cast<int32_t>(number);
    default:
      return true;
  }
}

// Checks and translates one stripe's footer.
class StripeBuilder {
 public:
  StripeBuilder(const Source& source, const FileTail& tail, Stripe* stripe)
      : source_(source), tail_(tail), stripe_(stripe) {}

  // Once for the plain part of the footer (group 0), and once for each open encryption group. False
  // when the bytes cannot be parsed. Encrypted parts, which are views, are appended to `groups`.
  bool Add(std::span<const uint8_t> footer, uint32_t group,
           std::vector<std::span<const uint8_t>>* groups) {
    using Item = StripeFooterReader::Item;
    StripeFooterReader reader(footer);
    const StripeFooterReader::Counts counts = reader.Count();
    stripe_->streams.reserve(stripe_->streams.size() + counts.streams);
    stripe_->lookup.reserve(stripe_->streams.capacity());
    stripe_->encodings.reserve(stripe_->encodings.size() + counts.encodings);
    part_ = {group};
    for (;;) {
      switch (reader.Next()) {
        case Item::kStream:
          AddStream(reader.stream());
          break;
        case Item::kEncoding:
          AddEncoding(reader.encoding());
          break;
        case Item::kEncryptionGroup:
          groups->push_back(reader.encryption_group());
          break;
        case Item::kEnd:
          return true;
        case Item::kDamaged:
          return false;
      }
    }
  }
  void Finish() {
    SortStreams();
    SortEncodings();
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

  // Encrypted columns are in their group's part alone: anything else would get round the key.
  // what() names the thing; a footer lists thousands, so only a wrong one gets its name.
  template <class What>
  void CheckGroup(uint32_t node, uint32_t group, const What& what) const {
    const uint32_t belongs = stripe_->keys->GroupOf(node);
    if (belongs == group) return;
    throw Bad(footer_offset(),
              fmt::format("{} is listed in {}, but belongs to {}", what(),
                          group == 0 ? "plain" : fmt::format("encryption group {}", group - 1),
                          belongs == 0 ? "none" : fmt::format("encryption group {}", belongs - 1)));
  }

  void AddStream(const FooterStream& stream) {
    const uint64_t area = stripe_->index_length + stripe_->data_length;
    uint64_t& running = part_.running;
    if (stream.offset) running = *stream.offset;
    const auto place = [&] {
      return fmt::format("stream {} (node {}, sequence {}, kind {})", stripe_->streams.size(),
                         stream.node, stream.sequence, stream.kind);
    };
    if (stream.kind > static_cast<uint32_t>(StreamKind::kInMap))
      throw Bad(footer_offset(), place() + " has an unknown kind");
    if (stream.node >= tail_.schema.size())
      throw Bad(footer_offset(),
                place() + fmt::format(" is of no type, the file has {}", tail_.schema.size()));
    if (running > area || stream.length > area - running) {
      throw Bad(footer_offset(),
                fmt::format("{}: {} bytes at {} pass the stripe's {} bytes of streams", place(),
                            stream.length, running, area));
    }
    CheckGroup(stream.node, part_.group, place);
    StreamInfo info;
    info.group = part_.group;
    info.node = stream.node;
    info.sequence = stream.sequence;
    info.kind = static_cast<StreamKind>(stream.kind);
    info.offset = stripe_->offset + running;
    info.length = stream.length;
    info.use_vints = stream.use_vints;
    info.column = stream.column;
    info.ordinal = IsIndexStream(info.kind) ? part_.index_ordinal++ : part_.data_ordinal++;
    running += stream.length;
    stripe_->lookup.push_back(
        {info.node, info.sequence, info.kind, static_cast<uint32_t>(stripe_->streams.size())});
    stripe_->streams.push_back(info);
  }

  // By (node, sequence, kind). Sequences count the keys of a map: there are not many more of them
  // than streams.
  void SortStreams() {
    auto& lookup = stripe_->lookup;
    uint32_t last = 0;
    for (const Stripe::StreamKey& key : lookup) last = std::max(last, key.sequence);
    if (last <= 2 * lookup.size())
      CountingSort(&lookup, size_t{last} + 1, [](const auto& key) { return key.sequence; });
    const std::vector<size_t> ends =
        CountingSort(&lookup, tail_.schema.size(), [](const auto& key) { return key.node; });
    const auto order = [](const Stripe::StreamKey& k) {
      return uint64_t{k.sequence} << 8 | static_cast<uint64_t>(k.kind);
    };
    const auto before = [&](const auto& a, const auto& b) { return order(a) < order(b); };
    size_t first = 0;
    for (size_t node = 0; node < tail_.schema.size(); first = ends[node++])
      SortNode(std::span(lookup).subspan(first, ends[node] - first), before);
    for (size_t i = 1; i < lookup.size(); ++i) {
      const auto& key = lookup[i];
      if (lookup[i - 1].node != key.node || before(lookup[i - 1], key)) continue;
      throw Bad(footer_offset(), fmt::format("two {} streams of node {} sequence {}",
                                             StreamKindName(key.kind), key.node, key.sequence));
    }
  }
  // Stable. Returns where the keys of each of the `values` values end.
  template <typename ValueOf>
  static std::vector<size_t> CountingSort(std::vector<Stripe::StreamKey>* keys, size_t values,
                                          ValueOf value_of) {
    std::vector<size_t> ends(values + 1);
    for (const Stripe::StreamKey& key : *keys) ++ends[value_of(key) + 1];
    for (size_t value = 1; value <= values; ++value) ends[value] += ends[value - 1];
    std::vector<Stripe::StreamKey> sorted(keys->size());
    for (const Stripe::StreamKey& key : *keys) sorted[ends[value_of(key)]++] = key;
    *keys = std::move(sorted);
    return ends;
  }
  template <typename Before>
  static void SortNode(std::span<Stripe::StreamKey> keys, Before before) {
    const auto sequence = [](const Stripe::StreamKey& key) { return key.sequence; };
    if (!std::ranges::is_sorted(keys, {}, sequence))
      return std::sort(keys.begin(), keys.end(), before);
    for (size_t first = 0, end = 0; first < keys.size(); first = end) {
      while (end < keys.size() && keys[end].sequence == keys[first].sequence) ++end;
      if (end - first > 1)
        std::sort(keys.begin() + static_cast<ptrdiff_t>(first),
                  keys.begin() + static_cast<ptrdiff_t>(end), before);
    }
  }

  void SortEncodings() {
    auto& encodings = stripe_->encodings;
    const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(encodings.begin(), encodings.end(), before))
      std::sort(encodings.begin(), encodings.end(), before);
    for (size_t i = 1; i < encodings.size(); ++i) {
      if (encodings[i - 1].first != encodings[i].first) continue;
      const auto [node, sequence] = encodings[i].first;
      throw Bad(footer_offset(),
                fmt::format("two encodings of node {} sequence {}", node, sequence));
    }
  }

  void AddEncoding(const FooterEncoding& encoding) {
    const uint32_t node = encoding.node.value_or(part_.encodings);
    ++part_.encodings;
    if (node >= tail_.schema.size())
      throw Bad(footer_offset(),
                fmt::format("encoding of node {}, the file has {}", node, tail_.schema.size()));
    CheckGroup(node, part_.group, [&] { return fmt::format("the encoding of node {}", node); });
    if (encoding.kind != 0 && encoding.kind != 1 && encoding.kind != 4) {
      throw Bad(footer_offset(),
                fmt::format("node {} has encoding {}, which DWRF does not have{}", node,
                            encoding.kind, encoding.kind <= 3 ? " (Apache ORC's version 2)" : ""));
    }
    const Encoding value{static_cast<EncodingKind>(encoding.kind), encoding.dictionary_size};
    stripe_->encodings.emplace_back(std::pair(node, encoding.sequence), value);
    if (encoding.sequence > 0 && encoding.has_key) AddKey(node, encoding);
  }

  // The key belongs to the map whose value subtree `node` is the root of; entries that repeat it
  // below are ignored.
  void AddKey(uint32_t node, const FooterEncoding& encoding) {
    if (node == 0) return;
    const SchemaNode& map = tail_.schema.node(tail_.schema.node(node).parent);
    if (map.kind != TypeKind::kMap || map.children[1] != node) return;
    const TypeKind key_kind = tail_.schema.node(map.children[0]).kind;
    FlatKey key;
    key.sequence = encoding.sequence;
    if (key_kind == TypeKind::kString || key_kind == TypeKind::kBinary) {
      key.key = MapKey::Of(std::string(encoding.bytes_key));
    } else if (IsInteger(key_kind)) {
      const int64_t number = encoding.int_key;
      if (!Fits(number, key_kind))
        throw Bad(footer_offset(), fmt::format("key {} of map {} is no {}", number,
                                               tail_.schema.Path(map.id), TypeKindName(key_kind)));
      key.key = MapKey::Of(number);
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
      CheckNotNested(map);
      std::sort(keys.begin(), keys.end(),
                [](const FlatKey& a, const FlatKey& b) { return a.sequence < b.sequence; });
      CheckUnique(map, keys);
      CheckInMap(map, keys);
      stripe_->flat_keys[map] = std::move(keys);
    }
  }

  // Keys and streams are sorted, so that one pass finds all.
  void CheckInMap(uint32_t map, const std::vector<FlatKey>& keys) const {
    const uint32_t value = tail_.schema.node(map).children[1];
    const auto& streams = stripe_->lookup;
    auto stream =
        std::lower_bound(streams.begin(), streams.end(), value,
                         [](const Stripe::StreamKey& a, uint32_t node) { return a.node < node; });
    for (const FlatKey& key : keys) {
      const auto wanted = std::tuple(value, key.sequence, StreamKind::kInMap);
      const auto place = [&] { return std::tuple(stream->node, stream->sequence, stream->kind); };
      while (stream != streams.end() && place() < wanted) ++stream;
      if (stream != streams.end() && place() == wanted) continue;
      throw Bad(footer_offset(), fmt::format("key {} of map {} has no IN_MAP stream",
                                             key.key.ToString(), tail_.schema.Path(map)));
    }
  }

  // Keys are sequences of the whole map: one that is below another's keys has none of its own.
  void CheckNotNested(uint32_t map) const {
    for (uint32_t node = map; node != 0;) {
      node = tail_.schema.node(node).parent;
      if (tail_.schema.node(node).kind != TypeKind::kMap || !stripe_->IsFlatMap(node)) continue;
      throw Bad(footer_offset(), fmt::format("map {} is flattened below the flattened map {}",
                                             tail_.schema.Path(map), tail_.schema.Path(node)));
    }
  }

  // Two sub-columns of one key would be one feature to a job and two entries to everyone else.
  void CheckUnique(uint32_t map, const std::vector<FlatKey>& keys) const {
    const auto not_ascending = [](const FlatKey& a, const FlatKey& b) { return a.key >= b.key; };
    if (std::adjacent_find(keys.begin(), keys.end(), not_ascending) == keys.end()) return;
    std::vector<const MapKey*> sorted;
    for (const FlatKey& key : keys) sorted.push_back(&key.key);
    std::sort(sorted.begin(), sorted.end(),
              [](const MapKey* a, const MapKey* b) { return *a < *b; });
    const auto twice = std::adjacent_find(
        sorted.begin(), sorted.end(), [](const MapKey* a, const MapKey* b) { return *a == *b; });
    if (twice == sorted.end()) return;
    throw Bad(footer_offset(), fmt::format("key {} of map {} has two sequences",
                                           (*twice)->ToString(), tail_.schema.Path(map)));
  }

  const Source& source_;
  const FileTail& tail_;
  Stripe* stripe_;
  // Of the part of the footer that is being added: its group, where its next stream begins, and
  // what it had so far.
  struct Part {
    uint32_t group = 0;
    uint64_t running = 0;
    uint32_t data_ordinal = 0, index_ordinal = kFirstIndexOrdinal, encodings = 0;
  } part_;
  std::map<uint32_t, std::vector<FlatKey>> pending_;
};

}  // namespace

FileReader::FileReader(std::shared_ptr<const Source> source, FileTail tail,
                       const OpenOptions& options)
    : source_(std::move(source)),
      tail_(std::move(tail)),
      keys_(std::make_shared<const FileKeys>(tail_, source_->name(), options.keys.get())) {
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

std::shared_ptr<const Stripe> FileReader::ReadStripe(size_t index, ReadFigures* figures) const {
  const proto::StripeInformation& info = tail_.footer.stripes(static_cast<int>(index));
  auto stripe = std::make_shared<Stripe>();
  stripe->index = static_cast<uint32_t>(index);
  stripe->first_row = first_rows_[index];
  stripe->rows = info.number_of_rows();
  stripe->offset = info.offset();
  stripe->index_length = info.index_length();
  stripe->data_length = info.data_length();
  stripe->footer_length = info.footer_length();
  stripe->keys = keys_;
  const uint64_t footer_offset = info.offset() + info.index_length() + info.data_length();

  const auto mode = static_cast<CacheMode>(tail_.postscript.cache_mode());
  const std::string where = fmt::format("{}: stripe {}, footer", source_->name(), index);
  CheckMetadataBytes(info.footer_length(), where, footer_offset);
  std::optional<std::span<const uint8_t>> cached;
  if (mode == CacheMode::kFooter) cached = CacheSection(index);
  if (mode == CacheMode::kBoth) cached = CacheSection(2 * index + 1);
  Buffer read;
  if (!cached || cached->size() != info.footer_length()) {
    read.Resize(info.footer_length());
    if (figures != nullptr) ++figures->requests;
    source_->ReadAt(footer_offset, read.span());
    if (figures != nullptr) figures->bytes += read.size();
    cached = read.span();
  }
  Buffer footer;
  Unframe(*cached, {tail_.compression, tail_.block_size, where, footer_offset}, &footer,
          MaxMetadataBytes(cached->size()));
  StripeBuilder builder(*source_, tail_, stripe.get());
  std::vector<std::span<const uint8_t>> parts;  // encrypted ones
  if (!builder.Add(footer.span(), 0, &parts)) {
    throw Error(ExitCode::kBadData,
                fmt::format("the {} bytes of the stripe footer cannot be parsed", footer.size()),
                fmt::format("{} at byte {}", where, footer_offset), "the file is damaged");
  }
  const auto groups = keys_->groups().size();
  if (parts.size() != groups) {
    throw Error(ExitCode::kBadData,
                fmt::format("{} encrypted parts for {} encryption groups", parts.size(), groups),
                fmt::format("{} at byte {}", where, footer_offset), "the file is damaged");
  }
  for (size_t g = 0; g < groups; ++g) {
    if (!keys_->groups()[g].why_locked.empty()) continue;
    const ChunkContext context = GroupFooterContext(*stripe, g);
    Buffer plain;
    Unframe(parts[g], context, &plain, MaxMetadataBytes(parts[g].size()));
    std::vector<std::span<const uint8_t>> none;
    if (builder.Add(plain.span(), static_cast<uint32_t>(g + 1), &none)) continue;
    throw Error(ExitCode::kBadData,
                fmt::format("the {} bytes of the footer cannot be parsed", plain.size()),
                fmt::format("{} at byte {}", context.where, context.file_offset),
                "the file is damaged");
  }
  builder.Finish();
  return stripe;
}

ChunkContext FileReader::GroupFooterContext(const Stripe& stripe, size_t group) const {
  ChunkContext context;
  context.compression = tail_.compression;
  context.block_size = tail_.block_size;
  context.where = fmt::format("{}: stripe {}, footer of encryption group {}", source_->name(),
                              stripe.index, group);
  context.file_offset = stripe.offset + stripe.index_length + stripe.data_length;
  context.key = keys_->Key(stripe.index, group);
  context.place.stripe = stripe.index;
  context.place.ordinal = kFooterOrdinal;
  return context;
}

std::vector<proto::FileStatistics> FileReader::ReadGroupStatistics(size_t group) const {
  std::vector<proto::FileStatistics> list;
  const proto::EncryptionGroup& stored =
      tail_.footer.encryption().encryption_groups(static_cast<int>(group));
  for (const std::string& blob : stored.statistics()) {
    ChunkContext context;
    context.compression = tail_.compression;
    context.block_size = tail_.block_size;
    context.where = fmt::format("{}: statistics of encryption group {}", source_->name(), group);
    context.file_offset = tail_.footer_offset;
    context.key = keys_->StatisticsKey(group);
    context.place.stripe = kStatisticsStripe;
    context.place.ordinal = static_cast<uint32_t>(list.size());
    Buffer plain;
    Unframe({reinterpret_cast<const uint8_t*>(blob.data()), blob.size()}, context, &plain,
            MaxMetadataBytes(blob.size()));
    if (!list.emplace_back().ParseFromArray(plain.data(), static_cast<int>(plain.size()))) {
      throw Error(ExitCode::kBadData,
                  fmt::format("the {} bytes of the statistics cannot be parsed", plain.size()),
                  fmt::format("{} at byte {}", context.where, context.file_offset),
                  "the file is damaged");
    }
  }
  return list;
}

ChunkContext FileReader::ContextOf(const Stripe& stripe, const StreamInfo& stream,
                                   std::string where) const {
  ChunkContext context;
  context.compression = tail_.compression;
  context.block_size = tail_.block_size;
  context.where = std::move(where);
  context.file_offset = stream.offset;
  if (stream.group != 0) context.key = keys_->Key(stripe.index, stream.group - 1);
  context.place = PlaceOf(stripe.index, stream);
  return context;
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

ByteRange FileReader::StripeBytes(size_t index) const {
  const proto::StripeInformation& info = tail_.footer.stripes(static_cast<int>(index));
  return {info.offset(), info.index_length() + info.data_length() + info.footer_length()};
}

bool FileReader::HasChecksum(size_t index) const {
  const auto kind = static_cast<ChecksumKind>(tail_.footer.checksum_algorithm());
  return tail_.footer.stripes(static_cast<int>(index)).has_checksum() &&
         (kind == ChecksumKind::kXxHash || kind == ChecksumKind::kCrc32);
}

bool FileReader::Verify(size_t index, const std::function<std::span<const uint8_t>()>& next) const {
  if (!HasChecksum(index)) return false;
  const proto::StripeInformation& info = tail_.footer.stripes(static_cast<int>(index));
  const auto kind = static_cast<ChecksumKind>(tail_.footer.checksum_algorithm());
  const std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> xx(XXH64_createState(),
                                                                             XXH64_freeState);
  XXH64_reset(xx.get(), 0);
  uLong crc = crc32(0, nullptr, 0);
  for (std::span<const uint8_t> part = next(); !part.empty(); part = next()) {
    if (kind == ChecksumKind::kXxHash) {
      XXH64_update(xx.get(), part.data(), part.size());
    } else {
      crc = crc32_z(crc, part.data(), part.size());
    }
  }
  const int64_t actual = kind == ChecksumKind::kXxHash
                             ? static_cast<int64_t>(XXH64_digest(xx.get()))
                             : static_cast<int64_t>(crc);
  if (actual == info.checksum()) return true;
  const ByteRange bytes = StripeBytes(index);
  throw Error(
      ExitCode::kBadData,
      fmt::format("stripe {} does not match its checksum: expected {}, actual {}", index,
                  info.checksum(), actual),
      fmt::format("{}: bytes {} to {}", source_->name(), bytes.offset, bytes.offset + bytes.length),
      "the file is damaged; --no-verify reads it anyway, --skip-bad leaves the stripe out");
}

bool FileReader::VerifyChecksum(size_t index, ReadFigures* figures) const {
  ByteRange left = StripeBytes(index);
  Buffer block(std::min<uint64_t>(left.length, 4 << 20));
  return Verify(index, [&]() -> std::span<const uint8_t> {
    const std::span<uint8_t> part =
        block.span().first(std::min<uint64_t>(left.length, block.size()));
    if (part.empty()) return part;
    if (figures != nullptr) ++figures->requests;
    source_->ReadAt(left.offset, part);
    if (figures != nullptr) figures->bytes += part.size();
    left.offset += part.size();
    left.length -= part.size();
    return part;
  });
}

bool FileReader::VerifyChecksum(size_t index, std::span<const uint8_t> bytes) const {
  HR_CHECK(bytes.size() == StripeBytes(index).length, "all of a stripe");
  return Verify(index, [&] { return std::exchange(bytes, {}); });
}

}  // namespace headrace::reader::dwrf
