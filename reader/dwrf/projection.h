// Projection: the features and plain columns a job wants. StripePlan: the streams of one stripe
// that hold them.
//
//   projection   features {sparse, 17}, {dense, 3};  columns {label}
//   plan         streams  IN_MAP, LENGTH, DATA of (sparse.value, key 17);
//                IN_MAP, DATA of (dense.value, key 3); DATA of label
//
// A feature is one key of a map. In a flattened map only the streams of that key are read, in an
// ordinary map the whole map is (MapPlan). By its value type it is
//   dense            map<K, float>, also double, boolean and integer values: read as float
//   sparse           map<K, list<integer>>
//   weighted sparse  map<K, map<integer, float>>, also double weights
// and a plain column an integer, boolean, float or double. Keys are integers or strings.
// All functions are thread-safe; a plan is a value, independent of the projection once made.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/batch/flat_map_batch.h"
#include "reader/dwrf/stripe.h"
#include "reader/dwrf/tail.h"
#include "reader/fetch/read_plan.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

class FileReader;

struct FeatureRequest {
  std::string column;  // a top-level map
  MapKey key;
};

struct Projection {
  std::vector<FeatureRequest> features;
  std::vector<std::string> columns;
  // How encrypted columns without a key are read. True: no row has their features, and plain
  // columns are null. False: they are refused.
  bool locked_as_null = false;
};

// The name of the feature's column in a FlatMapBatch: "sparse:17", "map4:key-null".
std::string FeatureName(const FeatureRequest& request);

// The top-level columns it reads: plain ones, then maps.
std::vector<std::string> TopLevelColumns(const Projection& projection);

// The streams of one (node, sequence): indices into StripePlan::streams, kNone where the stripe has
// no such stream.
struct NodePlan {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t node = 0, sequence = 0;
  TypeKind kind = TypeKind::kFloat;
  EncodingKind encoding = EncodingKind::kDirect;
  uint32_t dictionary_size = 0;
  uint32_t present = kNone, data = kNone, length = kNone, dictionary = kNone, in_dictionary = kNone;
};

struct FeaturePlan {
  std::string name;
  FeatureKind kind = FeatureKind::kDense;
  uint32_t map = NodePlan::kNone;  // for a map that is not flattened: index into StripePlan::maps
  int64_t key = 0;                 // the key in that map
  bool in_stripe = false;  // false: no row of the stripe has the feature, and nothing below is set
  uint32_t map_present = NodePlan::kNone, in_map = NodePlan::kNone;
  NodePlan value;   // dense: the numbers; sparse: the list; weighted sparse: the inner map
  NodePlan item;    // sparse: list elements; weighted sparse: inner keys
  NodePlan weight;  // weighted sparse: inner values
};

// A map that is not flattened, read whole for the features wanted of it.
struct MapPlan {
  std::string name;
  FeatureKind kind = FeatureKind::kDense;
  NodePlan map, key;
  NodePlan value, item, weight;  // as in FeaturePlan
};

struct ColumnPlan {
  std::string name;
  NodePlan value;
  bool is_locked = false;  // encrypted, without the key: null in every row, and no stream planned
};

// What a plan needs to know about the file: parts of FileTail, and its name for messages.
struct PlanContext {
  std::string file;
  const Schema* schema = nullptr;
  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_size = 0;
  const FileKeys* keys = nullptr;  // null: nothing is encrypted
};

class StripePlan {
 public:
  std::string file;
  CompressionKind compression = CompressionKind::kNone;
  uint64_t block_size = 0;
  uint32_t stripe_index = 0;
  uint64_t rows = 0;
  uint64_t first_row = 0;                // of the file
  std::vector<StreamInfo> streams;       // each stream once; none of length 0
  std::vector<FeaturePlan> features;     // in the order of the projection
  std::vector<ColumnPlan> columns;       // in the order of the projection
  std::vector<MapPlan> maps;             // not flattened in this stripe
  uint64_t num_locked = 0;               // features and columns that are null for want of a key
  std::shared_ptr<const FileKeys> keys;  // of the file; null: no stream is encrypted

  // The streams' byte ranges, by offset; ranges that touch are not merged.
  std::vector<ByteRange> ranges() const;
  uint64_t wanted_bytes() const;
  // "rm1.dwrf: stripe 3, stream DATA of feature sparse:17": where an error happened.
  std::string Where(uint32_t stream) const;
};

// Throws Error kUsage for a column that does not exist or is not of the kinds above (naming its
// type), kPrivilege for an encrypted one without its key unless locked_as_null, kBadData where the
// stripe's encodings or streams contradict the format, kResources when the columns of one stripe
// would exceed kMaxStripeBytes whatever they hold.
StripePlan MakePlan(const FileReader& reader, const std::shared_ptr<const Stripe>& stripe,
                    const Projection& projection);
StripePlan MakePlan(const PlanContext& context, const Stripe& stripe, const Projection& projection);

// Throws Error kUsage as MakePlan does, without a stripe: for checking a pipeline before it runs.
void CheckProjection(const Schema& schema, const std::string& file, const Projection& projection);

// Bound on rows * (bytes each projected column takes per row even when empty): a file can claim any
// number of rows.
constexpr uint64_t kMaxStripeBytes = uint64_t{8} << 30;

}  // namespace headrace::reader::dwrf
