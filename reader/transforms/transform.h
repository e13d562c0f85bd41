// Transform: one preprocessing operation on the columns of a FlatMap batch. A transform is one file
// of this folder: doc comment, parameters, Reference (a plain loop, the specification), Apply (the
// kernel, same results on every instruction set), examples, and HR_TRANSFORM at its end. A generic
// test runs over the registry and compares Apply with Reference.
//
// Where a column's ids are in a dictionary (batch/id_dictionary.h), transforms that look at one
// value at a time run on its entries, and transforms that only move ids run on the indices; IdUse
// says which do.
//
// Five shapes, one base class each:
//   DenseTransform   float[rows] -> float[rows], element by element, in place
//   IdTransform      int64[n]    -> int64[n],    id by id, in place; lists keep their lengths
//   ListTransform    columns     -> one new sparse column
//   ScoreTransform   columns     -> one new dense column
//   RowTransform     row ids     -> which rows of the batch stay
//
// Transforms are immutable after construction and may run on many threads at once.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/cpu.h"
#include "base/registry.h"
#include "reader/batch/flat_map_batch.h"
#include "reader/transforms/params.h"

namespace headrace::reader {

// What a column of a batch is, as far as transforms care.
enum class ColumnKind : uint8_t { kDense, kSparse, kWeightedSparse, kInteger, kFloat };
const char* ColumnKindName(ColumnKind kind);  // "dense", "sparse", "weighted sparse", ...

// What an input must be.
enum class InputKind : uint8_t {
  kDense,
  kSparse,    // ids without weights
  kAnyIds,    // ids with or without weights
  kWeighted,  // ids with weights
  kInteger,   // a plain integer column of the table (timestamp, session id)
};
bool Accepts(InputKind input, ColumnKind column);
const char* InputKindName(InputKind kind);

enum class OutputKind : uint8_t {
  kDense,
  kSparse,
  kWeighted,
  kAsFirstInput,  // ids with weights when the first input has weights
  kRows,          // no column: rows of the batch are dropped
};

// The input columns, in the order of the spec, sorted by kind. Views; valid during one call.
struct TransformInputs {
  uint64_t rows = 0;
  std::vector<const DenseColumn*> dense;
  std::vector<const SparseColumn*> sparse;
  std::vector<const ScalarColumn*> scalars;
  // The rows' numbers within the table, for random transforms; empty: first_row, first_row + 1, ...
  std::span<const uint64_t> row_ids = {};
  uint64_t first_row = 0;

  uint64_t RowId(uint64_t row) const { return row_ids.empty() ? first_row + row : row_ids[row]; }
};

class Transform {
 public:
  virtual ~Transform() = default;
};

class DenseTransform : public Transform {
 public:
  // `values` holds one value per row; what is written where the feature is absent is put back to 0
  // by the caller. A value's result has the same bits wherever in the span the value stands, of one
  // instruction set: rows must not depend on the batch they are in.
  virtual void Reference(std::span<float> values) const = 0;
  virtual void Apply(std::span<float> values, InstructionSet set) const {
    (void)set, Reference(values);
  }
  // Largest distance between Apply and Reference in units in the last place; 0 = same bits.
  virtual uint32_t MaxUlps() const { return 0; }
};

class IdTransform : public Transform {
 public:
  virtual void Reference(std::span<int64_t> ids) const = 0;
  virtual void Apply(std::span<int64_t> ids, InstructionSet set) const {
    (void)set, Reference(ids);
  }
};

class ListTransform : public Transform {
 public:
  // Fills all of `out` but its name; `out` arrives empty. Throws Error kResources when a column
  // would hold 2^32 ids or more.
  virtual void Reference(const TransformInputs& in, SparseColumn* out) const = 0;
  virtual void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet set) const {
    (void)set, Reference(in, out);
  }
};

class ScoreTransform : public Transform {
 public:
  // Fills presence and values of `out`, which arrives empty.
  virtual void Reference(const TransformInputs& in, DenseColumn* out) const = 0;
  virtual void Apply(const TransformInputs& in, DenseColumn* out, InstructionSet set) const {
    (void)set, Reference(in, out);
  }
};

class RowTransform : public Transform {
 public:
  // keep[r] = 1 when the row with global id row_ids[r] stays, else 0.
  virtual void Reference(std::span<const uint64_t> row_ids, uint8_t* keep) const = 0;
  virtual void Apply(std::span<const uint64_t> row_ids, uint8_t* keep, InstructionSet set) const {
    (void)set, Reference(row_ids, keep);
  }
  // Expected share of rows that stay, 0 to 1.
  virtual double Share() const { return 1; }
};

struct ParamDoc {
  const char* name;
  const char* type;      // integer, real, text, flag, integers, reals
  const char* fallback;  // as printed; "" = required
  const char* doc;
};

// What a transform has to know of the values it is given.
enum class IdUse : uint8_t {
  kAll,     // several values at once, or values and rows
  kEach,    // each value of the result depends on one value alone: right on different values too
  kPlaces,  // of the ids of its one input nothing: it moves them, or leaves them out
};

// One line of the specification as text. Dense: one value per row, "-" where absent. Ids: lists by
// " | ", "-" where absent, "()" for empty; weights as id:weight. Several inputs by ";".
struct Example {
  const char* params;  // "low=0 high=1"; lists as borders=2,5,10
  const char* input;
  const char* output;
};

struct TransformEntry {
  const char* summary;    // one sentence
  const char* semantics;  // exact rules: borders, NaN, absent, weights
  const char* cost;       // cost class: what one value costs and what bounds it
  std::vector<InputKind> inputs;
  size_t max_inputs;  // > inputs.size(): the last kind may repeat
  OutputKind output;
  std::vector<ParamDoc> params;
  std::vector<Example> examples;
  bool random = false;      // draws, by its seeds and the row's number, never by thread or batch
  IdUse use = IdUse::kAll;  // kEach for every DenseTransform and IdTransform, by their shape
  // For an IdTransform: from this many values per dictionary entry on, working on the dictionary is
  // faster (tests/bench/dictionary_bench.cc).
  double dictionary_values = 16;
  std::unique_ptr<Transform> (*make)(const Params&);  // throws Error kUsage
};
using TransformRegistry = Registry<TransformEntry>;

// Builds the transform `op`: unknown operators and parameters are refused with the nearest valid
// name. Throws Error kUsage.
std::unique_ptr<Transform> MakeTransform(const Params& params);

// The table of docs/transforms.md, from the registry.
std::string TransformDocs();

// Registers `Class` (constructible from const Params&) as `name`:
//   HR_TRANSFORM("clamp", Clamp, {.summary = ..., ...});
#define HR_TRANSFORM(name, Class, ...)                                                            \
  [[maybe_unused]] static const bool HR_REGISTRAR = ::headrace::reader::RegisterTransform<Class>( \
      name, ::headrace::reader::TransformEntry __VA_ARGS__)

template <typename Class>
bool RegisterTransform(const char* name, TransformEntry entry) {
  entry.make = [](const Params& params) -> std::unique_ptr<Transform> {
    return std::make_unique<Class>(params);
  };
  if constexpr (std::is_base_of_v<DenseTransform, Class> || std::is_base_of_v<IdTransform, Class>)
    entry.use = IdUse::kEach;
  return TransformRegistry::Global().Add(name, std::move(entry));
}

}  // namespace headrace::reader
