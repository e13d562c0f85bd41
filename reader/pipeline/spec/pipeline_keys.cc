// [pipeline]: what is of the whole run.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

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

}  // namespace

void ParsePipelineKeys(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("pipeline");
  table.CheckKeys("[pipeline]",
                  {"name", "order", "batch_rows", "seed", "worker_rows", "shuffle_rows",
                   "reorder_window", "prefetch", "layout", "dictionary", "memory", "huge_pages"});
  spec->name = table.Text("name", "pipeline");
  spec->file_order = table.IsSecond("order", "any", "file");
  spec->batch_rows = table.Count("batch_rows", 512, 1, 1u << 24);
  spec->seed = table.Count("seed", 1, 0, UINT64_MAX >> 1);
  spec->worker_rows = table.Count("worker_rows", 0, 0, 1u << 24);
  spec->shuffle_rows = table.Count("shuffle_rows", 0, 0, 1u << 28);
  spec->reorder_window = table.Count("reorder_window", 0, 0, 1u << 20);
  spec->prefetch = static_cast<uint32_t>(table.Count("prefetch", 0, 0, kMaxQueue));
  spec->layout = Layout(table);
  spec->dictionary = Dictionary(table);
  spec->memory_bytes = table.Bytes("memory", spec->memory_bytes);
  spec->huge_pages = table.Flag("huge_pages", false);
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

}  // namespace headrace::reader
