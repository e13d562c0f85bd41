#include "analysis/fleet/nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/registry.h"
#include "base/toml_depth.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxTypes = 64;
constexpr size_t kMaxSpeeds = 1000;
constexpr int kMaxNodes = 100000;

// One parse: knows the file for messages, and the section it is in.
class NodesParser {
 public:
  explicit NodesParser(const std::string& where) : where_(where) {}

  [[noreturn]] void Fail(const toml::source_region& at, const std::string& what,
                         const std::string& fix) const {
    throw Error(ExitCode::kBadData, what,
                at.begin.line > 0 ? fmt::format("{}:{}:{}", where_, at.begin.line, at.begin.column)
                                  : where_,
                fix);
  }

  void CheckKeys(const toml::table& table, const std::string& section,
                 const std::vector<std::string>& valid) const {
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      if (std::find(valid.begin(), valid.end(), name) != valid.end()) continue;
      const std::string nearest = NearestName(name, valid);
      Fail(key.source(), fmt::format("unknown key '{}' in {}", Printable(name, 60), section),
           nearest.empty() ? fmt::format("valid keys: {}", fmt::join(valid, ", "))
                           : fmt::format("did you mean '{}'?", nearest));
    }
  }

  std::string Text(const toml::table& table, const char* key, const std::string& otherwise,
                   size_t most) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return otherwise;
    if (!node->is_string())
      Fail(node->source(), fmt::format("'{}' is not a text", key), Quoted(key));
    const std::string text = **node->as_string();
    if (text.empty() || text.size() > most) {
      Fail(node->source(), fmt::format("'{}' has {} characters", key, text.size()),
           fmt::format("give it 1 to {}", most));
    }
    return text;
  }

  std::optional<double> Number(const toml::table& table, const char* key, double low,
                               double high) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::nullopt;
    return NumberOf(*node, key, low, high);
  }

  double NumberOf(const toml::node& node, const std::string& key, double low, double high) const {
    const auto value =
        node.is_number() ? node.value<double>() : std::optional<double>(std::nullopt);
    const std::string range = fmt::format("give a number from {:g} to {:g}", low, high);
    if (!value) Fail(node.source(), fmt::format("'{}' is not a number", Printable(key, 60)), range);
    if (!(*value >= low && *value <= high)) {
      Fail(node.source(), fmt::format("'{}' is {:g}", Printable(key, 60), *value), range);
    }
    return *value;
  }

  std::optional<int> Count(const toml::table& table, const char* key, int low, int high) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::nullopt;
    const std::string range = fmt::format("give a whole number from {} to {}", low, high);
    if (!node->is_integer())
      Fail(node->source(), fmt::format("'{}' is not a whole number", key), range);
    const int64_t value = **node->as_integer();
    if (value < low || value > high)
      Fail(node->source(), fmt::format("'{}' is {}", key, value), range);
    return static_cast<int>(value);
  }

  // "64GiB"; not 0.
  std::optional<double> Bytes(const toml::table& table, const char* key) const {
    const std::optional<std::string> text = UnitText(table, key, "64GiB");
    if (!text) return std::nullopt;
    return BytesOf(table, key, *text, 1, "64GiB");
  }

  // "1.5GB/s" or "12.5Gbit/s", in bytes per second; not 0.
  std::optional<double> BytesRate(const toml::table& table, const char* key) const {
    constexpr const char* kExample = "1.5GB/s\" or \"12.5Gbit/s";
    std::optional<std::string> text = UnitText(table, key, kExample);
    if (!text) return std::nullopt;
    if (!text->ends_with("/s")) FailUnit(table, key, kExample);
    text->resize(text->size() - 2);
    double scale = 1;
    if (text->ends_with("bit")) {
      text->resize(text->size() - 3);
      // Networks count bits in powers of ten: "12.5G" is 12.5e9 of them.
      if (!text->empty() && std::isalpha(static_cast<unsigned char>(text->back()))) *text += "B";
      scale = 1.0 / 8;
    }
    return BytesOf(table, key, *text, scale, kExample);
  }

  // "282000rows/s", or a number.
  std::optional<double> RowsRate(const toml::table& table, const char* key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::nullopt;
    if (node->is_number()) return NumberOf(*node, key, 1e-3, 1e12);
    constexpr const char* kExample = "282000rows/s";
    std::string text = *UnitText(table, key, kExample);
    if (!text.ends_with("rows/s")) FailUnit(table, key, kExample);
    text.resize(text.size() - 6);
    while (text.ends_with(' ')) text.pop_back();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !(value >= 1e-3 && value <= 1e12))
      FailUnit(table, key, kExample);
    return value;
  }

  double Seconds(const toml::table& table, const char* key, double most) const {
    const std::optional<std::string> text = UnitText(table, key, "300us");
    if (!text) return 0;
    double seconds = -1;
    try {
      seconds = static_cast<double>(ParseDuration(*text, key)) / 1e9;
    } catch (const Error&) {
    }
    if (seconds < 0) FailUnit(table, key, "300us");
    if (seconds > most) {
      Fail(table.get(key)->source(), fmt::format("'{}' is {} s", key, seconds),
           fmt::format("give at most {:g} s", most));
    }
    return seconds;
  }

  bool Flag(const toml::table& table, const char* key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return false;
    if (!node->is_boolean())
      Fail(node->source(), fmt::format("'{}' is not true or false", key), "write true or false");
    return **node->as_boolean();
  }

  // A section, or null.
  const toml::table* Section(const toml::table& document, const char* key) const {
    const toml::node* node = document.get(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table())
      Fail(node->source(), fmt::format("'{}' is not a section", key),
           fmt::format("write [{}]", key));
    return node->as_table();
  }

  NodeType Type(const toml::table& table) const;
  void ReadStorage(const toml::table& table, StorageLimits* storage) const;
  void ReadClients(const toml::table& table, ClientLimits* clients) const;
  void ReadDispatcher(const toml::table& table, DispatcherLimits* dispatcher) const;
  void ReadTypes(const toml::node& node, std::vector<NodeType>* types) const;

 private:
  static std::string Quoted(const char* key) { return fmt::format("write {} = \"...\"", key); }

  [[noreturn]] void FailUnit(const toml::table& table, const char* key,
                             const std::string& example) const {
    const toml::node* node = table.get(key);
    const std::string got =
        node->is_string() ? fmt::format("'{}' is '{}'", key, Printable(**node->as_string(), 40))
                          : fmt::format("'{}' has no unit", key);
    Fail(node->source(), got, fmt::format("write it as \"{}\"", example));
  }

  std::optional<std::string> UnitText(const toml::table& table, const char* key,
                                      const std::string& example) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_string()) FailUnit(table, key, example);
    return **node->as_string();
  }

  double BytesOf(const toml::table& table, const char* key, const std::string& text, double scale,
                 const std::string& example) const {
    double bytes = 0;
    try {
      bytes = static_cast<double>(ParseBytes(text, key)) * scale;
    } catch (const Error&) {
    }
    if (!(bytes >= 1)) FailUnit(table, key, example);
    return bytes;
  }

  const std::string& where_;
};

NodeType NodesParser::Type(const toml::table& table) const {
  CheckKeys(table, "[[node]]",
            {"name", "price_per_hour", "cores", "speed", "speed_of", "cpu_model", "memory",
             "memory_bandwidth", "nic", "disk", "watts_idle", "watts_peak", "max", "have", "rack"});
  NodeType type;
  for (const char* key : {"name", "price_per_hour", "cores"}) {
    if (table.get(key) == nullptr) {
      Fail(table.source(), fmt::format("this [[node]] has no '{}'", key),
           fmt::format("every type needs name, price_per_hour and cores"));
    }
  }
  type.name = Text(table, "name", "", 60);
  type.price_per_hour = *Number(table, "price_per_hour", 0, 1e6);
  type.cores = *Number(table, "cores", 0.01, 4096);
  type.speed = Number(table, "speed", 0.01, 100);
  if (const toml::table* speeds = Section(table, "speed_of")) {
    if (speeds->size() > kMaxSpeeds)
      Fail(speeds->source(), fmt::format("{} speeds by operator", speeds->size()),
           fmt::format("give at most {}", kMaxSpeeds));
    for (const auto& [key, value] : *speeds) {
      type.speed_of.emplace_back(std::string(key.str()),
                                 NumberOf(value, std::string(key.str()), 0.01, 100));
    }
    std::sort(type.speed_of.begin(), type.speed_of.end());
  }
  type.cpu_model = Text(table, "cpu_model", "", 200);
  type.memory_bytes = Bytes(table, "memory");
  type.memory_bandwidth_bytes_per_s = BytesRate(table, "memory_bandwidth");
  type.nic_bytes_per_s = BytesRate(table, "nic");
  type.disk_bytes_per_s = BytesRate(table, "disk");
  type.watts_idle = Number(table, "watts_idle", 0, 1e6);
  type.watts_peak = Number(table, "watts_peak", 0, 1e6);
  if (type.watts_idle.has_value() != type.watts_peak.has_value()) {
    Fail(table.source(), fmt::format("'{}' has only one of watts_idle and watts_peak", type.name),
         "give both, or neither");
  }
  if (type.watts_idle && *type.watts_peak < *type.watts_idle) {
    Fail(table.get("watts_peak")->source(), "'watts_peak' is less than 'watts_idle'",
         "swap them if they are the other way round");
  }
  type.max_count = Count(table, "max", 0, kMaxNodes);
  type.have = Count(table, "have", 0, kMaxNodes).value_or(0);
  type.rack = Count(table, "rack", 1, kMaxNodes);
  return type;
}

void NodesParser::ReadTypes(const toml::node& node, std::vector<NodeType>* types) const {
  const toml::array* list = node.as_array();
  if (list == nullptr || !list->is_homogeneous<toml::table>())
    Fail(node.source(), "'node' is not a list of sections", "write [[node]] for each type");
  if (list->size() > kMaxTypes)
    Fail(node.source(), fmt::format("{} types of nodes", list->size()),
         fmt::format("give at most {}", kMaxTypes));
  for (const toml::node& entry : *list) {
    NodeType type = Type(*entry.as_table());
    for (const NodeType& other : *types) {
      if (other.name == type.name)
        Fail(entry.source(), fmt::format("two types are named '{}'", Printable(type.name, 60)),
             "name them apart");
    }
    types->push_back(std::move(type));
  }
}

void NodesParser::ReadStorage(const toml::table& table, StorageLimits* storage) const {
  CheckKeys(table, "[storage]", {"local", "bandwidth", "iops", "latency"});
  storage->local = Flag(table, "local");
  storage->bytes_per_s = BytesRate(table, "bandwidth");
  storage->requests_per_s = Number(table, "iops", 1e-3, 1e12);
  storage->latency_s = Seconds(table, "latency", 60);
  if (storage->local && (storage->bytes_per_s || storage->requests_per_s)) {
    Fail(table.source(), "'local' says that there is no shared storage to limit",
         "leave out bandwidth and iops, and give each [[node]] its 'disk'");
  }
}

void NodesParser::ReadClients(const toml::table& table, ClientLimits* clients) const {
  CheckKeys(table, "[clients]", {"count", "nic", "demand", "buffer"});
  clients->count = Count(table, "count", 1, kMaxNodes).value_or(1);
  clients->nic_bytes_per_s = BytesRate(table, "nic");
  clients->demand_rows_per_s = RowsRate(table, "demand");
  clients->buffer_batches =
      Count(table, "buffer", 1, 65536).value_or(ClientLimits().buffer_batches);
}

void NodesParser::ReadDispatcher(const toml::table& table, DispatcherLimits* dispatcher) const {
  CheckKeys(table, "[dispatcher]", {"requests_per_second", "latency", "in_flight"});
  dispatcher->requests_per_s = Number(table, "requests_per_second", 1e-3, 1e12);
  dispatcher->latency_s = Seconds(table, "latency", 60);
  dispatcher->in_flight = Count(table, "in_flight", 1, 65536).value_or(kDefaultInFlight);
}

}  // namespace

NodesFile ParseNodes(std::string_view toml_text, const std::string& where) {
  const NodesParser parser(where);
  CheckTomlDepth(toml_text, where, ExitCode::kBadData);
  toml::table document;
  try {
    document = toml::parse(toml_text, where);
  } catch (const toml::parse_error& error) {
    parser.Fail(error.source(), Printable(std::string(error.description())),
                "see docs/examples/nodes.toml");
  }
  parser.CheckKeys(document, "the file",
                   {"currency", "headroom", "node", "storage", "clients", "dispatcher"});
  NodesFile nodes;
  nodes.currency = parser.Text(document, "currency", nodes.currency, 12);
  nodes.headroom = parser.Number(document, "headroom", 0, 0.9).value_or(kDefaultHeadroom);
  const toml::node* types = document.get("node");
  if (types == nullptr || (types->is_array() && types->as_array()->empty())) {
    parser.Fail({}, "no type of node",
                "write a [[node]] with name, price_per_hour and cores for each "
                "(docs/examples/nodes.toml)");
  }
  parser.ReadTypes(*types, &nodes.types);
  if (const toml::table* table = parser.Section(document, "storage"))
    parser.ReadStorage(*table, &nodes.storage);
  if (const toml::table* table = parser.Section(document, "clients"))
    parser.ReadClients(*table, &nodes.clients);
  if (const toml::table* table = parser.Section(document, "dispatcher"))
    parser.ReadDispatcher(*table, &nodes.dispatcher);
  return nodes;
}

NodesFile LoadNodes(const std::string& path) {
  std::string text;
  try {
    text = ReadWholeFile(path, kMaxFileBytes);
  } catch (const Error& error) {
    throw Error(
        error.code(), error.fact(), error.where(),
        error.fix().empty() ? "docs/examples/nodes.toml is one to begin with" : error.fix());
  }
  return ParseNodes(text, path);
}

}  // namespace headrace::analysis
