#include "tests/reader/transforms/example_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace headrace::reader {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> Parts(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

void AddPresence(PresenceBits* present, uint64_t row, bool value) {
  present->words.resize(row / 64 + 1);
  present->words[row / 64] |= static_cast<uint64_t>(value) << (row % 64);
  present->count += value;
}

DenseColumn ParseDense(const std::string& text) {
  DenseColumn column;
  for (const std::string& word : Words(text)) {
    AddPresence(&column.present, column.values.size(), word != "-");
    column.values.push_back(word == "-" ? 0 : std::stof(word));
  }
  return column;
}

SparseColumn ParseSparse(const std::string& text) {
  SparseColumn column;
  column.weighted = text.find(':') != std::string::npos;
  column.offsets.push_back(0);
  for (const std::string& list : Parts(text, '|')) {
    const std::vector<std::string> words = Words(list);
    AddPresence(&column.present, column.offsets.size() - 1, words.at(0) != "-");
    for (const std::string& word : words) {
      if (word == "-" || word == "()") continue;
      column.values.push_back(std::stoll(word));
      if (column.weighted) column.weights.push_back(std::stof(word.substr(word.find(':') + 1)));
    }
    column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
  }
  return column;
}

std::string FloatText(float value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value + 0.0f);
}

}  // namespace

FlatMapBatch ParseExample(const TransformEntry& entry, const std::string& text) {
  FlatMapBatch batch;
  if (entry.output == OutputKind::kRows) {
    batch.rows = Words(text).size();
    return batch;
  }
  const std::vector<std::string> parts = Parts(text, ';');
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    const InputKind kind = entry.inputs[std::min(i, entry.inputs.size() - 1)];
    if (kind == InputKind::kDense) {
      batch.dense.push_back(ParseDense(parts[i]));
      batch.dense.back().name = name;
      batch.rows = batch.dense.back().values.size();
    } else if (kind == InputKind::kInteger) {
      ScalarColumn column;
      column.name = name;
      for (const std::string& word : Words(parts[i])) column.integers.push_back(std::stoll(word));
      batch.rows = column.integers.size();
      batch.scalars.push_back(std::move(column));
    } else {
      batch.sparse.push_back(ParseSparse(parts[i]));
      batch.sparse.back().name = name;
      batch.rows = batch.sparse.back().offsets.size() - 1;
    }
  }
  return batch;
}

ParamMap ParseParams(const TransformEntry& entry, const std::string& text) {
  ParamMap params;
  for (const std::string& word : Words(text)) {
    const std::string name = word.substr(0, word.find('=')), value = word.substr(name.size() + 1);
    std::string type;
    for (const ParamDoc& doc : entry.params)
      if (name == doc.name) type = doc.type;
    std::vector<int64_t> integers;
    std::vector<double> reals;
    if (type == "integers")
      for (const std::string& part : Parts(value, ',')) integers.push_back(std::stoll(part));
    if (type == "reals")
      for (const std::string& part : Parts(value, ',')) reals.push_back(std::stod(part));
    if (type == "integer") params[name] = static_cast<int64_t>(std::stoll(value));
    if (type == "real") params[name] = std::stod(value);
    if (type == "text") params[name] = value;
    if (type == "flag") params[name] = value == "true";
    if (type == "integers") params[name] = integers;
    if (type == "reals") params[name] = reals;
    EXPECT_TRUE(params.count(name)) << name << " has no documented type";
  }
  return params;
}

std::string DenseText(const DenseColumn& column) {
  std::string text;
  for (size_t row = 0; row < column.values.size(); ++row)
    text += (row == 0 ? "" : " ") +
            (column.present.Get(row) ? FloatText(column.values[row]) : std::string("-"));
  return text;
}

std::string SparseText(const SparseColumn& column) {
  std::string text;
  for (size_t row = 0; row + 1 < column.offsets.size(); ++row) {
    std::string list;
    for (uint32_t i = column.offsets[row]; i < column.offsets[row + 1]; ++i) {
      list += (list.empty() ? "" : " ") + std::to_string(column.values[i]);
      if (!column.weights.empty()) list += ":" + FloatText(column.weights[i]);
    }
    if (list.empty()) list = column.present.Get(row) ? "()" : "-";
    text += (row == 0 ? "" : " | ") + list;
  }
  return text;
}

std::string OutputText(const TransformEntry& entry, FlatMapBatch& batch) {
  if (entry.output == OutputKind::kRows) {
    std::string text;
    for (uint64_t row = 0; row < batch.rows; ++row)
      text += (row == 0 ? "" : " ") + std::to_string(batch.RowId(row));
    return text;
  }
  if (const DenseColumn* dense = batch.FindDense("out")) return DenseText(*dense);
  if (const SparseColumn* sparse = batch.FindSparse("out")) return SparseText(*sparse);
  return "no column out";
}

TransformSpec ExampleSpec(const std::string& op, const TransformEntry& entry, size_t num_inputs,
                          ParamMap params) {
  TransformSpec spec;
  spec.op = op;
  spec.params = std::move(params);
  if (entry.output == OutputKind::kRows) return spec;
  spec.output = "out";
  for (size_t i = 0; i < num_inputs; ++i) spec.inputs.push_back("in" + std::to_string(i));
  return spec;
}

TEST(ExampleText, ColumnsGoThereAndBack) {
  const TransformEntry& dense = *TransformRegistry::Global().Find("clamp");
  EXPECT_EQ(DenseText(ParseExample(dense, "1 - nan 0.5").dense[0]), "1 - nan 0.5");
  const TransformEntry& sparse = *TransformRegistry::Global().Find("first_x");
  EXPECT_EQ(SparseText(ParseExample(sparse, "1 2 | - | ()").sparse[0]), "1 2 | - | ()");
  EXPECT_EQ(SparseText(ParseExample(sparse, "1:0.5 2:1 | -").sparse[0]), "1:0.5 2:1 | -");
}

}  // namespace headrace::reader
