#include "reader/transforms/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>

#include "base/error.h"
#include "reader/batch/dedup_rows.h"
#include "reader/batch/id_dictionary.h"
#include "reader/batch/keep_rows.h"
#include "reader/transforms/zero_absent.h"

namespace headrace::reader {

// Immutable but for `hints`: where each input stood in the last batch, so that finding it costs one
// comparison when batches look alike.
struct TransformPlan::Step {
  TransformSpec spec;
  const TransformEntry* entry = nullptr;
  std::unique_ptr<const Transform> transform;
  const DenseTransform* dense = nullptr;  // which of the five shapes it is
  const IdTransform* ids = nullptr;
  const ListTransform* list = nullptr;
  const ScoreTransform* score = nullptr;
  const RowTransform* rows = nullptr;
  mutable std::vector<std::atomic<uint32_t>> hints;
  // Unique among all steps of the process; a dictionary remembers by it what this step made of its
  // entries.
  uint64_t number = NextNumber();

  static uint64_t NextNumber() {
    static std::atomic<uint64_t> next{0};
    return next.fetch_add(1, std::memory_order_relaxed);
  }

  bool Replaces() const {
    return std::find(spec.inputs.begin(), spec.inputs.end(), spec.output) != spec.inputs.end();
  }
};

namespace {

std::string Place(const TransformSpec& spec) {
  std::string place = spec.file;
  if (spec.line > 0) {
    if (!place.empty()) place += ':';
    place += std::to_string(spec.line);
    if (spec.column > 0) place += ":" + std::to_string(spec.column);
  }
  return place;
}

[[noreturn]] void Refuse(const TransformSpec& spec, const std::string& what,
                         const std::string& fix = {}) {
  throw Error(ExitCode::kUsage, spec.op + ": " + what, Place(spec), fix);
}

// The constants of SplitMix64 (Steele et al., OOPSLA 2014).
uint64_t SplitMix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void CheckShape(TransformSpec* spec, const TransformEntry& entry) {
  if (entry.output == OutputKind::kRows) {
    if (!spec->inputs.empty() || !spec->output.empty())
      Refuse(*spec, "acts on whole rows and takes no inputs and no output",
             "remove 'inputs' and 'output'");
    return;
  }
  const size_t least = entry.inputs.size(), most = std::max(entry.max_inputs, least);
  if (spec->inputs.size() < least || spec->inputs.size() > most) {
    const std::string range =
        least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
    Refuse(*spec, fmt::format("takes {} input{}, not {}", range, most == 1 ? "" : "s",
                              spec->inputs.size()));
  }
  if (spec->output.empty()) {
    if (spec->inputs.size() > 1)
      Refuse(*spec, "has several inputs and no output",
             "add 'output = \"name\"'; an input's name replaces that input");
    spec->output = spec->inputs[0];
  }
}

InputKind InputAt(const TransformEntry& entry, size_t i) {
  return entry.inputs[std::min(i, entry.inputs.size() - 1)];
}

ColumnKind OutputColumn(const TransformEntry& entry, ColumnKind first) {
  switch (entry.output) {
    case OutputKind::kDense:
      return ColumnKind::kDense;
    case OutputKind::kWeighted:
      return ColumnKind::kWeightedSparse;
    case OutputKind::kAsFirstInput:
      return first;
    default:
      return ColumnKind::kSparse;
  }
}

bool IsIds(ColumnKind kind) {
  return kind == ColumnKind::kSparse || kind == ColumnKind::kWeightedSparse;
}

ColumnKind KindOf(const SparseColumn& column) {
  return column.weighted || !column.weights.empty() ? ColumnKind::kWeightedSparse
                                                    : ColumnKind::kSparse;
}
ColumnKind KindOf(const ScalarColumn& column) {
  return column.is_float ? ColumnKind::kFloat : ColumnKind::kInteger;
}

[[noreturn]] void WrongKind(const TransformSpec& spec, const std::string& input, ColumnKind is,
                            InputKind wanted) {
  Refuse(spec, fmt::format("input '{}' is {} and must be {}", Printable(input), ColumnKindName(is),
                           InputKindName(wanted)));
}

// Index of the column named `name`, first looking where it was last time; none when absent.
template <typename Column>
std::optional<size_t> FindColumn(const std::vector<Column>& columns, const std::string& name,
                                 std::atomic<uint32_t>* hint) {
  const uint32_t guess = hint->load(std::memory_order_relaxed);
  if (guess < columns.size() && columns[guess].name == name) return guess;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name != name) continue;
    hint->store(static_cast<uint32_t>(i), std::memory_order_relaxed);
    return i;
  }
  return std::nullopt;
}

template <typename Column>
bool Erase(std::vector<Column>* columns, const std::string& name) {
  for (auto it = columns->begin(); it != columns->end(); ++it) {
    if (it->name != name) continue;
    columns->erase(it);
    return true;
  }
  return false;
}

// Puts `column` where a column of its name and kind is, or at the end; a replaced column of another
// kind goes.
template <typename Column>
void Place(std::vector<Column>* columns, FlatMapBatch* batch, Column column, bool replaces) {
  if (replaces) {
    for (Column& old : *columns) {
      if (old.name != column.name) continue;
      old = std::move(column);
      return;
    }
    if constexpr (std::is_same_v<Column, DenseColumn>) {
      if (!Erase(&batch->sparse, column.name)) Erase(&batch->scalars, column.name);
    } else {
      if (!Erase(&batch->dense, column.name)) Erase(&batch->scalars, column.name);
    }
  }
  columns->push_back(std::move(column));
}

void DropColumn(FlatMapBatch* batch, const std::string& name) {
  if (!Erase(&batch->dense, name)) Erase(&batch->sparse, name);
}

template <typename Column>
void KeepOnly(std::vector<Column>* columns, const std::set<std::string>& names) {
  std::erase_if(*columns, [&](const Column& c) { return names.count(c.name) == 0; });
}

DenseColumn Copy(const DenseColumn& from, const std::string& name) {
  return {name, from.present, from.values.Clone()};
}

SparseColumn Copy(const SparseColumn& from, const std::string& name) {
  return {
      name,          from.present, from.offsets.Clone(), from.values.Clone(), from.weights.Clone(),
      from.weighted, from.group,   from.dictionary,      from.decoded_values};
}

template <typename Column>
Column Detach(std::vector<Column>* columns, const Column* place) {
  const auto it = columns->begin() + (place - columns->data());
  Column column = std::move(*it);
  columns->erase(it);
  return column;
}

// Gives the value of column `from` to `to` as well, or, with `move`, instead.
void CopyColumn(FlatMapBatch* batch, const std::string& from, const std::string& to, bool replaces,
                bool move) {
  const auto give = [&](auto* columns, const auto* column) {
    auto value = move ? Detach(columns, column) : Copy(*column, to);
    value.name = to;
    Place(columns, batch, std::move(value), replaces);
  };
  if (const DenseColumn* dense = batch->FindDense(from)) return give(&batch->dense, dense);
  if (const SparseColumn* sparse = batch->FindSparse(from)) give(&batch->sparse, sparse);
}

// One run of one step over one batch.
class Application {
 public:
  using Hints = std::vector<std::atomic<uint32_t>>;
  // `number` is the step's, different from that of every other; figures may be null.
  Application(const TransformSpec& spec, const TransformEntry& entry, uint64_t number, Hints* hints,
              FlatMapBatch* batch, bool reference, InstructionSet set, DictionaryFigures* figures)
      : spec_(spec),
        entry_(entry),
        number_(number),
        hints_(*hints),
        batch_(*batch),
        reference_(reference),
        set_(set),
        figures_(figures) {}

  void Run(const DenseTransform& transform, bool replaces) {
    const size_t index = Dense(0);
    if (!replaces) batch_.dense.push_back(Copy(batch_.dense[index], spec_.output));
    DenseColumn& column = replaces ? batch_.dense[index] : batch_.dense.back();
    reference_ ? transform.Reference(column.values) : transform.Apply(column.values, set_);
    ZeroAbsent(&column, set_);
  }

  void Run(const IdTransform& transform, bool replaces) {
    const size_t index = Sparse(0);
    if (!replaces) batch_.sparse.push_back(Copy(batch_.sparse[index], spec_.output));
    SparseColumn& column = replaces ? batch_.sparse[index] : batch_.sparse.back();
    if (reference_) LookUpIds(&column);
    if (column.dictionary) return RunOnEntries(transform, &column);
    reference_ ? transform.Reference(column.values) : transform.Apply(column.values, set_);
  }

  void Run(const ListTransform& transform, bool replaces) {
    SparseColumn out;
    const int32_t group = CommonGroup();
    const bool on_indices = entry_.use == IdUse::kPlaces && !reference_;
    if (!on_indices) LookUpInputs();
    reference_ ? transform.Reference(Inputs(group), &out)
               : transform.Apply(Inputs(group), &out, set_);
    if (on_indices) TakeDictionary(batch_.sparse[Sparse(0)], &out);
    out.name = spec_.output;
    out.group = group;
    Place(&batch_.sparse, &batch_, std::move(out), replaces);
  }

  void Run(const ScoreTransform& transform, bool replaces) {
    DenseColumn out;
    const int32_t group = CommonGroup();
    LookUpInputs();
    reference_ ? transform.Reference(Inputs(group), &out)
               : transform.Apply(Inputs(group), &out, set_);
    if (group >= 0) out = Expand(batch_.groups[static_cast<size_t>(group)], std::move(out));
    out.name = spec_.output;
    Place(&batch_.dense, &batch_, std::move(out), replaces);
  }

  void Run(const RowTransform& transform) {
    std::vector<uint64_t> implicit;
    if (batch_.row_ids.empty()) {
      implicit.resize(batch_.rows);
      for (uint64_t row = 0; row < batch_.rows; ++row) implicit[row] = batch_.first_row + row;
    }
    const std::vector<uint64_t>& ids = batch_.row_ids.empty() ? implicit : batch_.row_ids;
    std::vector<uint8_t> keep(batch_.rows);
    reference_ ? transform.Reference(ids, keep.data()) : transform.Apply(ids, keep.data(), set_);
    KeepRows(&batch_, keep);
  }

 private:
  void RunOnEntries(const IdTransform& transform, SparseColumn* column) {
    bool computed = false;
    column->dictionary = column->dictionary->Changed(
        number_, [&](std::span<int64_t> entries) { transform.Apply(entries, set_); }, &computed);
    if (figures_ == nullptr) return;
    ++figures_->steps;
    figures_->ids += column->values.size();
    if (computed) figures_->entries += column->dictionary->entries().size();
  }

  // `out` holds indices of the dictionary of `from`, if that has one; perhaps so few, for all that
  // was left out of rows and ids since they were decoded, that their ids are worth more.
  static void TakeDictionary(const SparseColumn& from, SparseColumn* out) {
    out->dictionary = from.dictionary;
    out->decoded_values = std::max<uint64_t>(from.decoded_values, from.values.size());
    if (out->dictionary && !out->dictionary->Pays(out->values.size(), out->decoded_values))
      LookUpIds(out);
  }

  void LookUpInputs() {
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      const InputKind kind = InputAt(entry_, i);
      if (kind != InputKind::kDense && kind != InputKind::kInteger)
        LookUpIds(&batch_.sparse[Sparse(i)]);
    }
  }

  size_t Dense(size_t i) {
    const auto index = FindColumn(batch_.dense, spec_.inputs[i], &hints_[i]);
    if (!index) Missing(i);
    return *index;
  }
  size_t Sparse(size_t i) {
    const auto index = FindColumn(batch_.sparse, spec_.inputs[i], &hints_[i]);
    if (!index) Missing(i);
    const ColumnKind kind = KindOf(batch_.sparse[*index]);
    if (!Accepts(InputAt(entry_, i), kind))
      WrongKind(spec_, spec_.inputs[i], kind, InputAt(entry_, i));
    return *index;
  }

  // The deduplicated group that all inputs are of: then the step runs on its unique rows. Otherwise
  // -1, and the inputs have a list for each row. A random step draws for each row, so equal rows
  // come out different.
  int32_t CommonGroup() {
    if (batch_.groups.empty()) return -1;
    std::vector<SparseColumn*> lists;
    bool others = entry_.random;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      const InputKind kind = InputAt(entry_, i);
      if (kind == InputKind::kDense || kind == InputKind::kInteger) {
        others = true;
      } else {
        lists.push_back(&batch_.sparse[Sparse(i)]);
      }
    }
    const int32_t group = others || lists.empty() ? -1 : lists[0]->group;
    if (group >= 0 && std::all_of(lists.begin(), lists.end(),
                                  [&](const SparseColumn* list) { return list->group == group; }))
      return group;
    for (SparseColumn* list : lists) Expand(batch_, list);
    return -1;
  }

  TransformInputs Inputs(int32_t group) {
    TransformInputs in;
    in.rows = group < 0 ? batch_.rows : batch_.groups[static_cast<size_t>(group)].unique_rows;
    in.row_ids = batch_.row_ids;
    in.first_row = batch_.first_row;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      switch (InputAt(entry_, i)) {
        case InputKind::kDense:
          in.dense.push_back(&batch_.dense[Dense(i)]);
          break;
        case InputKind::kInteger: {
          const auto index = FindColumn(batch_.scalars, spec_.inputs[i], &hints_[i]);
          if (!index || batch_.scalars[*index].is_float) Missing(i);
          in.scalars.push_back(&batch_.scalars[*index]);
          break;
        }
        default:
          in.sparse.push_back(&batch_.sparse[Sparse(i)]);
      }
    }
    return in;
  }

  [[noreturn]] void Missing(size_t i) const {
    Refuse(spec_, fmt::format("the batch has no {} '{}'", InputKindName(InputAt(entry_, i)),
                              Printable(spec_.inputs[i])));
  }

  const TransformSpec& spec_;
  const TransformEntry& entry_;
  const uint64_t number_;
  Hints& hints_;
  FlatMapBatch& batch_;
  bool reference_;
  InstructionSet set_;
  DictionaryFigures* figures_;
};

void CheckOutput(const TransformSpec& spec, bool replaces,
                 const std::vector<AvailableColumn>& columns) {
  if (spec.output.empty()) Refuse(spec, "the output has no name");
  if (replaces) return;
  for (const AvailableColumn& column : columns)
    if (column.name == spec.output)
      Refuse(spec,
             fmt::format("output '{}' would overwrite a column that is not an input",
                         Printable(spec.output)),
             "choose a new name");
}

ColumnKind CheckInput(const TransformSpec& spec, size_t i, const TransformEntry& entry,
                      const std::vector<AvailableColumn>& columns) {
  const std::string& name = spec.inputs[i];
  std::vector<std::string> fitting;
  for (const AvailableColumn& column : columns) {
    if (column.name == name) {
      if (!Accepts(InputAt(entry, i), column.kind))
        WrongKind(spec, name, column.kind, InputAt(entry, i));
      return column.kind;
    }
    if (Accepts(InputAt(entry, i), column.kind)) fitting.push_back(column.name);
  }
  const std::string nearest = NearestName(name, fitting);
  std::string fix =
      nearest.empty() ? "add it to the projection" : "did you mean '" + nearest + "'?";
  if (fitting.empty()) fix = fmt::format("no column here is {}", InputKindName(InputAt(entry, i)));
  Refuse(spec, fmt::format("there is no column '{}'", Printable(name)), fix);
}

// The list after a column of `kind` took the place of, or came behind, the others.
void UpdateColumns(std::vector<AvailableColumn>* columns, const std::string& name, ColumnKind kind,
                   bool replaces) {
  if (replaces) {
    auto old = std::find_if(columns->begin(), columns->end(),
                            [&](const AvailableColumn& c) { return c.name == name; });
    if (old->kind == kind || (IsIds(old->kind) && IsIds(kind))) {
      old->kind = kind;
      return;
    }
    columns->erase(old);
  }
  columns->push_back({name, kind});
}

// Every output has to be a column of features; the other such columns go.
void CheckOutputs(const std::vector<std::string>& outputs, std::vector<AvailableColumn>* columns) {
  const auto is_feature = [](const AvailableColumn& column) {
    return column.kind == ColumnKind::kDense || IsIds(column.kind);
  };
  std::vector<std::string> names;
  for (const AvailableColumn& column : *columns)
    if (is_feature(column)) names.push_back(column.name);
  for (const std::string& output : outputs) {
    if (std::find(names.begin(), names.end(), output) != names.end()) continue;
    const std::string nearest = NearestName(output, names);
    throw Error(
        ExitCode::kUsage,
        fmt::format("outputs: there is no feature '{}' behind the transforms", Printable(output)),
        {}, nearest.empty() ? "" : "did you mean '" + nearest + "'?");
  }
  const auto goes = [&](const AvailableColumn& column) {
    return is_feature(column) &&
           std::find(outputs.begin(), outputs.end(), column.name) == outputs.end();
  };
  columns->erase(std::remove_if(columns->begin(), columns->end(), goes), columns->end());
}

}  // namespace

TransformPlan::TransformPlan(std::vector<TransformSpec> specs, uint64_t seed,
                             std::optional<std::vector<std::string>> outputs)
    : outputs_(std::move(outputs)) {
  std::vector<GraphInput> graph;
  std::map<std::string, uint64_t> number;  // of this spec among those of its operator
  for (TransformSpec& spec : specs) {
    auto step = std::make_shared<Step>();
    const uint64_t own_seed = SplitMix(seed ^ SplitMix(number[spec.op]++));
    step->transform = MakeTransform(Params(spec.op, spec.params, own_seed, Place(spec)));
    step->entry = TransformRegistry::Global().Find(spec.op);
    CheckShape(&spec, *step->entry);
    const Transform* transform = step->transform.get();
    step->dense = dynamic_cast<const DenseTransform*>(transform);
    step->ids = dynamic_cast<const IdTransform*>(transform);
    step->list = dynamic_cast<const ListTransform*>(transform);
    step->score = dynamic_cast<const ScoreTransform*>(transform);
    step->rows = dynamic_cast<const RowTransform*>(transform);
    step->hints = std::vector<std::atomic<uint32_t>>(spec.inputs.size());
    graph.push_back({spec.op, spec.params, step->entry->random ? own_seed : 0, spec.inputs,
                     spec.output, step->rows != nullptr});
    step->spec = std::move(spec);
    steps_.push_back(std::move(step));
  }
  graph_ = BuildGraph(graph, outputs_);
}

const TransformSpec* TransformPlan::FirstRandom() const {
  for (const auto& step : steps_)
    if (step->entry->random) return &step->spec;
  return nullptr;
}

const TransformSpec& TransformPlan::spec(size_t i) const { return steps_[i]->spec; }

bool TransformPlan::drops_rows(size_t i) const { return steps_[i]->rows != nullptr; }

std::vector<AvailableColumn> TransformPlan::ValidateAgainst(
    std::vector<AvailableColumn> columns) const {
  for (const auto& step : steps_) {
    if (step->rows != nullptr) continue;
    std::vector<ColumnKind> kinds;
    for (size_t i = 0; i < step->spec.inputs.size(); ++i)
      kinds.push_back(CheckInput(step->spec, i, *step->entry, columns));
    const bool replaces = step->Replaces();
    CheckOutput(step->spec, replaces, columns);
    UpdateColumns(&columns, step->spec.output, OutputColumn(*step->entry, kinds[0]), replaces);
  }
  if (outputs_) CheckOutputs(*outputs_, &columns);
  return columns;
}

std::map<std::string, double, std::less<>> TransformPlan::DictionaryInputs() const {
  std::map<std::string, double, std::less<>> inputs;
  // The column before the first step whose ids a column's are, or are made of one by one; none:
  // looked up before. A name that is not here is such a column itself.
  std::map<std::string, std::optional<std::string>> origins;
  const auto origin = [&](const std::string& name) {
    const auto known = origins.find(name);
    return known == origins.end() ? std::optional<std::string>(name) : known->second;
  };
  double share = 1;  // of the rows that are left
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = *steps_[i];
    const GraphStep& graph = graph_.steps[i];
    for (const auto& [name, kept] : graph.keep) origins[kept] = origin(name);
    if (step.rows != nullptr) share *= step.rows->Share();
    if (graph.action == GraphAction::kSkip || step.rows != nullptr) continue;
    const std::string& output = step.spec.output;
    if (graph.action != GraphAction::kCompute) {
      origins[output] = origin(graph.from);
    } else if (step.ids != nullptr) {
      const auto from = origin(step.spec.inputs[0]);
      const double values = step.entry->dictionary_values / share;
      if (from) {
        double& least = inputs.try_emplace(*from, values).first->second;
        least = std::min(least, values);
      }
      origins[output] = from;
    } else if (step.entry->use == IdUse::kPlaces) {
      origins[output] = origin(step.spec.inputs[0]);
    } else {
      for (const std::string& name : step.spec.inputs) origins[name] = std::nullopt;
      origins[output] = std::nullopt;
    }
  }
  return inputs;
}

void TransformPlan::Run(size_t i, FlatMapBatch& batch, bool reference, InstructionSet set,
                        DictionaryFigures* figures) const {
  const Step& step = *steps_[i];
  Application application(step.spec, *step.entry, step.number, &step.hints, &batch, reference, set,
                          figures);
  const bool replaces = step.Replaces();
  if (step.dense != nullptr) application.Run(*step.dense, replaces);
  if (step.ids != nullptr) application.Run(*step.ids, replaces);
  if (step.list != nullptr) application.Run(*step.list, replaces);
  if (step.score != nullptr) application.Run(*step.score, replaces);
  if (step.rows != nullptr) application.Run(*step.rows);
}

void TransformPlan::Apply(size_t i, FlatMapBatch& batch, InstructionSet set,
                          DictionaryFigures* figures) const {
  if (i == 0 && graph_.wanted_at_start) {
    KeepOnly(&batch.dense, *graph_.wanted_at_start);
    KeepOnly(&batch.sparse, *graph_.wanted_at_start);
  }
  const GraphStep& step = graph_.steps[i];
  for (const auto& [name, kept] : step.keep) CopyColumn(&batch, name, kept, false, false);
  switch (step.action) {
    case GraphAction::kCompute:
      Run(i, batch, false, set, figures);
      break;
    case GraphAction::kCopy:
    case GraphAction::kMove:
      CopyColumn(&batch, step.from, steps_[i]->spec.output, steps_[i]->Replaces(),
                 step.action == GraphAction::kMove);
      break;
    case GraphAction::kSkip:
      // If the step would have replaced a plain column, that column is dropped as well.
      if (steps_[i]->Replaces()) Erase(&batch.scalars, steps_[i]->spec.output);
      break;
  }
  for (const std::string& name : step.release) DropColumn(&batch, name);
}

void TransformPlan::ApplyReference(size_t i, FlatMapBatch& batch) const {
  Run(i, batch, true, InstructionSet::kScalar, nullptr);
}

void TransformPlan::Finish(FlatMapBatch& batch) const { LookUpIds(&batch); }

std::vector<AvailableColumn> ColumnsOf(const FlatMapBatch& batch) {
  std::vector<AvailableColumn> columns;
  for (const DenseColumn& column : batch.dense)
    columns.push_back({column.name, ColumnKind::kDense});
  for (const SparseColumn& column : batch.sparse) columns.push_back({column.name, KindOf(column)});
  for (const ScalarColumn& column : batch.scalars) columns.push_back({column.name, KindOf(column)});
  return columns;
}

}  // namespace headrace::reader
