// Checkpoint: the progress of a run in a file, so that another run can continue with exactly the
// rows not yet delivered. It holds which rows were settled (delivery/ledger.h) and the consumer's
// own state at the same moment. Transforms draw by row numbers, so there is no random state to
// save.
//
// headrace.checkpoint/3, all numbers u64 little-endian:
//   22 bytes  "headrace.checkpoint/3\n"
//   fingerprint: table, projection, transforms, seed
//   splits of the table; batches delivered; rows delivered; first epoch; number of epochs, and of
//   each: its number; a bit per split in ceil(splits / 64) words; the settled rows of the other
//   splits: their length in bytes, their bytes (RowSet::Serialize)
//   consumer state: its length, its bytes
//   8 bytes   XXH64 of all before
// headrace.checkpoint/5, of a rank of a job, has behind the number of the first epoch how many rows
// of the epochs before it are settled, and their sum, where they are not all
// (DeliveryState::closed). headrace.checkpoint/2, which is still read, has instead of the settled
// rows: number of partial splits, and of each: its number, the number of its settled ranges, their
// first row and row count
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "reader/pipeline/delivery/ledger.h"
#include "reader/pipeline/fingerprint.h"

namespace headrace::reader {

struct Checkpoint {
  Fingerprint fingerprint;
  uint64_t splits = 0;
  uint64_t batches = 0, rows = 0;  // delivered, by all runs together
  DeliveryState delivered;
  std::string consumer_state;
};

std::string SerializeCheckpoint(const Checkpoint& checkpoint);
// Throws Error kBadData, naming `name`, for anything that SerializeCheckpoint did not make,
// including checkpoints of another version. Takes no more memory than a small multiple of the text,
// whatever the text claims.
Checkpoint ParseCheckpoint(std::string_view text, const std::string& name);

// Replaces `path` by rename, after the bytes are on the disk. Throws Error.
void WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint);
// Throws Error: kBadData for a damaged file, and when there is none.
Checkpoint ReadCheckpoint(const std::string& path);
// Removes temporary files that killed writers left beside `path`.
void RemoveTornCheckpoints(const std::string& path);

// Throws Error kUsage naming the part that differs.
void CheckFingerprint(const Fingerprint& saved, const Fingerprint& now, const std::string& path);

}  // namespace headrace::reader
