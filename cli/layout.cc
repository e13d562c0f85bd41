// headrace layout: shows what is where in a table, and what a projection reads of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/keys_option.h"
#include "cli/layout_advise.h"
#include "cli/layout_dedup.h"
#include "cli/remote_option.h"
#include "experiments/dedup_sample.h"
#include "experiments/device_cost.h"
#include "experiments/keys.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/layout_map.h"
#include "reader/dwrf/row_reader.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"

namespace headrace::cli {
namespace {

namespace dwrf = reader::dwrf;

struct LayoutCommandOptions {
  std::string table, pipeline, key_place;
  reader::SourceOptions source;
  bool endpoint_given = false, region_given = false;
  std::vector<std::string> projection;
  std::optional<std::string> gap, max;
  bool features = false, json = false, dedup = false, advise = false;
  std::string session = "session_id", time = "timestamp";
  uint64_t rows = 65'536;
  bool rows_given = false;
};

// All keys that some stripe of the table has of a flattened map.
void AddAllKeys(const reader::Table& table, const std::string& column, dwrf::Projection* out) {
  std::set<dwrf::MapKey> keys;
  for (const auto& file : table.files) {
    const uint32_t node = *file->schema().FindColumn(column);
    for (size_t s = 0; s < file->num_stripes(); ++s) {
      const std::shared_ptr<const dwrf::Stripe> stripe = file->ReadStripe(s);
      for (const dwrf::FlatKey& key : stripe->FlatKeys(node)) keys.insert(key.key);
    }
  }
  for (const dwrf::MapKey& key : keys) out->features.push_back({column, key});
}

// "label,sparse[17],dense": columns, keys of flattened maps, and whole flattened maps.
dwrf::Projection ParseProjection(const reader::Table& table,
                                 const std::vector<std::string>& names) {
  dwrf::Projection projection;
  const reader::Schema& schema = table.files[0]->schema();
  for (const std::string& name : names) {
    const auto selection = dwrf::ColumnSelection::Parse(name, schema);
    const auto node = schema.FindColumn(selection.column);
    for (const dwrf::MapKey& key : selection.keys)
      projection.features.push_back({selection.column, key});
    if (!selection.all_keys) continue;
    if (node && schema.node(*node).kind == reader::TypeKind::kMap) {
      AddAllKeys(table, selection.column, &projection);
    } else {
      projection.columns.push_back(selection.column);
    }
  }
  return projection;
}

// With the keys and the store that the pipeline names, if there is one, and over them those given.
reader::Table OpenLayoutTable(const LayoutCommandOptions& options,
                              const std::optional<reader::PipelineSpec>& spec) {
  reader::SourceOptions source = options.source;
  if (spec) {
    source.remote = spec->io.remote;
    if (options.endpoint_given) source.remote.endpoint = options.source.remote.endpoint;
    if (options.region_given) source.remote.region = options.source.remote.region;
  }
  const std::string& keys = spec && options.key_place.empty() ? spec->keys : options.key_place;
  return reader::OpenTable(options.table, source, {}, experiments::OpenWithKeys(keys));
}

// What a run of the pipeline does otherwise than the map shows.
void SayDifferences(const reader::Table& table, const reader::PipelineSpec& spec) {
  if (spec.verify_checksums)
    fmt::print(stderr,
               "headrace layout: source.checksum = true: a run reads every stripe whole; shown is "
               "what it would read without\n");
  std::set<std::string> locked;
  for (const auto& file : table.files)
    for (const std::string& name : dwrf::TopLevelColumns(spec.projection))
      if (file->keys().FirstLocked(file->schema(), *file->schema().FindColumn(name)))
        locked.insert(Printable(name));
  if (!spec.projection.locked_as_null || locked.empty()) return;
  fmt::print(stderr,
             "headrace layout: not shown, as a run reads them as null for lack of their keys: {}\n",
             fmt::join(locked, ", "));
}

// Advice and factors are of a projection; advice scans copies and prints no map. Throws Error
// kUsage.
void CheckQuestion(const LayoutCommandOptions& options, bool has_projection) {
  if (!has_projection) {
    throw Error(ExitCode::kUsage,
                options.advise ? "advice is for a projection, and none is given"
                               : "factors are of a projection, and none is given",
                options.advise ? "--advise" : "--dedup",
                "add --pipeline FILE or --projection NAMES");
  }
  if (options.advise && (options.gap || options.max || options.features)) {
    throw Error(ExitCode::kUsage, "copies are scanned, and no map is printed",
                options.gap   ? "--gap"
                : options.max ? "--max"
                              : "--features",
                "leave it out beside --advise");
  }
}

int Layout(const LayoutCommandOptions& options) {
  std::optional<reader::PipelineSpec> spec;
  if (!options.pipeline.empty()) spec = reader::LoadPipeline(options.pipeline);
  const reader::Table table = OpenLayoutTable(options, spec);
  dwrf::LayoutOptions mapping;
  experiments::DedupSampleOptions dedup;
  dwrf::Projection projection;
  if (spec) {
    experiments::ChooseGap(DefaultDatabase(), &*spec);
    projection = spec->projection;
    mapping.projection = &projection;
    mapping.projection_name = Printable(options.pipeline);
    mapping.max_gap_bytes = spec->fetch.max_gap_bytes;
    mapping.max_read_bytes = spec->fetch.max_read_bytes;
    dedup.dedup = spec->dedup;
    dedup.batch_rows = spec->batch_rows;
  } else if (!options.projection.empty()) {
    projection = ParseProjection(table, options.projection);
    mapping.projection = &projection;
    mapping.projection_name = "the projection";
  }
  if (options.gap) mapping.max_gap_bytes = ParseBytes(*options.gap, "--gap");
  if (options.max) mapping.max_read_bytes = ParseBytes(*options.max, "--max");
  if (mapping.projection == nullptr && (options.gap || options.max))
    throw Error(ExitCode::kUsage, "reads are joined for a projection, and none is given",
                options.gap ? "--gap" : "--max", "add --pipeline FILE or --projection NAMES");
  if (mapping.projection != nullptr)
    dwrf::CheckProjection(table.files[0]->schema(), table.files[0]->source().name(), projection);
  if (options.advise || options.dedup) CheckQuestion(options, mapping.projection != nullptr);
  if (options.advise) {
    workloads::LayoutAdviceOptions advice;
    if (options.rows_given) advice.rows = options.rows;
    PrintAdvice(table, options.table, projection, advice, options.json);
    return 0;
  }
  if (options.dedup) {
    dedup.session = options.session;
    dedup.time = options.time;
    dedup.rows = options.rows;
    PrintDedup(table, options.table, std::move(projection), dedup, options.json);
    return 0;
  }
  if (spec) SayDifferences(table, *spec);
  const dwrf::LayoutMap map = dwrf::MapLayout(table.files, mapping);
  const std::string text =
      options.json ? dwrf::LayoutJson(map) : dwrf::LayoutText(map, options.features);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (options.json || mapping.projection != nullptr || reader::IsRemote(options.table)) return 0;
  const std::filesystem::path beside = std::filesystem::path(options.table) / "pipeline.toml";
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored))
    fmt::print(stderr, "next: {} layout {} --pipeline {}\n", ShellWord(ProgramName()),
               ShellWord(options.table), ShellWord(beside.string()));
  return 0;
}

HR_COMMAND(
    "layout",
    {.summary = "shows what is where in a table, and what a projection reads, reads over and skips",
     .examples =
         "  headrace layout table                                  # areas, columns, stream kinds\n"
         "  headrace layout table --pipeline table/pipeline.toml   # what that job reads, at "
         "several gaps\n"
         "  headrace layout table --projection 'label,sparse[17],dense' --gap 0 --features\n"
         "  headrace layout table --pipeline p.toml --dedup        # how often rows repeat\n"
         "  headrace layout table --pipeline p.toml --advise       # what rewriting would give\n"
         "  headrace layout table --pipeline p.toml --json | jq .projection.by_gap\n",
     .exit_codes = "0 ok, 1 the storage failed, 2 unknown column, an impossible place, or a "
                   "mistake in the pipeline file, 5 not a DWRF table, 6 the projection wants an "
                   "encrypted column, or access denied",
     .next = "headrace run TABLE/pipeline.toml --set source.coalesce_gap=SIZE",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<LayoutCommandOptions>();
       command_line
           .AddOption("TABLE", options->table,
                      "Look at this folder of DWRF files, or one file; also http://, https:// or "
                      "s3://BUCKET/FOLDER")
           ->Required()
           ->TypeName("TABLE");
       AddRemoteOptions(&command_line, &options->source);
       auto* pipeline =
           command_line.AddOption("--pipeline", options->pipeline,
                                  "Take the projection and the joining of reads from this "
                                  "pipeline file");
       pipeline->TypeName("FILE");
       command_line
           .AddOption("--projection", options->projection,
                      "Read these: columns, keys map[17], whole flattened maps")
           ->TypeName("NAMES")
           ->Delimiter(',')
           ->OneValueEach()
           ->Excludes(pipeline);
       command_line
           .AddOption("--gap", options->gap,
                      "Join reads over holes up to this long (default 128KiB)")
           ->TypeName("SIZE");
       command_line.AddOption("--max", options->max, "Make no joined read longer (default 8MiB)")
           ->TypeName("SIZE");
       AddKeysOption(&command_line, &options->key_place);
       command_line.AddFlag("--features", options->features,
                            "List every key of every flattened map, in file order");
       auto* dedup =
           command_line.AddFlag("--dedup", options->dedup,
                                "Say how often rows repeat by groups of features, now and if "
                                "clustered by session");
       command_line
           .AddFlag("--advise", options->advise,
                    "Measure what rewriting with --optimize would give the projection, in bytes "
                    "and CPU time")
           ->Excludes(dedup);
       command_line
           .AddOption("--session", options->session,
                      "Take rows with equal values of this column as one session")
           ->TypeName("COLUMN")
           ->ShowDefault()
           ->Needs(dedup);
       command_line
           .AddOption("--time", options->time, "Take a session's rows in the order of this column")
           ->TypeName("COLUMN")
           ->ShowDefault()
           ->Needs(dedup);
       command_line
           .AddOption("--rows", options->rows,
                      "Measure the first rows, in whole stripes: at most N for --dedup, at least "
                      "N for --advise (default: 65536 for --dedup; for --advise two stripes of "
                      "the size it advises)")
           ->TypeName("N")
           ->Check(InRange(uint64_t{1}, uint64_t{1} << 32));
       command_line.AddFlag("--json", options->json,
                            "Print everything as JSON (headrace.layout/1; with --dedup "
                            "headrace.dedup/1, with --advise headrace.layout_advice/1)");
       return [options, given = &command_line] {
         options->endpoint_given = given->Count("--endpoint") > 0;
         options->rows_given = given->Count("--rows") > 0;
         if (options->rows_given && !options->dedup && !options->advise)
           throw Error(ExitCode::kUsage, "rows are read only to measure", "--rows",
                       "add --dedup or --advise");
         options->region_given = given->Count("--region") > 0;
         return Layout(*options);
       };
     }});

}  // namespace
}  // namespace headrace::cli
