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
#include "reader/pipeline/delivery/ring.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/spec/value.h"
#include "reader/source/open.h"

namespace headrace::reader {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMaxParallelism = 256, kMaxQueue = 65536;
constexpr int64_t kMaxWidth = 65536;  // of a model's layer
constexpr size_t kMaxLayers = 32;

// An operator without keys, by its kind alone.
OperatorSpec PlainOperator(const SpecValue& node, const std::string& kind) {
  const OperatorEntry* entry = OperatorRegistry::Global().Find(kind);
  if (entry == nullptr) {
    std::vector<std::string> kinds;
    for (const auto& [name, other] : OperatorsInOrder()) kinds.push_back(name);
    node.Fail(fmt::format("unknown operator '{}'{}", Printable(kind, 60), DidYouMean(kind, kinds)));
  }
  if (entry->parse != nullptr) node.Fail(fmt::format("'{}' needs {}", kind, entry->needs));
  return {kind, kind, {}};
}

OperatorSpec Operator(const SpecValue& node) {
  if (const auto kind = node.AsText()) return PlainOperator(node, *kind);
  if (!node.is_table()) node.Fail("an operator is a name or a table such as { spin = \"2ms\" }");
  std::vector<std::string> kinds;  // that are written as tables
  for (const auto& [name, entry] : OperatorsInOrder())
    if (entry->parse != nullptr) kinds.push_back(name);
  std::string kind;
  for (const std::string& name : kinds) {
    if (!node[name]) continue;
    if (!kind.empty()) node.Fail(fmt::format("an operator has one of {}", fmt::join(kinds, ", ")));
    kind = name;
  }
  if (kind.empty()) {
    for (const auto& [key, value] : node.Members()) {
      const std::string nearest = NearestName(key, kinds);
      if (!nearest.empty())
        value.Fail(
            fmt::format("unknown operator '{}', did you mean '{}'?", Printable(key, 60), nearest));
    }
    node.Fail(fmt::format("an operator table has one of {}", fmt::join(kinds, ", ")));
  }
  const OperatorEntry& entry = *OperatorRegistry::Global().Find(kind);
  std::vector<std::string> keys = {kind, "name"};
  keys.insert(keys.end(), entry.keys.begin(), entry.keys.end());
  node.CheckKeys("operator " + kind, keys);
  std::any parsed = entry.parse(node, kind);
  return {kind, node.Text("name", ""), std::move(parsed)};
}

void Stages(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue node = root["stage"];
  if (node.Items().empty()) node.Fail("a pipeline needs at least one [[stage]]");
  // "transform" is the natural name of a stage, and also a section of lists: only sections with
  // keys of their own clash.
  std::set<std::string> taken = {"consumer", "pipeline", "source", "projection",
                                 "stage",    "delivery", "dedup"};
  std::set<std::string> operator_names;
  for (const SpecValue& entry : node.Items()) {
    if (!entry.is_table()) entry.Fail("a stage is a table");
    const SpecValue& table = entry;
    table.CheckKeys("[[stage]]", {"name", "operators", "parallelism", "max_parallelism", "queue"});
    StageSpec stage;
    stage.name = table.Text("name", "");
    if (stage.name.empty()) entry.Fail("a stage needs a name");
    if (stage.name.find('.') != std::string::npos) table["name"].Fail("a stage's name has no dot");
    if (!taken.insert(stage.name).second)
      table["name"].Fail(fmt::format("the name '{}' is taken", Printable(stage.name, 60)));
    stage.parallelism = static_cast<uint32_t>(table.Count("parallelism", 1, 1, kMaxParallelism));
    stage.max_parallelism =
        static_cast<uint32_t>(table.Count("max_parallelism", 0, 0, kMaxParallelism));
    stage.queue = static_cast<uint32_t>(table.Count("queue", 4, 1, kMaxQueue));
    if (stage.max_parallelism != 0 && stage.parallelism > stage.max_parallelism) {
      table["parallelism"].Fail(fmt::format("parallelism {} exceeds max_parallelism {}",
                                            stage.parallelism, stage.max_parallelism));
    }
    const SpecValue operators = table["operators"];
    const std::vector<SpecValue> items = operators.Items();
    if (items.empty()) (operators ? operators : entry).Fail("a stage needs operators = [...]");
    for (const SpecValue& op : items) {
      OperatorSpec parsed = Operator(op);
      if (parsed.name.empty())
        parsed.name = items.size() == 1 ? stage.name : stage.name + "." + parsed.kind;
      std::string unique = parsed.name;
      for (int n = 2; !operator_names.insert(unique).second; ++n)
        unique = fmt::format("{}.{}", parsed.name, n);
      parsed.name = unique;
      stage.operators.push_back(std::move(parsed));
    }
    spec->stages.push_back(std::move(stage));
  }
}

// "fetch, decrypt (optional), ...": the order of a table's operators.
std::string TableOrder() {
  std::vector<std::string> parts;
  for (const auto& [kind, entry] : OperatorsInOrder()) {
    if (entry->takes == ElementForm::kAny) continue;
    const std::string presence = entry->presence;
    parts.push_back(presence.empty() ? kind : fmt::format("{} ({})", kind, presence));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string SyntheticKinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, entry] : OperatorsInOrder())
    if (entry->takes == ElementForm::kAny) kinds.push_back(kind);
  return fmt::format("{}", fmt::join(kinds, ", "));
}

// The operators of a table source follow one order, each behind one that makes what it takes.
void CheckOrder(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue place = root["stage"];
  const OperatorEntry* last = nullptr;
  std::string last_kind = "the source";
  for (StageSpec& stage : spec->stages) {
    for (const OperatorSpec& op : stage.operators) {
      const OperatorEntry& entry = EntryOf(op);
      if (IsSynthetic(entry)) continue;
      const bool is_first = entry.takes == ElementForm::kSplit;
      if (!spec->synthetic && last == nullptr && !is_first)
        place.Fail(fmt::format("the first operator of a table is fetch, not {}", op.name));
      const bool fits =
          last == nullptr ? is_first : last->order < entry.order && last->makes == entry.takes;
      if (!fits)
        place.Fail(fmt::format("operator {} cannot follow {}; the order is {}", op.name, last_kind,
                               TableOrder()));
      last = &entry;
      last_kind = op.kind;
      if (entry.joins_rows && spec->file_order) {
        if (stage.parallelism > 1)
          place.Fail(fmt::format("with order = \"file\" the stage of {} ('{}') has parallelism 1",
                                 op.name, stage.name));
        stage.max_parallelism = 1;
      }
    }
  }
  if (spec->synthetic && last != nullptr)
    place.Fail("a synthetic source has no data to fetch or decode: use " + SyntheticKinds());
  if (!spec->synthetic && last == nullptr)
    place.Fail("a table needs fetch, decompress, decode and extract");
  if (!spec->transforms.empty() && !HasOperator(*spec, "transform"))
    root["transform"].Fail("there are transforms, but no stage has the operator transform");
  if (!spec->filters.empty() && !HasOperator(*spec, "extract"))
    root["filter"].Fail("there are filters, but no stage has the operator extract");
}

// Keys of [pipeline] that need an operator, and operators that need a key.
void CheckBatching(const SpecValue& root, const PipelineSpec& spec) {
  const SpecValue place = root.Table("pipeline");
  if (spec.worker_rows != 0 && !HasOperator(spec, "rebatch"))
    place.Fail("worker_rows is for the operator rebatch, and no stage has it");
  if (spec.worker_rows > spec.batch_rows)
    place.Fail(
        fmt::format("worker_rows {} exceeds batch_rows {}", spec.worker_rows, spec.batch_rows));
  if (spec.worker_rows != 0 && !HasOperator(spec, "batch"))
    place.Fail("worker_rows is what the operator batch makes, and no stage has it");
  if (HasOperator(spec, "shuffle") != (spec.shuffle_rows != 0))
    place.Fail(spec.shuffle_rows != 0
                   ? "shuffle_rows is for the operator shuffle, and no stage has it"
                   : "the operator shuffle needs pipeline.shuffle_rows, the rows of its window");
  if (spec.reorder_window != 0 && !spec.file_order)
    place.Fail("reorder_window is for order = \"file\"; with \"any\" nothing waits for its turn");
}

void Projection(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("projection");
  if (!table) return;
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

ParamValue Param(const SpecValue& node, const std::string& name) {
  if (const auto flag = node.AsFlag()) return *flag;
  if (const auto integer = node.AsInteger()) return *integer;
  if (const auto real = node.AsReal()) return *real;
  if (const auto text = node.AsText()) return *text;
  if (!node.is_list())
    node.Fail(fmt::format("'{}' is a number, a text, true or false, or a list of numbers", name));
  const std::vector<SpecValue> items = node.Items();
  // As whole numbers where all are: ids need more digits than a double has.
  std::vector<int64_t> integers;
  for (const SpecValue& item : items)
    if (const auto integer = item.AsInteger()) integers.push_back(*integer);
  if (!items.empty() && integers.size() == items.size()) return integers;
  std::vector<double> numbers;
  for (const SpecValue& item : items) {
    const auto number = item.AsNumber();
    if (!number) item.Fail(fmt::format("'{}' is a list of numbers", name));
    numbers.push_back(*number);
  }
  return numbers;
}

void Transforms(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue node = root["transform"];
  if (!node) return;
  if (!node.is_list()) node.Fail("transforms are written as [[transform]]");
  for (const SpecValue& entry : node.Items()) {
    if (!entry.is_table()) entry.Fail("a transform is a table");
    TransformSpec transform;
    transform.line = entry.line();
    transform.column = entry.column();
    for (const auto& [name, value] : entry.Members()) {
      if (name == "op") {
        transform.op = entry.Text("op", "");
      } else if (name == "output") {
        transform.output = entry.Text("output", "");
      } else if (name == "inputs") {
        if (!value.is_list()) value.Fail("inputs is a list of feature names");
        for (const SpecValue& input : value.Items()) {
          if (!input.AsText()) input.Fail("an input is named by a text");
          transform.inputs.push_back(*input.AsText());
        }
      } else {
        transform.params[name] = Param(value, name);
      }
    }
    if (transform.op.empty()) entry.Fail("a transform needs op = \"...\"");
    spec->transforms.push_back(std::move(transform));
  }
}

void Device(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("device");
  if (!table) return;
  table.CheckKeys("[source.device]", {"ns_per_request", "ns_per_byte"});
  DeviceCost cost;
  cost.ns_per_request = table.Number("ns_per_request", -1);
  cost.ns_per_byte = table.Number("ns_per_byte", -1);
  if (cost.ns_per_request < 0 || cost.ns_per_byte < 0)
    table.Fail("[source.device] has ns_per_request and ns_per_byte, neither below 0");
  spec->device_cost = cost;
}

void Remote(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("remote");
  if (!table) return;
  table.CheckKeys("[source.remote]",
                  {"endpoint", "region", "timeout", "stall", "retries", "connections", "ca_file"});
  RemoteOptions& remote = spec->io.remote;
  remote.endpoint = table.Text("endpoint", "");
  if (!remote.endpoint.empty() && !remote.endpoint.starts_with("http://") &&
      !remote.endpoint.starts_with("https://"))
    table["endpoint"].Fail("an endpoint is http://HOST:PORT or https://HOST");
  remote.region = table.Text("region", remote.region);
  const auto duration = [&](const char* key, int64_t* value) {
    const SpecValue node = table[key];
    if (!node) return;
    *value = static_cast<int64_t>(node.Duration(key));
    if (*value < 1'000'000) node.Fail(fmt::format("{} must be at least 1ms", key));
  };
  duration("timeout", &remote.timeout_ns);
  duration("stall", &remote.stall_ns);
  remote.retries = static_cast<uint32_t>(table.Count("retries", remote.retries, 0, 1000));
  remote.connections =
      static_cast<uint32_t>(table.Count("connections", remote.connections, 1, 256));
  const std::string ca_file = table.Text("ca_file", "");
  if (!ca_file.empty()) remote.ca_file = table.Path(ca_file);
}

void Tier(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("tier");
  if (!table) return;
  table.CheckKeys("[source.tier]", {"budget", "policy", "popularity", "folder"});
  if (const SpecValue budget = table["budget"])
    spec->tier.budget_bytes = static_cast<uint64_t>(budget.Bytes("budget"));
  const std::string folder = table.Text("folder", "");
  if (!folder.empty()) spec->tier.folder = table.Path(folder);
  if (!folder.empty() && !table["budget"])
    table["folder"].Fail("a tier in a folder needs budget = \"...\": the bytes it may take");
  const std::string popularity = table.Text("popularity", "");
  if (!popularity.empty()) spec->tier.popularity = table.Path(popularity);
  if (!popularity.empty() && !spec->tier.enabled())
    table["popularity"].Fail(
        "popularity says what the tier keeps, and without a budget there is no tier");
  const std::string policy = table.Text("policy", "lru");
  if (policy != "lru" && policy != "pinned")
    table["policy"].Fail(
        fmt::format("policy is \"lru\" or \"pinned\", got \"{}\"", Printable(policy, 40)));
  spec->tier.policy = policy == "lru" ? TierPolicy::kLru : TierPolicy::kPinned;
}

// A preset, and single figures in its place.
void Throttling(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("throttle");
  if (!table) return;
  table.CheckKeys("[source.throttle]", {"preset", "bandwidth", "iops", "latency", "seek"});
  ThrottleOptions& throttle = spec->throttle;
  const std::string preset = table.Text("preset", "");
  if (!preset.empty()) {
    const std::optional<ThrottleOptions> found = ThrottlePreset(preset);
    if (!found) {
      table["preset"].Fail(fmt::format("unknown preset '{}'{}", Printable(preset, 40),
                                       DidYouMean(preset, {"disk", "ssd", "remote"})));
    }
    throttle = *found;
  }
  if (const SpecValue bandwidth = table["bandwidth"])
    throttle.bytes_per_second = bandwidth.Rate("bandwidth");
  throttle.iops = table.Number("iops", throttle.iops);
  if (throttle.iops < 0) table["iops"].Fail("iops must not be below 0");
  if (const SpecValue latency = table["latency"])
    throttle.latency_ns = static_cast<int64_t>(latency.Duration("latency"));
  if (const SpecValue seek = table["seek"])
    throttle.seek_ns = static_cast<int64_t>(seek.Duration("seek"));
}

void Fault(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("fault");
  if (!table) return;
  table.CheckKeys("[source.fault]", {"seed", "errors", "short", "flips", "stalls", "stall"});
  FaultOptions& fault = spec->io.fault;
  fault.seed = table.Count("seed", 1, 0, UINT64_MAX >> 1);
  const auto share = [&](const char* key, double* value) {
    *value = table.Number(key, 0);
    if (!(*value >= 0 && *value <= 1))
      table[key].Fail(fmt::format("{} is a share of reads, from 0 to 1", key));
  };
  share("errors", &fault.error_ratio);
  share("short", &fault.short_ratio);
  share("flips", &fault.flip_ratio);
  share("stalls", &fault.stall_ratio);
  if (const SpecValue stall = table["stall"])
    fault.stall_ns = static_cast<int64_t>(stall.Duration("stall"));
}

void Source(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("source");
  if (!table) table.Fail("a pipeline needs [source] with a table or synthetic elements");
  table.CheckKeys("[source]",
                  {"table", "synthetic", "epochs", "keys", "coalesce_gap", "coalesce_max", "io",
                   "direct", "depth", "registered", "device", "throttle", "remote", "tier", "fault",
                   "checksum", "on_corrupt", "on_locked", "cold"});
  spec->epochs = table.Count("epochs", 1, 0, UINT64_MAX >> 1);
  if (const SpecValue gap = table["coalesce_gap"]) {
    spec->gap_is_auto = gap.AsText() == "auto";
    if (!spec->gap_is_auto)
      spec->fetch.max_gap_bytes = static_cast<uint64_t>(gap.Bytes("coalesce_gap"));
  }
  if (const SpecValue most = table["coalesce_max"])
    spec->fetch.max_read_bytes = static_cast<uint64_t>(most.Bytes("coalesce_max"));
  const std::string io = table.Text("io", "pread");
  if (io != "pread" && io != "uring")
    table["io"].Fail(fmt::format("io is \"pread\" or \"uring\", got \"{}\"", Printable(io, 40)));
  spec->io.io = io == "uring" ? IoMethod::kUring : IoMethod::kPread;
  spec->io.direct = table.Flag("direct", false);
  spec->io.depth = static_cast<uint32_t>(table.Count("depth", 16, 1, kMaxDepth));
  spec->io.registered = table.Flag("registered", true);
  Device(table, spec);
  Throttling(table, spec);
  Fault(table, spec);
  spec->verify_checksums = table.Flag("checksum", false);
  spec->cold_reads = table.Flag("cold", false);
  if (spec->cold_reads && spec->io.direct)
    table["cold"].Fail("direct reads go past the page cache: there is nothing to forget");
  const std::string on_corrupt = table.Text("on_corrupt", "error");
  if (on_corrupt != "error" && on_corrupt != "skip")
    table["on_corrupt"].Fail(
        fmt::format("on_corrupt is \"error\" or \"skip\", got \"{}\"", Printable(on_corrupt, 40)));
  spec->skip_corrupt = on_corrupt == "skip";
  const std::string on_locked = table.Text("on_locked", "error");
  if (on_locked != "error" && on_locked != "null")
    table["on_locked"].Fail(
        fmt::format("on_locked is \"error\" or \"null\", got \"{}\"", Printable(on_locked, 40)));
  spec->projection.locked_as_null = on_locked == "null";
  spec->keys = table.Text("keys", "");
  if (!spec->keys.empty() && !spec->keys.starts_with("env:")) spec->keys = table.Path(spec->keys);
  Remote(table, spec);
  Tier(table, spec);
  const std::string path = table.Text("table", "");
  if (const SpecValue synthetic = table.Table("synthetic")) {
    if (!path.empty()) table["table"].Fail("a source has a table or synthetic elements, not both");
    synthetic.CheckKeys("synthetic", {"elements", "rows", "bytes"});
    SyntheticSource source;
    source.elements = synthetic.Count("elements", 0, 0, UINT64_MAX >> 1);
    source.rows = synthetic.Count("rows", 1, 1, 1u << 30);
    if (const SpecValue bytes = synthetic["bytes"])
      source.bytes = static_cast<uint64_t>(bytes.Bytes("bytes"));
    spec->synthetic = source;
  } else if (path.empty()) {
    table.Fail("a source needs table = \"FOLDER\" or synthetic = { ... }");
  } else {
    spec->table = IsRemote(path) ? path : table.Path(path);
  }
}

void Cache(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue node = root["cache"];
  if (!node) return;
  const std::vector<SpecValue> caches = node.Items();
  if (caches.empty() || !caches[0].is_table())
    node.Fail("a cache is written [[cache]], with after = \"extract\", rowmap or transform");
  if (caches.size() > 1)
    caches[1].Fail(
        "a pipeline has one [[cache]]: splits that the later one holds never come by the "
        "earlier, whose room is better the later one's; leave out one of the two");
  const SpecValue& table = caches[0];
  table.CheckKeys("[[cache]]", {"after", "tier", "budget", "folder", "allow_random"});
  CacheOptions& cache = spec->cache;
  cache.after = table.Text("after", "");
  const std::vector<std::string> places = {"extract", "rowmap", "transform"};
  const bool is_there = HasOperator(*spec, cache.after);
  if (std::find(places.begin(), places.end(), cache.after) == places.end() || !is_there) {
    table["after"].Fail(
        fmt::format("a cache comes after extract, rowmap or transform, whichever the pipeline "
                    "has, not after '{}'{}",
                    Printable(cache.after, 40), is_there ? "" : DidYouMean(cache.after, places)));
  }
  const std::string tier = table.Text("tier", "memory");
  if (tier != "memory" && tier != "disk")
    table["tier"].Fail(
        fmt::format("tier is \"memory\" or \"disk\", got \"{}\"", Printable(tier, 40)));
  cache.tier = tier == "disk" ? CacheTier::kDisk : CacheTier::kMemory;
  if (const SpecValue budget = table["budget"])
    cache.budget_bytes = static_cast<uint64_t>(budget.Bytes("budget"));
  const std::string folder = table.Text("folder", "");
  if (!folder.empty()) cache.folder = table.Path(folder);
  if ((cache.tier == CacheTier::kDisk) != !cache.folder.empty())
    (folder.empty() ? node : table["folder"])
        .Fail("tier = \"disk\" and folder = \"...\" go together");
  cache.allow_random = table.Flag("allow_random", false);
}

void Delivery(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("delivery");
  if (!table) return;
  table.CheckKeys("[delivery]", {"to", "ring", "window"});
  DeliveryOptions& delivery = spec->delivery;
  try {
    delivery.to = ParseDeliveryAddress(table.Text("to", "inline"), table.file().folder);
  } catch (const Error& error) {
    table["to"].Fail(fmt::format("{}; {}", error.fact(), error.fix()));
  }
  if (const SpecValue ring = table["ring"]) {
    delivery.ring_bytes = static_cast<uint64_t>(ring.Bytes("ring"));
    if (delivery.ring_bytes < kMinRingBytes || delivery.ring_bytes > kMaxRingBytes)
      ring.Fail("ring must be from 64KiB to 4GiB");
  }
  delivery.window = table.Count("window", delivery.window, 0, 1u << 20);
  if (delivery.to.kind != DeliveryKind::kInline && !HasOperator(*spec, "tensorize"))
    table["to"].Fail(
        "only tensor batches go to another process: the last operator must be tensorize");
}

void Dedup(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("dedup");
  if (!table) return;
  table.CheckKeys("[dedup]", {"mode", "scope", "min_factor", "groups"});
  DedupOptions& dedup = spec->dedup;
  const auto choice = [&](const char* key, const std::vector<std::string>& names) {
    const std::string name = table.Text(key, names[0]);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      table[key].Fail(fmt::format("unknown {} '{}'{}; it is one of {}", key, Printable(name, 40),
                                  DidYouMean(name, names), fmt::join(names, ", ")));
    return found - names.begin();
  };
  dedup.mode = static_cast<DedupMode>(choice("mode", {"off", "auto", "on"}));
  dedup.scope = static_cast<DedupScope>(choice("scope", {"neighbours", "batch"}));
  dedup.min_factor = table.Number("min_factor", dedup.min_factor);
  if (!(dedup.min_factor >= 1)) table["min_factor"].Fail("min_factor is at least 1");
  if (const SpecValue groups = table["groups"]) {
    const char* form = "groups is a list of lists of features: [[\"sparse:1\", \"sparse:2\"]]";
    if (!groups.is_list()) groups.Fail(form);
    for (const SpecValue& group : groups.Items()) {
      if (group.Items().empty()) group.Fail(form);
      std::vector<std::string>& names = dedup.groups.emplace_back();
      for (const SpecValue& name : group.Items()) {
        if (!name.AsText()) name.Fail(form);
        names.push_back(*name.AsText());
      }
    }
  }
  if (dedup.mode == DedupMode::kOff) return;
  if (spec->synthetic) table.Fail("a synthetic source has no features to deduplicate");
  if (HasOperator(*spec, "rowmap"))
    table.Fail(
        "rowmap takes rows one by one, which deduplicated features are not: leave out "
        "one of the two");
}

// The widths of layers: whole numbers.
void Widths(const SpecValue& table, const char* key, std::vector<uint32_t>* widths) {
  const SpecValue node = table[key];
  if (!node) return;
  if (!node.is_list() || node.Items().size() > kMaxLayers)
    node.Fail(fmt::format("{} is a list of at most {} widths such as [64, 32]", key, kMaxLayers));
  widths->clear();
  for (const SpecValue& width : node.Items()) {
    const int64_t value = width.AsInteger().value_or(0);
    if (value < 1 || value > kMaxWidth)
      width.Fail(fmt::format("a width of {} is a whole number from 1 to {}", key, kMaxWidth));
    widths->push_back(static_cast<uint32_t>(value));
  }
}

void Model(const SpecValue& consumer, PipelineSpec* spec) {
  const SpecValue table = consumer.Table("model");
  if (!table) return;
  if (spec->consumer.kind != ConsumerKind::kTrainer)
    table.Fail("[consumer.model] is of the trainer: set kind = \"trainer\" in [consumer]");
  table.CheckKeys("[consumer.model]",
                  {"rows", "dim", "bottom", "top", "interaction", "rate", "dedup"});
  ModelSpec& model = spec->consumer.model;
  model.rows = table.Count("rows", model.rows, 1, UINT32_MAX);
  model.dim = static_cast<uint32_t>(table.Count("dim", model.dim, 1, kMaxWidth));
  Widths(table, "bottom", &model.bottom);
  Widths(table, "top", &model.top);
  const std::string interaction = table.Text("interaction", "dot");
  if (interaction != "dot" && interaction != "concatenate")
    table["interaction"].Fail(fmt::format("interaction is \"dot\" or \"concatenate\", got \"{}\"{}",
                                          Printable(interaction, 40),
                                          DidYouMean(interaction, {"dot", "concatenate"})));
  if (interaction == "concatenate") model.interaction = InteractionKind::kConcatenate;
  const double rate = table.Number("rate", model.rate);
  if (!(rate >= 0 && rate <= 1000)) table["rate"].Fail("rate must be from 0 to 1000");
  model.rate = static_cast<float>(rate);
  model.dedup = table.Flag("dedup", true);
}

void Consumer(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("consumer");
  if (!table) return;
  table.CheckKeys("[consumer]", {"kind", "step", "cv", "distribution", "spin", "model"});
  const std::vector<std::string> kinds = {"emulated", "trainer", "none"};
  const std::string kind = table.Text("kind", "emulated");
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found == kinds.end())
    table["kind"].Fail(
        fmt::format("unknown kind '{}'{}", Printable(kind, 40), DidYouMean(kind, kinds)));
  spec->consumer.kind = static_cast<ConsumerKind>(found - kinds.begin());
  if (const SpecValue step = table["step"]) spec->consumer.step.mean = step.Duration("step");
  ParseRandomness(table, &spec->consumer.step);
  spec->consumer.spin = table.Flag("spin", false);
  Model(table, spec);
  if (spec->consumer.kind != ConsumerKind::kEmulated && spec->consumer.step.mean > 0)
    table["step"].Fail(fmt::format(
        "a step time is of the emulated consumer; \"{}\" takes the time it takes", kind));
  if (spec->consumer.kind == ConsumerKind::kTrainer &&
      (!HasOperator(*spec, "tensorize") || spec->label.empty()))
    table["kind"].Fail(
        "the trainer needs the operator tensorize and a label in "
        "[projection]");
}

BatchLayout Layout(const SpecValue& table) {
  const std::vector<std::string> names = {"direct", "flatmap"};
  const std::string layout = table.Text("layout", names[0]);
  const auto found = std::find(names.begin(), names.end(), layout);
  if (found != names.end()) return static_cast<BatchLayout>(found - names.begin());
  table["layout"].Fail(fmt::format(
      "layout is \"direct\" or \"flatmap\", got \"{}\"{}", Printable(layout, 40),
      layout == "rowmap" ? "; rowmap is an operator of a stage" : DidYouMean(layout, names)));
}

DictionaryMode Dictionary(const SpecValue& table) {
  const std::vector<std::string> names = {"auto", "off", "always"};
  const std::string mode = table.Text("dictionary", names[0]);
  const auto found = std::find(names.begin(), names.end(), mode);
  if (found != names.end()) return static_cast<DictionaryMode>(found - names.begin());
  table["dictionary"].Fail(
      fmt::format("dictionary is \"auto\", \"off\" or \"always\", got \"{}\"{}",
                  Printable(mode, 40), DidYouMean(mode, names)));
}

// A number as it stands in the file: ids need more digits than a double has.
long double Exact(const SpecValue& node, const char* key) {
  if (const auto integer = node.AsInteger()) return static_cast<long double>(*integer);
  const auto real = node.AsReal();
  if (!real) node.Fail(fmt::format("expected a number for {}", key));
  if (std::isnan(*real)) node.Fail(fmt::format("{} is nan, which no value passes", key));
  return *real;
}

// feature = "dense:3" or column = "label", and what its values must be.
void Filters(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue node = root["filter"];
  if (!node) return;
  const std::vector<SpecValue> items = node.Items();
  const bool are_tables = std::all_of(items.begin(), items.end(),
                                      [](const SpecValue& item) { return item.is_table(); });
  if (items.empty() || !are_tables) node.Fail("a filter is a table: write [[filter]]");
  for (const SpecValue& table : items) {
    table.CheckKeys("[[filter]]", {"feature", "column", "min", "max", "in", "absent"});
    RowFilter filter;
    filter.is_column = bool(table["column"]);
    if (filter.is_column == bool(table["feature"]))
      table.Fail("a filter has either feature or column");
    const char* const key = filter.is_column ? "column" : "feature";
    filter.name = table.Text(key, "");
    std::vector<std::string> names = spec->projection.columns;
    if (!filter.is_column) {
      names.clear();
      for (const auto& request : spec->projection.features)
        names.push_back(dwrf::FeatureName(request));
    }
    if (std::find(names.begin(), names.end(), filter.name) == names.end())
      table[key].Fail(fmt::format("the projection has no {} '{}'{}", key,
                                  Printable(filter.name, 60), DidYouMean(filter.name, names)));
    if (const SpecValue min = table["min"]) filter.min = Exact(min, "min");
    if (const SpecValue max = table["max"]) filter.max = Exact(max, "max");
    if (filter.min > filter.max) table.Fail("no value is at least min and at most max");
    if (const SpecValue in = table["in"]) {
      if (!in.is_list()) in.Fail("in is a list of numbers");
      if (in.Items().empty()) in.Fail("in is empty: no row would pass");
      for (const SpecValue& value : in.Items()) filter.in.push_back(Exact(value, "in"));
    }
    if (!table["min"] && !table["max"] && filter.in.empty())
      table.Fail("a filter has min, max or in");
    const std::string absent = table.Text("absent", "drop");
    if (absent != "drop" && absent != "keep")
      table["absent"].Fail(
          fmt::format("absent is \"drop\" or \"keep\", got \"{}\"", Printable(absent, 40)));
    if (filter.is_column && table["absent"])
      table["absent"].Fail("absent is for features; the nulls of a column read as 0");
    filter.keep_absent = absent == "keep";
    if (table.line() > 0) filter.where = table.Place();
    spec->filters.push_back(std::move(filter));
  }
}

void PipelineKeys(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("pipeline");
  if (!table) return;
  table.CheckKeys("[pipeline]",
                  {"name", "order", "batch_rows", "seed", "worker_rows", "shuffle_rows",
                   "reorder_window", "prefetch", "layout", "dictionary", "memory", "huge_pages"});
  spec->name = table.Text("name", "pipeline");
  const std::string order = table.Text("order", "any");
  if (order != "any" && order != "file")
    table["order"].Fail(
        fmt::format("order is \"any\" or \"file\", got \"{}\"", Printable(order, 40)));
  spec->file_order = order == "file";
  spec->batch_rows = table.Count("batch_rows", 512, 1, 1u << 24);
  spec->seed = table.Count("seed", 1, 0, UINT64_MAX >> 1);
  spec->worker_rows = table.Count("worker_rows", 0, 0, 1u << 24);
  spec->shuffle_rows = table.Count("shuffle_rows", 0, 0, 1u << 28);
  spec->reorder_window = table.Count("reorder_window", 0, 0, 1u << 20);
  spec->prefetch = static_cast<uint32_t>(table.Count("prefetch", 0, 0, kMaxQueue));
  spec->layout = Layout(table);
  spec->dictionary = Dictionary(table);
  if (const SpecValue memory = table["memory"])
    spec->memory_bytes = static_cast<uint64_t>(memory.Bytes("memory"));
  spec->huge_pages = table.Flag("huge_pages", false);
}

PipelineSpec Build(const SpecValue& root) {
  PipelineSpec spec;
  root.CheckKeys("the file", {"pipeline", "source", "projection", "stage", "transform", "filter",
                              "dedup", "consumer", "delivery", "cache"});
  PipelineKeys(root, &spec);
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
  try {
    spec = Build(root, {path, folder});
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
