// [[stage]]: stages, their operators, and the order of these.
#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/registry.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

constexpr uint32_t kMaxParallelism = 256;

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

OperatorSpec ParseOperator(const SpecValue& node) {
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
  // A table's pipeline has at most one operator of each kind; synthetic ones are named after their
  // stage.
  return {kind, node.Text("name", IsSynthetic(entry) ? "" : kind), std::move(parsed)};
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

// The keys of a stage beside its operators.
StageSpec ParseStage(const SpecValue& table, std::set<std::string>* taken_names) {
  if (!table.is_table()) table.Fail("a stage is a table");
  table.CheckKeys("[[stage]]", {"name", "operators", "parallelism", "max_parallelism", "queue"});
  StageSpec stage;
  stage.name = table.Text("name", "");
  if (stage.name.empty()) table.Fail("a stage needs a name");
  if (stage.name.find('.') != std::string::npos) table["name"].Fail("a stage's name has no dot");
  if (!taken_names->insert(stage.name).second)
    table["name"].Fail(fmt::format("the name '{}' is taken", Printable(stage.name, 60)));
  stage.parallelism = static_cast<uint32_t>(table.Count("parallelism", 1, 1, kMaxParallelism));
  stage.max_parallelism =
      static_cast<uint32_t>(table.Count("max_parallelism", 0, 0, kMaxParallelism));
  stage.queue = static_cast<uint32_t>(table.Count("queue", 4, 1, kMaxQueue));
  if (stage.max_parallelism != 0 && stage.parallelism > stage.max_parallelism)
    table["parallelism"].Fail(fmt::format("parallelism {} exceeds max_parallelism {}",
                                          stage.parallelism, stage.max_parallelism));
  return stage;
}

void ParseOperators(const SpecValue& table, std::set<std::string>* taken_names, StageSpec* stage) {
  const SpecValue operators = table["operators"];
  const std::vector<SpecValue> items = operators.Items();
  if (items.empty()) (operators ? operators : table).Fail("a stage needs operators = [...]");
  for (const SpecValue& item : items) {
    OperatorSpec op = ParseOperator(item);
    if (op.name.empty()) op.name = items.size() == 1 ? stage->name : stage->name + "." + op.kind;
    std::string unique = op.name;
    for (int n = 2; !taken_names->insert(unique).second; ++n)
      unique = fmt::format("{}.{}", op.name, n);
    op.name = unique;
    stage->operators.push_back(std::move(op));
  }
}

}  // namespace

void ParseStages(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue node = root["stage"];
  if (node.Items().empty()) node.Fail("a pipeline needs at least one [[stage]]");
  // "transform" is the natural name of a stage, and also a section of lists: only sections with
  // keys of their own clash.
  std::set<std::string> names = {"consumer", "pipeline", "source", "projection",
                                 "stage",    "delivery", "dedup"};
  std::set<std::string> operator_names;
  for (const SpecValue& item : node.Items()) {
    const SpecValue table = item.Called(item["name"].AsText().value_or("stage"));
    StageSpec stage = ParseStage(table, &names);
    ParseOperators(table, &operator_names, &stage);
    spec->stages.push_back(std::move(stage));
  }
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

}  // namespace headrace::reader
