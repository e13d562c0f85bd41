// The fast path from a stripe to a FlatMapBatch, in four steps that are accounted one by one:
//
//   Fetch       storage -> stored bytes         coalesced reads into one buffer
//   (Decrypt)   stored -> stored                only where streams are encrypted: crypto/decrypt.h
//   Decompress  stored -> unpacked streams      a stream of one uncompressed chunk is not moved
//   Decode      unpacked -> values              integers straight into the batch's value vectors,
//                                               lengths, bitmaps
//   Extract     values -> row-aligned columns   presence, offsets, dense expansion
//
//   FlatMapBatch batch = Extract(
//       Decode(Decompress(Fetch(MakePlan(reader, stripe, projection), reader.source()))));
//
// Each step takes the previous step's result and frees it. Steps of different stripes may run on
// any threads at once; all state is in the values passed. Large buffers come from a process-wide
// pool and go back to it. Every size read from the file is checked against what the stripe holds
// and claims: a malformed stripe throws Error kBadData that names file, stripe, feature and stream.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "reader/batch/flat_map_batch.h"
#include "reader/dwrf/decoded_stripe.h"
#include "reader/dwrf/projection.h"
#include "reader/fetch/fetch.h"

namespace headrace::reader::dwrf {

struct UnpackedStripe {
  StripePlan plan;
  BufferPool::Handle bytes, decrypted, unpacked;
  std::vector<std::span<const uint8_t>>
      streams;  // per plan stream, into one of the buffers; readable for kPadding beyond
  uint64_t stored_bytes = 0;
  uint64_t unpacked_bytes = 0;
};

// A few stored bytes can unpack to any number: more than `max_bytes` in all is Error kBadData.
UnpackedStripe Decompress(FetchedStripe&& fetched, uint64_t max_bytes = kMaxStripeBytes);
// A null element of a list, and an entry of an inner map whose key or weight is null, counts as
// absent: it is left out. For the requested groups that can take part (decode_groups.h), only
// unique rows are decoded.
DecodedStripe Decode(UnpackedStripe&& unpacked, const GroupRequests* groups = nullptr,
                     const DictionaryRequest* dictionaries = nullptr);
// Columns in the order of the projection: `dense` the dense features, `sparse` the others, weighted
// ones with weights. first_row is the stripe's first row in its file; split_id is 0: the caller
// knows the file's place in the table.
FlatMapBatch Extract(DecodedStripe&& decoded);

}  // namespace headrace::reader::dwrf
