#include "reader/dwrf/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "reader/dwrf/file_statistics.h"

namespace headrace::reader::dwrf {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(const std::string& bytes) { return Printable(bytes, SIZE_MAX); }

const char* ChecksumName(uint32_t algorithm) {
  constexpr const char* kNames[] = {"NULL", "CRC32", "MURMUR3", "ADLER32", "XXHASH"};
  return algorithm < std::size(kNames) ? kNames[algorithm] : "UNKNOWN";
}

const char* CacheModeName(uint32_t mode) {
  constexpr const char* kNames[] = {"NA", "INDEX", "FOOTER", "BOTH"};
  return mode < std::size(kNames) ? kNames[mode] : "UNKNOWN";
}

Json KeyJson(const MapKey& key) { return key.is_text ? Json(Text(key.text)) : Json(key.integer); }

// Schema::Path of every node in one pass.
std::vector<std::string> Paths(const Schema& schema) {
  std::vector<std::string> paths(schema.size());
  for (const SchemaNode& node : schema.nodes()) {
    for (size_t c = 0; c < node.children.size(); ++c) {
      std::string step = std::to_string(c);
      if (node.kind == TypeKind::kStruct) step = node.field_names[c];
      if (node.kind == TypeKind::kList) step = "element";
      if (node.kind == TypeKind::kMap) step = c == 0 ? "key" : "value";
      const std::string& prefix = paths[node.id];
      paths[node.children[c]] = prefix.empty() ? step : prefix + "." + step;
    }
  }
  return paths;
}

Json StatisticsJson(const proto::ColumnStatistics& statistics) {
  Json json = Json::object();
  if (statistics.has_number_of_values()) json["values_count"] = statistics.number_of_values();
  if (statistics.has_has_null()) json["has_null"] = statistics.has_null();
  if (statistics.has_raw_size()) json["raw_bytes"] = statistics.raw_size();
  if (statistics.has_size()) json["stored_bytes"] = statistics.size();
  if (statistics.has_int_statistics()) {
    const auto& s = statistics.int_statistics();
    Json block = Json::object();
    if (s.has_minimum()) block["minimum"] = s.minimum();
    if (s.has_maximum()) block["maximum"] = s.maximum();
    if (s.has_sum()) block["sum"] = s.sum();
    json["integer"] = block;
  }
  if (statistics.has_double_statistics()) {
    const auto& s = statistics.double_statistics();
    Json block = Json::object();
    if (s.has_minimum()) block["minimum"] = s.minimum();
    if (s.has_maximum()) block["maximum"] = s.maximum();
    if (s.has_sum()) block["sum"] = s.sum();
    json["floating"] = block;
  }
  if (statistics.has_string_statistics()) {
    const auto& s = statistics.string_statistics();
    Json block = Json::object();
    if (s.has_minimum()) block["minimum"] = Text(s.minimum());
    if (s.has_maximum()) block["maximum"] = Text(s.maximum());
    if (s.has_sum()) block["sum_bytes"] = s.sum();
    json["string"] = block;
  }
  if (statistics.has_binary_statistics())
    json["binary"] = {{"sum_bytes", statistics.binary_statistics().sum()}};
  if (statistics.has_bucket_statistics()) {
    const auto& count = statistics.bucket_statistics().count();
    json["bucket_counts"] = std::vector<uint64_t>(count.begin(), count.end());
  }
  if (statistics.has_map_statistics())
    json["map_keys_count"] = statistics.map_statistics().stats_size();
  return json;
}

Json PostscriptJson(const FileTail& tail) {
  const proto::PostScript& ps = tail.postscript;
  Json json = {{"footer_length_bytes", ps.footer_length()},
               {"compression", CompressionKindName(tail.compression)}};
  if (ps.has_compression_block_size())
    json["compression_block_size_bytes"] = ps.compression_block_size();
  if (ps.has_writer_version()) json["writer_version"] = ps.writer_version();
  if (ps.has_cache_mode()) json["cache_mode"] = CacheModeName(ps.cache_mode());
  if (ps.has_cache_size()) json["cache_size_bytes"] = ps.cache_size();
  json["length_bytes"] = tail.file_size - 1 - tail.footer_offset - tail.footer_length;
  return json;
}

Json FooterJson(const proto::Footer& footer) {
  Json json = Json::object();
  if (footer.has_header_length()) json["header_length_bytes"] = footer.header_length();
  if (footer.has_content_length()) json["content_length_bytes"] = footer.content_length();
  if (footer.has_number_of_rows()) json["rows_count"] = footer.number_of_rows();
  if (footer.has_row_index_stride()) json["row_index_stride_rows"] = footer.row_index_stride();
  if (footer.has_raw_data_size()) json["raw_data_bytes"] = footer.raw_data_size();
  if (footer.has_checksum_algorithm())
    json["checksum_algorithm"] = ChecksumName(footer.checksum_algorithm());
  return json;
}

Json TypesJson(const FileReader& file) {
  const FileTail& tail = file.tail();
  const std::vector<proto::ColumnStatistics> statistics = StoredStatistics(file);
  const std::vector<std::string> paths = Paths(tail.schema);
  Json types = Json::array();
  for (const SchemaNode& node : tail.schema.nodes()) {
    Json type = {
        {"node", node.id}, {"path", Text(paths[node.id])}, {"kind", TypeKindName(node.kind)}};
    if (!node.children.empty()) type["children"] = node.children;
    if (node.kind == TypeKind::kStruct || !node.field_names.empty()) {
      type["field_names"] = Json::array();
      for (const std::string& name : node.field_names) type["field_names"].push_back(Text(name));
    }
    if (tail.encrypted_nodes[node.id]) type["encrypted"] = true;
    if (node.id < statistics.size()) type["statistics"] = StatisticsJson(statistics[node.id]);
    types.push_back(std::move(type));
  }
  return types;
}

Json CacheJson(const FileTail& tail) {
  const auto& offsets = tail.footer.stripe_cache_offsets();
  return {{"usable", tail.cache_length > 0},
          {"offset_bytes", tail.cache_offset},
          {"section_offsets_bytes", std::vector<uint32_t>(offsets.begin(), offsets.end())}};
}

// Top-level columns any part of which is encrypted.
std::vector<std::string> EncryptedColumns(const FileTail& tail) {
  std::vector<std::string> names;
  const SchemaNode& root = tail.schema.root();
  for (size_t c = 0; c < root.children.size(); ++c) {
    const auto begin = tail.encrypted_nodes.begin() + root.children[c];
    const auto end = tail.encrypted_nodes.begin() + tail.schema.node(root.children[c]).last + 1;
    if (std::find(begin, end, true) != end) names.push_back(Text(root.field_names[c]));
  }
  return names;
}

Json EncryptionJson(const FileReader& file) {
  const FileTail& tail = file.tail();
  Json groups = Json::array();
  for (size_t g = 0; g < file.keys().groups().size(); ++g) {
    const FileKeys::Group& keys = file.keys().groups()[g];
    const auto& group = tail.footer.encryption().encryption_groups(static_cast<int>(g));
    Json json = {{"nodes", keys.nodes},
                 {"key_metadata_present", group.has_key_metadata()},
                 {"statistics_blobs_count", group.statistics_size()},
                 {"scheme", keys.ours ? "headrace" : "unknown"}};
    if (keys.ours) {
      json["name"] = Text(keys.name);
      json["key_id"] = Text(keys.key_id);
      json["cipher"] = CipherName(keys.cipher);
    }
    json["open"] = keys.why_locked.empty();
    if (!keys.why_locked.empty()) json["why_locked"] = keys.why_locked;
    groups.push_back(std::move(json));
  }
  return {{"key_provider", tail.footer.encryption().key_provider()},
          {"groups", groups},
          {"columns_not_readable_without_key", EncryptedColumns(tail)}};
}

void AddStripeContents(const FileReader& file, size_t index, Json* json) {
  const std::shared_ptr<const Stripe> stripe = file.ReadStripe(index);
  Json streams = Json::array();
  for (const StreamInfo& stream : stripe->streams) {
    streams.push_back({{"kind", StreamKindName(stream.kind)},
                       {"node", stream.node},
                       {"sequence", stream.sequence},
                       {"offset_in_stripe_bytes", stream.offset - stripe->offset},
                       {"length_bytes", stream.length},
                       {"use_vints", stream.use_vints}});
  }
  (*json)["streams"] = std::move(streams);
  Json encodings = Json::array();
  for (const auto& [at, encoding] : stripe->encodings) {
    encodings.push_back({{"node", at.first},
                         {"sequence", at.second},
                         {"kind", EncodingKindName(encoding.kind)},
                         {"dictionary_size_count", encoding.dictionary_size}});
  }
  (*json)["encodings"] = std::move(encodings);
  Json maps = Json::array();
  for (const auto& [map, keys] : stripe->flat_keys) {
    Json list = Json::array();
    for (const FlatKey& key : keys)
      list.push_back({{"sequence", key.sequence}, {"key", KeyJson(key.key)}});
    maps.push_back(
        {{"node", map}, {"column", Text(file.schema().Path(map))}, {"keys", std::move(list)}});
  }
  (*json)["flattened_maps"] = std::move(maps);
}

Json StripeJson(const FileReader& file, size_t index) {
  const proto::StripeInformation& info = file.tail().footer.stripes(static_cast<int>(index));
  Json json = {{"index", index},
               {"offset_bytes", info.offset()},
               {"index_length_bytes", info.index_length()},
               {"data_length_bytes", info.data_length()},
               {"footer_length_bytes", info.footer_length()},
               {"first_row", file.first_row(index)},
               {"rows_count", info.number_of_rows()}};
  if (info.has_raw_data_size()) json["raw_data_bytes"] = info.raw_data_size();
  if (info.has_checksum()) json["checksum"] = info.checksum();
  if (info.group_size() != 0) json["group_size"] = info.group_size();
  if (info.key_metadata_size() != 0) {
    json["key_metadata"] = Json::array();
    for (const std::string& blob : info.key_metadata()) json["key_metadata"].push_back(Text(blob));
  }
  try {
    AddStripeContents(file, index, &json);
  } catch (const Error& error) {
    json["error"] = error.what();
  }
  return json;
}

Json VerificationJson(const Verification& v) {
  return {{"stripes_count", v.stripes},
          {"rows_count", v.rows},
          {"checksums_count", v.checksums},
          {"footer_nodes_count", v.footer_nodes},
          {"index_entries_count", v.index_entries},
          {"seeks_count", v.seeks},
          {"figures", v.figures},
          {"not_checked", v.not_checked}};
}

// Bytes and number of streams by kind.
std::string StreamSummary(const Stripe& stripe) {
  std::map<StreamKind, std::pair<uint64_t, uint64_t>> kinds;
  for (const StreamInfo& stream : stripe.streams) {
    kinds[stream.kind].first += 1;
    kinds[stream.kind].second += stream.length;
  }
  std::string text;
  for (const auto& [kind, sum] : kinds) {
    text += fmt::format("    {:<26}{:>8} streams  {:>12} bytes\n", StreamKindName(kind), sum.first,
                        sum.second);
  }
  return text;
}

std::string Range(const proto::ColumnStatistics& s) {
  std::string text;
  if (s.has_int_statistics()) {
    text = fmt::format("min {} max {}", s.int_statistics().minimum(), s.int_statistics().maximum());
  } else if (s.has_double_statistics()) {
    text = fmt::format("min {:g} max {:g}", s.double_statistics().minimum(),
                       s.double_statistics().maximum());
  } else if (s.has_string_statistics() && s.string_statistics().has_minimum() &&
             s.string_statistics().has_maximum()) {
    text = fmt::format("min '{}' max '{}'", Printable(s.string_statistics().minimum(), 24),
                       Printable(s.string_statistics().maximum(), 24));
  } else if (s.bucket_statistics().count_size() > 0) {
    text = fmt::format("true {}", s.bucket_statistics().count(0));
  }
  return text;
}

std::string ColumnLines(const FileReader& file) {
  const FileTail& tail = file.tail();
  const std::vector<proto::ColumnStatistics> statistics = StoredStatistics(file);
  std::string text = fmt::format("{:>5}  {:<36}{:<11}{:>13}{:>6}{:>13}  {}\n", "node", "column",
                                 "type", "values", "nulls", "stored bytes", "range");
  const std::vector<std::string> paths = Paths(tail.schema);
  for (const SchemaNode& node : tail.schema.nodes()) {
    std::string values = "-", nulls = "-", bytes = "-", range;
    if (node.id < statistics.size()) {
      const proto::ColumnStatistics& s = statistics[node.id];
      if (s.has_number_of_values()) values = std::to_string(s.number_of_values());
      if (s.has_has_null()) nulls = s.has_null() ? "yes" : "no";
      if (s.has_size()) bytes = std::to_string(s.size());
      range = Range(s);
    }
    if (tail.encrypted_nodes[node.id]) range += range.empty() ? "encrypted" : ", encrypted";
    text += fmt::format("{:>5}  {:<36}{:<11}{:>13}{:>6}{:>13}  {}", node.id,
                        node.id == 0 ? "(row)" : Printable(paths[node.id], 60),
                        TypeKindName(node.kind), values, nulls, bytes, range);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string EncryptionLines(const FileReader& file) {
  std::string text;
  for (const FileKeys::Group& group : file.keys().groups()) {
    text += group.ours ? fmt::format("    group {}: {}, key {}", Printable(group.name, 64),
                                     CipherName(group.cipher), Printable(group.key_id, 64))
                       : "    a group";
    text += group.why_locked.empty() ? ": open\n"
                                     : fmt::format(": locked, {}\n", Printable(group.why_locked));
  }
  return text;
}

std::string StripeLines(const FileReader& file, size_t index, const InspectTextOptions& options) {
  const proto::StripeInformation& info = file.tail().footer.stripes(static_cast<int>(index));
  std::string text = fmt::format(
      "  stripe {}: {} rows from row {}, byte {}: index {} + data {} + footer {} bytes\n", index,
      info.number_of_rows(), file.first_row(index), info.offset(), info.index_length(),
      info.data_length(), info.footer_length());
  try {
    const std::shared_ptr<const Stripe> stripe = file.ReadStripe(index);
    uint64_t dictionaries = 0;
    for (const auto& entry : stripe->encodings)
      dictionaries += entry.second.kind == EncodingKind::kDictionary ? 1 : 0;
    text += fmt::format("    {} encodings, {} of them dictionaries\n", stripe->encodings.size(),
                        dictionaries);
    for (const auto& [map, keys] : stripe->flat_keys) {
      text += fmt::format("    flattened map {}: {} keys:", Printable(file.schema().Path(map)),
                          keys.size());
      for (size_t k = 0; k < keys.size() && k < 12; ++k)
        text += ' ' + Printable(keys[k].key.ToString(), 40);
      text += keys.size() > 12 ? " ...\n" : "\n";
    }
    if (!options.streams) return text + StreamSummary(*stripe);
    for (const StreamInfo& s : stripe->streams) {
      text += fmt::format("    byte {:>12}  {:>10} bytes  node {:>4} sequence {:>5}  {}{}\n",
                          s.offset, s.length, s.node, s.sequence, StreamKindName(s.kind),
                          s.use_vints ? "" : "  fixed width");
    }
  } catch (const Error& error) {
    text += fmt::format("    unreadable: {}\n", error.what());
  }
  return text;
}

}  // namespace

std::string InspectJson(const FileReader& file, const Verification* verified) {
  const FileTail& tail = file.tail();
  Json json = {{"schema", "headrace.inspect/1"},       {"file", Text(file.source().name())},
               {"file_size_bytes", tail.file_size},    {"format", "DWRF"},
               {"type", Text(tail.schema.ToString())}, {"postscript", PostscriptJson(tail)},
               {"footer", FooterJson(tail.footer)}};
  Json metadata = Json::array();
  for (const proto::UserMetadataItem& item : tail.footer.metadata()) {
    metadata.push_back({{"name", Text(item.name())}, {"value", Text(item.value())}});
  }
  json["user_metadata"] = std::move(metadata);
  json["types"] = TypesJson(file);
  json["cache"] = CacheJson(tail);
  if (tail.footer.has_encryption()) json["encryption"] = EncryptionJson(file);
  if (verified != nullptr) json["verification"] = VerificationJson(*verified);
  json["stripes"] = Json::array();
  for (size_t i = 0; i < file.num_stripes(); ++i) json["stripes"].push_back(StripeJson(file, i));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string InspectText(const FileReader& file, const InspectTextOptions& options) {
  const FileTail& tail = file.tail();
  const proto::PostScript& ps = tail.postscript;
  std::string text =
      fmt::format("{}: DWRF, {} bytes, {} rows, {} stripes\n", Printable(file.source().name()),
                  tail.file_size, file.num_rows(), file.num_stripes());
  text += fmt::format("  type         {}\n", Printable(tail.schema.ToString(), 2000));
  text += fmt::format("  compression  {}, blocks of {} bytes\n",
                      CompressionKindName(tail.compression), tail.block_size);
  text += fmt::format("  writer       version {}",
                      ps.has_writer_version() ? std::to_string(ps.writer_version()) : "not stated");
  for (const proto::UserMetadataItem& item : tail.footer.metadata()) {
    text += fmt::format(", {} = {}", Printable(item.name(), 60), Printable(item.value(), 60));
  }
  text += fmt::format("\n  row index    {}\n  checksums    {}\n  cache        {}\n",
                      tail.footer.row_index_stride() == 0
                          ? "none"
                          : fmt::format("every {} rows", tail.footer.row_index_stride()),
                      ChecksumName(tail.footer.checksum_algorithm()),
                      tail.cache_length == 0 ? "none"
                                             : fmt::format("{} bytes, {}", tail.cache_length,
                                                           CacheModeName(ps.cache_mode())));
  if (tail.footer.has_encryption()) {
    std::string names;
    for (const std::string& name : EncryptedColumns(tail))
      names += (names.empty() ? "" : ", ") + name;
    text += fmt::format("  encryption   {} groups; cannot be read without a key: {}\n",
                        tail.footer.encryption().encryption_groups_size(),
                        names.empty() ? "no column" : names);
    text += EncryptionLines(file);
  }
  text += "\n" + ColumnLines(file) + "\n";
  for (size_t i = 0; i < file.num_stripes(); ++i) text += StripeLines(file, i, options);
  return text;
}

}  // namespace headrace::reader::dwrf
