#include "reader/dwrf/row_index.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "base/error.h"
#include "reader/dwrf/chunk.h"

namespace headrace::reader::dwrf {
namespace {

// The entries of a stripe of billions of rows; an entry has some numbers and statistics, which may
// have longer texts as bounds, or figures of each key of a flattened map.
constexpr uint64_t kMaxIndexBytes = 64 << 20, kMaxEntryBytes = 8 << 20;

using google::protobuf::internal::WireFormatLite;
constexpr uint32_t kEntryTag = WireFormatLite::MakeTag(proto::RowIndex::kEntryFieldNumber,
                                                       WireFormatLite::WIRETYPE_LENGTH_DELIMITED);

}  // namespace

RowIndexReader::RowIndexReader(const FileReader& file, const Stripe& stripe, uint32_t node,
                               uint32_t sequence)
    : file_(&file), stripe_(&stripe), node_(node), sequence_(sequence) {
  const StreamInfo* stream = stripe.Find(node, sequence, StreamKind::kRowIndex);
  if (stream == nullptr || stream->length == 0) return;
  const std::string where = fmt::format("{}: stripe {}, stream ROW_INDEX of node {} sequence {}",
                                        file.source().name(), stripe.index, node, sequence);
  CheckMetadataBytes(stream->length, where, stream->offset);
  const Buffer stored = file.ReadStream(stripe, *stream);
  Buffer plain;
  Unframe(stored.span(), file.ContextOf(stripe, *stream, where), &plain,
          std::min(MaxMetadataBytes(stream->length), kMaxIndexBytes));
  bytes_.assign(plain.data(), plain.data() + plain.size());
}

void RowIndexReader::Throw(const std::string& what) const {
  const StreamInfo* stream = stripe_->Find(node_, sequence_, StreamKind::kRowIndex);
  throw Error(ExitCode::kBadData, what,
              fmt::format("{}: stripe {}, stream ROW_INDEX of node {} sequence {} at byte {}",
                          file_->source().name(), stripe_->index, node_, sequence_,
                          stream == nullptr ? stripe_->offset : stream->offset),
              "the file is damaged");
}

// The bytes of the entry at *at, which moves behind it; null data at the end.
std::span<const uint8_t> RowIndexReader::Take(size_t* at) const {
  google::protobuf::io::CodedInputStream in(bytes_.data() + *at,
                                            static_cast<int>(bytes_.size() - *at));
  const auto damaged = [&] {
    Throw(fmt::format("the {} bytes of the row index cannot be parsed", bytes_.size()));
  };
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != kEntryTag) {
      if (!WireFormatLite::SkipField(&in, tag)) damaged();
      continue;
    }
    uint32_t length;
    if (!in.ReadVarint32(&length)) damaged();
    const size_t begin = *at + static_cast<size_t>(in.CurrentPosition());
    if (length > bytes_.size() - begin) damaged();
    if (length > kMaxEntryBytes)
      Throw(fmt::format("a row index entry of {} bytes where at most {} are supported", length,
                        kMaxEntryBytes));
    *at = begin + length;
    return {bytes_.data() + begin, length};
  }
  if (!in.ConsumedEntireMessage()) damaged();
  *at = bytes_.size();
  return {};
}

bool RowIndexReader::Next(proto::RowIndexEntry* entry) {
  const std::span<const uint8_t> bytes = Take(&next_);
  if (bytes.data() == nullptr) return false;
  if (!entry->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    Throw(fmt::format("a row index entry of {} bytes cannot be parsed", bytes.size()));
  return true;
}

bool RowIndexReader::Skip() { return Take(&next_).data() != nullptr; }

uint64_t RowIndexReader::CountLeft() const {
  uint64_t count = 0;
  for (size_t at = next_; Take(&at).data() != nullptr;) ++count;
  return count;
}

std::vector<uint64_t> ReadPositions(const FileReader& file, const Stripe& stripe, uint32_t node,
                                    uint32_t sequence, uint64_t stride) {
  RowIndexReader index(file, stripe, node, sequence);
  proto::RowIndexEntry entry;
  uint64_t entries = 0;
  while (entries < stride && index.Skip()) ++entries;
  if (entries < stride || !index.Next(&entry)) {
    throw Error(ExitCode::kBadData,
                fmt::format("the row index has {} entries, none for stride {}", entries, stride),
                fmt::format("{}: stripe {}, stream ROW_INDEX of node {} sequence {} at byte {}",
                            file.source().name(), stripe.index, node, sequence, stripe.offset),
                "the file is damaged");
  }
  return {entry.positions().begin(), entry.positions().end()};
}

uint64_t Positions::Take() {
  if (next_ == numbers_.size())
    fail_(fmt::format("a row index entry of {} positions is too short", numbers_.size()));
  return numbers_[next_++];
}

Positions::Byte Positions::TakeByte() {
  Byte p;
  p.stored = Take();
  if (framed_) p.within = Take();
  return p;
}

Positions::Run Positions::TakeRun() {
  const Byte b = TakeByte();
  return {b.stored, b.within, Take()};
}

Positions::Bool Positions::TakeBool() {
  const Run r = TakeRun();
  return {r.stored, r.within, r.values, Take()};
}

void Positions::CheckEnd() const {
  if (next_ != numbers_.size()) {
    fail_(fmt::format("a row index entry of {} positions where {} are right", numbers_.size(),
                      next_));
  }
}

}  // namespace headrace::reader::dwrf
