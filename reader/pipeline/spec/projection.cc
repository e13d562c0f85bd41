// [projection]: what is read of each row.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {

void ParseProjection(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("projection");
  table.CheckKeys("[projection]", {"label", "columns", "maps", "outputs"});
  spec->label = table.Text("label", "");
  if (!spec->label.empty()) spec->projection.columns.push_back(spec->label);
  if (const SpecValue columns = table["columns"]) {
    if (!columns.is_list()) columns.Fail("columns is a list of names");
    for (const SpecValue& column : columns.Items()) {
      if (!column.AsText()) column.Fail("a column is named by a text");
      const std::string name = *column.AsText();
      if (std::find(spec->projection.columns.begin(), spec->projection.columns.end(), name) ==
          spec->projection.columns.end())
        spec->projection.columns.push_back(name);
    }
  }
  if (const SpecValue outputs = table["outputs"]) {
    if (!outputs.is_list()) outputs.Fail("outputs is a list of feature names");
    if (!root["transform"])
      outputs.Fail(
          "outputs chooses among features behind transforms, and there is no "
          "[[transform]]: project only the features that are wanted");
    spec->outputs.emplace();
    for (const SpecValue& output : outputs.Items()) {
      if (!output.AsText()) output.Fail("a feature is named by a text");
      spec->outputs->push_back(*output.AsText());
    }
  }
  if (const SpecValue maps = table.Table("maps")) {
    for (const auto& [map, keys] : maps.Members()) {
      if (!keys.is_list()) keys.Fail(fmt::format("the keys of map '{}' are a list", map));
      for (const SpecValue& key : keys.Items()) {
        dwrf::FeatureRequest request;
        request.column = map;
        if (const auto number = key.AsInteger()) {
          request.key = dwrf::MapKey::Of(*number);
        } else if (const auto text = key.AsText()) {
          request.key = dwrf::MapKey::Of(*text);
        } else {
          key.Fail("a key is an integer or a text");
        }
        spec->projection.features.push_back(std::move(request));
      }
    }
  }
}

}  // namespace headrace::reader
