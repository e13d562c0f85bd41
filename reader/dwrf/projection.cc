#include "reader/dwrf/projection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "reader/dwrf/crypto/file_keys.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf {
namespace {

// The schema nodes behind a flattened map, and what its values make of a feature.
struct BoundMap {
  FeatureKind kind = FeatureKind::kDense;
  uint32_t map = 0, key = 0, value = 0;
  uint32_t item = 0, weight = 0;  // as in FeaturePlan
};

bool IsNumber(TypeKind kind) {
  return IsInteger(kind) || kind == TypeKind::kBoolean || kind == TypeKind::kFloat ||
         kind == TypeKind::kDouble;
}
bool IsReal(TypeKind kind) { return kind == TypeKind::kFloat || kind == TypeKind::kDouble; }

[[noreturn]] void Refuse(const std::string& file, const std::string& what, const std::string& fix) {
  throw Error(ExitCode::kUsage, what, file, fix);
}

uint32_t FindColumn(const Schema& schema, const std::string& file, const std::string& name) {
  const std::optional<uint32_t> node = schema.FindColumn(name);
  if (!node) {
    std::string names;
    for (const std::string& column : schema.ColumnNames()) {
      if (names.size() > 200) {
        names += ", ...";
        break;
      }
      names += (names.empty() ? "" : ", ") + Printable(column);
    }
    Refuse(file, fmt::format("no column {}", Printable(name)),
           fmt::format("its columns are {}", names));
  }
  return *node;
}

BoundMap BindMap(const Schema& schema, const std::string& file, const FeatureRequest& request) {
  BoundMap bound;
  bound.map = FindColumn(schema, file, request.column);
  const auto refuse = [&] {
    Refuse(
        file,
        fmt::format("feature {} has type {}, which is not a feature",
                    Printable(FeatureName(request)), schema.ToString(bound.map)),
        "a feature is a key of map<K,number>, map<K,list<integer>> or map<K,map<integer,float>>");
  };
  const SchemaNode& map = schema.node(bound.map);
  if (map.kind != TypeKind::kMap) refuse();
  bound.key = map.children[0];
  bound.value = map.children[1];
  const SchemaNode& value = schema.node(bound.value);
  if (IsNumber(value.kind)) {
    bound.kind = FeatureKind::kDense;
  } else if (value.kind == TypeKind::kList && IsInteger(schema.node(value.children[0]).kind)) {
    bound.kind = FeatureKind::kSparse;
    bound.item = value.children[0];
  } else if (value.kind == TypeKind::kMap && IsInteger(schema.node(value.children[0]).kind) &&
             IsReal(schema.node(value.children[1]).kind)) {
    bound.kind = FeatureKind::kWeightedSparse;
    bound.item = value.children[0];
    bound.weight = value.children[1];
  } else {
    refuse();
  }
  const bool text_keys = !IsInteger(schema.node(bound.key).kind);
  if (text_keys != request.key.is_text) {
    Refuse(file,
           fmt::format("feature {}: the keys of {} are {}s", Printable(FeatureName(request)),
                       Printable(request.column), TypeKindName(schema.node(bound.key).kind)),
           text_keys ? "give the key as text" : "give the key as a number");
  }
  return bound;
}

uint32_t BindColumn(const Schema& schema, const std::string& file, const std::string& name) {
  const uint32_t node = FindColumn(schema, file, name);
  if (!IsNumber(schema.node(node).kind)) {
    Refuse(file,
           fmt::format("column {} has type {}, which is not a number", Printable(name),
                       schema.ToString(node)),
           "project integer, boolean, float or double columns");
  }
  return node;
}

// The place of the first of the sorted items that is not before `key`. Tried first at `from`, where
// the last search ended: a projection mostly has the stripe's own order.
template <typename Item, typename Key, typename Less>
size_t Seek(std::span<const Item> items, size_t from, const Key& key, Less less) {
  constexpr size_t kNear = 8;
  if (from == 0 || less(items[from - 1], key)) {
    for (size_t i = from; i < std::min(items.size(), from + kNear); ++i)
      if (!less(items[i], key)) return i;
  }
  return static_cast<size_t>(std::lower_bound(items.begin(), items.end(), key, less) -
                             items.begin());
}

// The keys of a map in a stripe: all integers or all texts, as its key type is.
class SequenceOfKey {
 public:
  explicit SequenceOfKey(std::span<const FlatKey> keys) {
    keys_.reserve(keys.size());
    for (const FlatKey& key : keys) keys_.push_back(&key);
    const auto before = [](const FlatKey* a, const FlatKey* b) { return Before(a, b->key); };
    if (!std::is_sorted(keys_.begin(), keys_.end(), before))
      std::stable_sort(keys_.begin(), keys_.end(), before);
  }
  // The first sequence that has the key; 0 if none does.
  uint32_t Find(const MapKey& key) {
    next_ = Seek(std::span<const FlatKey* const>(keys_), next_, key, Before);
    return next_ < keys_.size() && keys_[next_]->key == key ? keys_[next_]->sequence : 0;
  }

 private:
  static bool Before(const FlatKey* a, const MapKey& b) {
    return a->key.is_text ? a->key.text < b.text : a->key.integer < b.integer;
  }
  std::vector<const FlatKey*> keys_;
  size_t next_ = 0;
};

// A flattened map of the projection, looked up once per stripe.
struct StripeMap {
  BoundMap bound;
  uint32_t present = NodePlan::kNone;
  uint32_t whole = NodePlan::kNone;  // not flattened: in StripePlan::maps
  bool is_locked = false;            // and null
  std::optional<SequenceOfKey> sequences;
};

class Planner {
 public:
  Planner(const PlanContext& context, const Stripe& stripe)
      : context_(context), stripe_(stripe), cursors_(context.schema->size()) {
    plan_.file = context.file;
    plan_.compression = context.compression;
    plan_.block_size = context.block_size;
    plan_.stripe_index = stripe.index;
    plan_.rows = stripe.rows;
    plan_.first_row = stripe.first_row;
    plan_.keys = stripe.keys;
  }

  StripePlan Plan(const Projection& projection) {
    CheckSize(projection);
    locked_as_null_ = projection.locked_as_null;
    plan_.features.reserve(projection.features.size());
    plan_.streams.reserve(std::min(stripe_.streams.size(), 5 * projection.features.size() + 16));
    for (const FeatureRequest& request : projection.features) AddFeature(request);
    for (const std::string& name : projection.columns) {
      const uint32_t node = BindColumn(*context_.schema, context_.file, name);
      if (IsNull(node)) {
        NodePlan value;
        value.kind = context_.schema->node(node).kind;
        plan_.columns.push_back({name, value, true});
        ++plan_.num_locked;
        continue;
      }
      plan_.columns.push_back({name, PlanNode(node, 0)});
    }
    return std::move(plan_);
  }

 private:
  // What the columns take even if the stripe holds nothing: rows are only claimed.
  void CheckSize(const Projection& projection) const {
    const uint64_t per_row = 5 * (projection.features.size() + 1) + 8 * projection.columns.size();
    if (stripe_.rows <= kMaxStripeBytes / per_row) return;
    throw Error(ExitCode::kResources,
                fmt::format("the projected columns of its {} rows need more than {} bytes",
                            stripe_.rows, kMaxStripeBytes),
                Place(), "project fewer features, or write smaller stripes");
  }

  std::string Place() const { return fmt::format("{}: stripe {}", context_.file, stripe_.index); }

  // Whether the column is locked and is to be null for it; where it is not to be, throws.
  bool IsNull(uint32_t node) const {
    if (context_.keys == nullptr) return false;
    if (locked_as_null_) return context_.keys->FirstLocked(*context_.schema, node).has_value();
    context_.keys->CheckReadable(*context_.schema, node, context_.file);
    return false;
  }

  StripeMap& MapOf(const FeatureRequest& request) {
    if (last_map_ != maps_.end() && last_map_->first.first == request.column &&
        last_map_->first.second == request.key.is_text)
      return last_map_->second;
    bool is_new;
    std::tie(last_map_, is_new) = maps_.try_emplace(std::pair(request.column, request.key.is_text));
    StripeMap& map = last_map_->second;
    if (!is_new) return map;
    map.bound = BindMap(*context_.schema, context_.file, request);
    map.is_locked = IsNull(map.bound.map);
    if (map.is_locked) return map;
    const Encoding* encoding = stripe_.FindEncoding(map.bound.map, 0);
    if (encoding != nullptr && encoding->kind != EncodingKind::kMapFlat) {
      AddWholeMap(request, &map);
      return map;
    }
    map.present = AddStream(StreamsOf(map.bound.map, 0), StreamKind::kPresent);
    map.sequences.emplace(stripe_.FlatKeys(map.bound.map));
    return map;
  }

  void AddWholeMap(const FeatureRequest& request, StripeMap* map) {
    if (request.key.is_text) {
      Refuse(Place(),
             fmt::format("column {} is an ordinary map with keys that are texts",
                         Printable(request.column)),
             "write it as a flattened map");
    }
    map->whole = static_cast<uint32_t>(plan_.maps.size());
    MapPlan whole;
    whole.name = request.column;
    whole.kind = map->bound.kind;
    whole.map = PlanNode(map->bound.map, 0);
    whole.key = PlanNode(map->bound.key, 0);
    whole.value = PlanNode(map->bound.value, 0);
    if (whole.kind != FeatureKind::kDense) whole.item = PlanNode(map->bound.item, 0);
    if (whole.kind == FeatureKind::kWeightedSparse) whole.weight = PlanNode(map->bound.weight, 0);
    plan_.maps.push_back(std::move(whole));
  }

  void AddFeature(const FeatureRequest& request) {
    StripeMap& map = MapOf(request);
    FeaturePlan& feature = plan_.features.emplace_back();
    feature.name = FeatureName(request);
    feature.kind = map.bound.kind;
    if (map.is_locked) {
      ++plan_.num_locked;
      return;
    }
    if (map.whole != NodePlan::kNone) {
      feature.in_stripe = true;
      feature.map = map.whole;
      feature.key = request.key.integer;
      return;
    }
    const uint32_t sequence = map.sequences->Find(request.key);
    if (sequence == 0) return;
    feature.in_stripe = true;
    feature.map_present = map.present;
    feature.in_map = AddStream(StreamsOf(map.bound.value, sequence), StreamKind::kInMap);
    feature.value = PlanNode(map.bound.value, sequence);
    if (feature.kind == FeatureKind::kDense) return;
    if (feature.value.encoding != EncodingKind::kDirect) {
      throw Error(
          ExitCode::kBadData,
          fmt::format("feature {}: its {} have an unknown encoding", Printable(feature.name),
                      feature.kind == FeatureKind::kSparse ? "lists" : "inner maps"),
          Place());
    }
    feature.item = PlanNode(map.bound.item, sequence);
    if (feature.kind == FeatureKind::kWeightedSparse)
      feature.weight = PlanNode(map.bound.weight, sequence);
  }

  NodePlan PlanNode(uint32_t node, uint32_t sequence) {
    NodePlan plan;
    plan.node = node;
    plan.sequence = sequence;
    plan.kind = context_.schema->node(node).kind;
    if (const Encoding* encoding = FindEncoding(node, sequence)) {
      plan.encoding = encoding->kind;
      plan.dictionary_size = encoding->dictionary_size;
    }
    const Streams streams = StreamsOf(node, sequence);
    const bool wide_integer = IsInteger(plan.kind) && plan.kind != TypeKind::kByte;
    if (plan.encoding == EncodingKind::kMapFlat ||
        (plan.encoding == EncodingKind::kDictionary && !wide_integer)) {
      throw Error(ExitCode::kBadData,
                  fmt::format("{} at sequence {} has an encoding that its type does not allow",
                              context_.schema->Path(node), sequence),
                  Place());
    }
    plan.present = AddStream(streams, StreamKind::kPresent);
    if (plan.kind == TypeKind::kList || plan.kind == TypeKind::kMap) {
      plan.length = AddStream(streams, StreamKind::kLength);
      return plan;
    }
    plan.data = AddStream(streams, StreamKind::kData);
    if (plan.encoding != EncodingKind::kDictionary) return plan;
    plan.in_dictionary = AddStream(streams, StreamKind::kInDictionary);
    plan.dictionary = AddStream(streams, StreamKind::kDictionaryData);
    if (plan.dictionary == NodePlan::kNone && sequence != 0 &&
        Find(streams, StreamKind::kDictionaryData) == nullptr) {
      plan.dictionary = AddShared(node);
    }
    return plan;
  }

  using Streams = std::span<const Stripe::StreamKey>;  // of one node and sequence, by kind

  Streams StreamsOf(uint32_t node, uint32_t sequence) {
    const Streams all = stripe_.lookup;
    const auto is_before = [](const Stripe::StreamKey& a, const auto& b) {
      return std::pair(a.node, a.sequence) < b;
    };
    size_t& first = cursors_[node].stream;
    first = Seek(all, first, std::pair(node, sequence), is_before);
    size_t end = first;
    while (end < all.size() && all[end].node == node && all[end].sequence == sequence) ++end;
    return all.subspan(first, end - first);
  }

  const Encoding* FindEncoding(uint32_t node, uint32_t sequence) {
    const std::span all(stripe_.encodings);
    const auto is_before = [](const auto& a, const auto& b) { return a.first < b; };
    size_t& place = cursors_[node].encoding;
    place = Seek(all, place, std::pair(node, sequence), is_before);
    return place < all.size() && all[place].first == std::pair(node, sequence) ? &all[place].second
                                                                               : nullptr;
  }

  const StreamInfo* Find(Streams streams, StreamKind kind) const {
    for (const Stripe::StreamKey& key : streams)
      if (key.kind == kind) return &stripe_.streams[key.index];
    return nullptr;
  }

  uint32_t AddStream(Streams streams, StreamKind kind) {
    const StreamInfo* stream = Find(streams, kind);
    if (stream == nullptr || stream->length == 0) return NodePlan::kNone;
    plan_.streams.push_back(*stream);
    return static_cast<uint32_t>(plan_.streams.size() - 1);
  }

  // The dictionary at sequence 0 that all keys of a map share (FORMAT 9.4), planned once.
  uint32_t AddShared(uint32_t node) {
    const auto [place, is_new] = shared_.try_emplace(node, NodePlan::kNone);
    if (is_new) place->second = AddStream(StreamsOf(node, 0), StreamKind::kDictionaryData);
    return place->second;
  }

  const PlanContext& context_;
  const Stripe& stripe_;
  bool locked_as_null_ = false;
  StripePlan plan_;
  using Maps = std::map<std::pair<std::string, bool>, StripeMap>;  // whether its keys are texts
  Maps maps_;
  Maps::iterator last_map_ = maps_.end();
  struct Cursor {
    size_t stream = 0, encoding = 0;
  };
  std::vector<Cursor> cursors_;  // of each node: where the last search in it ended
  std::map<uint32_t, uint32_t> shared_;
};

const char* KindName(StreamKind kind) {
  switch (kind) {
    case StreamKind::kPresent:
      return "PRESENT";
    case StreamKind::kData:
      return "DATA";
    case StreamKind::kLength:
      return "LENGTH";
    case StreamKind::kDictionaryData:
      return "DICTIONARY_DATA";
    case StreamKind::kInDictionary:
      return "IN_DICTIONARY";
    case StreamKind::kInMap:
      return "IN_MAP";
    default:
      return "?";
  }
}

bool Uses(const NodePlan& node, uint32_t stream) {
  return node.present == stream || node.data == stream || node.length == stream ||
         node.dictionary == stream || node.in_dictionary == stream;
}

}  // namespace

std::string FeatureName(const FeatureRequest& request) {
  if (request.key.is_text) return request.column + ':' + request.key.text;
  return request.column + ':' + fmt::format_int(request.key.integer).c_str();
}

std::vector<std::string> TopLevelColumns(const Projection& projection) {
  std::vector<std::string> names = projection.columns;
  for (const FeatureRequest& feature : projection.features)
    if (names.empty() || names.back() != feature.column) names.push_back(feature.column);
  return names;
}

std::vector<ByteRange> StripePlan::ranges() const {
  std::vector<ByteRange> ranges;
  ranges.reserve(streams.size());
  for (const StreamInfo& stream : streams) ranges.push_back({stream.offset, stream.length});
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return std::pair(a.offset, a.length) < std::pair(b.offset, b.length);
  });
  return ranges;
}

uint64_t StripePlan::wanted_bytes() const {
  uint64_t bytes = 0;
  for (const StreamInfo& stream : streams) bytes += stream.length;
  return bytes;
}

std::string StripePlan::Where(uint32_t stream) const {
  std::string owner;
  for (const FeaturePlan& feature : features) {
    if (!feature.in_stripe || feature.map != NodePlan::kNone) continue;
    if (feature.map_present == stream || feature.in_map == stream || Uses(feature.value, stream) ||
        Uses(feature.item, stream) || Uses(feature.weight, stream)) {
      owner = "feature " + Printable(feature.name);
      break;
    }
  }
  for (const MapPlan& map : maps) {
    if (Uses(map.map, stream) || Uses(map.key, stream) || Uses(map.value, stream) ||
        Uses(map.item, stream) || Uses(map.weight, stream))
      owner = "map " + Printable(map.name);
  }
  for (const ColumnPlan& column : columns) {
    if (Uses(column.value, stream)) owner = "column " + Printable(column.name);
  }
  return fmt::format("{}: stripe {}, stream {} of {} at byte {}", file, stripe_index,
                     KindName(streams[stream].kind), owner, streams[stream].offset);
}

StripePlan MakePlan(const PlanContext& context, const Stripe& stripe,
                    const Projection& projection) {
  return Planner(context, stripe).Plan(projection);
}

StripePlan MakePlan(const FileReader& reader, const std::shared_ptr<const Stripe>& stripe,
                    const Projection& projection) {
  const FileTail& tail = reader.tail();
  return MakePlan(
      {reader.source().name(), &reader.schema(), tail.compression, tail.block_size, &reader.keys()},
      *stripe, projection);
}

void CheckProjection(const Schema& schema, const std::string& file, const Projection& projection) {
  for (const FeatureRequest& request : projection.features) BindMap(schema, file, request);
  for (const std::string& name : projection.columns) BindColumn(schema, file, name);
}

}  // namespace headrace::reader::dwrf
