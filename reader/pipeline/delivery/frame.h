// Frame: a TensorBatch as bytes for another process, of any language (docs/delivery.md has the
// layout for readers of other languages; tests/data/read_frames.py is one).
//
//   64-byte header | section | padding to 64 | section | ...       all integers little-endian
//
// A connection carries one stream of frames: kNames (the columns' names, once and again when they
// change), kBatch, ..., kEnd. FrameEncoder and FrameDecoder are the two ends; each belongs to one
// connection and one thread. What a decoder takes is checked before use: it allocates nothing that
// the bytes it holds do not account for, and a damaged frame is an Error kBadData.
//
// Deduplicated groups (reader/batch/inverse_keyed_jagged_tensor.h) are sent as they are: unique
// rows, and for each row of the batch the number of its unique row.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/batch/tensor_batch.h"

namespace headrace::reader {

constexpr uint32_t kFrameMagic = 0x42545248;  // "HRTB" in memory
constexpr uint16_t kFrameVersion = 3;         // 3: frames without a checksum
constexpr uint64_t kFrameAlignment = 64;
constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 30;  // the most bytes of a body

enum class FrameKind : uint8_t { kNames = 1, kBatch = 2, kEnd = 3 };

// Bits of FrameHeader::flags of a batch: sections that are there.
constexpr uint8_t kFrameRowIds = 1, kFrameLabels = 2, kFrameSparseWeights = 4,
                  kFrameWeightedWeights = 8;
// Of any kind: without a checksum, as what carries it keeps bytes whole (memory, TLS). TCP does
// not.
constexpr uint8_t kFrameUnhashed = 128;
// Of any kind: the checksum, a u64, is behind the body, and not in the header: it is made while the
// body is on its way. Only of what sockets carry.
constexpr uint8_t kFrameTrailer = 64;
constexpr uint64_t kFrameTrailerBytes = 8;
// Of a batch, on its way through a socket to a consumer that said in its greeting that it can take
// them: its body comes in blocks (wire_block.h), and the checksum is of these.
constexpr uint8_t kFramePacked = 32;
// Flag of kEnd: the producer came to the end of its data; without this flag it was stopped before.
constexpr uint8_t kFrameComplete = 1;

struct FrameHeader {
  uint32_t magic = kFrameMagic;
  uint16_t version = kFrameVersion;
  uint8_t kind = 0;
  uint8_t flags = 0;
  uint64_t body_bytes = 0;  // behind the header; a multiple of 64
  uint64_t checksum = 0;    // XXH3-64 of the body, seeded by XXH3-64 of the header with checksum 0;
                            // 0 of frames without, and of those with a trailer
  uint64_t sequence = 0;    // of batches: 0, 1, ... on this connection; kEnd: how many there were
  uint32_t rows = 0;
  uint32_t dense_columns = 0;
  uint32_t sparse_keys = 0;
  uint32_t weighted_keys = 0;
  uint64_t sparse_values = 0;
  uint64_t weighted_values = 0;
};
static_assert(sizeof(FrameHeader) == 64);

// The header of a frame from its first 64 bytes. Throws Error kBadData when they are not a header
// of this version, or claim a body that its counts do not explain or longer than kMaxFrameBytes.
FrameHeader ParseFrameHeader(std::span<const uint8_t> bytes);

inline bool IsHashed(const FrameHeader& header) { return (header.flags & kFrameUnhashed) == 0; }

// What header.checksum must be for this body.
uint64_t FrameChecksum(const FrameHeader& header, std::span<const uint8_t> body);

// A frame to send. The parts of the body lie where the batch and the encoder have them: both must
// outlive the frame.
struct Frame {
  FrameHeader header;  // without the checksum: who sends the frame makes it
  std::vector<std::span<const uint8_t>> parts;
  uint64_t bytes() const { return sizeof header + header.body_bytes; }
};

inline bool IsPacked(const FrameHeader& header) { return (header.flags & kFramePacked) != 0; }
inline bool HasTrailer(const FrameHeader& header) { return (header.flags & kFrameTrailer) != 0; }

// The header with its checksum, or of a frame without.
FrameHeader SealedHeader(const Frame& frame, bool is_hashed = true);
// The whole frame to `to`, which has room for frame.bytes(). In one pass.
void CopyFrame(const Frame& frame, uint8_t* to, bool is_hashed = true);

// What kNames says about a group.
struct FrameGroup {
  std::string name;
  bool weighted = false;
  std::vector<std::string> keys;
  std::vector<uint32_t> places;  // as InverseKeyedJaggedTensor::places
  bool operator==(const FrameGroup&) const = default;
};

class FrameEncoder {
 public:
  FrameEncoder() = default;
  FrameEncoder(const FrameEncoder&) = delete;
  FrameEncoder& operator=(const FrameEncoder&) = delete;

  // The frames of `batch` in the order to send them: one, or the names and one. Copies no values.
  // They are valid until the next call. Throws Error kResources when the batch is longer than
  // kMaxFrameBytes.
  std::vector<Frame> Encode(const TensorBatch& batch);
  Frame End(bool complete);
  uint64_t batches() const { return batches_; }  // encoded so far

 private:
  Frame Names();
  std::vector<std::string> names_[3];  // dense, sparse, weighted
  std::vector<FrameGroup> groups_;
  bool has_names_ = false;
  std::vector<uint8_t> names_body_;
  uint64_t origin_[kFrameAlignment / 8] = {};
  std::vector<uint64_t> group_sizes_;
  uint64_t batches_ = 0;
};

// What is known of the memory of a frame's body that something keeps valid.
enum class FrameMemory : uint8_t {
  kOwn,      // no other process can write there
  kChecked,  // and its checksum was looked at as it came, or it needs none
  kShared    // its producer can still write there, and waits until it is let go
};

class FrameDecoder {
 public:
  // One whole frame. A batch for kBatch; nothing for the others. Throws Error kBadData for a
  // damaged frame, or one that does not fit those before it.
  //
  // The batch borrows its arrays from `body`, whose memory `keep` holds and begins at a multiple of
  // 64. Without `keep` all is copied first. Of shared memory what others rely on (lengths, row
  // numbers, spans, all that leads to a place) is copied before it is looked at, and only plain
  // values are borrowed: a producer that writes there later changes these, and no place. A frame
  // there that has a checksum is copied as a whole, in the pass that makes it.
  std::optional<TensorBatch> Decode(const FrameHeader& header, std::span<const uint8_t> body,
                                    std::shared_ptr<const void> keep = nullptr,
                                    FrameMemory memory = FrameMemory::kOwn);
  // The last frame was kEnd: no further one may come.
  bool ended() const { return ended_; }
  bool complete() const { return complete_; }  // and the producer had nothing left
  uint64_t batches() const { return batches_; }

 private:
  void DecodeNames(const FrameHeader& header, std::span<const uint8_t> body);
  TensorBatch DecodeBatch(const FrameHeader& header, std::span<const uint8_t> body,
                          const std::shared_ptr<const void>& keep, bool is_shared) const;
  std::vector<std::string> names_[3];
  std::vector<FrameGroup> groups_;
  bool has_names_ = false, ended_ = false, complete_ = false;
  uint64_t batches_ = 0;
};

}  // namespace headrace::reader
