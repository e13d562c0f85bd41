#include "reader/transforms/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace headrace::reader {
namespace {

std::string InputsText(const TransformEntry& entry) {
  std::string text;
  for (const InputKind kind : entry.inputs)
    text += (text.empty() ? "" : ", ") + std::string(InputKindName(kind));
  if (entry.max_inputs > entry.inputs.size()) text += ", ...";
  return text.empty() ? "all columns" : text;
}

const char* OutputText(OutputKind kind) {
  switch (kind) {
    case OutputKind::kDense:
      return "dense";
    case OutputKind::kSparse:
      return "sparse";
    case OutputKind::kWeighted:
      return "weighted sparse";
    case OutputKind::kAsFirstInput:
      return "as the input";
    case OutputKind::kRows:
      return "fewer rows";
  }
  return "";
}

// Only ids have dictionaries.
const char* DictionaryText(const TransformEntry& entry) {
  const bool takes_ids = !entry.inputs.empty() && entry.inputs[0] != InputKind::kDense &&
                         entry.inputs[0] != InputKind::kInteger;
  if (!takes_ids) return entry.output == OutputKind::kRows ? "indices" : "";
  return entry.use == IdUse::kEach ? "entries" : entry.use == IdUse::kPlaces ? "indices" : "";
}

std::string ShapeText(const TransformEntry& entry) {
  return InputsText(entry) + " -> " + OutputText(entry.output);
}

std::vector<std::string> RegisteredNames() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : TransformRegistry::Global().entries()) names.push_back(name);
  return names;
}

void CheckParamNames(const Params& params, const TransformEntry& entry) {
  std::vector<std::string> known;
  for (const ParamDoc& doc : entry.params) known.emplace_back(doc.name);
  for (const auto& [name, value] : params.values()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = NearestName(name, known);
    std::string fix = "it takes no parameters";
    if (!nearest.empty()) {
      fix = "did you mean '" + nearest + "'?";
    } else if (!known.empty()) {
      fix = fmt::format("it takes {}", fmt::join(known, ", "));
    }
    throw Error(ExitCode::kUsage,
                fmt::format("{} has no parameter '{}'", params.op(), Printable(name)),
                params.where(), fix);
  }
}

}  // namespace

const char* ColumnKindName(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kDense:
      return "dense";
    case ColumnKind::kSparse:
      return "sparse";
    case ColumnKind::kWeightedSparse:
      return "weighted sparse";
    case ColumnKind::kInteger:
      return "integer column";
    case ColumnKind::kFloat:
      return "float column";
  }
  return "";
}

const char* InputKindName(InputKind kind) {
  switch (kind) {
    case InputKind::kDense:
      return "dense";
    case InputKind::kSparse:
      return "sparse";
    case InputKind::kAnyIds:
      return "sparse or weighted sparse";
    case InputKind::kWeighted:
      return "weighted sparse";
    case InputKind::kInteger:
      return "integer column";
  }
  return "";
}

bool Accepts(InputKind input, ColumnKind column) {
  switch (input) {
    case InputKind::kDense:
      return column == ColumnKind::kDense;
    case InputKind::kSparse:
      return column == ColumnKind::kSparse;
    case InputKind::kAnyIds:
      return column == ColumnKind::kSparse || column == ColumnKind::kWeightedSparse;
    case InputKind::kWeighted:
      return column == ColumnKind::kWeightedSparse;
    case InputKind::kInteger:
      return column == ColumnKind::kInteger;
  }
  return false;
}

std::unique_ptr<Transform> MakeTransform(const Params& params) {
  const TransformEntry* entry = TransformRegistry::Global().Find(params.op());
  if (entry == nullptr) {
    const std::vector<std::string> names = RegisteredNames();
    const std::string nearest = NearestName(params.op(), names);
    throw Error(ExitCode::kUsage, fmt::format("no transform '{}'", Printable(params.op())),
                params.where(),
                nearest.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                : "did you mean '" + nearest + "'?");
  }
  CheckParamNames(params, *entry);
  return entry->make(params);
}

std::string TransformDocs() {
  const auto& entries = TransformRegistry::Global().entries();
  std::string text =
      "# Transforms\n\n"
      "What a `[[transform]]` of `pipeline.toml` can name in `op`. This page is printed from the "
      "registry; a test keeps it in step. [adding-a-transform.md](adding-a-transform.md) shows how "
      "to add one.\n\n"
      "```toml\n[[transform]]\nop = \"sigrid_hash\"\ninputs = [\"sparse:17\"]\n"
      "output = \"sparse:17\"     # an input's name replaces it; a new name adds a column\n"
      "salt = 7\nmax = 1000000\n```\n\n"
      "A feature that a row does not have (absent) stays absent unless a transform says otherwise; "
      "an empty list stays an empty list.\n"
      "Results do not depend on the instruction set, the number of threads or where "
      "batches begin and end, except `logit` and `box_cox`, whose vector kernels stay within the "
      "stated units in "
      "the last place (ulp) of the reference.\n\n"
      "Where a column's ids are in a dictionary ([pipeline.md](pipeline.md), Dictionaries), some "
      "run on its entries or on the indices, as said below; the others get ids.\n\n"
      "| columns | op |\n| --- | --- |\n";
  std::map<std::string, std::string> by_shape;
  for (const auto& [name, entry] : entries) {
    std::string& ops = by_shape[ShapeText(entry)];
    ops += fmt::format("{}[`{}`](#{})", ops.empty() ? "" : ", ", name, name);
  }
  for (const auto& [shape, ops] : by_shape) text += fmt::format("| {} | {} |\n", shape, ops);
  for (const auto& [name, entry] : entries) {
    text += fmt::format("\n## {}\n\n{} {}\n\n", name, entry.summary, entry.semantics);
    for (const ParamDoc& doc : entry.params)
      text += fmt::format("- `{}` ({}, {}): {}\n", doc.name, doc.type,
                          *doc.fallback == '\0' ? "required" : doc.fallback, doc.doc);
    const std::string on_dictionary = DictionaryText(entry);
    text += fmt::format("- cost: {}{}\n\n", entry.cost,
                        on_dictionary.empty() ? "" : "; on a dictionary: " + on_dictionary);
    text += "```\n";
    for (const Example& example : entry.examples)
      text += fmt::format("{}{}{}\n    -> {}\n", example.params,
                          *example.params == '\0' ? "" : "   ", example.input, example.output);
    text += "```\n";
  }
  return text;
}

}  // namespace headrace::reader
