// DecodedStripe: the result of Decode (feature_stream.h): a stripe's numbers, not yet arranged by
// rows.
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

// Sparse features of flattened maps whose ids should stay in their dictionary
// (batch/id_dictionary.h) if a stripe stores them with one, by their names in the batch. The
// dictionary stays if the stripe has at least the given number of values for each of its entries
// (at least 1). With `always` it stays wherever there is one; if it has more entries than the
// feature has values, only the used entries are kept.
struct DictionaryRequest {
  std::map<std::string, double, std::less<>> features;  // least values per entry
  bool always = false;

  // Whether a dictionary stays, with `least` as the fewest values per entry.
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
  uint64_t extracted = 0;  // in a sliced stripe: values in the slices extracted so far
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

  // The following are set by DecodeSlices (slices.h) only. Then `features` hold lengths and packed
  // floats of the kept rows, and the ids are in `slices`.
  bool sliced = false;
  std::vector<uint8_t> keep;  // per row of the stripe; empty: all are kept
  uint64_t kept_rows = 0, slice_rows = 0;
  std::vector<FlatMapBatch> slices;  // sparse columns with name, values and weights
};

}  // namespace headrace::reader::dwrf
