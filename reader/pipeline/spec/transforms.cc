// [[transform]]: the list of transforms, as written; reader/transforms checks it.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

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

}  // namespace

void ParseTransforms(const SpecValue& root, PipelineSpec* spec) {
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

}  // namespace headrace::reader
