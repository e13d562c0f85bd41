#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "reader/pipeline/delivery/frame.h"
#include "reader/pipeline/delivery/frame_hash.h"
#include "reader/pipeline/delivery/frame_layout.h"

namespace headrace::reader {
namespace {

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
      ThrowBadFrame(fmt::format("a frame of names claims {} groups or keys in {} bytes", count,
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
    if (left_.size() < size) ThrowBadFrame("a frame of names ends within one");
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
        ThrowBadFrame(fmt::format("a frame of names gives a key of a group the place {} of {}",
                                  place, total));
      is_taken[place] = true;
    }
  }
}

// What arrays are made of: parts of memory that `keep` holds.
class Filler {
 public:
  Filler(const std::shared_ptr<const void>& keep, bool is_shared)
      : keep_(keep), is_shared_(is_shared) {}
  // Values, which may become others while somebody has them.
  template <typename T>
  void operator()(std::span<const uint8_t> bytes, Array<T>* values) const {
    if (bytes.empty()) return;
    const size_t count = bytes.size() / sizeof(T);
    // The memory belongs to the frame, and the frame to this batch alone.
    auto* first = reinterpret_cast<T*>(const_cast<uint8_t*>(bytes.data()));
    *values = Array<T>::Borrow({first, count}, keep_);
  }
  // What leads to a place: it must stay as it was when it was looked at.
  template <typename T>
  void Lasting(std::span<const uint8_t> bytes, Array<T>* values) const {
    if (!is_shared_) return (*this)(bytes, values);
    values->resize(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values->data(), bytes.data(), bytes.size());
  }

 private:
  const std::shared_ptr<const void>& keep_;
  bool is_shared_;
};

KeyedJaggedTensor DecodeJagged(const std::vector<std::string>& keys, uint64_t rows,
                               std::span<const uint8_t> lengths, std::span<const uint8_t> values,
                               std::span<const uint8_t> weights, const Filler& fill) {
  KeyedJaggedTensor tensor;
  tensor.keys = keys;
  tensor.rows = rows;
  fill.Lasting(lengths, &tensor.lengths);
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
    ThrowBadFrame(fmt::format("the lengths of a frame's lists do not add up to its {} values",
                              values.size() / 8));
  fill(values, &tensor.values);
  fill(weights, &tensor.weights);
  return tensor;
}

void CheckInverse(const InverseKeyedJaggedTensor& group) {
  uint32_t largest = 0;  // negative ones are large
  for (const int32_t row : group.inverse) largest = std::max(largest, static_cast<uint32_t>(row));
  if (!group.inverse.empty() && largest >= group.unique.rows)
    ThrowBadFrame(
        fmt::format("the inverse of a group leads past its {} unique rows", group.unique.rows));
}

}  // namespace

std::optional<TensorBatch> FrameDecoder::Decode(const FrameHeader& header,
                                                std::span<const uint8_t> body,
                                                std::shared_ptr<const void> keep,
                                                FrameMemory memory) {
  if (ended_) ThrowBadFrame("a frame follows the last one");
  if (body.size() != header.body_bytes)
    ThrowBadFrame(fmt::format("a frame of {} bytes has {}", header.body_bytes, body.size()));
  if (HasTrailer(header) && memory != FrameMemory::kChecked)
    ThrowBadFrame("a frame has its checksum behind it where none can be");
  if (IsPacked(header)) ThrowBadFrame("a frame comes in blocks where none can be");
  const bool is_lent = keep && memory == FrameMemory::kShared && !IsHashed(header) &&
                       header.kind == static_cast<uint8_t>(FrameKind::kBatch);
  uint64_t checksum = header.checksum;
  if (!is_lent && (!keep || memory == FrameMemory::kShared)) {
    const auto own = std::make_shared<Array<uint8_t>>(body.size());
    const std::span<const uint8_t> parts[] = {body};
    if (IsHashed(header)) {
      checksum = HashAndCopyParts(parts, ChecksumSeed(header), own->data());
    } else if (!body.empty()) {
      std::memcpy(own->data(), body.data(), body.size());
    }
    body = {own->data(), own->size()};
    keep = own;
  } else if (memory == FrameMemory::kOwn) {
    checksum = FrameChecksum(header, body);
  }
  if (checksum != header.checksum)
    ThrowBadFrame(fmt::format("the checksum of frame {} differs: it was damaged on its way",
                              header.sequence));
  switch (static_cast<FrameKind>(header.kind)) {
    case FrameKind::kNames:
      DecodeNames(header, body);
      return std::nullopt;
    case FrameKind::kEnd:
      if (header.sequence != batches_)
        ThrowBadFrame(
            fmt::format("the last frame counts {} batches, {} came", header.sequence, batches_));
      ended_ = true;
      complete_ = (header.flags & kFrameComplete) != 0;
      return std::nullopt;
    default:
      break;
  }
  if (header.sequence != batches_)
    ThrowBadFrame(fmt::format("batch {} came where {} was due", header.sequence, batches_));
  TensorBatch batch = DecodeBatch(header, body, keep, is_lent);
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
    if (flags > 1)
      ThrowBadFrame(fmt::format("a frame of names has a group with unknown flags {:#x}", flags));
    group.weighted = flags == 1;
    for (uint32_t keys = reader.Count(8); keys > 0; --keys) {
      group.places.push_back(reader.Number());
      group.keys.push_back(reader.Name());
    }
  }
  if (PaddedBytes(body.size() - reader.left()) != body.size())
    ThrowBadFrame("a frame of names has bytes behind the last one");
  CheckPlaces(groups_, false, counts[1]);
  CheckPlaces(groups_, true, counts[2]);
  has_names_ = true;
}

TensorBatch FrameDecoder::DecodeBatch(const FrameHeader& header, std::span<const uint8_t> body,
                                      const std::shared_ptr<const void>& keep,
                                      bool is_shared) const {
  if (!has_names_) ThrowBadFrame("a batch came before the names of its columns");
  if (header.dense_columns != names_[0].size() || header.sparse_keys != names_[1].size() ||
      header.weighted_keys != names_[2].size())
    ThrowBadFrame("a batch has other columns than the names before it");
  const auto sections = SectionBytes(header);
  if (!sections) ThrowBadFrame("a frame's counts do not give its bytes");
  auto left = body;
  const auto take = [&](uint64_t count, uint64_t size) {
    const uint64_t most = left.size() / size;  // bodies are padded
    if (count > most) ThrowBadFrame("a frame's counts do not give its bytes");
    const auto part = left.first(count * size);
    left = left.subspan(PaddedBytes(count * size));
    return part;
  };
  const auto next = [&](Section section) { return take((*sections)[section], 1); };
  const Filler fill(keep, is_shared);
  TensorBatch batch;
  batch.rows = header.rows;
  batch.is_lent = is_shared;
  batch.dense_names = names_[0];
  uint64_t origin[4];
  std::memcpy(origin, next(kOrigin).data(), sizeof origin);
  batch.first_row = origin[0];
  batch.term = origin[3];
  fill.Lasting(next(kRowIds), &batch.row_ids);
  fill(next(kLabels), &batch.labels);
  fill(next(kDense), &batch.dense);
  const auto jagged = [&](int list, Section lengths, Section values, Section weights) {
    const auto length_bytes = next(lengths), value_bytes = next(values),
               weight_bytes = next(weights);
    return DecodeJagged(names_[list], batch.rows, length_bytes, value_bytes, weight_bytes, fill);
  };
  batch.sparse = jagged(1, kSparseLengths, kSparseValues, kSparseWeights);
  batch.weighted_sparse = jagged(2, kWeightedLengths, kWeightedValues, kWeightedWeights);
  if (origin[2] != groups_.size())
    ThrowBadFrame("a batch has other groups than the names before it");
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
      ThrowBadFrame(fmt::format("a group claims {} unique rows", size[0]));
    const auto inverse = take(batch.rows, sizeof(int32_t));
    const auto lengths = take(names.keys.size() * size[0], sizeof(int32_t));
    const auto values = take(size[1], sizeof(int64_t));
    const auto weights = take(names.weighted ? size[1] : 0, sizeof(float));
    group.unique = DecodeJagged(names.keys, size[0], lengths, values, weights, fill);
    fill.Lasting(inverse, &group.inverse);
    CheckInverse(group);
  }
  if (origin[1] > left.size() / sizeof(RowSpan) ||
      PaddedBytes(origin[1] * sizeof(RowSpan)) != left.size())
    ThrowBadFrame(
        fmt::format("a frame's {} spans do not fit its last {} bytes", origin[1], left.size()));
  batch.spans.resize(origin[1]);
  if (origin[1] > 0) std::memcpy(batch.spans.data(), left.data(), origin[1] * sizeof(RowSpan));
  return batch;
}

}  // namespace headrace::reader
