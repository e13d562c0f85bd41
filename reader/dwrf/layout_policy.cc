#include "reader/dwrf/layout_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

[[noreturn]] void Refuse(const std::string& what, const std::string& fix = {}) {
  throw Error(ExitCode::kUsage, what, "writer options", fix);
}

bool HasEncoder(CompressionKind kind) {
  return kind <= CompressionKind::kLz4 && kind != CompressionKind::kLzo;
}

void CheckRanges(const WriterOptions& options) {
  if (!HasEncoder(options.compression))
    Refuse("compression has no encoder", "use none, zlib, zstd, lz4 or snappy");
  const int max_level = options.compression == CompressionKind::kZlib ? 12 : 19;
  if (options.level < 1 || options.level > max_level)
    Refuse(fmt::format("level must be 1 to {}, is {}", max_level, options.level));
  if (!(options.min_ratio >= 1 && options.min_ratio <= 1000))
    Refuse(fmt::format("min_ratio must be 1 to 1000, is {}", options.min_ratio));
  if (options.block_size < 1024 || options.block_size >= 1 << 23)
    Refuse(fmt::format("block_size must be 1024 to 8388607, is {}", options.block_size));
  if (options.stripe_bytes == 0) Refuse("stripe_bytes must not be 0");
}

bool IsKeyKind(TypeKind kind) {
  return IsInteger(kind) || kind == TypeKind::kString || kind == TypeKind::kBinary;
}

uint32_t FindMap(const Schema& schema, const std::string& name) {
  const auto node = schema.FindColumn(name);
  if (!node) Refuse(fmt::format("the schema has no column '{}'", name));
  const SchemaNode& map = schema.node(*node);
  if (map.kind != TypeKind::kMap || !IsKeyKind(schema.node(map.children[0]).kind))
    Refuse(fmt::format("column '{}' cannot be flattened: it is {}", name, schema.ToString(*node)),
           "a flattened map is a map with integer or string keys");
  return *node;
}

// Per node the group it is in, counted from 1.
std::vector<uint32_t> GroupNodes(const Schema& schema, const WriterOptions& options) {
  std::vector<uint32_t> group_of(schema.size());
  if (options.encryption.empty()) return group_of;
  // A chunk's length has 23 bits, and GCM adds its tag.
  if (options.block_size + 16 >= 1 << 23)
    Refuse("block_size leaves no room for encryption", "use at most 8388591");
  uint32_t number = 0;
  for (const EncryptionGroupSpec& group : options.encryption) {
    ++number;
    if (options.keys == nullptr || options.keys->Find(group.key_id) == nullptr) {
      throw Error(ExitCode::kPrivilege,
                  options.keys == nullptr
                      ? std::string("no keys were given")
                      : fmt::format("key '{}' is not in {}", Printable(group.key_id, 64),
                                    options.keys->name()),
                  fmt::format("encryption group '{}'", Printable(group.name, 64)));
    }
    for (const std::string& name : group.columns) {
      const auto node = schema.FindColumn(name);
      if (!node) Refuse(fmt::format("the schema has no column '{}' to encrypt", name));
      if (group_of[*node] != 0)
        Refuse(fmt::format("column '{}' is in two encryption groups", name));
      for (uint32_t id = *node; id <= schema.node(*node).last; ++id) group_of[id] = number;
    }
  }
  return group_of;
}

}  // namespace

LayoutPolicy::LayoutPolicy(const Schema& schema, WriterOptions options)
    : options_(std::move(options)),
      flat_(schema.size()),
      in_flat_(schema.size()),
      columns_(schema.size()) {
  CheckRanges(options_);
  group_of_ = GroupNodes(schema, options_);
  for (const std::string& name : options_.flat_maps) {
    const uint32_t map = FindMap(schema, name);
    flat_[map] = true;
    const SchemaNode& value = schema.node(schema.node(map).children[1]);
    for (uint32_t node = value.id; node <= value.last; ++node) in_flat_[node] = true;
  }
  for (const auto& [name, keys] : options_.feature_order) {
    const uint32_t map = FindMap(schema, name);
    if (!flat_[map])
      Refuse(fmt::format("feature_order names '{}', which is not in flat_maps", name));
    for (const MapKey& key : keys) ranks_[map].try_emplace(key, ranks_[map].size());
  }
  for (const auto& [path, column] : options_.columns) {
    uint32_t node = 0;
    while (node < schema.size() && schema.Path(node) != path) ++node;
    if (node == schema.size()) Refuse(fmt::format("the schema has no column '{}'", path));
    const TypeKind kind = schema.node(node).kind;
    if (column.dictionary == DictionaryUse::kShared &&
        (!in_flat_[node] || !IsInteger(kind) || kind == TypeKind::kByte))
      Refuse(
          fmt::format("'{}' cannot share a dictionary: it is not a smallint, int or bigint inside "
                      "a flattened map",
                      path));
    const int max_level = options_.compression == CompressionKind::kZlib ? 12 : 19;
    if (column.level < 0 || column.level > max_level)
      Refuse(fmt::format("level of '{}' must be 1 to {}, is {}", path, max_level, column.level));
    if (column.min_ratio != 0 && !(column.min_ratio >= 1 && column.min_ratio <= 1000))
      Refuse(fmt::format("min_ratio of '{}' must be 1 to 1000, is {}", path, column.min_ratio));
    columns_[node] = column;
  }
}

uint64_t LayoutPolicy::FeatureRank(uint32_t map_node, const MapKey& key) const {
  const auto map = ranks_.find(map_node);
  if (map == ranks_.end()) return 0;
  const auto rank = map->second.find(key);
  return rank == map->second.end() ? map->second.size() : rank->second;
}

std::map<std::string, std::string> LayoutPolicy::Metadata() const {
  std::map<std::string, std::string> items = {
      {"orc.writer.name", "headrace"},
      {"orc.writer.version", "4"},
      {"headrace.version", HEADRACE_VERSION},
      {"headrace.codec", CodecName(options_.compression)},
  };
  if (options_.compression != CompressionKind::kNone) {
    if (options_.compression == CompressionKind::kZstd ||
        options_.compression == CompressionKind::kZlib)
      items["headrace.codec_level"] = std::to_string(options_.level);
    if (options_.goal == LayoutGoal::kFixed || !options_.ratio_by_goal)
      items["headrace.min_ratio"] = fmt::format("{}", options_.min_ratio);
  }
  if (options_.goal != LayoutGoal::kFixed)
    items["headrace.optimize"] = LayoutGoalName(options_.goal);
  std::string flat;
  for (const std::string& name : options_.flat_maps) flat += (flat.empty() ? "" : ",") + name;
  if (!flat.empty()) items["headrace.flat_maps"] = flat;
  std::string groups;
  std::set<std::string> encrypted;
  for (const EncryptionGroupSpec& group : options_.encryption) {
    if (!groups.empty()) groups += ';';
    groups += fmt::format("{}={}:{}:{}", group.name, fmt::join(group.columns, ","), group.key_id,
                          CipherName(group.cipher));
    encrypted.insert(group.columns.begin(), group.columns.end());
  }
  if (!groups.empty()) items["headrace.encryption"] = groups;
  for (const auto& [map, keys] : options_.feature_order) {
    if (encrypted.count(map) > 0) continue;  // its keys are nobody else's business
    std::string order;
    for (const MapKey& key : keys) {
      if (!order.empty()) order += ',';
      order += key.is_text ? key.text : std::to_string(key.integer);
    }
    items["headrace.feature_order." + map] = order;
  }
  for (const auto& [name, value] : options_.metadata) items[name] = value;
  return items;
}

}  // namespace headrace::reader::dwrf
