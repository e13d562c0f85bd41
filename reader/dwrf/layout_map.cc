#include "reader/dwrf/layout_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/units.h"

namespace headrace::reader::dwrf {
namespace {

using Json = nlohmann::ordered_json;

// Gaps worth comparing: none, and what suits a page cache, a local disk, a disk far away.
constexpr uint64_t kComparedGaps[] = {0,         4 << 10, 16 << 10,  64 << 10,
                                      128 << 10, 1 << 20, 1280 << 10};

// Bytes of [begin, end) that lie in `ranges`, sorted and disjoint.
uint64_t Covered(const std::vector<ByteRange>& ranges, uint64_t begin, uint64_t end) {
  auto range = std::partition_point(ranges.begin(), ranges.end(), [&](const ByteRange& r) {
    return r.offset + r.length <= begin;
  });
  uint64_t bytes = 0;
  for (; range != ranges.end() && range->offset < end; ++range)
    bytes += std::min(end, range->offset + range->length) - std::max(begin, range->offset);
  return bytes;
}

// Sorted ranges with those that touch or overlap made one.
std::vector<ByteRange> Union(std::vector<ByteRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return std::pair(a.offset, a.length) < std::pair(b.offset, b.length);
  });
  std::vector<ByteRange> out;
  for (const ByteRange& range : ranges) {
    if (range.length == 0) continue;
    if (out.empty() || range.offset > out.back().offset + out.back().length) {
      out.push_back(range);
      continue;
    }
    const uint64_t end =
        std::max(out.back().offset + out.back().length, range.offset + range.length);
    out.back().length = end - out.back().offset;
  }
  return out;
}

uint64_t Length(const std::vector<ByteRange>& ranges) {
  uint64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.length;
  return bytes;
}

class Mapper {
 public:
  Mapper(const Schema& schema, LayoutMap* map) : schema_(schema), map_(map) {
    const SchemaNode& root = schema.root();
    column_of_.assign(schema.size(), UINT32_MAX);
    for (size_t c = 0; c < root.children.size(); ++c) {
      const SchemaNode& node = schema.node(root.children[c]);
      for (uint32_t id = node.id; id <= node.last; ++id) column_of_[id] = static_cast<uint32_t>(c);
      ColumnLayout& column = map->columns.emplace_back();
      column.name = root.field_names[c];
      column.type = schema.ToString(node.id);
    }
    std::vector<uint64_t> gaps(std::begin(kComparedGaps), std::end(kComparedGaps));
    gaps.push_back(map->options.max_gap_bytes);
    std::sort(gaps.begin(), gaps.end());
    gaps.erase(std::unique(gaps.begin(), gaps.end()), gaps.end());
    if (map->options.projection != nullptr)
      for (const uint64_t gap : gaps) map->rules.push_back({gap, 0, 0});
  }

  void AddFile(const std::shared_ptr<const FileReader>& file) {
    const FileTail& tail = file->tail();
    FileLayout& layout = map_->files.emplace_back();
    layout.name = file->source().name();
    layout.file_bytes = tail.file_size;
    layout.rows = file->num_rows();
    layout.stripes = file->num_stripes();
    layout.compression = tail.compression;
    layout.block_bytes = tail.block_size;
    layout.cache_bytes = tail.cache_length;
    layout.tail_bytes = tail.file_size - tail.footer_offset;
    for (const proto::StripeInformation& stripe : tail.footer.stripes()) {
      layout.data_bytes += stripe.data_length();
      layout.index_bytes += stripe.index_length();
      layout.stripe_footer_bytes += stripe.footer_length();
    }
    layout.other_bytes = layout.file_bytes - std::min(layout.file_bytes, Known(layout));
    for (uint32_t id = 0; id < schema_.size(); ++id)
      if (tail.encrypted_nodes[id] && column_of_[id] != UINT32_MAX)
        map_->columns[column_of_[id]].encrypted = true;
    for (size_t s = 0; s < file->num_stripes(); ++s) AddStripe(*file, file->ReadStripe(s));
  }

  void Finish() {
    std::vector<KeyLayout>& keys = map_->keys;
    for (const KeyLayout& key : keys) {
      ColumnLayout& column = map_->columns[key.column];
      ++column.keys;
      column.wanted_keys += key.wanted ? 1 : 0;
    }
    std::sort(keys.begin(), keys.end(), [](const KeyLayout& a, const KeyLayout& b) {
      return std::tie(a.first_stripe, a.first_offset, a.column, a.key) <
             std::tie(b.first_stripe, b.first_offset, b.column, b.key);
    });
    if (map_->options.projection == nullptr) return;
    for (const FeatureRequest& feature : map_->options.projection->features)
      map_->absent_features += found_.count({feature.column, feature.key}) == 0 ? 1 : 0;
  }

 private:
  static uint64_t Known(const FileLayout& f) {
    return f.data_bytes + f.index_bytes + f.stripe_footer_bytes + f.cache_bytes + f.tail_bytes;
  }

  void AddStripe(const FileReader& file, const std::shared_ptr<const Stripe>& stripe) {
    std::vector<ByteRange> wanted, reads;
    if (map_->options.projection != nullptr) AddWanted(file, stripe, &wanted, &reads);
    AddKeys(*stripe);
    AddStreams(*stripe, wanted, reads);
    sequence_key_.clear();
    ++stripes_;
  }

  // What the projection wants of a stripe, and what is read for it.
  void AddWanted(const FileReader& file, const std::shared_ptr<const Stripe>& stripe,
                 std::vector<ByteRange>* wanted, std::vector<ByteRange>* reads) {
    const StripePlan plan = MakePlan(file, stripe, *map_->options.projection);
    *wanted = Union(plan.ranges());
    const uint64_t most = map_->options.max_read_bytes;
    *reads = PlanReads(plan.ranges(), {map_->options.max_gap_bytes, most}).reads;
    map_->wanted_streams += plan.streams.size();
    map_->wanted_bytes += Length(*wanted);
    for (ReadRule& rule : map_->rules) {
      const std::vector<ByteRange> made =
          PlanReads(plan.ranges(), {rule.max_gap_bytes, most}).reads;
      rule.reads += made.size();
      rule.read_bytes += Length(made);
      if (rule.max_gap_bytes != map_->options.max_gap_bytes) continue;
      map_->reads += made.size();
      map_->read_bytes += Length(made);
    }
    for (const FeaturePlan& feature : plan.features) wanted_names_.insert(feature.name);
  }

  void AddKeys(const Stripe& stripe) {
    for (const auto& [node, flat_keys] : stripe.flat_keys) {
      const uint32_t column = column_of_[node];
      if (column == UINT32_MAX || schema_.node(node).parent != 0) continue;
      map_->columns[column].flattened = true;
      for (const FlatKey& flat : flat_keys) {
        const auto [place, is_new] = key_places_.try_emplace({column, flat.key}, map_->keys.size());
        if (is_new) {
          KeyLayout& key = map_->keys.emplace_back();
          key.column = column;
          key.key = flat.key;
          key.first_stripe = stripes_;
          key.first_offset = UINT64_MAX;
          key.wanted = wanted_names_.count(FeatureName({map_->columns[column].name, flat.key})) > 0;
        }
        ++map_->keys[place->second].stripes;
        found_.insert({map_->columns[column].name, flat.key});
        sequence_key_[{node, flat.sequence}] = place->second;
      }
    }
  }

  void AddStreams(const Stripe& stripe, const std::vector<ByteRange>& wanted,
                  const std::vector<ByteRange>& reads) {
    std::vector<ByteRange> named;
    for (const StreamInfo& stream : stripe.streams) {
      named.push_back({stream.offset, stream.length});
      StoredBytes bytes{1, stream.length, 0, 0};
      bytes.wanted_bytes = Covered(wanted, stream.offset, stream.offset + stream.length);
      bytes.over_read_bytes =
          Covered(reads, stream.offset, stream.offset + stream.length) - bytes.wanted_bytes;
      map_->kinds[StreamKindName(stream.kind)].Add(bytes);
      const uint32_t column = column_of_[stream.node];
      if (column == UINT32_MAX) continue;
      if (IsIndexStream(stream.kind)) {
        map_->columns[column].index_bytes += stream.length;
        continue;
      }
      map_->columns[column].data.Add(bytes);
      const auto at = sequence_key_.find({schema_.root().children[column], stream.sequence});
      if (stream.sequence == 0 || at == sequence_key_.end()) continue;
      KeyLayout& key = map_->keys[at->second];
      key.data.Add(bytes);
      if (key.first_stripe == stripes_)
        key.first_offset = std::min(key.first_offset, stream.offset - stripe.offset);
    }
    const uint64_t area = stripe.index_length + stripe.data_length;
    map_->unnamed_bytes += area - std::min(area, Length(Union(std::move(named))));
  }

  const Schema& schema_;
  LayoutMap* map_;
  std::vector<uint32_t> column_of_;  // by node
  std::map<std::pair<uint32_t, MapKey>, size_t> key_places_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> sequence_key_;  // of the stripe at hand
  std::set<std::string> wanted_names_;
  std::set<std::pair<std::string, MapKey>> found_;
  uint32_t stripes_ = 0;
};

std::string Bytes(uint64_t bytes) { return FormatBytes(static_cast<double>(bytes)); }
std::string Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? "-" : FormatPercent(static_cast<double>(part) / static_cast<double>(whole));
}
const char* Plural(uint64_t count) { return count == 1 ? "" : "s"; }

FileLayout Sum(const std::vector<FileLayout>& files) {
  FileLayout sum;
  for (const FileLayout& f : files) {
    sum.file_bytes += f.file_bytes;
    sum.rows += f.rows;
    sum.stripes += f.stripes;
    sum.data_bytes += f.data_bytes;
    sum.index_bytes += f.index_bytes;
    sum.stripe_footer_bytes += f.stripe_footer_bytes;
    sum.cache_bytes += f.cache_bytes;
    sum.tail_bytes += f.tail_bytes;
    sum.other_bytes += f.other_bytes;
  }
  return sum;
}

std::string AreaLines(const FileLayout& sum) {
  std::string text = fmt::format("  {:<44}{:>14}{:>10}\n", "area", "bytes", "share");
  const std::pair<const char*, uint64_t> areas[] = {
      {"stripes: data (values, lengths, presence)", sum.data_bytes},
      {"stripes: row index", sum.index_bytes},
      {"stripes: footers (where each stream is)", sum.stripe_footer_bytes},
      {"stripe cache (copies of index and footers)", sum.cache_bytes},
      {"file footer and postscript", sum.tail_bytes},
      {"header, and bytes nothing points to", sum.other_bytes}};
  for (const auto& [name, bytes] : areas)
    text += fmt::format("  {:<44}{:>14}{:>10}\n", name, bytes, Share(bytes, sum.file_bytes));
  return text;
}

std::string ColumnLines(const LayoutMap& map, uint64_t data_bytes) {
  const bool projected = map.options.projection != nullptr;
  std::string text =
      fmt::format("  {:<22}{:>8}{:>9}{:>14}{:>8}", "column", "keys", "streams", "bytes", "share");
  if (projected) text += fmt::format("{:>14}{:>12}{:>14}", "wanted", "over-read", "skipped");
  text += '\n';
  for (const ColumnLayout& column : map.columns) {
    text += fmt::format("  {:<22}{:>8}{:>9}{:>14}{:>8}", Printable(column.name, 40),
                        column.flattened ? std::to_string(column.keys) : "-", column.data.streams,
                        column.data.stored_bytes, Share(column.data.stored_bytes, data_bytes));
    if (projected) {
      text += fmt::format("{:>14}{:>12}{:>14}", column.data.wanted_bytes,
                          column.data.over_read_bytes, column.data.skipped_bytes());
    }
    if (column.encrypted) text += "  encrypted";
    text += '\n';
  }
  return text;
}

std::string KindLines(const LayoutMap& map, uint64_t stripe_bytes) {
  std::string text =
      fmt::format("  {:<26}{:>12}{:>14}{:>10}\n", "stream kind", "streams", "bytes", "share");
  for (const auto& [kind, sum] : map.kinds)
    text += fmt::format("  {:<26}{:>12}{:>14}{:>10}\n", kind, sum.streams, sum.stored_bytes,
                        Share(sum.stored_bytes, stripe_bytes));
  if (map.unnamed_bytes > 0)
    text += fmt::format("  {:<26}{:>12}{:>14}{:>10}\n", "(no stream)", "-", map.unnamed_bytes,
                        Share(map.unnamed_bytes, stripe_bytes));
  return text;
}

std::string KeyLines(const LayoutMap& map) {
  const bool projected = map.options.projection != nullptr;
  std::string text = fmt::format("  {:<28}{:>8}{:>14}{:>9}{:>12}", "key, in file order", "stripe",
                                 "at its byte", "stripes", "bytes");
  text += projected ? "  what is done\n" : "\n";
  for (const KeyLayout& key : map.keys) {
    text += fmt::format("  {:<28}{:>8}{:>14}{:>9}{:>12}",
                        Printable(FeatureName({map.columns[key.column].name, key.key}), 60),
                        key.first_stripe,
                        key.first_offset == UINT64_MAX ? "-" : std::to_string(key.first_offset),
                        key.stripes, key.data.stored_bytes);
    if (projected)
      text += key.wanted ? "  read"
              : key.data.over_read_bytes > 0
                  ? fmt::format("  {} bytes read over", key.data.over_read_bytes)
                  : "  skipped";
    text += '\n';
  }
  return text;
}

std::string ProjectionLines(const LayoutMap& map) {
  const Projection& projection = *map.options.projection;
  std::string text = fmt::format("  {}: {} feature{} and {} column{}", map.options.projection_name,
                                 projection.features.size(), Plural(projection.features.size()),
                                 projection.columns.size(), Plural(projection.columns.size()));
  if (map.absent_features > 0)
    text += fmt::format(", {} feature{} in no stripe", map.absent_features,
                        Plural(map.absent_features));
  text += fmt::format(
      "\n    wanted    {:>14} bytes, {} of the stripes', in {} stream{}\n"
      "    over-read {:>14} bytes, {} of what is read, in holes of up to {}\n"
      "    read      {:>14} bytes in {} read{}, {} each on average\n"
      "    skipped   {:>14} bytes, {} of the stripes'\n",
      map.wanted_bytes, Share(map.wanted_bytes, map.stripe_bytes()), map.wanted_streams,
      Plural(map.wanted_streams), map.over_read_bytes(),
      Share(map.over_read_bytes(), map.read_bytes), Bytes(map.options.max_gap_bytes),
      map.read_bytes, map.reads, Plural(map.reads),
      Bytes(map.reads == 0 ? 0 : map.read_bytes / map.reads), map.skipped_bytes(),
      Share(map.skipped_bytes(), map.stripe_bytes()));
  text += fmt::format("\n  {:<18}{:>10}{:>16}{:>14}{:>12}\n", "reads joined over", "reads",
                      "bytes read", "over-read", "share");
  for (const ReadRule& rule : map.rules) {
    text += fmt::format("  {:<18}{:>10}{:>16}{:>14}{:>12}{}\n",
                        rule.max_gap_bytes == 0 ? "no hole" : Bytes(rule.max_gap_bytes), rule.reads,
                        rule.read_bytes, rule.read_bytes - map.wanted_bytes,
                        Share(rule.read_bytes - map.wanted_bytes, rule.read_bytes),
                        rule.max_gap_bytes == map.options.max_gap_bytes ? "  <- as above" : "");
  }
  return text;
}

Json StoredJson(const StoredBytes& bytes, bool projected) {
  Json json = {{"streams_count", bytes.streams}, {"stored_bytes", bytes.stored_bytes}};
  if (projected) {
    json["wanted_bytes"] = bytes.wanted_bytes;
    json["over_read_bytes"] = bytes.over_read_bytes;
    json["skipped_bytes"] = bytes.skipped_bytes();
  }
  return json;
}

// What the projection reads, and what it would read by other rules.
Json ProjectionJson(const LayoutMap& map) {
  Json rules = Json::array();
  for (const ReadRule& rule : map.rules)
    rules.push_back({{"gap_bytes", rule.max_gap_bytes},
                     {"reads_count", rule.reads},
                     {"read_bytes", rule.read_bytes},
                     {"over_read_bytes", rule.read_bytes - map.wanted_bytes}});
  return {{"source", map.options.projection_name},
          {"features_count", map.options.projection->features.size()},
          {"absent_features_count", map.absent_features},
          {"columns_count", map.options.projection->columns.size()},
          {"gap_bytes", map.options.max_gap_bytes},
          {"max_read_bytes", map.options.max_read_bytes},
          {"wanted_streams_count", map.wanted_streams},
          {"wanted_bytes", map.wanted_bytes},
          {"over_read_bytes", map.over_read_bytes()},
          {"read_bytes", map.read_bytes},
          {"reads_count", map.reads},
          {"skipped_bytes", map.skipped_bytes()},
          {"by_gap", std::move(rules)}};
}

}  // namespace

void StoredBytes::Add(const StoredBytes& other) {
  streams += other.streams;
  stored_bytes += other.stored_bytes;
  wanted_bytes += other.wanted_bytes;
  over_read_bytes += other.over_read_bytes;
}

uint64_t LayoutMap::stripe_bytes() const {
  uint64_t bytes = 0;
  for (const FileLayout& file : files) bytes += file.data_bytes + file.index_bytes;
  return bytes;
}

LayoutMap MapLayout(const std::vector<std::shared_ptr<const FileReader>>& files,
                    const LayoutOptions& options) {
  LayoutMap map;
  map.options = options;
  if (files.empty()) return map;
  Mapper mapper(files[0]->schema(), &map);
  for (const auto& file : files) mapper.AddFile(file);
  mapper.Finish();
  return map;
}

std::string LayoutText(const LayoutMap& map, bool keys) {
  const FileLayout sum = Sum(map.files);
  std::string text;
  if (map.files.size() == 1) {
    text = fmt::format("{}: ", Printable(map.files[0].name));
  } else {
    text = fmt::format("{} files: ", map.files.size());
  }
  text += fmt::format("{}, {} rows, {} stripe{}", Bytes(sum.file_bytes), sum.rows, sum.stripes,
                      Plural(sum.stripes));
  if (!map.files.empty())
    text += fmt::format(", {}{}", CompressionKindName(map.files[0].compression),
                        map.files[0].compression == CompressionKind::kNone
                            ? ""
                            : " in chunks of up to " + Bytes(map.files[0].block_bytes));
  text += "\n\n" + AreaLines(sum) + "\n" + ColumnLines(map, sum.data_bytes) + "\n" +
          KindLines(map, map.stripe_bytes());
  if (map.options.projection != nullptr) text += "\n" + ProjectionLines(map);
  if (keys && !map.keys.empty()) text += "\n" + KeyLines(map);
  return text;
}

std::string LayoutJson(const LayoutMap& map) {
  const bool projected = map.options.projection != nullptr;
  Json json = {{"schema", "headrace.layout/1"}};
  json["files"] = Json::array();
  for (const FileLayout& f : map.files) {
    json["files"].push_back({{"file", Printable(f.name, SIZE_MAX)},
                             {"file_bytes", f.file_bytes},
                             {"rows_count", f.rows},
                             {"stripes_count", f.stripes},
                             {"compression", CompressionKindName(f.compression)},
                             {"data_bytes", f.data_bytes},
                             {"index_bytes", f.index_bytes},
                             {"stripe_footer_bytes", f.stripe_footer_bytes},
                             {"cache_bytes", f.cache_bytes},
                             {"tail_bytes", f.tail_bytes},
                             {"other_bytes", f.other_bytes}});
  }
  json["columns"] = Json::array();
  for (const ColumnLayout& column : map.columns) {
    Json entry = {{"column", Printable(column.name, SIZE_MAX)},
                  {"type", Printable(column.type, SIZE_MAX)},
                  {"flattened", column.flattened},
                  {"encrypted", column.encrypted}};
    if (column.flattened) entry["keys_count"] = column.keys;
    if (column.flattened && projected) entry["wanted_keys_count"] = column.wanted_keys;
    entry["index_bytes"] = column.index_bytes;
    entry.update(StoredJson(column.data, projected));
    json["columns"].push_back(std::move(entry));
  }
  json["stream_kinds"] = Json::object();
  for (const auto& [kind, sum] : map.kinds) json["stream_kinds"][kind] = StoredJson(sum, projected);
  json["no_stream_bytes"] = map.unnamed_bytes;
  json["keys"] = Json::array();
  for (const KeyLayout& key : map.keys) {
    Json entry = {
        {"column", Printable(map.columns[key.column].name, SIZE_MAX)},
        {"key", key.key.is_text ? Json(Printable(key.key.text, SIZE_MAX)) : Json(key.key.integer)},
        {"stripes_count", key.stripes},
        {"first_stripe", key.first_stripe}};
    if (key.first_offset != UINT64_MAX) entry["offset_in_stripe_bytes"] = key.first_offset;
    if (projected) entry["wanted"] = key.wanted;
    entry.update(StoredJson(key.data, projected));
    json["keys"].push_back(std::move(entry));
  }
  if (projected) json["projection"] = ProjectionJson(map);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headrace::reader::dwrf
