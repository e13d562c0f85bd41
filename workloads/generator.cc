#include "workloads/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/file_writer.h"
#include "reader/source/source.h"
#include "workloads/compression.h"
#include "workloads/feature_columns.h"
#include "workloads/pipeline_text.h"
#include "workloads/selection.h"
#include "workloads/session_rows.h"
#include "workloads/table_folder.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;
namespace dwrf = reader::dwrf;
using reader::FeatureKind;

constexpr uint64_t kBlockRows = 512;
constexpr const char* kGeneratorSchema =
    "struct<label:float,session_id:bigint,timestamp:bigint,dense:map<int,float>,"
    "sparse:map<int,list<bigint>>,weighted:map<int,map<bigint,float>>>";
constexpr double kPositiveLabels = 0.03;

std::string PartName(uint64_t partition) { return fmt::format("part-{:05}.dwrf", partition); }

// Writes partitions one after the other; owns the buffers all blocks share.
class TableWriter {
 public:
  TableWriter(const WorkloadSpec& spec, std::vector<Feature> features,
              const GenerateProgress& progress, const TableEncryption& encryption)
      : spec_(spec), progress_(progress), encryption_(encryption) {
    const auto tables = std::make_shared<const DrawTables>(spec);
    for (const Feature& feature : features) columns_.emplace_back(feature, tables);
    blocks_.resize(features.size());
  }

  dwrf::WrittenFile WritePartition(uint64_t partition, const std::string& path) {
    const uint64_t first = spec_.rows * partition / spec_.partitions;
    const uint64_t rows = spec_.rows * (partition + 1) / spec_.partitions - first;
    const SessionRows sessions = MakeSessionRows(spec_, partition, rows);
    Owed owed_dense, owed_sparse;
    for (FeatureColumns& column : columns_) {
      const bool dense = column.feature().kind == FeatureKind::kDense;
      column.StartPartition(sessions, dense ? &owed_dense : &owed_sparse);
    }
    dwrf::FileWriter writer(path, reader::Schema::Parse(kGeneratorSchema), Options());
    for (uint64_t row = 0; row < rows; row += kBlockRows) {
      WriteBlock(sessions, first, row, std::min(kBlockRows, rows - row), &writer);
      if (progress_)
        progress_(static_cast<double>(first + row) / static_cast<double>(spec_.rows),
                  fmt::format("{} of {} rows", first + row, spec_.rows));
    }
    dwrf::WrittenFile written = writer.Close(false);  // the folder is synced as a whole
    codec_ = written.layout.compression;
    return written;
  }

 private:
  dwrf::WriterOptions Options() const {
    dwrf::WriterOptions options;
    SetGoal(spec_.optimize, &options);
    // What was chosen for the first file holds for all.
    options.choose_codec = spec_.compression.empty() && !codec_;
    if (codec_) {
      options.compression = *codec_;
    } else if (!spec_.compression.empty()) {
      options.compression = ParseCompression(spec_.compression);
    }
    options.stripe_rows = spec_.stripe_rows;
    options.flat_maps = {"dense", "sparse", "weighted"};
    options.encryption = encryption_.groups;
    options.keys = encryption_.keys;
    options.metadata = {{"headrace.workload", spec_.name},
                        {"headrace.workload.seed", std::to_string(spec_.seed)}};
    return options;
  }

  // `first` numbers the partition's first row in the table, `row` the block's in the partition.
  void WriteBlock(const SessionRows& sessions, uint64_t first, uint64_t row, uint64_t count,
                  dwrf::FileWriter* writer) {
    labels_.resize(count);
    session_ids_.resize(count);
    times_.resize(count);
    for (uint64_t i = 0; i < count; ++i) {
      const SessionRow& at = sessions.rows[row + i];
      const double draw = Unit(Mix(Mix(spec_.seed, 0x1abe1), first + row + i));
      labels_[i] = draw < kPositiveLabels ? 1.0F : 0.0F;
      session_ids_[i] = static_cast<int64_t>(sessions.session_keys[at.session] >> 1);
      times_[i] = at.time;
    }
    dwrf::FlatBatch batch;
    batch.rows = count;
    batch.columns.resize(6);
    batch.columns[0].name = "label";
    batch.columns[0].floats = labels_;
    batch.columns[1].name = "session_id";
    batch.columns[1].integers = session_ids_;
    batch.columns[2].name = "timestamp";
    batch.columns[2].integers = times_;
    for (const FeatureKind kind :
         {FeatureKind::kDense, FeatureKind::kSparse, FeatureKind::kWeightedSparse})
      batch.columns[3 + static_cast<size_t>(kind)].name = ColumnName(kind);
    for (size_t i = 0; i < columns_.size(); ++i) {
      FeatureBlock& block = blocks_[i];
      columns_[i].Fill(sessions, row, count, &block);
      const Feature& feature = columns_[i].feature();
      dwrf::FlatFeature flat;
      flat.key = {false, static_cast<int64_t>(feature.key), {}};
      flat.present = block.present;
      flat.lengths = block.lengths;
      flat.integers = block.integers;
      flat.floats = block.floats;
      batch.columns[3 + static_cast<size_t>(feature.kind)].features.push_back(flat);
    }
    writer->WriteFlat(batch);
  }

  const WorkloadSpec& spec_;
  const GenerateProgress& progress_;
  const TableEncryption& encryption_;
  std::optional<dwrf::CompressionKind> codec_;
  std::vector<FeatureColumns> columns_;
  std::vector<FeatureBlock> blocks_;
  std::vector<float> labels_;
  std::vector<int64_t> session_ids_, times_;
};

// Adds the stored bytes of every feature of the file at `path`: all its streams but row indexes.
void AddStoredBytes(const std::string& path, const std::vector<Feature>& features,
                    const TableEncryption& encryption, std::vector<uint64_t>* stored_bytes) {
  dwrf::OpenOptions opening;
  opening.keys = encryption.keys;
  const auto file = dwrf::FileReader::Open(reader::OpenFileSource(path), opening);
  for (size_t s = 0; s < file->num_stripes(); ++s) {
    const auto stripe = file->ReadStripe(s);
    for (const FeatureKind kind :
         {FeatureKind::kDense, FeatureKind::kSparse, FeatureKind::kWeightedSparse}) {
      const uint32_t map_node = *file->schema().FindColumn(ColumnName(kind));
      const uint32_t last = file->schema().node(map_node).last;
      const auto keys = stripe->FlatKeys(map_node);
      std::vector<int64_t> key_of(keys.size() + 1);  // by sequence: the writer counts from 1
      for (const dwrf::FlatKey& flat : keys) key_of.at(flat.sequence) = flat.key.integer;
      const auto first = std::find_if(features.begin(), features.end(),
                                      [kind](const Feature& f) { return f.kind == kind; });
      const int64_t offset = first - features.begin() - 1;  // keys count from 1
      for (const dwrf::StreamInfo& stream : stripe->streams) {
        if (stream.node <= map_node || stream.node > last || stream.sequence == 0) continue;
        if (stream.kind == dwrf::StreamKind::kRowIndex) continue;
        (*stored_bytes)[static_cast<size_t>(offset + key_of.at(stream.sequence))] += stream.length;
      }
    }
  }
}

// Logical bytes of a row, by the means of the spec.
double ExpectedRowBytes(const WorkloadSpec& spec) {
  const FeatureCounts counts = ScaledCounts(spec);
  const double id_bytes = spec.list_length_mean * sizeof(int64_t);
  const double weight_bytes = spec.list_length_mean * sizeof(float);
  return spec.coverage_mean *
         (counts.dense * double{sizeof(float)} + (counts.sparse + counts.weighted) * id_bytes +
          counts.weighted * weight_bytes);
}

uint64_t Sum(const std::vector<uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), uint64_t{0});
}

}  // namespace

uint64_t GeneratedTable::feature_bytes() const { return Sum(stored_bytes); }

uint64_t GeneratedTable::used_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i]) bytes += stored_bytes[i];
  return bytes;
}

GeneratedTable GenerateTable(const WorkloadSpec& asked, const std::string& folder,
                             const GenerateProgress& progress, bool replace,
                             const TableEncryption& encryption) {
  WorkloadSpec spec = asked;
  if (spec.optimize != dwrf::LayoutGoal::kFixed && spec.stripe_rows == 0)
    spec.stripe_rows = dwrf::ChooseStripeRows(spec.optimize, spec.rows, ExpectedRowBytes(spec));
  CheckSpec(spec);
  if (spec.optimize == dwrf::LayoutGoal::kFixed || !spec.compression.empty())
    ParseCompression(spec.compression);
  TableFolder target(folder, replace);
  GeneratedTable table;
  table.spec = spec;
  table.schema = reader::Schema::Parse(kGeneratorSchema);
  table.features = MakeFeatures(spec);
  table.stored_bytes.resize(table.features.size());
  if (!encryption.groups.empty()) table.keys_place = encryption.keys_place;
  TableWriter writer(spec, table.features, progress, encryption);
  for (uint64_t partition = 0; partition < spec.partitions; ++partition) {
    const std::string path = (target.temporary() / PartName(partition)).string();
    const dwrf::WrittenFile written = writer.WritePartition(partition, path);
    ++table.files;
    table.stripes += written.stripes;
    table.file_bytes += written.bytes;
    table.raw_bytes += written.raw_bytes;
    table.layout.Add(written.layout);
    AddStoredBytes(path, table.features, encryption, &table.stored_bytes);
  }
  table.spec.compression = reader::dwrf::CodecName(table.layout.compression);
  table.used = SelectFeatures(spec, table.features, table.stored_bytes);
  table.popularity = Popularity(spec, table.used, table.stored_bytes);
  target.WriteText("pipeline.toml", PipelineText(table));
  target.WriteText("table.json", TableJson(table));
  target.Publish();
  return table;
}

}  // namespace headrace::workloads
