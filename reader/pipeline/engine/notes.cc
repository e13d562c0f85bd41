#include "reader/pipeline/engine/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/batching.h"
#include "reader/pipeline/dictionaries.h"

namespace headrace::reader {

namespace {

using Notes = std::vector<std::string>;

// Rows and columns that the batches lack, or that nobody could check.
void AddMissing(const Input& input, const Progress& progress, Notes* notes) {
  const PipelineProgress now = progress.Now();
  if (now.skipped_stripes > 0)
    notes->push_back(
        fmt::format("left out {} stripes that could not be read, {} rows; the first: {}",
                    now.skipped_stripes, now.skipped_rows, progress.first_left_out()));
  if (const LockedColumns& locked = input.locked; !locked.names.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : locked.names) names.push_back(Printable(name));
    notes->push_back(fmt::format(
        "source.on_locked: null, for lack of their keys, were the encrypted columns {}; {}",
        fmt::join(names, ", "), locked.why));
  }
  if (const uint64_t rows = input.counts.filtered_rows.load(); rows > 0)
    notes->push_back(fmt::format("[[filter]] dropped {} rows", rows));
  if (const uint64_t stripes = input.counts.unchecked_stripes.load(); stripes > 0)
    notes->push_back(
        fmt::format("source.checksum had nothing to look at in {} stripes: their files have no "
                    "checksums, or of a kind that is not known",
                    stripes));
}

void AddUnusedConsumer(const PipelineSpec& spec, Notes* notes) {
  const ConsumerSpec& consumer = spec.consumer;
  if (spec.delivery.to.kind != DeliveryKind::kInline &&
      (consumer.kind != ConsumerKind::kEmulated || consumer.step.mean > 0))
    notes->push_back(
        "[consumer] was not used: delivery.to names another process, and what that one "
        "does with a batch is its own affair (headrace consume --step-time)");
}

// What was asked for and taken another way.
void AddLayout(const PipelineSpec& spec, const Input& input, Notes* notes) {
  if (spec.layout == BatchLayout::kDirect) {
    if (CachesWholeSplits(spec))
      notes->push_back("layout flatmap was taken: [[cache]] keeps whole stripes after " +
                       spec.cache.after +
                       ", and direct cuts them before; with after = "
                       "\"extract\" it can be direct");
    else if (const uint64_t stripes = input.counts.ordinary_stripes.load(); stripes > 0)
      notes->push_back(
          fmt::format("layout flatmap was taken for {} stripes: their maps are not flattened, "
                      "which direct needs; 'headrace rewrite' can flatten them",
                      stripes));
  }
  if (input.context.dictionaries) {
    std::string note =
        DictionaryNote(*input.context.dictionaries, input.counts.looked_up_dictionaries);
    if (!note.empty()) notes->push_back(std::move(note));
  }
}

void AddStorage(const Input& input, Notes* notes) {
  for (const auto& file : input.table->files) {
    std::string note = file->source().note();
    if (!note.empty() && std::find(notes->begin(), notes->end(), note) == notes->end())
      notes->push_back(std::move(note));
  }
  if (input.tier) {
    for (std::string& note : input.tier->notes()) notes->push_back(std::move(note));
  }
  if (input.cache && !input.cache->note().empty()) notes->push_back(input.cache->note());
}

}  // namespace

std::vector<std::string> NotesOf(const PipelineSpec& spec, const Input& input,
                                 const Progress& progress) {
  Notes notes;
  if (!input.table) return notes;
  AddMissing(input, progress, &notes);
  AddUnusedConsumer(spec, &notes);
  AddLayout(spec, input, &notes);
  AddStorage(input, &notes);
  return notes;
}

}  // namespace headrace::reader
