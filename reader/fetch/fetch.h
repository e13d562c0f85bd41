// Fetch: the stored bytes of a stripe's projected streams, by the reads of a ReadPlan, into one
// buffer. The first step of the fast path (reader/dwrf/feature_stream.h). Thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "reader/dwrf/projection.h"
#include "reader/fetch/read_plan.h"
#include "reader/fetch/stream_tier.h"
#include "reader/source/source.h"

namespace headrace::reader {

struct FetchOptions {
  uint64_t max_gap_bytes = ReadPlanOptions().max_gap_bytes;
  uint64_t max_read_bytes = ReadPlanOptions().max_read_bytes;
  // A range to read as well, into adjacent memory (FetchedStripe::whole), by adjacent reads of at
  // most max_read_bytes. Streams that were read are then offered to the tier only by OfferTo.
  // Length 0: no such range.
  ByteRange whole = {};
};

struct FetchedStripe {
  dwrf::StripePlan plan;
  BufferPool::Handle bytes;
  BufferPool::Handle decrypted;                  // by Decrypt, where streams were encrypted
  std::vector<std::span<const uint8_t>> stored;  // per plan stream, into either
  std::span<const uint8_t> whole;                // the bytes of FetchOptions::whole
  uint64_t stream_bytes = 0;                     // sum of the streams
  uint64_t wanted_bytes = 0;                     // the same, shared bytes counted once
  // With holes and alignment, and including bytes from the tier.
  uint64_t read_bytes = 0;
  ReadFigures figures;  // what the source did for it
  TierFigures tier;
  // Streams not yet offered to the tier; only with FetchOptions::whole, until OfferTo.
  TierStreams found;
  std::vector<TierOffer> offers;
};

// Takes streams from the tier if it has them; the others are read, and offered to it. Throws what
// source.ReadMany throws; `figures`, if given, receives what was read, even then.
FetchedStripe Fetch(dwrf::StripePlan plan, const Source& source, const FetchOptions& options = {},
                    StreamTier* tier = nullptr, ReadFigures* figures = nullptr);

// Offers to the tier what a Fetch with FetchOptions::whole read. Call it once the bytes are known
// to be undamaged, because a tier may keep them for later runs. `tier` and `source` must be those
// of the Fetch. Does nothing without a tier, or on a second call.
void OfferTo(StreamTier* tier, const Source& source, FetchedStripe* fetched);

// A pool of buffers as large as a stripe. It is never destroyed, because batches of detached
// threads may outlive main.
BufferPool& StripeBuffers();

}  // namespace headrace::reader
