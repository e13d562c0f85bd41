// headrace rewrite: writes the rows of a table again in another layout.
#include "workloads/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/keys_option.h"
#include "cli/layout_explain.h"
#include "dashboards/terminal/progress.h"
#include "experiments/interrupt.h"
#include "experiments/keys.h"

namespace headrace::cli {
namespace {

struct RewriteCommandOptions {
  std::string source, folder, layout = "keep", order = "keep", coread, keys;
  std::vector<std::string> encrypt, columns;
  std::string optimize;
  bool replace = false, explain = false;
  workloads::RewriteOptions rewrite;
};

// "sparse.value.element=raw", "=level:9", "=ratio:2", "=dictionary:never", or several by commas.
void ParseColumn(const std::string& text,
                 std::map<std::string, reader::dwrf::ColumnOptions>* columns) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ExitCode::kUsage, what, fmt::format("--column '{}'", Printable(text, 120)),
                "write PATH=raw, PATH=level:N, PATH=ratio:X, PATH=dictionary:auto, never, always "
                "or shared, or several: PATH=level:9,ratio:2");
  };
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse("no path and '='");
  reader::dwrf::ColumnOptions& column = (*columns)[text.substr(0, equals)];
  std::string rest = text.substr(equals + 1);
  const std::vector<std::string> uses = {"auto", "never", "always", "shared"};
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string part = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const size_t colon = part.find(':');
    const std::string name = part.substr(0, colon);
    const std::string value = colon == std::string::npos ? "" : part.substr(colon + 1);
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    const bool is_number = !value.empty() && *end == '\0';
    if (part == "raw") {
      column.compress = false;
    } else if (name == "level" && is_number && number == static_cast<int>(number)) {
      column.level = static_cast<int>(number);
    } else if (name == "ratio" && is_number) {
      column.min_ratio = number;
    } else if (const auto use = std::find(uses.begin(), uses.end(), value);
               name == "dictionary" && use != uses.end()) {
      column.dictionary = static_cast<reader::dwrf::DictionaryUse>(use - uses.begin());
    } else {
      refuse(fmt::format("'{}' is not a choice", Printable(part, 40)));
    }
  }
}

void Resolve(RewriteCommandOptions* options) {
  workloads::RewriteOptions& rewrite = options->rewrite;
  rewrite.layout = options->layout == "flat"  ? workloads::MapLayout::kFlat
                   : options->layout == "map" ? workloads::MapLayout::kMap
                                              : workloads::MapLayout::kKeep;
  rewrite.order = options->order == "declared"     ? workloads::FeatureOrder::kDeclared
                  : options->order == "random"     ? workloads::FeatureOrder::kRandom
                  : options->order == "popularity" ? workloads::FeatureOrder::kPopularity
                                                   : workloads::FeatureOrder::kKeep;
  if ((rewrite.order == workloads::FeatureOrder::kPopularity) != !options->coread.empty())
    throw Error(ExitCode::kUsage, "--order popularity and --coread are given together", {},
                "--order popularity --coread FILE, a log of 'headrace run --log-reads FILE'");
  if (!options->coread.empty()) rewrite.jobs = workloads::LoadCoread(options->coread);
  if (!options->optimize.empty()) rewrite.optimize = ParseGoal(options->optimize);
  for (const std::string& text : options->columns) ParseColumn(text, &rewrite.columns);
  for (const std::string& text : options->encrypt)
    rewrite.encryption.groups.push_back(reader::dwrf::EncryptionGroupSpec::Parse(text));
  if (!rewrite.encryption.groups.empty() && options->keys.empty())
    throw Error(ExitCode::kUsage, "--encrypt needs --keys", {},
                "add --keys FILE or --keys env:NAME");
  rewrite.encryption.keys = experiments::OpenWithKeys(options->keys).keys;
  if (!options->keys.empty())
    rewrite.encryption.keys_place =
        options->keys.starts_with("env:")
            ? options->keys
            : std::filesystem::absolute(options->keys).lexically_normal().string();
}

int Rewrite(RewriteCommandOptions* options) {
  experiments::InstallInterruptHandler();
  Resolve(options);
  dashboards::Progress progress("rewrite");
  const auto result = workloads::RewriteTable(
      options->source, options->folder, options->rewrite,
      [&](double fraction, const std::string& note) {
        if (experiments::Interrupted())
          throw Error(ExitCode::kInterrupted, "interrupted; nothing was written");
        progress.Update(fraction, note);
      },
      options->replace);
  progress.Finish(fmt::format("{} rows in {} file{} of {} stripes: {} before, {} now", result.rows,
                              result.files, result.files == 1 ? "" : "s", result.stripes,
                              FormatBytes(static_cast<double>(result.bytes_before)),
                              FormatBytes(static_cast<double>(result.bytes))));
  if (options->rewrite.compression && !options->rewrite.min_ratio)
    fmt::print(stderr, "{}", UnusedCodecLine(result.layout));
  if (options->explain) fmt::print("{}", ExplainLayout(result.schema, result.layout));
  fmt::print(stderr, "next: {} layout {}\n", ShellWord(ProgramName()), ShellWord(options->folder));
  return 0;
}

HR_COMMAND(
    "rewrite",
    {.summary = "writes the rows of a table again in another layout",
     .examples =
         "  headrace rewrite t -o quick --optimize balanced --explain  # what costs readers least\n"
         "  headrace rewrite t -o large --stripe-rows 16384            # fewer, larger stripes\n"
         "  headrace rewrite t -o hot --order popularity --coread reads.jsonl\n"
         "  headrace rewrite t -o maps --layout map                    # every map whole, not by "
         "key\n"
         "  headrace rewrite t -o near --cluster session_id --compression zstd --level 9\n"
         "  headrace rewrite t -o raw --column sparse.value.element=raw --min-ratio 1\n",
     .exit_codes = "0 ok, 2 a mistake in an option or the folder is not empty, 5 damaged table or "
                   "log, 6 an encrypted column without its key, 7 disk full",
     .next = "headrace layout DIR --pipeline DIR/pipeline.toml",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<RewriteCommandOptions>();
       workloads::RewriteOptions* rewrite = &options->rewrite;
       command_line
           .AddOption("TABLE", options->source, "Read this folder of DWRF files, or one file")
           ->Required()
           ->TypeName("TABLE");
       command_line
           .AddOption("-o,--output", options->folder,
                      "Write into this folder; it appears complete or not at all")
           ->Required();
       command_line
           .AddOption("--layout", options->layout,
                      "Write maps flat (one sub-column a key), as map, or keep what they are")
           ->Check(OneOf({"keep", "flat", "map"}))
           ->ShowDefault();
       command_line
           .AddOption("--order", options->order,
                      "Lay features out as declared (by key), random, by popularity, or keep")
           ->Check(OneOf({"keep", "declared", "random", "popularity"}))
           ->ShowDefault();
       command_line
           .AddOption("--coread", options->coread, "Take popularity from this log of reads")
           ->TypeName("FILE");
       command_line.AddOption("--seed", rewrite->seed, "Start a random order here")->ShowDefault();
       command_line.AddOption("--stripe-rows", rewrite->stripe_rows,
                              "End a stripe after this many rows");
       command_line.AddOption("--compression", rewrite->compression,
                              "Compress with zstd, lz4, snappy, zlib or none");
       command_line.AddOption("--level", rewrite->level,
                              "Compress at this level (zstd 1-19, zlib 1-12)");
       command_line.AddOption("--min-ratio", rewrite->min_ratio,
                              "Keep a chunk compressed only where it shrinks by this factor");
       command_line
           .AddOption("--optimize", options->optimize,
                      "Choose what no other option names for jobs that read (read), for few bytes "
                      "(size) or both (balanced); off: nothing is chosen (default: as the table "
                      "was written)")
           ->Check(OneOf({"balanced", "read", "size", "off"}));
       command_line.AddFlag("--explain", options->explain, "Print what was chosen, and its gain");
       command_line
           .AddOption("--column", options->columns,
                      "Choose for the streams of one column: PATH=raw, PATH=level:N, PATH=ratio:X, "
                      "PATH=dictionary:auto, never, always or shared")
           ->TypeName("CHOICE")
           ->OneValueEach();
       command_line
           .AddOption("--cluster", rewrite->cluster,
                      "Put rows of equal values of this column next to each other, file by file")
           ->TypeName("COLUMN");
       command_line
           .AddOption("--encrypt", options->encrypt,
                      "Encrypt columns: NAME=COLUMN[,COLUMN]:KEY_ID[:CIPHER], a group each")
           ->TypeName("GROUP")
           ->OneValueEach();
       AddKeysOption(&command_line, &options->keys);
       command_line.AddFlag("-f,--force", options->replace,
                            "Replace the table in an existing folder");
       return [options] { return Rewrite(options.get()); };
     }});

}  // namespace
}  // namespace headrace::cli
