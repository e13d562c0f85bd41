// Reads a pipeline file: text, settings, sections.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/toml_depth.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

PipelineSpec Build(const SpecValue& root) {
  PipelineSpec spec;
  root.CheckKeys("the file", {"pipeline", "source", "projection", "stage", "transform", "filter",
                              "dedup", "consumer", "delivery", "cache"});
  ParsePipelineKeys(root, &spec);
  ParseSource(root, &spec);
  ParseProjection(root, &spec);
  ParseTransforms(root, &spec);
  ParseFilters(root, &spec);
  ParseStages(root, &spec);
  CheckOrder(root, &spec);
  ParseDelivery(root, &spec);
  ParseCache(root, &spec);
  CheckBatching(root, spec);
  if (spec.prefetch != 0) spec.stages.back().queue = spec.prefetch;
  ParseDedup(root, &spec);
  ParseConsumer(root, &spec);
  return spec;
}

toml::table Parse(const std::string& text, const std::string& path) {
  CheckTomlDepth(text, path, ExitCode::kUsage);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    const auto place = error.source().begin;
    throw Error(ExitCode::kUsage, std::string(error.description()),
                fmt::format("{}:{}:{}", path, place.line, place.column));
  }
}

PipelineSpec Build(const toml::table& root, const SpecFile& file) {
  return Build(SpecValue(file, static_cast<const toml::node*>(&root)));
}

// The value as TOML: a number, true, false, or a text. Names and places are texts whatever they
// look like.
void Assign(toml::table* table, const std::string& key, const std::string& value) {
  for (const char* text : {"name", "label", "table", "keys", "folder", "popularity", "ca_file"})
    if (key == text) return (void)table->insert_or_assign(key, value);
  try {
    const std::string line = fmt::format("v = {}", value);
    CheckTomlDepth(line, key, ExitCode::kUsage);
    const toml::table parsed = toml::parse(line);
    const toml::node* node = parsed.get("v");
    if (node->is_integer()) return (void)table->insert_or_assign(key, **node->as_integer());
    if (node->is_floating_point())
      return (void)table->insert_or_assign(key, **node->as_floating_point());
    if (node->is_boolean()) return (void)table->insert_or_assign(key, **node->as_boolean());
  } catch (const toml::parse_error&) {
  } catch (const Error&) {
  }
  table->insert_or_assign(key, value);
}

void ApplySetting(toml::table* root, const std::string& knob, const std::string& value) {
  const size_t dot = knob.find('.');
  const auto fail = [&](const std::string& what) {
    throw Error(ExitCode::kUsage, what, "setting '" + Printable(knob, 80) + "'");
  };
  if (dot == std::string::npos)
    fail(
        "a knob is STAGE.parallelism, STAGE.queue, consumer.step, source.epochs, "
        "pipeline.batch_rows, ...");
  const std::string section = knob.substr(0, dot), key = knob.substr(dot + 1);
  constexpr int kNumSections = 7;
  std::vector<std::string> sections = {"pipeline", "source",   "projection", "dedup",
                                       "consumer", "delivery", "cache"};
  if (toml::array* stages =
          root->get("stage") != nullptr ? root->get("stage")->as_array() : nullptr) {
    for (toml::node& node : *stages) {
      toml::table* stage = node.as_table();
      const std::string name =
          stage != nullptr ? (*stage)["name"].value_or(std::string()) : std::string();
      if (!name.empty()) sections.push_back(name);
      if (name != section || stage == nullptr) continue;
      const std::vector<std::string> keys = {"parallelism", "max_parallelism", "queue"};
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        fail(fmt::format("a stage has no '{}' to set{}", key, DidYouMean(key, keys)));
      return Assign(stage, key, value);
    }
  }
  if (std::find(sections.begin(), sections.begin() + kNumSections, section) ==
      sections.begin() + kNumSections)
    fail(fmt::format("no stage or section '{}'{}; there are {}", section,
                     DidYouMean(section, sections), fmt::join(sections, ", ")));
  if (section == "cache") {  // [[cache]] is a list of one
    if (root->get("cache") == nullptr) root->insert("cache", toml::array(toml::table()));
    toml::array* caches = root->get("cache")->as_array();
    if (caches == nullptr || caches->size() != 1 || !(*caches)[0].is_table())
      fail("the pipeline has several [[cache]], or one that is not a table: it can have one");
    return Assign((*caches)[0].as_table(), key, value);
  }
  // "source.synthetic.elements" goes down through tables that are there.
  toml::table* table = root;
  std::string left = knob;
  for (size_t at; (at = left.find('.')) != std::string::npos; left = left.substr(at + 1)) {
    const std::string step = left.substr(0, at);
    if (table->get(step) == nullptr) {
      const bool is_known =
          table == root || (section == "consumer" && step == "model") ||
          (section == "source" && (step == "throttle" || step == "device" || step == "fault" ||
                                   step == "remote" || step == "tier"));
      if (!is_known)
        fail(fmt::format("the file has no '{}' to set '{}' in", step, left.substr(at + 1)));
      table->insert(step, toml::table());
    }
    table = table->get(step)->as_table();
    if (table == nullptr) fail(fmt::format("'{}' is not a table", step));
  }
  Assign(table, left, value);
}

// Which setting makes the file wrong: the one without which it is right, as others may be what the
// file needs; else, if the file is right by itself, the first one that breaks it.
std::optional<size_t> Culprit(const std::string& text, const std::string& path,
                              const std::string& folder, const Settings& settings) {
  const auto is_right = [&](size_t count, size_t without) {
    toml::table root = Parse(text, path);
    try {
      for (size_t i = 0; i < count; ++i)
        if (i != without) ApplySetting(&root, settings[i].first, settings[i].second);
      Build(root, {path, folder});
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const size_t all = settings.size();
  for (size_t i = 0; i < all; ++i)
    if (is_right(all, i)) return i;
  if (!is_right(0, 0)) return std::nullopt;
  for (size_t count = 1; count <= all; ++count)
    if (!is_right(count, count)) return count - 1;
  return std::nullopt;
}

}  // namespace

bool HasOperator(const PipelineSpec& spec, std::string_view kind) {
  return std::any_of(spec.stages.begin(), spec.stages.end(), [&](const StageSpec& stage) {
    return std::any_of(stage.operators.begin(), stage.operators.end(),
                       [&](const OperatorSpec& op) { return op.kind == kind; });
  });
}

PipelineSpec ParsePipeline(const std::string& text, const std::string& path,
                           const std::string& folder, const Settings& settings) {
  toml::table root = Parse(text, path);
  for (const auto& [knob, value] : settings) ApplySetting(&root, knob, value);
  PipelineSpec spec;
  SettingsInForce in_force;
  try {
    spec = Build(root, {path, folder, &in_force});
  } catch (const Error& error) {
    // A mistake without a line in the file came with a setting.
    if (error.where().find(path + ":") == 0) throw;
    if (const auto setting = Culprit(text, path, folder, settings)) {
      const auto& [knob, value] = settings[*setting];
      throw Error(error.code(), error.fact(),
                  fmt::format("setting '{}={}'", Printable(knob, 80), Printable(value, 80)),
                  error.fix());
    }
    throw;
  }
  spec.path = path;
  spec.text = text;
  spec.in_force = std::move(in_force);
  return spec;
}

PipelineSpec LoadPipeline(const std::string& path, const Settings& settings) {
  const fs::path folder = fs::absolute(fs::path(path)).parent_path();
  return ParsePipeline(ReadWholeFile(path), path, folder.string(), settings);
}

std::pair<std::string, std::string> ParseSetting(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ExitCode::kUsage, fmt::format("'{}' is not KEY=VALUE", Printable(text, 80)),
                "--set", "try --set decode.parallelism=2");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace headrace::reader
