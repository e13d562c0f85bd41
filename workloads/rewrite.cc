#include "workloads/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/file_writer.h"
#include "reader/dwrf/layout_map.h"
#include "reader/dwrf/row_reader.h"
#include "reader/pipeline/split.h"
#include "workloads/compression.h"
#include "workloads/distributions.h"
#include "workloads/table_folder.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;
namespace dwrf = reader::dwrf;
using reader::Schema;
using reader::TypeKind;

constexpr uint64_t kBatchRows = 1024, kBatchBytes = 64 << 20;

std::string SourceMetadata(const dwrf::FileTail& tail, const std::string& name) {
  for (const auto& item : tail.footer.metadata())
    if (item.name() == name) return item.value();
  return {};
}

bool CanFlatten(const Schema& schema, uint32_t node) {
  if (schema.node(node).kind != TypeKind::kMap) return false;
  const TypeKind key = schema.node(schema.node(node).children[0]).kind;
  return reader::IsInteger(key) || key == TypeKind::kString || key == TypeKind::kBinary;
}

// What the source's files say about their layout, and their features by place.
struct SourceLayout {
  std::vector<std::string> flat_maps;
  std::map<std::string, std::vector<dwrf::MapKey>> features;
  // Files of our writer tell the order they were asked for; no entry: by key.
  bool told = false;
  std::map<std::string, std::vector<dwrf::MapKey>> orders;
};

std::vector<dwrf::MapKey> ParseKeys(const std::string& text) {
  std::vector<dwrf::MapKey> keys;
  std::istringstream stream(text);
  for (std::string key; std::getline(stream, key, ',');)
    keys.push_back(dwrf::MapKey::Of(static_cast<int64_t>(std::strtoll(key.c_str(), nullptr, 10))));
  return keys;
}

SourceLayout LayoutOf(const reader::Table& table) {
  SourceLayout layout;
  const dwrf::LayoutMap map = dwrf::MapLayout(table.files, {});
  for (const dwrf::ColumnLayout& column : map.columns)
    if (column.flattened) layout.flat_maps.push_back(column.name);
  for (const dwrf::KeyLayout& key : map.keys)
    layout.features[map.columns[key.column].name].push_back(key.key);
  const dwrf::FileTail& tail = table.files[0]->tail();
  layout.told = !SourceMetadata(tail, "headrace.version").empty();
  for (const std::string& name : layout.flat_maps) {
    const uint32_t node = *tail.schema.FindColumn(name);
    const bool text_keys =
        !reader::IsInteger(tail.schema.node(tail.schema.node(node).children[0]).kind);
    const std::string order = SourceMetadata(tail, "headrace.feature_order." + name);
    // The order of an encrypted map must not be told; that of text keys cannot be, as they may
    // contain the commas that separate them.
    layout.told = layout.told && !text_keys && table.files[0]->keys().GroupOf(node) == 0;
    if (!order.empty()) layout.orders[name] = ParseKeys(order);
  }
  return layout;
}

// The keys of maps that are not flattened yet: an order is asked for before the rows are read.
void AddMapKeys(const reader::Table& table, const std::string& name, SourceLayout* layout) {
  std::set<dwrf::MapKey> keys;
  for (const auto& file : table.files) {
    dwrf::RowReaderOptions reading;
    reading.columns = {{name, true, {}}};
    dwrf::RowReader rows(file, reading);
    reader::Column batch;
    while (rows.NextBatch(kBatchRows, kBatchBytes, &batch)) {
      const reader::Column& key = batch.children[0].children[0];
      for (uint64_t i = 0; i < key.rows; ++i) {
        keys.insert(reader::IsInteger(key.kind)
                        ? dwrf::MapKey::Of(key.integers[i])
                        : dwrf::MapKey::Of(key.bytes.substr(key.offsets[i],
                                                            key.offsets[i + 1] - key.offsets[i])));
      }
    }
  }
  layout->features[name].assign(keys.begin(), keys.end());
}

void Order(const RewriteOptions& options, const SourceLayout& layout, dwrf::WriterOptions* writer) {
  std::map<std::string, std::vector<dwrf::MapKey>> features;
  for (const std::string& map : writer->flat_maps) {
    const auto found = layout.features.find(map);
    if (found != layout.features.end()) features[map] = found->second;
  }
  switch (options.order) {
    case FeatureOrder::kKeep:
      for (auto& [map, keys] : features) {
        if (!layout.told) {
          writer->feature_order[map] = std::move(keys);
        } else if (const auto order = layout.orders.find(map); order != layout.orders.end()) {
          writer->feature_order[map] = order->second;
        }
      }
      return;
    case FeatureOrder::kDeclared:
      return;  // what a writer does by itself
    case FeatureOrder::kPopularity:
      writer->feature_order = PopularOrder(options.jobs, features);
      return;
    case FeatureOrder::kRandom:
      break;
  }
  uint64_t map_number = 0;
  for (auto& [map, keys] : features) {
    std::sort(keys.begin(), keys.end());
    const uint64_t seed = Mix(options.seed, ++map_number);
    for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[Mix(seed, i) % i]);
  }
  writer->feature_order = std::move(features);
}

// The goal asked for, or that of the source's writer.
void Goal(const dwrf::FileTail& tail, const RewriteOptions& options, dwrf::WriterOptions* writer) {
  if (options.optimize) {
    SetGoal(*options.optimize, writer);
    if (options.compression) writer->choose_codec = false;
  } else if (const auto kept = dwrf::FindLayoutGoal(SourceMetadata(tail, "headrace.optimize"))) {
    writer->goal = *kept;
    writer->ratio_by_goal = SourceMetadata(tail, "headrace.min_ratio").empty();
  }
  if (options.min_ratio) writer->ratio_by_goal = false;
}

// Never fewer than the source has: smaller stripes have more footers and emptier dictionaries.
uint64_t ChosenStripeRows(const reader::Table& table, dwrf::LayoutGoal goal) {
  uint64_t most = 0;
  for (const auto& file : table.files)
    for (const auto& stripe : file->tail().footer.stripes())
      most = std::max<uint64_t>(most, stripe.number_of_rows());
  return std::max(most, dwrf::ChooseStripeRows(goal, table.rows, MeanRowBytes(table)));
}

// The place of a value among those seen: rows of one value get one number.
class Groups {
 public:
  explicit Groups(const reader::Column& column) : column_(column) {}
  uint64_t Of(uint64_t row) {
    if (column_.IsNull(row)) return Number("null");
    if (!column_.integers.empty()) return Number("i" + std::to_string(column_.integers[row]));
    return Number("b" + column_.bytes.substr(column_.offsets[row],
                                             column_.offsets[row + 1] - column_.offsets[row]));
  }

 private:
  uint64_t Number(const std::string& text) {
    return numbers_.try_emplace(text, numbers_.size()).first->second;
  }
  const reader::Column& column_;
  std::unordered_map<std::string, uint64_t> numbers_;
};

class FileRewriter {
 public:
  FileRewriter(const std::shared_ptr<const dwrf::FileReader>& from, dwrf::FileWriter* writer,
               const std::function<void(uint64_t)>& on_rows)
      : from_(from), writer_(writer), on_rows_(on_rows) {}

  void Copy() {
    dwrf::RowReader rows(from_);
    reader::Column batch;
    for (uint64_t done = 0; rows.NextBatch(kBatchRows, kBatchBytes, &batch);) {
      Write(batch);
      done += batch.rows;
      on_rows_(done);
    }
  }

  void CopyClustered(const std::string& column) {
    const Schema& schema = from_->schema();
    const auto& names = schema.root().field_names;
    const auto place = std::find(names.begin(), names.end(), column) - names.begin();
    reader::Column all = dwrf::EmptyColumn(schema, 0), batch;
    dwrf::RowReader rows(from_);
    while (rows.NextBatch(kBatchRows, kBatchBytes, &batch)) {
      std::vector<uint64_t> every(batch.rows);
      for (uint64_t i = 0; i < batch.rows; ++i) every[i] = i;
      dwrf::Gather(batch, every, &all);
    }
    Groups groups(all.children[static_cast<size_t>(place)]);
    std::vector<std::pair<uint64_t, uint64_t>> order(all.rows);  // group, row
    for (uint64_t row = 0; row < all.rows; ++row) order[row] = {groups.Of(row), row};
    std::sort(order.begin(), order.end());
    for (uint64_t begin = 0; begin < all.rows; begin += kBatchRows) {
      std::vector<uint64_t> indices;
      for (uint64_t i = begin; i < std::min(all.rows, begin + kBatchRows); ++i)
        indices.push_back(order[i].second);
      batch = dwrf::EmptyColumn(schema, 0);
      dwrf::Gather(all, indices, &batch);
      Write(batch);
      on_rows_(begin + batch.rows);
    }
  }

 private:
  // Rows that no writer takes, as a number too large for its type, are damage of the source.
  void Write(const reader::Column& rows) {
    try {
      writer_->Write(rows);
    } catch (const Error& error) {
      throw error.code() == ExitCode::kBadData ? error.Within(from_->source().name()) : error;
    }
  }

  std::shared_ptr<const dwrf::FileReader> from_;
  dwrf::FileWriter* writer_;
  const std::function<void(uint64_t)>& on_rows_;
};

void CheckCluster(const reader::Table& table, const std::string& column) {
  const Schema& schema = table.files[0]->schema();
  const auto node = schema.FindColumn(column);
  if (!node)
    throw Error(ExitCode::kUsage, fmt::format("no column '{}' to cluster by", Printable(column)),
                table.files[0]->source().name(), "'headrace layout' lists the columns");
  const TypeKind kind = schema.node(*node).kind;
  if (!reader::IsInteger(kind) && kind != TypeKind::kString && kind != TypeKind::kBinary)
    throw Error(ExitCode::kUsage,
                fmt::format("column '{}' has type {}; rows are clustered by integers or texts",
                            Printable(column), schema.ToString(*node)),
                table.files[0]->source().name());
}

// The source's pipeline, with what the keys of the new table need.
std::string PipelineFor(std::string text, const RewriteOptions& options) {
  if (options.encryption.groups.empty()) return text;
  const auto put = [&](const std::string& before, const std::string& what, bool after) {
    const size_t at = text.find(before);
    if (at != std::string::npos) text.insert(after ? at + before.size() : at, what);
  };
  if (text.find("\"decrypt\"") == std::string::npos) put("\"decompress\"", "\"decrypt\", ", false);
  if (text.find("\nkeys = ") == std::string::npos)
    put("\n[source]\n",
        fmt::format("keys = {}\n",
                    nlohmann::json(options.encryption.keys_place)
                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)),
        true);
  return text;
}

std::string Description(const fs::path& source, const RewriteOptions& options,
                        const dwrf::WriterOptions& writer, const RewrittenTable& result) {
  nlohmann::ordered_json json = {{"schema", "headrace.table/1"}};
  std::error_code ignored;
  if (fs::exists(source / "table.json", ignored)) {
    const auto before = nlohmann::ordered_json::parse(
        ReadWholeFile((source / "table.json").string()), nullptr, false);
    if (before.is_object()) json = before;
  }
  const char* orders[] = {"keep", "declared", "random", "popularity"};
  json["stripe_rows"] = writer.stripe_rows;
  if (!options.cluster.empty()) json["clustered"] = true;
  json["rewritten"] = {{"order", orders[static_cast<size_t>(options.order)]},
                       {"flat_maps", writer.flat_maps},
                       {"level", writer.level},
                       {"min_ratio", writer.min_ratio},
                       {"cluster", options.cluster}};
  json.erase("optimize");
  if (writer.goal != dwrf::LayoutGoal::kFixed) json["optimize"] = dwrf::LayoutGoalName(writer.goal);
  if (options.compression || options.optimize)
    json["compression"] = dwrf::CodecName(result.layout.compression);
  json["written"] = {
      {"files", result.files}, {"stripes", result.stripes}, {"file_bytes", result.bytes}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

double MeanRowBytes(const reader::Table& table) {
  uint64_t raw_bytes = 0;
  for (const auto& file : table.files) raw_bytes += file->tail().footer.raw_data_size();
  return static_cast<double>(raw_bytes) / static_cast<double>(std::max<uint64_t>(table.rows, 1));
}

dwrf::WriterOptions RewriteWriterOptions(const reader::Table& table,
                                         const RewriteOptions& options) {
  const Schema& schema = table.files[0]->schema();
  const dwrf::FileTail& tail = table.files[0]->tail();
  SourceLayout layout = LayoutOf(table);
  dwrf::WriterOptions writer;
  const bool has_goal = options.optimize && *options.optimize != dwrf::LayoutGoal::kFixed;
  // Of the codecs that are tried only zstd has levels, so that a level given or kept is one of it.
  writer.compression = options.compression ? ParseCompression(*options.compression)
                       : has_goal          ? dwrf::CompressionKind::kZstd
                       : tail.compression == dwrf::CompressionKind::kGzip ||
                               tail.compression == dwrf::CompressionKind::kLzo
                           ? dwrf::CompressionKind::kZlib
                           : tail.compression;
  const auto number = [&](const char* name, double otherwise) {
    const std::string text = SourceMetadata(tail, name);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return text.empty() || *end != '\0' ? otherwise : value;
  };
  // A level means something else to another codec.
  if (writer.compression == tail.compression)
    writer.level = std::clamp(static_cast<int>(number("headrace.codec_level", writer.level)), 1,
                              writer.compression == dwrf::CompressionKind::kZlib ? 12 : 19);
  writer.min_ratio = std::clamp(number("headrace.min_ratio", writer.min_ratio), 1.0, 1000.0);
  Goal(tail, options, &writer);
  if (options.level) writer.level = *options.level;
  if (options.min_ratio) writer.min_ratio = *options.min_ratio;
  if (tail.compression != dwrf::CompressionKind::kNone && tail.block_size >= 1024 &&
      tail.block_size < (1 << 23) - 16)
    writer.block_size = tail.block_size;
  writer.stripe_rows = options.stripe_rows    ? *options.stripe_rows
                       : table.splits.empty() ? 0
                       : has_goal             ? ChosenStripeRows(table, writer.goal)
                                              : table.splits[0].rows;
  // Strides of a few rows make an index many times as large as its data.
  constexpr uint32_t kLeastStride = 100;
  const uint32_t stride = tail.footer.row_index_stride();
  writer.row_index_stride = stride == 0 ? 0 : std::max(stride, kLeastStride);
  for (const std::string& name : schema.ColumnNames()) {
    const uint32_t node = *schema.FindColumn(name);
    const bool was_flat =
        std::find(layout.flat_maps.begin(), layout.flat_maps.end(), name) != layout.flat_maps.end();
    const bool flat = options.layout == MapLayout::kKeep   ? was_flat
                      : options.layout == MapLayout::kFlat ? CanFlatten(schema, node)
                                                           : false;
    if (!flat) continue;
    writer.flat_maps.push_back(name);
    const bool ordered =
        options.order == FeatureOrder::kRandom || options.order == FeatureOrder::kPopularity;
    if (!was_flat && ordered) AddMapKeys(table, name, &layout);
  }
  Order(options, layout, &writer);
  writer.columns = options.columns;
  writer.encryption = options.encryption.groups;
  if (!writer.encryption.empty()) writer.keys = options.encryption.keys;
  for (const auto& item : tail.footer.metadata())
    if (item.name().starts_with("headrace.workload")) writer.metadata[item.name()] = item.value();
  return writer;
}

RewrittenTable RewriteTable(const std::string& source, const std::string& folder,
                            const RewriteOptions& options, const GenerateProgress& progress,
                            bool replace) {
  dwrf::OpenOptions opening;
  opening.keys = options.encryption.keys;
  const reader::Table table = reader::OpenTable(source, {}, {}, opening);
  if (!options.cluster.empty()) CheckCluster(table, options.cluster);
  dwrf::WriterOptions writing = RewriteWriterOptions(table, options);
  TableFolder target(folder, replace);
  RewrittenTable result;
  result.schema = table.files[0]->schema();
  uint64_t rows_before = 0;
  for (const auto& file : table.files) {
    const std::string path =
        (target.temporary() / fmt::format("part-{:05}.dwrf", result.files)).string();
    dwrf::FileWriter writer(path, file->schema(), writing);
    const std::function<void(uint64_t)> on_rows = [&](uint64_t done) {
      if (progress)
        progress(static_cast<double>(rows_before + done) /
                     static_cast<double>(std::max<uint64_t>(table.rows, 1)),
                 fmt::format("{} of {} rows", rows_before + done, table.rows));
    };
    FileRewriter rewriter(file, &writer, on_rows);
    if (options.cluster.empty()) {
      rewriter.Copy();
    } else {
      rewriter.CopyClustered(options.cluster);
    }
    const dwrf::WrittenFile written = writer.Close(false);  // the folder is synced as a whole
    rows_before += written.rows;
    ++result.files;
    result.rows += written.rows;
    result.stripes += written.stripes;
    result.bytes += written.bytes;
    result.layout.Add(written.layout);
    // What was chosen for the first file holds for all.
    writing.compression = written.layout.compression;
    writing.choose_codec = false;
    result.bytes_before += file->tail().file_size;
  }
  const fs::path beside = fs::path(source) / "pipeline.toml";
  std::error_code ignored;
  if (fs::exists(beside, ignored))
    target.WriteText("pipeline.toml", PipelineFor(ReadWholeFile(beside.string()), options));
  target.WriteText("table.json", Description(source, options, writing, result));
  target.Publish();
  return result;
}

}  // namespace headrace::workloads
