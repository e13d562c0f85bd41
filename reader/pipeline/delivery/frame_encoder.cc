#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "reader/pipeline/delivery/frame.h"
#include "reader/pipeline/delivery/frame_hash.h"
#include "reader/pipeline/delivery/frame_layout.h"
#include "reader/pipeline/delivery/stream_copy.h"

namespace headrace::reader {
namespace {

constexpr uint8_t kZeros[kFrameAlignment] = {};

static_assert(sizeof(RowSpan) == 40);  // five integers, as in docs/delivery.md

template <typename T>
std::span<const uint8_t> BytesOf(const T& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(values[0])};
}

void AddPart(std::span<const uint8_t> bytes, Frame* frame) {
  if (bytes.empty()) return;
  frame->parts.push_back(bytes);
  const uint64_t gap = PaddedBytes(bytes.size()) - bytes.size();
  if (gap > 0) frame->parts.push_back({kZeros, gap});
  frame->header.body_bytes += bytes.size() + gap;
}

// The arrays of a group, in their order.
std::array<std::span<const uint8_t>, 4> PartsOf(const InverseKeyedJaggedTensor& group) {
  const KeyedJaggedTensor& unique = group.unique;
  return {BytesOf(group.inverse), BytesOf(unique.lengths), BytesOf(unique.values),
          group.weighted ? BytesOf(unique.weights) : std::span<const uint8_t>()};
}

void AppendNumber(uint32_t number, std::vector<uint8_t>* body) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&number);
  body->insert(body->end(), bytes, bytes + sizeof number);
}

void AppendName(const std::string& name, std::vector<uint8_t>* body) {
  AppendNumber(static_cast<uint32_t>(name.size()), body);
  body->insert(body->end(), name.begin(), name.end());
}

}  // namespace

void ThrowBadFrame(const std::string& what) { throw Error(ExitCode::kBadData, what); }

std::optional<std::array<uint64_t, kNumSections>> SectionBytes(const FrameHeader& header) {
  using Wide = unsigned __int128;
  const Wide rows = header.rows;
  const auto with = [&](uint8_t flag, Wide bytes) { return header.flags & flag ? bytes : 0; };
  const Wide wide[kNumSections] = {
      kFrameAlignment,
      with(kFrameRowIds, rows * 8),
      with(kFrameLabels, rows * 4),
      rows * header.dense_columns * 4,
      rows * header.sparse_keys * 4,
      Wide{header.sparse_values} * 8,
      with(kFrameSparseWeights, Wide{header.sparse_values} * 4),
      rows * header.weighted_keys * 4,
      Wide{header.weighted_values} * 8,
      with(kFrameWeightedWeights, Wide{header.weighted_values} * 4),
  };
  std::array<uint64_t, kNumSections> bytes;
  Wide total = 0;
  for (int i = 0; i < kNumSections; ++i) {
    if (wide[i] > kMaxFrameBytes) return std::nullopt;
    bytes[i] = static_cast<uint64_t>(wide[i]);
    total += PaddedBytes(bytes[i]);
  }
  if (total > kMaxFrameBytes) return std::nullopt;
  return bytes;
}

uint64_t ChecksumSeed(FrameHeader header) {
  header.checksum = 0;
  return XXH3_64bits(&header, sizeof header);
}

FrameHeader ParseFrameHeader(std::span<const uint8_t> bytes) {
  FrameHeader header;
  if (bytes.size() < sizeof header) ThrowBadFrame("a frame has 64 bytes of header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kFrameMagic)
    ThrowBadFrame(fmt::format("{:08x} is not the beginning of a frame", header.magic));
  if (header.version != kFrameVersion) {
    throw Error(ExitCode::kBadData,
                fmt::format("the frame has version {}, this headrace knows {}", header.version,
                            kFrameVersion),
                {}, "use the same headrace on both sides");
  }
  if (header.body_bytes > kMaxFrameBytes || header.body_bytes % kFrameAlignment != 0)
    ThrowBadFrame(fmt::format("a frame claims a body of {} bytes", header.body_bytes));
  constexpr uint8_t kOfChecksum = kFrameUnhashed | kFrameTrailer;
  if ((header.flags & kOfChecksum) == kOfChecksum ||
      ((header.flags & kOfChecksum) != 0 && header.checksum != 0))
    ThrowBadFrame("a frame without a checksum has one");
  const uint8_t flags = header.flags & static_cast<uint8_t>(~kOfChecksum);
  const uint64_t counts =
      uint64_t{header.dense_columns} + header.sparse_keys + header.weighted_keys;
  switch (static_cast<FrameKind>(header.kind)) {
    case FrameKind::kNames:
      if (flags != 0 || header.rows != 0 || header.sparse_values != 0 ||
          header.weighted_values != 0 || counts > header.body_bytes / 4)
        ThrowBadFrame(fmt::format("a frame of names claims {} of them in {} bytes", counts,
                                  header.body_bytes));
      return header;
    case FrameKind::kBatch: {
      constexpr uint8_t kKnown =
          kFrameRowIds | kFrameLabels | kFrameSparseWeights | kFrameWeightedWeights | kFramePacked;
      if ((flags & ~kKnown) != 0)
        ThrowBadFrame(fmt::format("a frame has unknown flags {:#x}", flags));
      const auto sections = SectionBytes(header);
      uint64_t total = 0;
      for (int i = 0; sections && i < kNumSections; ++i) total += PaddedBytes((*sections)[i]);
      if (!sections || total > header.body_bytes)
        ThrowBadFrame(fmt::format("a frame's counts do not give its {} bytes", header.body_bytes));
      return header;
    }
    case FrameKind::kEnd:
      if (header.body_bytes != 0 || (flags & ~kFrameComplete) != 0 || header.rows != 0 ||
          counts != 0 || header.sparse_values != 0 || header.weighted_values != 0)
        ThrowBadFrame("a frame that ends the connection has a body");
      return header;
  }
  ThrowBadFrame(fmt::format("a frame has the unknown kind {}", header.kind));
}

uint64_t FrameChecksum(const FrameHeader& header, std::span<const uint8_t> body) {
  if (!IsHashed(header)) return 0;
  const std::span<const uint8_t> parts[] = {body};
  return HashParts(parts, ChecksumSeed(header));
}

FrameHeader SealedHeader(const Frame& frame, bool is_hashed) {
  FrameHeader header = frame.header;
  if (is_hashed) {
    header.checksum = HashParts(frame.parts, ChecksumSeed(header));
  } else {
    header.flags |= kFrameUnhashed;
  }
  return header;
}

void CopyFrame(const Frame& frame, uint8_t* to, bool is_hashed) {
  FrameHeader header = frame.header;
  uint8_t* body = to + sizeof header;
  if (is_hashed) {
    header.checksum = HashAndCopyParts(frame.parts, ChecksumSeed(header), body);
  } else {
    header.flags |= kFrameUnhashed;
    constexpr uint64_t kOfCaches = 2 << 20;  // a frame in them is read from there
    for (const std::span<const uint8_t>& part : frame.parts) {
      if (frame.bytes() > kOfCaches) {
        StreamCopy(body, part);
      } else {
        std::memcpy(body, part.data(), part.size());
      }
      body += part.size();
    }
  }
  std::memcpy(to, &header, sizeof header);
}

Frame FrameEncoder::Names() {
  names_body_.clear();
  for (const auto& names : names_)
    for (const std::string& name : names) AppendName(name, &names_body_);
  AppendNumber(static_cast<uint32_t>(groups_.size()), &names_body_);
  for (const FrameGroup& group : groups_) {
    AppendName(group.name, &names_body_);
    AppendNumber(group.weighted ? 1 : 0, &names_body_);
    AppendNumber(static_cast<uint32_t>(group.keys.size()), &names_body_);
    for (size_t key = 0; key < group.keys.size(); ++key) {
      AppendNumber(group.places[key], &names_body_);
      AppendName(group.keys[key], &names_body_);
    }
  }
  Frame frame;
  frame.header.kind = static_cast<uint8_t>(FrameKind::kNames);
  frame.header.dense_columns = static_cast<uint32_t>(names_[0].size());
  frame.header.sparse_keys = static_cast<uint32_t>(names_[1].size());
  frame.header.weighted_keys = static_cast<uint32_t>(names_[2].size());
  AddPart(names_body_, &frame);
  return frame;
}

std::vector<Frame> FrameEncoder::Encode(const TensorBatch& batch) {
  std::vector<Frame> frames;
  std::vector<FrameGroup> groups;
  for (const InverseKeyedJaggedTensor& group : batch.groups)
    groups.push_back({group.name, group.weighted, group.unique.keys, group.places});
  if (!has_names_ || names_[0] != batch.dense_names || names_[1] != batch.sparse.keys ||
      names_[2] != batch.weighted_sparse.keys || groups_ != groups) {
    names_[0] = batch.dense_names;
    names_[1] = batch.sparse.keys;
    names_[2] = batch.weighted_sparse.keys;
    groups_ = std::move(groups);
    has_names_ = true;
    frames.push_back(Names());
  }
  Frame& frame = frames.emplace_back();
  FrameHeader& header = frame.header;
  header.kind = static_cast<uint8_t>(FrameKind::kBatch);
  header.sequence = batches_;
  header.rows = static_cast<uint32_t>(batch.rows);
  header.dense_columns = static_cast<uint32_t>(names_[0].size());
  header.sparse_keys = static_cast<uint32_t>(names_[1].size());
  header.weighted_keys = static_cast<uint32_t>(names_[2].size());
  header.sparse_values = batch.sparse.values.size();
  header.weighted_values = batch.weighted_sparse.values.size();
  const auto flag = [&](bool there, uint8_t bit) { header.flags |= there ? bit : 0; };
  flag(!batch.row_ids.empty(), kFrameRowIds);
  flag(!batch.labels.empty(), kFrameLabels);
  flag(!batch.sparse.weights.empty(), kFrameSparseWeights);
  flag(!batch.weighted_sparse.weights.empty(), kFrameWeightedWeights);
  const std::span<const uint8_t> spans{reinterpret_cast<const uint8_t*>(batch.spans.data()),
                                       batch.spans.size() * sizeof(RowSpan)};
  uint64_t total = PaddedBytes(spans.size());
  group_sizes_.clear();
  for (const InverseKeyedJaggedTensor& group : batch.groups) {
    group_sizes_.push_back(group.unique.rows);
    group_sizes_.push_back(group.unique.values.size());
    for (const auto part : PartsOf(group)) total += PaddedBytes(part.size());
  }
  total += PaddedBytes(group_sizes_.size() * sizeof(uint64_t));
  const auto sections = SectionBytes(header);
  for (int i = 0; sections && i < kNumSections; ++i) total += PaddedBytes((*sections)[i]);
  if (batch.rows > UINT32_MAX || !sections || total > kMaxFrameBytes) {
    throw Error(ExitCode::kResources,
                fmt::format("a batch of {} rows and {} bytes does not fit a frame of {} bytes",
                            batch.rows, batch.MemoryBytes(), kMaxFrameBytes),
                {}, "use a smaller pipeline.batch_rows");
  }
  origin_[0] = batch.first_row;
  origin_[1] = batch.spans.size();
  origin_[2] = batch.groups.size();
  origin_[3] = batch.term;
  AddPart({reinterpret_cast<const uint8_t*>(origin_), sizeof origin_}, &frame);
  AddPart(BytesOf(batch.row_ids), &frame);
  AddPart(BytesOf(batch.labels), &frame);
  AddPart(BytesOf(batch.dense), &frame);
  for (const KeyedJaggedTensor* tensor : {&batch.sparse, &batch.weighted_sparse}) {
    AddPart(BytesOf(tensor->lengths), &frame);
    AddPart(BytesOf(tensor->values), &frame);
    AddPart(BytesOf(tensor->weights), &frame);
  }
  AddPart(BytesOf(group_sizes_), &frame);
  for (const InverseKeyedJaggedTensor& group : batch.groups)
    for (const auto part : PartsOf(group)) AddPart(part, &frame);
  AddPart(spans, &frame);
  ++batches_;
  return frames;
}

Frame FrameEncoder::End(bool complete) {
  Frame frame;
  frame.header.kind = static_cast<uint8_t>(FrameKind::kEnd);
  frame.header.flags = complete ? kFrameComplete : 0;
  frame.header.sequence = batches_;
  return frame;
}

}  // namespace headrace::reader
