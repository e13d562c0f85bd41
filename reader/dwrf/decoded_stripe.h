// DecodedStripe: what Decode (feature_stream.h) makes of a stripe: numbers, not yet by rows.
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
#include "reader/dwrf/grouped_features.h"
#include "reader/dwrf/projection.h"

namespace headrace::reader::dwrf {

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

}  // namespace headrace::reader::dwrf
