// [consumer]: what takes the batches, and the model of the trainer.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "reader/pipeline/cost.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

constexpr int64_t kMaxWidth = 65536;  // of a layer
constexpr size_t kMaxLayers = 32;

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

}  // namespace

void ParseConsumer(const SpecValue& root, PipelineSpec* spec) {
  const SpecValue table = root.Table("consumer");
  table.CheckKeys("[consumer]", {"kind", "step", "cv", "distribution", "spin", "model"});
  const std::vector<std::string> kinds = {"emulated", "trainer", "none"};
  const std::string kind = table.Text("kind", "emulated");
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found == kinds.end())
    table["kind"].Fail(
        fmt::format("unknown kind '{}'{}", Printable(kind, 40), DidYouMean(kind, kinds)));
  spec->consumer.kind = static_cast<ConsumerKind>(found - kinds.begin());
  spec->consumer.step.mean = table.Duration("step", spec->consumer.step.mean);
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

}  // namespace headrace::reader
