#include "experiments/edited_pipeline.h"

#include <toml++/toml.h>

#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace headrace::experiments {
namespace {

toml::array* OperatorsOf(toml::node& stage) {
  toml::table* table = stage.as_table();
  return table != nullptr ? table->get_as<toml::array>("operators") : nullptr;
}

void InsertRowmap(toml::array* stages) {
  for (toml::node& stage : *stages) {
    toml::array* operators = OperatorsOf(stage);
    if (operators == nullptr) continue;
    for (size_t i = 0; i < operators->size(); ++i) {
      if ((*operators)[i].value<std::string>() != "extract") continue;
      operators->insert(operators->cbegin() + static_cast<std::ptrdiff_t>(i) + 1, "rowmap");
      return;
    }
  }
}

void JoinStages(int threads, toml::array* stages) {
  toml::array all;
  for (toml::node& stage : *stages) {
    toml::array* operators = OperatorsOf(stage);
    if (operators == nullptr) continue;
    for (toml::node& op : *operators) all.push_back(op);
  }
  toml::table joined;
  joined.insert("name", "worker");
  joined.insert("operators", all);
  joined.insert("parallelism", threads);
  joined.insert("queue", 4);
  stages->clear();
  stages->push_back(joined);
}

}  // namespace

void WriteEdited(const std::string& path, const PipelineEdit& edit, const std::string& to) {
  std::ostringstream text;
  try {
    toml::table file = toml::parse(ReadWholeFile(path), path);
    toml::array* stages = file.get_as<toml::array>("stage");
    if (stages == nullptr || stages->empty())
      throw Error(ExitCode::kBadData, "has no [[stage]]", path, "give a pipeline file");
    if (!edit.table.empty()) {
      if (file.get_as<toml::table>("source") == nullptr)
        file.insert_or_assign("source", toml::table{});
      file.get_as<toml::table>("source")->insert_or_assign("table", edit.table);
    }
    if (edit.rowmap) InsertRowmap(stages);
    if (edit.one_stage_threads > 0) JoinStages(edit.one_stage_threads, stages);
    if (edit.rebatch) {
      toml::table client;
      client.insert("name", "client");
      client.insert("operators", toml::array{"rebatch"});
      stages->push_back(client);
    }
    text << file << "\n";
  } catch (const toml::parse_error& error) {
    std::ostringstream place;
    place << path << ":" << error.source().begin.line << ":" << error.source().begin.column;
    throw Error(ExitCode::kBadData, std::string(error.description()), place.str());
  }
  AtomicFile file(to, true);
  file.Write(text.str());
  file.Commit();
}

}  // namespace headrace::experiments
