// The fast path from a stripe to a FlatMapBatch, in four steps that are accounted one by one:
//
//   Fetch       storage -> stored bytes         coalesced reads into one buffer
//   (Decrypt)   stored -> stored                only where streams are encrypted: crypto/decrypt.h
//   Decompress  stored -> unpacked streams      a stream of one uncompressed chunk stays where it
//   was read Decode      unpacked -> values              integers straight into the batch's value
//   vectors, lengths, bitmaps Extract     values -> row-aligned columns   presence, offsets, dense
//   expansion
//
//   FlatMapBatch batch = Extract(Decode(Decompress(Fetch(MakePlan(reader, stripe, projection),
//   reader.source()))));
//
// Each step takes the previous step's result and frees it. Steps of different stripes may run on
// any threads at once; all state is in the values passed. Large buffers come from a process-wide
// pool and go back to it. Every size read from the file is checked against what the stripe holds
// and claims: a malformed stripe throws Error kBadData that names file, stripe, feature and stream.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "reader/batch/flat_map_batch.h"
#include "reader/batch/id_dictionary.h"
#include "reader/dwrf/decode_groups.h"
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

// Sparse features whose ids are to stay in their dictionary where a stripe stores them with one
// (batch/id_dictionary.h), by their names in the batch; not of maps that are not flattened. The
// dictionary stays where the stripe has so many values of the feature, or more, for each of its
// entries (at least 1); with `always` wherever there is one, and where it has more entries than the
// feature has values, only those that are used.
struct DictionaryRequest {
  std::map<std::string, double, std::less<>> features;  // values an entry
  bool always = false;

  // With at least `least` values an entry.
  static bool Pays(uint64_t entries, uint64_t values, double least) {
    return entries < values && static_cast<double>(values) >= least * static_cast<double>(entries);
  }
  // Null: not asked for.
  const double* Find(std::string_view feature) const {
    const auto found = features.find(feature);
    return found == features.end() ? nullptr : &found->second;
  }
};

// The numbers of one (node, sequence), without slots for nulls.
struct DecodedFeature {
  PresenceBits in_map;                     // over the rows whose map is not null
  PresenceBits value_present;              // over the set bits of in_map; no words: all present
  std::span<const uint8_t> packed_floats;  // dense float: still in the unpacked stream
  Array<float> floats;                     // dense of other types
  Array<uint32_t> lengths;                 // sparse: per list
  Array<int64_t> values;
  std::shared_ptr<const IdDictionary> dictionary;  // set: `values` are indices into it
  Array<float> weights;
  uint64_t extracted = 0;  // of a sliced stripe: values of the slices extracted so far
};

struct DecodedColumn {
  PresenceBits present;  // no words: all present
  Array<int64_t> integers;
  Array<float> floats;
};

// A map that is not flattened: every key of every row.
struct DecodedMap {
  PresenceBits present;     // rows whose map is not null; no words: all
  Array<uint32_t> lengths;  // entries of each of them
  Array<int64_t> keys;      // one per entry
  DecodedFeature values;    // value_present over the entries; in_map is not used
};

struct DecodedStripe {
  StripePlan plan;
  BufferPool::Handle bytes, decrypted, unpacked;
  std::vector<PresenceBits> map_present;  // per distinct FeaturePlan::map_present stream
  std::vector<uint32_t> map_present_streams;
  std::vector<DecodedFeature> features;  // per plan feature; empty where it is in `grouped`
  GroupedFeatures grouped;
  std::vector<DecodedColumn> columns;  // per plan column
  std::vector<DecodedMap> maps;        // per plan map
  uint64_t decoded_bytes = 0;

  // By DecodeSlices (slices.h) alone: then `features` hold lengths and packed floats of the rows
  // kept, and the ids are in the slices.
  bool sliced = false;
  std::vector<uint8_t> keep;  // per row of the stripe; empty: all are kept
  uint64_t kept_rows = 0, slice_rows = 0;
  std::vector<FlatMapBatch> slices;  // sparse columns with name, values and weights
};

// A few stored bytes can unpack to any number: more than `max_bytes` in all is Error kBadData.
UnpackedStripe Decompress(FetchedStripe&& fetched, uint64_t max_bytes = kMaxStripeBytes);
// A null element of a list, and an entry of an inner map whose key or weight is null, counts as
// absent: it is left out.
// Of the groups asked for, as far as they can take part (decode_groups.h), unique rows alone.
DecodedStripe Decode(UnpackedStripe&& unpacked, const GroupRequests* groups = nullptr,
                     const DictionaryRequest* dictionaries = nullptr);
// Columns in the order of the projection: `dense` the dense features, `sparse` the others, weighted
// ones with weights. first_row is the stripe's first row in its file; split_id is 0: the caller
// knows the file's place in the table.
FlatMapBatch Extract(DecodedStripe&& decoded);

}  // namespace headrace::reader::dwrf
