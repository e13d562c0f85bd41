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
  // Read as well, and adjacent in memory: FetchedStripe::whole. By adjacent reads of at most
  // max_read_bytes, and what is read waits for OfferTo. Of length 0: nothing.
  ByteRange whole = {};
};

struct FetchedStripe {
  dwrf::StripePlan plan;
  BufferPool::Handle bytes;
  BufferPool::Handle decrypted;                  // by Decrypt, where streams were encrypted
  std::vector<std::span<const uint8_t>> stored;  // per plan stream, into either
  std::span<const uint8_t> whole;                // those asked for by FetchOptions::whole
  uint64_t stream_bytes = 0;                     // sum of the streams
  uint64_t wanted_bytes = 0;                     // the same, shared bytes counted once
  uint64_t read_bytes = 0;                       // with holes and alignment; those of the tier too
  ReadFigures figures;                           // what the source did for it
  TierFigures tier;
  // Not yet offered to the tier: where FetchOptions::whole was asked for, until OfferTo.
  TierStreams found;
  std::vector<TierOffer> offers;
};

// Streams that the tier has come from it; the others are read, and offered to it. Throws what
// source.ReadMany throws; `figures`, if given, says what was read in either case.
FetchedStripe Fetch(dwrf::StripePlan plan, const Source& source, const FetchOptions& options = {},
                    StreamTier* tier = nullptr, ReadFigures* figures = nullptr);

// Offers what a Fetch with FetchOptions::whole read, once its caller knows it to be undamaged: a
// tier keeps what it is given, for later runs too. The same tier and source as there; no tier, or a
// second call: nothing.
void OfferTo(StreamTier* tier, const Source& source, FetchedStripe* fetched);

// Buffers as large as a stripe, handed out again. Never destroyed: batches of detached threads may
// outlive main.
BufferPool& StripeBuffers();

}  // namespace headrace::reader
