// TransformPlan: the transforms of a pipeline, checked once, then run on every batch.
//
// Each spec reads its inputs and adds or replaces one column, in list order:
//   output == an input        that column is replaced (in place where the transform allows it)
//   output is a new name      a column is added at the end of its kind
//   output is another column  refused: it would overwrite what it does not read
// Row transforms (sampling) have no inputs and no output; they drop rows from the batch.
//
// The list says what the columns are, not what is computed: a graph of the values (graph.h) finds
// repeated steps, whose result is copied, and, where outputs are named, steps and columns that lead
// to none of them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/transforms/graph.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {

// One [[transform]] of pipeline.toml.
struct TransformSpec {
  std::string op;
  std::string output;  // empty: the first input (row transforms: nothing)
  std::vector<std::string> inputs;
  ParamMap params;
  // Where it was written, for messages; 0 = unknown.
  std::string file;
  uint32_t line = 0, column = 0;
};

// A column that a batch will have, by the name a spec uses for it.
struct AvailableColumn {
  std::string name;  // "sparse:17", "timestamp"
  ColumnKind kind;
};

// What was done on dictionaries instead of values.
struct DictionaryFigures {
  uint64_t steps = 0;    // that ran on a dictionary's entries, or found them done
  uint64_t ids = 0;      // values of their columns
  uint64_t entries = 0;  // that were transformed
};

class TransformPlan {
 public:
  TransformPlan() = default;
  // Checks operators and parameters; columns are checked by ValidateAgainst. What a random
  // transform draws depends on `seed`, on its own seed parameter, on its number among the specs of
  // the same operator, and on the global row id; never on threads or batch borders. Throws Error
  // kUsage with the spec's place and the nearest valid name.
  // `outputs`: the dense and id columns that leave the last step; the others go as soon as nothing
  // reads them. Without it all columns stay.
  TransformPlan(std::vector<TransformSpec> specs, uint64_t seed,
                std::optional<std::vector<std::string>> outputs = std::nullopt);

  size_t size() const { return steps_.size(); }
  bool empty() const { return steps_.empty(); }
  const std::string& name(size_t i) const { return spec(i).op; }
  const TransformSpec& spec(size_t i) const;
  // Whether step i can change the number of rows.
  bool drops_rows(size_t i) const;
  // How step i gets its value: computed, taken from an earlier step, or not at all.
  GraphAction action(size_t i) const { return graph_.steps[i].action; }
  // The first step whose result changes with the seed, so that it must not be kept for another run;
  // null when there is none.
  const TransformSpec* FirstRandom() const;

  // Checks every input and output against the columns a batch will have before the first
  // transform, and returns the columns it will have after the last one, in the order in which Apply
  // leaves them within each kind. Throws Error kUsage: place, unknown name with the nearest valid
  // one, or wrong kind.
  std::vector<AvailableColumn> ValidateAgainst(std::vector<AvailableColumn> columns) const;

  // Runs step i; a batch goes through all steps in order. Thread-safe on distinct batches. Throws
  // Error kUsage when an input is missing or of the wrong kind (ValidateAgainst says so earlier),
  // kResources when a column outgrows 2^32 ids.
  // Columns that came with a dictionary may still have one; Finish, after the last step, looks
  // their ids up.
  void Apply(size_t i, FlatMapBatch& batch, InstructionSet set = BestInstructionSet(),
             DictionaryFigures* figures = nullptr) const;
  void Finish(FlatMapBatch& batch) const;
  // The sparse columns of a batch before the first step whose ids go through a step that takes each
  // id for itself (IdUse::kEach) before another looks at them: those worth a dictionary. With each
  // the values an entry from which on, the least of those steps' TransformEntry::dictionary_values,
  // of the values that are expected to reach the step: infinite behind a sampling of nothing.
  std::map<std::string, double, std::less<>> DictionaryInputs() const;
  // The same by the scalar references, each step for itself, without the graph: the specification,
  // for tests.
  void ApplyReference(size_t i, FlatMapBatch& batch) const;

 private:
  struct Step;
  void Run(size_t i, FlatMapBatch& batch, bool reference, InstructionSet set,
           DictionaryFigures* figures) const;

  std::vector<std::shared_ptr<const Step>> steps_;
  std::optional<std::vector<std::string>> outputs_;
  TransformGraph graph_;
};

// The columns of a batch as ValidateAgainst wants them: dense, sparse, scalars.
std::vector<AvailableColumn> ColumnsOf(const FlatMapBatch& batch);

}  // namespace headrace::reader
