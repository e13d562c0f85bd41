#include "reader/pipeline/spec.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/registry.h"
#include "base/toml_depth.h"
#include "base/units.h"
#include "reader/pipeline/delivery/ring.h"
#include "reader/source/open.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<OperatorKind, const char*> kKinds[] = {
    {OperatorKind::kFetch, "fetch"},
    {OperatorKind::kDecrypt, "decrypt"},
    {OperatorKind::kDecompress, "decompress"},
    {OperatorKind::kDecode, "decode"},
    {OperatorKind::kExtract, "extract"},
    {OperatorKind::kRowMap, "rowmap"},
    {OperatorKind::kTransform, "transform"},
    {OperatorKind::kShuffle, "shuffle"},
    {OperatorKind::kBatch, "batch"},
    {OperatorKind::kTensorize, "tensorize"},
    {OperatorKind::kRebatch, "rebatch"},
    {OperatorKind::kSpin, "spin"},
    {OperatorKind::kSleep, "sleep"},
    {OperatorKind::kTouch, "touch"},
    {OperatorKind::kLock, "lock"},
    {OperatorKind::kRead, "read"}};
constexpr uint32_t kMaxParallelism = 256, kMaxQueue = 65536;
constexpr int64_t kMaxWidth = 65536;  // of a model's layer
constexpr size_t kMaxLayers = 32;

std::string DidYouMean(const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest);
}

// One parse: knows the file for messages, and turns TOML nodes into the spec.
class SpecParser {
 public:
  SpecParser(std::string path, std::string folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}

  [[noreturn]] void Fail(const toml::node* node, const std::string& what) const {
    std::string where = path_;
    if (node != nullptr && node->source().begin.line > 0)
      where =
          fmt::format("{}:{}:{}", path_, node->source().begin.line, node->source().begin.column);
    throw Error(ExitCode::kUsage, what, where);
  }

  toml::table Parse(const std::string& text) const {
    CheckTomlDepth(text, path_, ExitCode::kUsage);
    try {
      return toml::parse(text, path_);
    } catch (const toml::parse_error& error) {
      throw Error(
          ExitCode::kUsage, std::string(error.description()),
          fmt::format("{}:{}:{}", path_, error.source().begin.line, error.source().begin.column));
    }
  }

  // Refuses keys outside `allowed`.
  void CheckKeys(const toml::table& table, const std::string& section,
                 const std::vector<std::string>& allowed) const {
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
      // A key that a setting added has no place in the file.
      const auto place = key.source().begin;
      const std::string where = place.line > 0
                                    ? fmt::format("{}:{}:{}", path_, place.line, place.column)
                                    : path_ + " with its settings";
      throw Error(ExitCode::kUsage,
                  fmt::format("unknown key '{}' in {}{}", Printable(name, 60), section,
                              DidYouMean(name, allowed)),
                  where);
    }
  }

  const toml::table* Table(const toml::table& parent, const char* key) const {
    const toml::node* node = parent.get(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) Fail(node, fmt::format("'{}' is not a table", key));
    return node->as_table();
  }
  std::string Text(const toml::table& table, const char* key, const std::string& otherwise) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    if (!node->is_string()) Fail(node, fmt::format("expected a text for {}", key));
    return **node->as_string();
  }
  uint64_t Count(const toml::table& table, const char* key, uint64_t otherwise, uint64_t low,
                 uint64_t high) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    if (!node->is_integer()) Fail(node, fmt::format("expected a whole number for {}", key));
    const int64_t value = **node->as_integer();
    if (value < 0 || static_cast<uint64_t>(value) < low || static_cast<uint64_t>(value) > high) {
      Fail(node, fmt::format("{} must be from {} to {}, got {}", key, low, high, value));
    }
    return static_cast<uint64_t>(value);
  }
  bool Flag(const toml::table& table, const char* key, bool otherwise) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    if (!node->is_boolean()) Fail(node, fmt::format("expected true or false for {}", key));
    return **node->as_boolean();
  }
  double Number(const toml::table& table, const char* key, double otherwise) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value<double>();
    if (!value || node->is_string()) Fail(node, fmt::format("expected a number for {}", key));
    if (!std::isfinite(*value)) Fail(node, fmt::format("{} must be finite, got {}", key, *value));
    return *value;
  }
  // "5ms", "0", or an integer 0.
  double Duration(const toml::node& node, const std::string& key) const {
    if (node.is_integer() && **node.as_integer() == 0) return 0;
    if (!node.is_string())
      Fail(&node, fmt::format("expected a duration such as \"5ms\" for {}", key));
    try {
      return static_cast<double>(ParseDuration(**node.as_string(), key));
    } catch (const Error& error) {
      Fail(&node, fmt::format("{}: {}; {}", key, error.fact(), error.fix()));
    }
  }
  double Bytes(const toml::node& node, const std::string& key) const {
    if (node.is_integer() && **node.as_integer() >= 0)
      return static_cast<double>(**node.as_integer());
    if (!node.is_string())
      Fail(&node, fmt::format("expected a size such as \"64KiB\" for {}", key));
    try {
      return static_cast<double>(ParseBytes(**node.as_string(), key));
    } catch (const Error& error) {
      Fail(&node, fmt::format("{}: {}; {}", key, error.fact(), error.fix()));
    }
  }
  // "200MB/s".
  double Rate(const toml::node& node, const std::string& key) const {
    if (node.is_string()) {
      std::string text = **node.as_string();
      if (text.ends_with("/s")) {
        text.resize(text.size() - 2);
        try {
          const double rate = static_cast<double>(ParseBytes(text, key));
          if (rate > 0) return rate;
        } catch (const Error&) {
        }
      }
    }
    Fail(&node, fmt::format("expected a rate such as \"200MB/s\" for {}", key));
  }
  std::string Path(const std::string& path) const {
    const fs::path p(path);
    return p.is_absolute() ? p.string() : (fs::path(folder_) / p).lexically_normal().string();
  }

  void Randomness(const toml::table& table, Cost* cost) const {
    const std::string name = Text(table, "distribution", "");
    const double cv = Number(table, "cv", name == "exponential" ? 1 : 0);
    if (cv < 0 || cv > 10) Fail(table.get("cv"), "cv must be from 0 to 10");
    cost->cv = cv;
    const std::vector<std::string> names = {"fixed", "uniform", "exponential", "lognormal"};
    if (name.empty()) {
      cost->distribution = cv > 0 ? Distribution::kLognormal : Distribution::kFixed;
      return;
    }
    auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end())
      Fail(table.get("distribution"), fmt::format("unknown distribution '{}'{}",
                                                  Printable(name, 40), DidYouMean(name, names)));
    cost->distribution = static_cast<Distribution>(it - names.begin());
  }

  OperatorSpec Operator(const toml::node& node) const {
    std::vector<std::string> names;
    for (const auto& [kind, name] : kKinds) names.push_back(name);
    OperatorSpec spec;
    if (node.is_string()) {
      spec.name = **node.as_string();
      for (const auto& [kind, name] : kKinds) {
        if (spec.name != name) continue;
        if (IsSynthetic(kind))
          Fail(&node, fmt::format("'{}' needs a cost: write {{ {} = \"...\" }}", name, name));
        spec.kind = kind;
        return spec;
      }
      Fail(&node, fmt::format("unknown operator '{}'{}", Printable(spec.name, 60),
                              DidYouMean(spec.name, names)));
    }
    if (!node.is_table())
      Fail(&node, "an operator is a name or a table such as { spin = \"2ms\" }");
    const toml::table& table = *node.as_table();
    const toml::node* cost = nullptr;
    for (const auto& [kind, name] : kKinds) {
      if (!IsSynthetic(kind) || table.get(name) == nullptr) continue;
      if (cost != nullptr) Fail(&node, "an operator has one of spin, sleep, touch, lock, read");
      cost = table.get(name);
      spec.kind = kind;
    }
    if (cost == nullptr) {
      for (const auto& [key, value] : table) {
        const std::string nearest =
            NearestName(key.str(), {"spin", "sleep", "touch", "lock", "read"});
        if (!nearest.empty())
          Fail(&value, fmt::format("unknown operator '{}', did you mean '{}'?",
                                   Printable(std::string(key.str()), 60), nearest));
      }
      Fail(&node, "an operator table has one of spin, sleep, touch, lock, read");
    }
    const std::string kind = OperatorKindName(spec.kind);
    std::vector<std::string> keys = {kind, "name", "cv", "distribution"};
    if (spec.kind == OperatorKind::kLock) keys.insert(keys.end(), {"lock_name", "hold"});
    if (spec.kind == OperatorKind::kRead) keys.insert(keys.end(), {"file", "rate", "device"});
    CheckKeys(table, "operator " + kind, keys);
    const bool in_bytes = spec.kind == OperatorKind::kTouch || spec.kind == OperatorKind::kRead;
    spec.cost.mean = in_bytes ? Bytes(*cost, kind) : Duration(*cost, kind);
    Randomness(table, &spec.cost);
    spec.name = Text(table, "name", "");
    if (spec.kind == OperatorKind::kLock) {
      spec.resource = Text(table, "lock_name", spec.name.empty() ? "lock" : spec.name);
      const std::string hold = Text(table, "hold", "spin");
      if (hold != "spin" && hold != "sleep")
        Fail(table.get("hold"), "hold is \"spin\" or \"sleep\"");
      spec.hold_sleeps = hold == "sleep";
    }
    if (spec.kind == OperatorKind::kRead) {
      spec.resource = Text(table, "device", spec.name.empty() ? "device" : spec.name);
      const toml::node* rate = table.get("rate");
      if (rate == nullptr) Fail(&node, "read needs a rate such as rate = \"200MB/s\"");
      spec.bytes_per_second = Rate(*rate, "rate");
      const std::string file = Text(table, "file", "");
      if (!file.empty()) spec.file = Path(file);
    }
    return spec;
  }

  void Stages(const toml::table& root, PipelineSpec* spec) const {
    const toml::node* node = root.get("stage");
    if (node == nullptr || !node->is_array() || node->as_array()->empty())
      Fail(node, "a pipeline needs at least one [[stage]]");
    std::set<std::string> stage_names = {"consumer",  "pipeline", "source",   "projection",
                                         "transform", "stage",    "delivery", "dedup"},
                          operator_names;
    for (const toml::node& entry : *node->as_array()) {
      if (!entry.is_table()) Fail(&entry, "a stage is a table");
      const toml::table& table = *entry.as_table();
      CheckKeys(table, "[[stage]]",
                {"name", "operators", "parallelism", "max_parallelism", "queue"});
      StageSpec stage;
      stage.name = Text(table, "name", "");
      if (stage.name.empty()) Fail(&entry, "a stage needs a name");
      if (stage.name.find('.') != std::string::npos)
        Fail(table.get("name"), "a stage's name has no dot");
      // "transform" is the natural name of a stage, and also a section of lists: only sections with
      // keys of their own clash.
      const bool reserved = stage.name != "transform" && stage_names.count(stage.name) > 0;
      if (reserved || !seen_stage_names_.insert(stage.name).second)
        Fail(table.get("name"), fmt::format("the name '{}' is taken", Printable(stage.name, 60)));
      stage.parallelism = static_cast<uint32_t>(Count(table, "parallelism", 1, 1, kMaxParallelism));
      stage.max_parallelism =
          static_cast<uint32_t>(Count(table, "max_parallelism", 0, 0, kMaxParallelism));
      stage.queue = static_cast<uint32_t>(Count(table, "queue", 4, 1, kMaxQueue));
      if (stage.max_parallelism != 0 && stage.parallelism > stage.max_parallelism) {
        Fail(table.get("parallelism"), fmt::format("parallelism {} exceeds max_parallelism {}",
                                                   stage.parallelism, stage.max_parallelism));
      }
      const toml::node* operators = table.get("operators");
      if (operators == nullptr || !operators->is_array() || operators->as_array()->empty())
        Fail(operators != nullptr ? operators : &entry, "a stage needs operators = [...]");
      for (const toml::node& op : *operators->as_array()) {
        OperatorSpec parsed = Operator(op);
        if (parsed.name.empty())
          parsed.name = operators->as_array()->size() == 1
                            ? stage.name
                            : stage.name + "." + OperatorKindName(parsed.kind);
        std::string unique = parsed.name;
        for (int n = 2; !operator_names.insert(unique).second; ++n)
          unique = fmt::format("{}.{}", parsed.name, n);
        parsed.name = unique;
        stage.operators.push_back(std::move(parsed));
      }
      spec->stages.push_back(std::move(stage));
    }
  }

  // The operators of a table source follow one order; each names what must come before it.
  void CheckOrder(const toml::table& root, PipelineSpec* spec) const {
    const toml::node* place = root.get("stage");
    int last = -1;
    const char* last_name = "";
    bool has_table_operator = false;
    for (StageSpec& stage : spec->stages) {
      for (const OperatorSpec& op : stage.operators) {
        if (IsSynthetic(op.kind)) continue;
        has_table_operator = true;
        const int rank = static_cast<int>(op.kind);
        if (!spec->synthetic && last == -1 && op.kind != OperatorKind::kFetch)
          Fail(place, fmt::format("the first operator of a table is fetch, not {}", op.name));
        const bool next = op.kind == OperatorKind::kDecompress
                              ? last == static_cast<int>(OperatorKind::kFetch) ||
                                    last == static_cast<int>(OperatorKind::kDecrypt)
                          : op.kind == OperatorKind::kTransform
                              ? last == static_cast<int>(OperatorKind::kExtract) ||
                                    last == static_cast<int>(OperatorKind::kRowMap)
                          : op.kind == OperatorKind::kShuffle || op.kind == OperatorKind::kBatch
                              ? last >= static_cast<int>(OperatorKind::kExtract) && last < rank
                          : op.kind == OperatorKind::kTensorize
                              ? last >= static_cast<int>(OperatorKind::kExtract) && last < rank
                              : rank == last + 1;
        if (!next) {
          Fail(place,
               fmt::format("operator {} cannot follow {}; the order is fetch, decrypt (optional), "
                           "decompress, decode, extract, rowmap (optional), transform (optional), "
                           "shuffle (optional), batch (optional), tensorize (optional), rebatch "
                           "(optional, behind tensorize)",
                           op.name, last == -1 ? "the source" : last_name));
        }
        last = rank;
        last_name = OperatorKindName(op.kind);
        const bool joins = op.kind == OperatorKind::kShuffle || op.kind == OperatorKind::kBatch ||
                           op.kind == OperatorKind::kRebatch;
        if (joins && spec->file_order) {
          if (stage.parallelism > 1)
            Fail(place,
                 fmt::format("with order = \"file\" the stage of {} ('{}') has parallelism 1",
                             op.name, stage.name));
          stage.max_parallelism = 1;
        }
      }
    }
    if (spec->synthetic && has_table_operator)
      Fail(place,
           "a synthetic source has no data to fetch or decode: use spin, sleep, touch, lock, read");
    if (!spec->synthetic && !has_table_operator)
      Fail(place, "a table needs fetch, decompress, decode and extract");
    if (!spec->transforms.empty() && !HasKind(*spec, OperatorKind::kTransform))
      Fail(root.get("transform"), "there are transforms, but no stage has the operator transform");
    if (!spec->filters.empty() && !HasKind(*spec, OperatorKind::kExtract))
      Fail(root.get("filter"), "there are filters, but no stage has the operator extract");
  }
  // Keys of [pipeline] that need an operator, and operators that need a key.
  void CheckBatching(const toml::table& root, const PipelineSpec& spec) const {
    const toml::table* table = Table(root, "pipeline");
    const toml::node* place = table;
    if (spec.worker_rows != 0 && !HasKind(spec, OperatorKind::kRebatch))
      Fail(place, "worker_rows is for the operator rebatch, and no stage has it");
    if (spec.worker_rows > spec.batch_rows)
      Fail(place,
           fmt::format("worker_rows {} exceeds batch_rows {}", spec.worker_rows, spec.batch_rows));
    if (spec.worker_rows != 0 && !HasKind(spec, OperatorKind::kBatch))
      Fail(place, "worker_rows is what the operator batch makes, and no stage has it");
    if (HasKind(spec, OperatorKind::kShuffle) != (spec.shuffle_rows != 0))
      Fail(place, spec.shuffle_rows != 0
                      ? "shuffle_rows is for the operator shuffle, and no stage has it"
                      : "the operator shuffle needs pipeline.shuffle_rows, the rows of its window");
    if (spec.reorder_window != 0 && !spec.file_order)
      Fail(place,
           "reorder_window is for order = \"file\"; with \"any\" nothing waits for its turn");
  }
  static bool HasKind(const PipelineSpec& spec, OperatorKind kind) {
    for (const StageSpec& stage : spec.stages) {
      for (const OperatorSpec& op : stage.operators) {
        if (op.kind == kind) return true;
      }
    }
    return false;
  }

  void Projection(const toml::table& root, PipelineSpec* spec) const {
    const toml::table* table = Table(root, "projection");
    if (table == nullptr) return;
    CheckKeys(*table, "[projection]", {"label", "columns", "maps", "outputs"});
    spec->label = Text(*table, "label", "");
    if (!spec->label.empty()) spec->projection.columns.push_back(spec->label);
    if (const toml::node* columns = table->get("columns")) {
      if (!columns->is_array()) Fail(columns, "columns is a list of names");
      for (const toml::node& column : *columns->as_array()) {
        if (!column.is_string()) Fail(&column, "a column is named by a text");
        const std::string name = **column.as_string();
        if (std::find(spec->projection.columns.begin(), spec->projection.columns.end(), name) ==
            spec->projection.columns.end())
          spec->projection.columns.push_back(name);
      }
    }
    if (const toml::node* outputs = table->get("outputs")) {
      if (!outputs->is_array()) Fail(outputs, "outputs is a list of feature names");
      if (root.get("transform") == nullptr)
        Fail(outputs,
             "outputs chooses among features behind transforms, and there is no "
             "[[transform]]: project only the features that are wanted");
      spec->outputs.emplace();
      for (const toml::node& output : *outputs->as_array()) {
        if (!output.is_string()) Fail(&output, "a feature is named by a text");
        spec->outputs->push_back(**output.as_string());
      }
    }
    if (const toml::table* maps = Table(*table, "maps")) {
      for (const auto& [map, keys] : *maps) {
        if (!keys.is_array())
          Fail(&keys, fmt::format("the keys of map '{}' are a list", map.str()));
        for (const toml::node& key : *keys.as_array()) {
          dwrf::FeatureRequest request;
          request.column = map.str();
          if (key.is_integer()) {
            request.key = dwrf::MapKey::Of(**key.as_integer());
          } else if (key.is_string()) {
            request.key = dwrf::MapKey::Of(**key.as_string());
          } else {
            Fail(&key, "a key is an integer or a text");
          }
          spec->projection.features.push_back(std::move(request));
        }
      }
    }
  }

  ParamValue Param(const toml::node& node, const std::string& name) const {
    if (node.is_boolean()) return **node.as_boolean();
    if (node.is_integer()) return **node.as_integer();
    if (node.is_floating_point()) return **node.as_floating_point();
    if (node.is_string()) return **node.as_string();
    if (node.is_array()) {
      const toml::array& array = *node.as_array();
      if (array.is_homogeneous(toml::node_type::integer)) {
        std::vector<int64_t> values;
        for (const toml::node& value : array) values.push_back(**value.as_integer());
        return values;
      }
      std::vector<double> values;
      for (const toml::node& value : array) {
        if (!value.is_number()) Fail(&value, fmt::format("'{}' is a list of numbers", name));
        values.push_back(*value.value<double>());
      }
      return values;
    }
    Fail(&node, fmt::format("'{}' is a number, a text, true or false, or a list of numbers", name));
  }

  void Transforms(const toml::table& root, PipelineSpec* spec) const {
    const toml::node* node = root.get("transform");
    if (node == nullptr) return;
    if (!node->is_array()) Fail(node, "transforms are written as [[transform]]");
    for (const toml::node& entry : *node->as_array()) {
      if (!entry.is_table()) Fail(&entry, "a transform is a table");
      const toml::table& table = *entry.as_table();
      TransformSpec transform;
      transform.line = entry.source().begin.line;
      transform.column = entry.source().begin.column;
      for (const auto& [key, value] : table) {
        const std::string name(key.str());
        if (name == "op") {
          transform.op = Text(table, "op", "");
        } else if (name == "output") {
          transform.output = Text(table, "output", "");
        } else if (name == "inputs") {
          if (!value.is_array()) Fail(&value, "inputs is a list of feature names");
          for (const toml::node& input : *value.as_array()) {
            if (!input.is_string()) Fail(&input, "an input is named by a text");
            transform.inputs.push_back(**input.as_string());
          }
        } else {
          transform.params[name] = Param(value, name);
        }
      }
      if (transform.op.empty()) Fail(&entry, "a transform needs op = \"...\"");
      spec->transforms.push_back(std::move(transform));
    }
  }

  void Device(const toml::table& source, PipelineSpec* spec) const {
    const toml::table* table = Table(source, "device");
    if (table == nullptr) return;
    CheckKeys(*table, "[source.device]", {"ns_per_request", "ns_per_byte"});
    DeviceCost cost;
    cost.ns_per_request = Number(*table, "ns_per_request", -1);
    cost.ns_per_byte = Number(*table, "ns_per_byte", -1);
    if (cost.ns_per_request < 0 || cost.ns_per_byte < 0)
      Fail(table, "[source.device] has ns_per_request and ns_per_byte, neither below 0");
    spec->device_cost = cost;
  }

  void Remote(const toml::table& source, PipelineSpec* spec) const {
    const toml::table* table = Table(source, "remote");
    if (table == nullptr) return;
    CheckKeys(*table, "[source.remote]",
              {"endpoint", "region", "timeout", "stall", "retries", "connections", "ca_file"});
    RemoteOptions& remote = spec->io.remote;
    remote.endpoint = Text(*table, "endpoint", "");
    if (!remote.endpoint.empty() && !remote.endpoint.starts_with("http://") &&
        !remote.endpoint.starts_with("https://"))
      Fail(table->get("endpoint"), "an endpoint is http://HOST:PORT or https://HOST");
    remote.region = Text(*table, "region", remote.region);
    const auto duration = [&](const char* key, int64_t* value) {
      const toml::node* node = table->get(key);
      if (node == nullptr) return;
      *value = static_cast<int64_t>(Duration(*node, key));
      if (*value < 1'000'000) Fail(node, fmt::format("{} must be at least 1ms", key));
    };
    duration("timeout", &remote.timeout_ns);
    duration("stall", &remote.stall_ns);
    remote.retries = static_cast<uint32_t>(Count(*table, "retries", remote.retries, 0, 1000));
    remote.connections =
        static_cast<uint32_t>(Count(*table, "connections", remote.connections, 1, 256));
    const std::string ca_file = Text(*table, "ca_file", "");
    if (!ca_file.empty()) remote.ca_file = Path(ca_file);
  }

  void Tier(const toml::table& source, PipelineSpec* spec) const {
    const toml::table* table = Table(source, "tier");
    if (table == nullptr) return;
    CheckKeys(*table, "[source.tier]", {"budget", "policy", "popularity", "folder"});
    if (const toml::node* budget = table->get("budget"))
      spec->tier.budget_bytes = static_cast<uint64_t>(Bytes(*budget, "budget"));
    const std::string folder = Text(*table, "folder", "");
    if (!folder.empty()) spec->tier.folder = Path(folder);
    if (!folder.empty() && table->get("budget") == nullptr)
      Fail(table->get("folder"),
           "a tier in a folder needs budget = \"...\": the bytes it may take");
    const std::string popularity = Text(*table, "popularity", "");
    if (!popularity.empty()) spec->tier.popularity = Path(popularity);
    if (!popularity.empty() && !spec->tier.enabled())
      Fail(table->get("popularity"),
           "popularity says what the tier keeps, and without a budget there is no tier");
    const std::string policy = Text(*table, "policy", "lru");
    if (policy != "lru" && policy != "pinned")
      Fail(table->get("policy"),
           fmt::format("policy is \"lru\" or \"pinned\", got \"{}\"", Printable(policy, 40)));
    spec->tier.policy = policy == "lru" ? TierPolicy::kLru : TierPolicy::kPinned;
  }

  // A preset, and single figures in its place.
  void Throttling(const toml::table& source, PipelineSpec* spec) const {
    const toml::table* table = Table(source, "throttle");
    if (table == nullptr) return;
    CheckKeys(*table, "[source.throttle]", {"preset", "bandwidth", "iops", "latency", "seek"});
    ThrottleOptions& throttle = spec->throttle;
    const std::string preset = Text(*table, "preset", "");
    if (!preset.empty()) {
      const std::optional<ThrottleOptions> found = ThrottlePreset(preset);
      if (!found) {
        Fail(table->get("preset"), fmt::format("unknown preset '{}'{}", Printable(preset, 40),
                                               DidYouMean(preset, {"disk", "ssd", "remote"})));
      }
      throttle = *found;
    }
    if (const toml::node* bandwidth = table->get("bandwidth"))
      throttle.bytes_per_second = Rate(*bandwidth, "bandwidth");
    throttle.iops = Number(*table, "iops", throttle.iops);
    if (throttle.iops < 0) Fail(table->get("iops"), "iops must not be below 0");
    if (const toml::node* latency = table->get("latency"))
      throttle.latency_ns = static_cast<int64_t>(Duration(*latency, "latency"));
    if (const toml::node* seek = table->get("seek"))
      throttle.seek_ns = static_cast<int64_t>(Duration(*seek, "seek"));
  }

  void Fault(const toml::table& source, PipelineSpec* spec) const {
    const toml::table* table = Table(source, "fault");
    if (table == nullptr) return;
    CheckKeys(*table, "[source.fault]", {"seed", "errors", "short", "flips", "stalls", "stall"});
    FaultOptions& fault = spec->io.fault;
    fault.seed = Count(*table, "seed", 1, 0, UINT64_MAX >> 1);
    const auto share = [&](const char* key, double* value) {
      *value = Number(*table, key, 0);
      if (!(*value >= 0 && *value <= 1))
        Fail(table->get(key), fmt::format("{} is a share of reads, from 0 to 1", key));
    };
    share("errors", &fault.error_ratio);
    share("short", &fault.short_ratio);
    share("flips", &fault.flip_ratio);
    share("stalls", &fault.stall_ratio);
    if (const toml::node* stall = table->get("stall"))
      fault.stall_ns = static_cast<int64_t>(Duration(*stall, "stall"));
  }

  void Source(const toml::table& root, PipelineSpec* spec) const {
    const toml::table* table = Table(root, "source");
    if (table == nullptr)
      Fail(nullptr, "a pipeline needs [source] with a table or synthetic elements");
    CheckKeys(*table, "[source]",
              {"table", "synthetic", "epochs", "keys", "coalesce_gap", "coalesce_max", "io",
               "direct", "depth", "registered", "device", "throttle", "remote", "tier", "fault",
               "checksum", "on_corrupt", "on_locked", "cold"});
    spec->epochs = Count(*table, "epochs", 1, 0, UINT64_MAX >> 1);
    if (const toml::node* gap = table->get("coalesce_gap")) {
      spec->gap_is_auto = gap->is_string() && **gap->as_string() == "auto";
      if (!spec->gap_is_auto)
        spec->fetch.max_gap_bytes = static_cast<uint64_t>(Bytes(*gap, "coalesce_gap"));
    }
    if (const toml::node* most = table->get("coalesce_max"))
      spec->fetch.max_read_bytes = static_cast<uint64_t>(Bytes(*most, "coalesce_max"));
    const std::string io = Text(*table, "io", "pread");
    if (io != "pread" && io != "uring")
      Fail(table->get("io"),
           fmt::format("io is \"pread\" or \"uring\", got \"{}\"", Printable(io, 40)));
    spec->io.io = io == "uring" ? IoMethod::kUring : IoMethod::kPread;
    spec->io.direct = Flag(*table, "direct", false);
    spec->io.depth = static_cast<uint32_t>(Count(*table, "depth", 16, 1, kMaxDepth));
    spec->io.registered = Flag(*table, "registered", true);
    Device(*table, spec);
    Throttling(*table, spec);
    Fault(*table, spec);
    spec->verify_checksums = Flag(*table, "checksum", false);
    spec->cold_reads = Flag(*table, "cold", false);
    if (spec->cold_reads && spec->io.direct)
      Fail(table->get("cold"), "direct reads go past the page cache: there is nothing to forget");
    const std::string on_corrupt = Text(*table, "on_corrupt", "error");
    if (on_corrupt != "error" && on_corrupt != "skip")
      Fail(table->get("on_corrupt"), fmt::format("on_corrupt is \"error\" or \"skip\", got \"{}\"",
                                                 Printable(on_corrupt, 40)));
    spec->skip_corrupt = on_corrupt == "skip";
    const std::string on_locked = Text(*table, "on_locked", "error");
    if (on_locked != "error" && on_locked != "null")
      Fail(table->get("on_locked"),
           fmt::format("on_locked is \"error\" or \"null\", got \"{}\"", Printable(on_locked, 40)));
    spec->projection.locked_as_null = on_locked == "null";
    spec->keys = Text(*table, "keys", "");
    if (!spec->keys.empty() && !spec->keys.starts_with("env:")) spec->keys = Path(spec->keys);
    Remote(*table, spec);
    Tier(*table, spec);
    const std::string path = Text(*table, "table", "");
    if (const toml::table* synthetic = Table(*table, "synthetic")) {
      if (!path.empty())
        Fail(table->get("table"), "a source has a table or synthetic elements, not both");
      CheckKeys(*synthetic, "synthetic", {"elements", "rows", "bytes"});
      SyntheticSource source;
      source.elements = Count(*synthetic, "elements", 0, 0, UINT64_MAX >> 1);
      source.rows = Count(*synthetic, "rows", 1, 1, 1u << 30);
      if (const toml::node* bytes = synthetic->get("bytes"))
        source.bytes = static_cast<uint64_t>(Bytes(*bytes, "bytes"));
      spec->synthetic = source;
    } else if (path.empty()) {
      Fail(table, "a source needs table = \"FOLDER\" or synthetic = { ... }");
    } else {
      spec->table = IsRemote(path) ? path : Path(path);
    }
  }

  void Cache(const toml::table& root, PipelineSpec* spec) const {
    const toml::node* node = root.get("cache");
    if (node == nullptr) return;
    if (!node->is_array() || node->as_array()->empty() || !(*node->as_array())[0].is_table())
      Fail(node, "a cache is written [[cache]], with after = \"extract\", rowmap or transform");
    if (node->as_array()->size() > 1)
      Fail(&(*node->as_array())[1],
           "a pipeline has one [[cache]]: splits that the later one holds never come by the "
           "earlier, whose room is better the later one's; leave out one of the two");
    const toml::table& table = *(*node->as_array())[0].as_table();
    CheckKeys(table, "[[cache]]", {"after", "tier", "budget", "folder", "allow_random"});
    CacheOptions& cache = spec->cache;
    cache.after = Text(table, "after", "");
    const std::vector<std::string> places = {"extract", "rowmap", "transform"};
    bool is_there = false;
    for (const StageSpec& stage : spec->stages)
      for (const OperatorSpec& op : stage.operators)
        is_there = is_there || (!IsSynthetic(op.kind) && OperatorKindName(op.kind) == cache.after);
    if (std::find(places.begin(), places.end(), cache.after) == places.end() || !is_there) {
      Fail(
          table.get("after"),
          fmt::format("a cache comes after extract, rowmap or transform, whichever the pipeline "
                      "has, not after '{}'{}",
                      Printable(cache.after, 40), is_there ? "" : DidYouMean(cache.after, places)));
    }
    const std::string tier = Text(table, "tier", "memory");
    if (tier != "memory" && tier != "disk")
      Fail(table.get("tier"),
           fmt::format("tier is \"memory\" or \"disk\", got \"{}\"", Printable(tier, 40)));
    cache.tier = tier == "disk" ? CacheTier::kDisk : CacheTier::kMemory;
    if (const toml::node* budget = table.get("budget"))
      cache.budget_bytes = static_cast<uint64_t>(Bytes(*budget, "budget"));
    const std::string folder = Text(table, "folder", "");
    if (!folder.empty()) cache.folder = Path(folder);
    if ((cache.tier == CacheTier::kDisk) != !cache.folder.empty())
      Fail(folder.empty() ? node : table.get("folder"),
           "tier = \"disk\" and folder = \"...\" go together");
    cache.allow_random = Flag(table, "allow_random", false);
  }

  void Delivery(const toml::table& root, PipelineSpec* spec) const {
    const toml::table* table = Table(root, "delivery");
    if (table == nullptr) return;
    CheckKeys(*table, "[delivery]", {"to", "ring", "window"});
    DeliveryOptions& delivery = spec->delivery;
    try {
      delivery.to = ParseDeliveryAddress(Text(*table, "to", "inline"), folder_);
    } catch (const Error& error) {
      Fail(table->get("to"), fmt::format("{}; {}", error.fact(), error.fix()));
    }
    if (const toml::node* ring = table->get("ring")) {
      delivery.ring_bytes = static_cast<uint64_t>(Bytes(*ring, "ring"));
      if (delivery.ring_bytes < kMinRingBytes || delivery.ring_bytes > kMaxRingBytes)
        Fail(ring, "ring must be from 64KiB to 4GiB");
    }
    delivery.window = Count(*table, "window", delivery.window, 0, 1u << 20);
    if (delivery.to.kind != DeliveryKind::kInline && !HasKind(*spec, OperatorKind::kTensorize))
      Fail(table->get("to"),
           "only tensor batches go to another process: the last operator must be tensorize");
  }

  void Dedup(const toml::table& root, PipelineSpec* spec) const {
    const toml::table* table = Table(root, "dedup");
    if (table == nullptr) return;
    CheckKeys(*table, "[dedup]", {"mode", "scope", "min_factor", "groups"});
    DedupOptions& dedup = spec->dedup;
    const auto choice = [&](const char* key, const std::vector<std::string>& names) {
      const std::string name = Text(*table, key, names[0]);
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        Fail(table->get(key),
             fmt::format("unknown {} '{}'{}; it is one of {}", key, Printable(name, 40),
                         DidYouMean(name, names), fmt::join(names, ", ")));
      return found - names.begin();
    };
    dedup.mode = static_cast<DedupMode>(choice("mode", {"off", "auto", "on"}));
    dedup.scope = static_cast<DedupScope>(choice("scope", {"neighbours", "batch"}));
    dedup.min_factor = Number(*table, "min_factor", dedup.min_factor);
    if (!(dedup.min_factor >= 1)) Fail(table->get("min_factor"), "min_factor is at least 1");
    if (const toml::node* groups = table->get("groups")) {
      const char* form = "groups is a list of lists of features: [[\"sparse:1\", \"sparse:2\"]]";
      if (!groups->is_array()) Fail(groups, form);
      for (const toml::node& group : *groups->as_array()) {
        if (!group.is_array() || group.as_array()->empty()) Fail(&group, form);
        std::vector<std::string>& names = dedup.groups.emplace_back();
        for (const toml::node& name : *group.as_array()) {
          if (!name.is_string()) Fail(&name, form);
          names.push_back(**name.as_string());
        }
      }
    }
    if (dedup.mode == DedupMode::kOff) return;
    if (spec->synthetic) Fail(table, "a synthetic source has no features to deduplicate");
    if (HasKind(*spec, OperatorKind::kRowMap))
      Fail(table,
           "rowmap takes rows one by one, which deduplicated features are not: leave out "
           "one of the two");
  }

  // The widths of layers: whole numbers.
  void Widths(const toml::table& table, const char* key, std::vector<uint32_t>* widths) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    if (!node->is_array() || node->as_array()->size() > kMaxLayers)
      Fail(node,
           fmt::format("{} is a list of at most {} widths such as [64, 32]", key, kMaxLayers));
    widths->clear();
    for (const toml::node& width : *node->as_array()) {
      const int64_t value = width.is_integer() ? **width.as_integer() : 0;
      if (value < 1 || value > kMaxWidth)
        Fail(&width, fmt::format("a width of {} is a whole number from 1 to {}", key, kMaxWidth));
      widths->push_back(static_cast<uint32_t>(value));
    }
  }

  void Model(const toml::table& consumer, PipelineSpec* spec) const {
    const toml::table* table = Table(consumer, "model");
    if (table == nullptr) return;
    if (spec->consumer.kind != ConsumerKind::kTrainer)
      Fail(table, "[consumer.model] is of the trainer: set kind = \"trainer\" in [consumer]");
    CheckKeys(*table, "[consumer.model]",
              {"rows", "dim", "bottom", "top", "interaction", "rate", "dedup"});
    ModelSpec& model = spec->consumer.model;
    model.rows = Count(*table, "rows", model.rows, 1, UINT32_MAX);
    model.dim = static_cast<uint32_t>(Count(*table, "dim", model.dim, 1, kMaxWidth));
    Widths(*table, "bottom", &model.bottom);
    Widths(*table, "top", &model.top);
    const std::string interaction = Text(*table, "interaction", "dot");
    if (interaction != "dot" && interaction != "concatenate")
      Fail(
          table->get("interaction"),
          fmt::format("interaction is \"dot\" or \"concatenate\", got \"{}\"{}",
                      Printable(interaction, 40), DidYouMean(interaction, {"dot", "concatenate"})));
    if (interaction == "concatenate") model.interaction = InteractionKind::kConcatenate;
    const double rate = Number(*table, "rate", model.rate);
    if (!(rate >= 0 && rate <= 1000)) Fail(table->get("rate"), "rate must be from 0 to 1000");
    model.rate = static_cast<float>(rate);
    model.dedup = Flag(*table, "dedup", true);
  }

  void Consumer(const toml::table& root, PipelineSpec* spec) const {
    const toml::table* table = Table(root, "consumer");
    if (table == nullptr) return;
    CheckKeys(*table, "[consumer]", {"kind", "step", "cv", "distribution", "spin", "model"});
    const std::vector<std::string> kinds = {"emulated", "trainer", "none"};
    const std::string kind = Text(*table, "kind", "emulated");
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    if (found == kinds.end())
      Fail(table->get("kind"),
           fmt::format("unknown kind '{}'{}", Printable(kind, 40), DidYouMean(kind, kinds)));
    spec->consumer.kind = static_cast<ConsumerKind>(found - kinds.begin());
    if (const toml::node* step = table->get("step"))
      spec->consumer.step.mean = Duration(*step, "step");
    Randomness(*table, &spec->consumer.step);
    spec->consumer.spin = Flag(*table, "spin", false);
    Model(*table, spec);
    if (spec->consumer.kind != ConsumerKind::kEmulated && spec->consumer.step.mean > 0)
      Fail(table->get("step"),
           fmt::format("a step time is of the emulated consumer; \"{}\" takes the time it takes",
                       kind));
    if (spec->consumer.kind == ConsumerKind::kTrainer &&
        (!HasKind(*spec, OperatorKind::kTensorize) || spec->label.empty()))
      Fail(table->get("kind"),
           "the trainer needs the operator tensorize and a label in "
           "[projection]");
  }

  BatchLayout Layout(const toml::table& table) const {
    const std::vector<std::string> names = {"direct", "flatmap"};
    const std::string layout = Text(table, "layout", names[0]);
    const auto found = std::find(names.begin(), names.end(), layout);
    if (found != names.end()) return static_cast<BatchLayout>(found - names.begin());
    Fail(table.get("layout"),
         fmt::format("layout is \"direct\" or \"flatmap\", got \"{}\"{}", Printable(layout, 40),
                     layout == "rowmap" ? "; rowmap is an operator of a stage"
                                        : DidYouMean(layout, names)));
  }

  DictionaryMode Dictionary(const toml::table& table) const {
    const std::vector<std::string> names = {"auto", "off", "always"};
    const std::string mode = Text(table, "dictionary", names[0]);
    const auto found = std::find(names.begin(), names.end(), mode);
    if (found != names.end()) return static_cast<DictionaryMode>(found - names.begin());
    Fail(table.get("dictionary"),
         fmt::format("dictionary is \"auto\", \"off\" or \"always\", got \"{}\"{}",
                     Printable(mode, 40), DidYouMean(mode, names)));
  }

  // [[filter]] feature = "dense:3" or column = "label", and what its values must be.
  // A number as it stands in the file: ids need more digits than a double has.
  long double Exact(const toml::node& node, const char* key) const {
    if (const auto* integer = node.as_integer()) return static_cast<long double>(integer->get());
    const auto* real = node.as_floating_point();
    if (real == nullptr) Fail(&node, fmt::format("expected a number for {}", key));
    if (std::isnan(real->get())) Fail(&node, fmt::format("{} is nan, which no value passes", key));
    return real->get();
  }

  void Filters(const toml::table& root, PipelineSpec* spec) const {
    const toml::node* node = root.get("filter");
    if (node == nullptr) return;
    if (!node->is_array_of_tables()) Fail(node, "a filter is a table: write [[filter]]");
    for (const toml::node& item : *node->as_array()) {
      const toml::table& table = *item.as_table();
      CheckKeys(table, "[[filter]]", {"feature", "column", "min", "max", "in", "absent"});
      RowFilter filter;
      filter.is_column = table.get("column") != nullptr;
      if (filter.is_column == (table.get("feature") != nullptr))
        Fail(&item, "a filter has either feature or column");
      const char* const key = filter.is_column ? "column" : "feature";
      filter.name = Text(table, key, "");
      std::vector<std::string> names = spec->projection.columns;
      if (!filter.is_column) {
        names.clear();
        for (const auto& request : spec->projection.features)
          names.push_back(dwrf::FeatureName(request));
      }
      if (std::find(names.begin(), names.end(), filter.name) == names.end())
        Fail(table.get(key),
             fmt::format("the projection has no {} '{}'{}", key, Printable(filter.name, 60),
                         DidYouMean(filter.name, names)));
      if (const toml::node* min = table.get("min")) filter.min = Exact(*min, "min");
      if (const toml::node* max = table.get("max")) filter.max = Exact(*max, "max");
      if (filter.min > filter.max) Fail(&item, "no value is at least min and at most max");
      if (const toml::node* in = table.get("in")) {
        if (!in->is_array()) Fail(in, "in is a list of numbers");
        if (in->as_array()->empty()) Fail(in, "in is empty: no row would pass");
        for (const toml::node& value : *in->as_array()) filter.in.push_back(Exact(value, "in"));
      }
      if (table.get("min") == nullptr && table.get("max") == nullptr && filter.in.empty())
        Fail(&item, "a filter has min, max or in");
      const std::string absent = Text(table, "absent", "drop");
      if (absent != "drop" && absent != "keep")
        Fail(table.get("absent"),
             fmt::format("absent is \"drop\" or \"keep\", got \"{}\"", Printable(absent, 40)));
      if (filter.is_column && table.get("absent") != nullptr)
        Fail(table.get("absent"), "absent is for features; the nulls of a column read as 0");
      filter.keep_absent = absent == "keep";
      if (item.source().begin.line > 0)
        filter.where =
            fmt::format("{}:{}:{}", path_, item.source().begin.line, item.source().begin.column);
      spec->filters.push_back(std::move(filter));
    }
  }

  PipelineSpec Build(const toml::table& root) const {
    PipelineSpec spec;
    CheckKeys(root, "the file",
              {"pipeline", "source", "projection", "stage", "transform", "filter", "dedup",
               "consumer", "delivery", "cache"});
    if (const toml::table* table = Table(root, "pipeline")) {
      CheckKeys(*table, "[pipeline]",
                {"name", "order", "batch_rows", "seed", "worker_rows", "shuffle_rows",
                 "reorder_window", "prefetch", "layout", "dictionary", "memory", "huge_pages"});
      spec.name = Text(*table, "name", "pipeline");
      const std::string order = Text(*table, "order", "any");
      if (order != "any" && order != "file")
        Fail(table->get("order"),
             fmt::format("order is \"any\" or \"file\", got \"{}\"", Printable(order, 40)));
      spec.file_order = order == "file";
      spec.batch_rows = Count(*table, "batch_rows", 512, 1, 1u << 24);
      spec.seed = Count(*table, "seed", 1, 0, UINT64_MAX >> 1);
      spec.worker_rows = Count(*table, "worker_rows", 0, 0, 1u << 24);
      spec.shuffle_rows = Count(*table, "shuffle_rows", 0, 0, 1u << 28);
      spec.reorder_window = Count(*table, "reorder_window", 0, 0, 1u << 20);
      spec.prefetch = static_cast<uint32_t>(Count(*table, "prefetch", 0, 0, kMaxQueue));
      spec.layout = Layout(*table);
      spec.dictionary = Dictionary(*table);
      if (const toml::node* memory = table->get("memory"))
        spec.memory_bytes = static_cast<uint64_t>(Bytes(*memory, "memory"));
      spec.huge_pages = Flag(*table, "huge_pages", false);
    }
    Source(root, &spec);
    Projection(root, &spec);
    Transforms(root, &spec);
    Filters(root, &spec);
    Stages(root, &spec);
    CheckOrder(root, &spec);
    Delivery(root, &spec);
    Cache(root, &spec);
    CheckBatching(root, spec);
    if (spec.prefetch != 0) spec.stages.back().queue = spec.prefetch;
    Dedup(root, &spec);
    Consumer(root, &spec);
    return spec;
  }

 private:
  std::string path_, folder_;
  mutable std::set<std::string> seen_stage_names_;
};

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
    fail(fmt::format("no stage or section '{}'{}", section, DidYouMean(section, sections)));
  if (section == "cache") {  // [[cache]] is a list of one
    if (root->get("cache") == nullptr) root->insert("cache", toml::array(toml::table()));
    toml::array* caches = root->get("cache")->as_array();
    if (caches == nullptr || caches->size() != 1 || !(*caches)[0].is_table())
      fail("the pipeline has several [[cache]], or one that is no table: it can have one");
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
    if (table == nullptr) fail(fmt::format("'{}' is no table", step));
  }
  Assign(table, left, value);
}

// Which setting makes the file wrong: the one without which it is right, as others may be what the
// file needs; else, if the file is right by itself, the first one that breaks it.
std::optional<size_t> Culprit(const std::string& text, const std::string& path,
                              const std::string& folder, const Settings& settings) {
  const auto is_right = [&](size_t count, size_t without) {
    const SpecParser parser(path, folder);
    toml::table root = parser.Parse(text);
    try {
      for (size_t i = 0; i < count; ++i)
        if (i != without) ApplySetting(&root, settings[i].first, settings[i].second);
      parser.Build(root);
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

const char* OperatorKindName(OperatorKind kind) { return kKinds[static_cast<size_t>(kind)].second; }

PipelineSpec ParsePipeline(const std::string& text, const std::string& path,
                           const std::string& folder, const Settings& settings) {
  const SpecParser parser(path, folder);
  toml::table root = parser.Parse(text);
  for (const auto& [knob, value] : settings) ApplySetting(&root, knob, value);
  PipelineSpec spec;
  try {
    spec = parser.Build(root);
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
