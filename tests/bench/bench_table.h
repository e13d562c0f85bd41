// A table that a benchmark reads: its files and the projection of its pipeline.toml.
#pragma once
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_reader.h"

namespace headrace::reader::dwrf::bench {

struct Table {
  std::vector<std::shared_ptr<const FileReader>> files;
  Projection projection;
};

// [projection.maps] of a pipeline.toml.
inline Projection ReadProjection(const std::filesystem::path& file) {
  Projection projection;
  const toml::table text = toml::parse_file(file.string());
  const toml::table* maps = text["projection"]["maps"].as_table();
  if (maps == nullptr) throw Error(ExitCode::kUsage, "no [projection.maps]", file.string());
  for (const auto& [column, keys] : *maps) {
    for (const toml::node& key : *keys.as_array()) {
      if (const auto number = key.value<int64_t>())
        projection.features.push_back({std::string(column.str()), MapKey{false, *number, {}}});
    }
  }
  return projection;
}

// Every feature of the first stripe.
inline Projection EveryFeature(const FileReader& reader) {
  Projection projection;
  const Schema& schema = reader.schema();
  const std::shared_ptr<const Stripe> stripe = reader.ReadStripe(0);
  for (size_t i = 0; i < schema.root().children.size(); ++i) {
    const uint32_t node = schema.root().children[i];
    if (schema.node(node).kind != TypeKind::kMap) continue;
    for (const FlatKey& key : stripe->FlatKeys(node))
      projection.features.push_back({schema.root().field_names[i], key.key});
  }
  return projection;
}

// Without a pipeline.toml, or if `every_key`, every feature is projected.
inline Table OpenTable(const std::filesystem::path& folder, bool every_key) {
  Table table;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".dwrf") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw Error(ExitCode::kUsage, "no .dwrf file", folder.string());
  for (const std::filesystem::path& path : paths)
    table.files.push_back(FileReader::Open(OpenFileSource(path.string())));
  const std::filesystem::path pipeline = folder / "pipeline.toml";
  table.projection = every_key || !std::filesystem::exists(pipeline) ? EveryFeature(*table.files[0])
                                                                     : ReadProjection(pipeline);
  return table;
}

}  // namespace headrace::reader::dwrf::bench
