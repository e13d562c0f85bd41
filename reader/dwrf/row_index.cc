#include "reader/dwrf/row_index.h"

#include <fmt/format.h>

#include "base/error.h"
#include "reader/dwrf/chunk.h"

namespace headrace::reader::dwrf {
namespace {

// An index grows with its strides, each of which takes stored bytes; more than this is a
// decompression bomb.
uint64_t MaxIndexBytes(uint64_t stored) { return (uint64_t{1} << 20) + 256 * stored; }

std::string Where(const FileReader& file, const Stripe& stripe, uint32_t node, uint32_t sequence) {
  return fmt::format("{}: stripe {}, stream ROW_INDEX of node {} sequence {}", file.source().name(),
                     stripe.index, node, sequence);
}

}  // namespace

proto::RowIndex ReadRowIndex(const FileReader& file, const Stripe& stripe, uint32_t node,
                             uint32_t sequence) {
  proto::RowIndex index;
  const StreamInfo* stream = stripe.Find(node, sequence, StreamKind::kRowIndex);
  if (stream == nullptr || stream->length == 0) return index;
  const Buffer stored = file.ReadStream(stripe, *stream);
  const std::string where = Where(file, stripe, node, sequence);
  Buffer bytes;
  Unframe(stored.span(), file.ContextOf(stripe, *stream, where), &bytes,
          MaxIndexBytes(stream->length));
  if (!index.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw Error(ExitCode::kBadData,
                fmt::format("the {} bytes of the row index cannot be parsed", bytes.size()),
                fmt::format("{} at byte {}", where, stream->offset), "the file is damaged");
  }
  return index;
}

std::vector<uint64_t> ReadPositions(const FileReader& file, const Stripe& stripe, uint32_t node,
                                    uint32_t sequence, uint64_t stride) {
  const proto::RowIndex index = ReadRowIndex(file, stripe, node, sequence);
  if (stride >= static_cast<uint64_t>(index.entry_size())) {
    throw Error(
        ExitCode::kBadData,
        fmt::format("the row index has {} entries, none for stride {}", index.entry_size(), stride),
        fmt::format("{} at byte {}", Where(file, stripe, node, sequence), stripe.offset),
        "the file is damaged");
  }
  const auto& positions = index.entry(static_cast<int>(stride)).positions();
  return {positions.begin(), positions.end()};
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
