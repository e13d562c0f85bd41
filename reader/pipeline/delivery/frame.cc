#include "reader/pipeline/delivery/frame.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "reader/pipeline/delivery/frame_hash.h"

namespace headrace::reader {
namespace {

constexpr uint8_t kZeros[kFrameAlignment] = {};

static_assert(sizeof(RowSpan) == 40);  // five integers, as in docs/delivery.md

constexpr uint64_t Padded(uint64_t bytes) {
  return (bytes + kFrameAlignment - 1) & ~(kFrameAlignment - 1);
}

[[noreturn]] void Bad(const std::string& what) { throw Error(ExitCode::kBadData, what); }

// The sections of a batch's body, in their order.
enum Section {
  kOrigin,  // 64 bytes: first_row, the numbers of spans and of groups, the term, and zeros
  kRowIds,
  kLabels,
  kDense,
  kSparseLengths,
  kSparseValues,
  kSparseWeights,
  kWeightedLengths,
  kWeightedValues,
  kWeightedWeights,
  kNumSections
};

// Bytes of each section that the header accounts for, none when the whole would be longer than
// kMaxFrameBytes. Behind them come the groups and the spans, whose numbers stand in the origin.
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
    total += Padded(bytes[i]);
  }
  if (total > kMaxFrameBytes) return std::nullopt;
  return bytes;
}

uint64_t SeedOf(FrameHeader header) {
  header.checksum = 0;
  return XXH3_64bits(&header, sizeof header);
}

template <typename T>
std::span<const uint8_t> BytesOf(const T& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(values[0])};
}

void AddPart(std::span<const uint8_t> bytes, Frame* frame) {
  if (bytes.empty()) return;
  frame->parts.push_back(bytes);
  const uint64_t gap = Padded(bytes.size()) - bytes.size();
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

// Takes a body of names apart, and never looks behind its end.
class NameReader {
 public:
  explicit NameReader(std::span<const uint8_t> body) : left_(body) {}
  uint32_t Number() {
    uint32_t number = 0;
    std::memcpy(&number, Take(sizeof number).data(), sizeof number);
    return number;
  }
  // How many things follow, of at least `least` bytes each.
  uint32_t Count(size_t least) {
    const uint32_t count = Number();
    if (count > left_.size() / least)
      Bad(fmt::format("a frame of names claims {} groups or keys in {} bytes", count,
                      left_.size()));
    return count;
  }
  std::string Name() {
    const auto bytes = Take(Number());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  size_t left() const { return left_.size(); }

 private:
  std::span<const uint8_t> Take(size_t size) {
    if (left_.size() < size) Bad("a frame of names ends within one");
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  std::span<const uint8_t> left_;
};

// Each key of a group has a place of its own among all keys of its kind.
void CheckPlaces(const std::vector<FrameGroup>& groups, bool weighted, size_t plain) {
  size_t total = plain;
  for (const FrameGroup& group : groups)
    if (group.weighted == weighted) total += group.keys.size();
  std::vector<bool> is_taken(total);
  for (const FrameGroup& group : groups) {
    if (group.weighted != weighted) continue;
    for (const uint32_t place : group.places) {
      if (place >= total || is_taken[place])
        Bad(fmt::format("a frame of names gives a key of a group the place {} of {}", place,
                        total));
      is_taken[place] = true;
    }
  }
}

// What arrays are made of: parts of memory that `keep` holds.
class Filler {
 public:
  explicit Filler(const std::shared_ptr<const void>& keep) : keep_(keep) {}
  template <typename T>
  void operator()(std::span<const uint8_t> bytes, Array<T>* values) const {
    if (bytes.empty()) return;
    const size_t count = bytes.size() / sizeof(T);
    // The memory belongs to the frame, and the frame to this batch alone.
    auto* first = reinterpret_cast<T*>(const_cast<uint8_t*>(bytes.data()));
    *values = Array<T>::Borrow({first, count}, keep_);
  }

 private:
  const std::shared_ptr<const void>& keep_;
};

KeyedJaggedTensor DecodeJagged(const std::vector<std::string>& keys, uint64_t rows,
                               std::span<const uint8_t> lengths, std::span<const uint8_t> values,
                               std::span<const uint8_t> weights, const Filler& fill) {
  KeyedJaggedTensor tensor;
  tensor.keys = keys;
  tensor.rows = rows;
  fill(lengths, &tensor.lengths);
  tensor.offsets.resize(tensor.lengths.size() + 1);
  int64_t at = 0;
  int32_t seen = 0;  // negative once one of them is
  const int32_t* length = tensor.lengths.data();
  int64_t* offset = tensor.offsets.data();
  for (size_t i = 0; i < tensor.lengths.size(); ++i) {
    offset[i] = at;
    at += length[i];
    seen |= length[i];
  }
  offset[tensor.lengths.size()] = at;
  if (seen < 0 || static_cast<uint64_t>(at) != values.size() / 8)
    Bad(fmt::format("the lengths of a frame's lists do not add up to its {} values",
                    values.size() / 8));
  fill(values, &tensor.values);
  fill(weights, &tensor.weights);
  return tensor;
}

void CheckInverse(const InverseKeyedJaggedTensor& group) {
  uint32_t largest = 0;  // negative ones are large
  for (const int32_t row : group.inverse) largest = std::max(largest, static_cast<uint32_t>(row));
  if (!group.inverse.empty() && largest >= group.unique.rows)
    Bad(fmt::format("the inverse of a group leads past its {} unique rows", group.unique.rows));
}

}  // namespace

FrameHeader ParseFrameHeader(std::span<const uint8_t> bytes) {
  FrameHeader header;
  if (bytes.size() < sizeof header) Bad("a frame has 64 bytes of header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kFrameMagic)
    Bad(fmt::format("{:08x} is not the beginning of a frame", header.magic));
  if (header.version != kFrameVersion) {
    throw Error(ExitCode::kBadData,
                fmt::format("the frame has version {}, this headrace knows {}", header.version,
                            kFrameVersion),
                {}, "use the same headrace on both sides");
  }
  if (header.body_bytes > kMaxFrameBytes || header.body_bytes % kFrameAlignment != 0)
    Bad(fmt::format("a frame claims a body of {} bytes", header.body_bytes));
  const uint64_t counts =
      uint64_t{header.dense_columns} + header.sparse_keys + header.weighted_keys;
  switch (static_cast<FrameKind>(header.kind)) {
    case FrameKind::kNames:
      if (header.flags != 0 || header.rows != 0 || header.sparse_values != 0 ||
          header.weighted_values != 0 || counts > header.body_bytes / 4)
        Bad(fmt::format("a frame of names claims {} of them in {} bytes", counts,
                        header.body_bytes));
      return header;
    case FrameKind::kBatch: {
      constexpr uint8_t kKnown =
          kFrameRowIds | kFrameLabels | kFrameSparseWeights | kFrameWeightedWeights;
      if ((header.flags & ~kKnown) != 0)
        Bad(fmt::format("a frame has unknown flags {:#x}", header.flags));
      const auto sections = SectionBytes(header);
      uint64_t total = 0;
      for (int i = 0; sections && i < kNumSections; ++i) total += Padded((*sections)[i]);
      if (!sections || total > header.body_bytes)
        Bad(fmt::format("a frame's counts do not give its {} bytes", header.body_bytes));
      return header;
    }
    case FrameKind::kEnd:
      if (header.body_bytes != 0 || (header.flags & ~kFrameComplete) != 0 || header.rows != 0 ||
          counts != 0 || header.sparse_values != 0 || header.weighted_values != 0)
        Bad("a frame that ends the connection has a body");
      return header;
  }
  Bad(fmt::format("a frame has the unknown kind {}", header.kind));
}

uint64_t FrameChecksum(const FrameHeader& header, std::span<const uint8_t> body) {
  const std::span<const uint8_t> parts[] = {body};
  return HashParts(parts, SeedOf(header));
}

FrameHeader SealedHeader(const Frame& frame) {
  FrameHeader header = frame.header;
  header.checksum = HashParts(frame.parts, SeedOf(header));
  return header;
}

void CopyFrame(const Frame& frame, uint8_t* to) {
  FrameHeader header = frame.header;
  header.checksum = HashAndCopyParts(frame.parts, SeedOf(header), to + sizeof header);
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
  uint64_t total = Padded(spans.size());
  group_sizes_.clear();
  for (const InverseKeyedJaggedTensor& group : batch.groups) {
    group_sizes_.push_back(group.unique.rows);
    group_sizes_.push_back(group.unique.values.size());
    for (const auto part : PartsOf(group)) total += Padded(part.size());
  }
  total += Padded(group_sizes_.size() * sizeof(uint64_t));
  const auto sections = SectionBytes(header);
  for (int i = 0; sections && i < kNumSections; ++i) total += Padded((*sections)[i]);
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

std::optional<TensorBatch> FrameDecoder::Decode(const FrameHeader& header,
                                                std::span<const uint8_t> body,
                                                std::shared_ptr<const void> keep) {
  if (ended_) Bad("a frame follows the last one");
  if (body.size() != header.body_bytes)
    Bad(fmt::format("a frame of {} bytes has {}", header.body_bytes, body.size()));
  uint64_t checksum = 0;
  if (keep) {
    checksum = FrameChecksum(header, body);
  } else {
    const auto own = std::make_shared<Array<uint8_t>>(body.size());
    const std::span<const uint8_t> parts[] = {body};
    checksum = HashAndCopyParts(parts, SeedOf(header), own->data());
    body = {own->data(), own->size()};
    keep = own;
  }
  if (checksum != header.checksum)
    Bad(fmt::format("the checksum of frame {} differs: it was damaged on its way",
                    header.sequence));
  switch (static_cast<FrameKind>(header.kind)) {
    case FrameKind::kNames:
      DecodeNames(header, body);
      return std::nullopt;
    case FrameKind::kEnd:
      if (header.sequence != batches_)
        Bad(fmt::format("the last frame counts {} batches, {} came", header.sequence, batches_));
      ended_ = true;
      complete_ = (header.flags & kFrameComplete) != 0;
      return std::nullopt;
    default:
      break;
  }
  if (header.sequence != batches_)
    Bad(fmt::format("batch {} came where {} was due", header.sequence, batches_));
  TensorBatch batch = DecodeBatch(header, body, keep);
  ++batches_;
  return batch;
}

void FrameDecoder::DecodeNames(const FrameHeader& header, std::span<const uint8_t> body) {
  const uint32_t counts[3] = {header.dense_columns, header.sparse_keys, header.weighted_keys};
  NameReader reader(body);
  for (int list = 0; list < 3; ++list) {
    names_[list].clear();
    for (uint32_t i = 0; i < counts[list]; ++i) names_[list].push_back(reader.Name());
  }
  groups_.clear();
  for (uint32_t left = reader.Count(12); left > 0; --left) {
    FrameGroup& group = groups_.emplace_back();
    group.name = reader.Name();
    const uint32_t flags = reader.Number();
    if (flags > 1) Bad(fmt::format("a frame of names has a group with unknown flags {:#x}", flags));
    group.weighted = flags == 1;
    for (uint32_t keys = reader.Count(8); keys > 0; --keys) {
      group.places.push_back(reader.Number());
      group.keys.push_back(reader.Name());
    }
  }
  if (Padded(body.size() - reader.left()) != body.size())
    Bad("a frame of names has bytes behind the last one");
  CheckPlaces(groups_, false, counts[1]);
  CheckPlaces(groups_, true, counts[2]);
  has_names_ = true;
}

TensorBatch FrameDecoder::DecodeBatch(const FrameHeader& header, std::span<const uint8_t> body,
                                      const std::shared_ptr<const void>& keep) const {
  if (!has_names_) Bad("a batch came before the names of its columns");
  if (header.dense_columns != names_[0].size() || header.sparse_keys != names_[1].size() ||
      header.weighted_keys != names_[2].size())
    Bad("a batch has other columns than the names before it");
  const auto sections = SectionBytes(header);
  if (!sections) Bad("a frame's counts do not give its bytes");
  auto left = body;
  const auto take = [&](uint64_t count, uint64_t size) {
    const uint64_t most = left.size() / size;  // bodies are padded
    if (count > most) Bad("a frame's counts do not give its bytes");
    const auto part = left.first(count * size);
    left = left.subspan(Padded(count * size));
    return part;
  };
  const auto next = [&](Section section) { return take((*sections)[section], 1); };
  const Filler fill(keep);
  TensorBatch batch;
  batch.rows = header.rows;
  batch.dense_names = names_[0];
  uint64_t origin[4];
  std::memcpy(origin, next(kOrigin).data(), sizeof origin);
  batch.first_row = origin[0];
  batch.term = origin[3];
  fill(next(kRowIds), &batch.row_ids);
  fill(next(kLabels), &batch.labels);
  fill(next(kDense), &batch.dense);
  const auto jagged = [&](int list, Section lengths, Section values, Section weights) {
    const auto length_bytes = next(lengths), value_bytes = next(values),
               weight_bytes = next(weights);
    return DecodeJagged(names_[list], batch.rows, length_bytes, value_bytes, weight_bytes, fill);
  };
  batch.sparse = jagged(1, kSparseLengths, kSparseValues, kSparseWeights);
  batch.weighted_sparse = jagged(2, kWeightedLengths, kWeightedValues, kWeightedWeights);
  if (origin[2] != groups_.size()) Bad("a batch has other groups than the names before it");
  const auto sizes = take(2 * groups_.size(), sizeof(uint64_t));
  for (size_t g = 0; g < groups_.size(); ++g) {
    uint64_t size[2];  // unique rows, values
    std::memcpy(size, sizes.data() + g * sizeof size, sizeof size);
    const FrameGroup& names = groups_[g];
    InverseKeyedJaggedTensor& group = batch.groups.emplace_back();
    group.name = names.name;
    group.weighted = names.weighted;
    group.places = names.places;
    if (size[0] > kMaxFrameBytes)  // with any number of keys it is no overflow
      Bad(fmt::format("a group claims {} unique rows", size[0]));
    const auto inverse = take(batch.rows, sizeof(int32_t));
    const auto lengths = take(names.keys.size() * size[0], sizeof(int32_t));
    const auto values = take(size[1], sizeof(int64_t));
    const auto weights = take(names.weighted ? size[1] : 0, sizeof(float));
    group.unique = DecodeJagged(names.keys, size[0], lengths, values, weights, fill);
    fill(inverse, &group.inverse);
    CheckInverse(group);
  }
  if (origin[1] > left.size() / sizeof(RowSpan) ||
      Padded(origin[1] * sizeof(RowSpan)) != left.size())
    Bad(fmt::format("a frame's {} spans do not fit its last {} bytes", origin[1], left.size()));
  batch.spans.resize(origin[1]);
  if (origin[1] > 0) std::memcpy(batch.spans.data(), left.data(), origin[1] * sizeof(RowSpan));
  return batch;
}

}  // namespace headrace::reader
