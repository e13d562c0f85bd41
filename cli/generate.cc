// headrace generate: writes a recommendation training table and the pipeline that reads it.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/layout_explain.h"
#include "dashboards/terminal/progress.h"
#include "experiments/interrupt.h"
#include "workloads/generator.h"

namespace headrace::cli {
namespace {

struct GenerateOptions {
  std::string workload;
  std::string folder;
  std::optional<uint64_t> rows, seed, partitions, stripe_rows;
  std::optional<double> features;
  std::optional<std::string> compression;
  std::string optimize = "balanced";
  bool explain = false;
  std::vector<std::string> encrypt;
  std::string keys;
  bool clustered = false;
  bool replace = false;
  bool quiet = false;
};

template <typename T>
void Override(const std::optional<T>& option, T* value) {
  if (option) *value = *option;
}

workloads::WorkloadSpec MakeSpec(const GenerateOptions& options) {
  workloads::WorkloadSpec spec = workloads::LoadSpec(options.workload);
  Override(options.rows, &spec.rows);
  Override(options.seed, &spec.seed);
  Override(options.partitions, &spec.partitions);
  spec.optimize = ParseGoal(options.optimize);
  if (spec.optimize != reader::dwrf::LayoutGoal::kFixed) {
    spec.compression.clear();
    spec.stripe_rows = 0;
  }
  // Both mean "choose" in a spec with a goal.
  if (options.stripe_rows && *options.stripe_rows == 0)
    throw Error(ExitCode::kUsage, "a stripe has at least one row", "--stripe-rows",
                "leave it out to have it chosen");
  if (options.compression && options.compression->empty())
    throw Error(ExitCode::kUsage, "no codec is named", "--compression",
                "use zstd, lz4, snappy, zlib or none");
  Override(options.stripe_rows, &spec.stripe_rows);
  Override(options.features, &spec.feature_fraction);
  Override(options.compression, &spec.compression);
  if (options.clustered) spec.clustered = true;
  return spec;
}

workloads::TableEncryption MakeEncryption(const GenerateOptions& options) {
  workloads::TableEncryption encryption;
  for (const std::string& text : options.encrypt)
    encryption.groups.push_back(reader::dwrf::EncryptionGroupSpec::Parse(text));
  if (encryption.groups.empty() != options.keys.empty())
    throw Error(ExitCode::kUsage, "--encrypt and --keys are given together", {},
                "--encrypt pii=sparse:KEY_ID --keys FILE");
  if (options.keys.empty()) return encryption;
  encryption.keys = reader::dwrf::KeyRing::Load(options.keys);
  // The pipeline file is elsewhere, so that a relative name would mean another file there.
  encryption.keys_place = options.keys.starts_with("env:")
                              ? options.keys
                              : std::filesystem::absolute(options.keys).lexically_normal().string();
  return encryption;
}

int Generate(const GenerateOptions& options) {
  experiments::InstallInterruptHandler();
  const workloads::WorkloadSpec spec = MakeSpec(options);
  const workloads::TableEncryption encryption = MakeEncryption(options);
  const int64_t start_ns = MonotonicNs();
  std::optional<dashboards::Progress> progress;
  if (!options.quiet) progress.emplace("generate");
  if (progress) progress->Update(0, "");  // the first stripe takes seconds
  const auto table = workloads::GenerateTable(
      spec, options.folder,
      [&](double fraction, const std::string& note) {
        if (experiments::Interrupted())
          throw Error(ExitCode::kInterrupted, "interrupted; nothing was written");
        if (progress) progress->Update(fraction, note);
      },
      options.replace, encryption);
  const auto explain = [&] {
    if (options.explain) fmt::print("{}", ExplainLayout(table.schema, table.layout));
  };
  if (!progress) {
    explain();
    return 0;
  }
  const double seconds = static_cast<double>(MonotonicNs() - start_ns) * 1e-9;
  size_t used = 0;
  for (const bool is_used : table.used) used += is_used ? 1 : 0;
  progress->Finish(fmt::format(
      "{} rows, {} features, {} in {} file{}, {} of values written at {}", spec.rows,
      table.features.size(), FormatBytes(static_cast<double>(table.file_bytes)), table.files,
      table.files == 1 ? "" : "s", FormatBytes(static_cast<double>(table.raw_bytes)),
      FormatBytesRate(static_cast<double>(table.raw_bytes) / seconds)));
  explain();
  fmt::print(stderr, "pipeline.toml reads {} of the features, {} of their bytes\n",
             FormatPercent(static_cast<double>(used) / static_cast<double>(table.features.size())),
             FormatPercent(static_cast<double>(table.used_bytes()) /
                           static_cast<double>(table.feature_bytes())));
  if (options.compression) fmt::print(stderr, "{}", UnusedCodecLine(table.layout));
  fmt::print(stderr, "next: {} run {}/pipeline.toml\n", ShellWord(ProgramName()),
             ShellWord(options.folder));
  return 0;
}

HR_COMMAND(
    "generate",
    {.summary = "writes a recommendation training table and the pipeline that reads it",
     .examples =
         "  headrace generate rm1 -o table                       # 16384 rows, 1/16 of the "
         "published features\n"
         "  headrace generate rm3 -o big --rows 1000000 --features 0.25 --partitions 8\n"
         "  headrace generate rm1 -o secret --encrypt pii=sparse,weighted:k1 --keys keys.txt\n"
         "  headrace generate my.toml -o mine --compression lz4  # your own characteristics\n",
     .exit_codes = "0 ok, 2 the folder is not empty, 5 mistake in the spec or key file, 6 no such "
                   "key, 7 disk "
                   "full",
     .next = "headrace run DIR/pipeline.toml",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<GenerateOptions>();
       command_line
           .AddOption("WORKLOAD", options->workload, "Make this: rm1, rm2, rm3 or a spec file")
           ->Required();
       command_line
           .AddOption("-o,--output", options->folder,
                      "Write into this folder; it appears complete or not at all")
           ->Required();
       command_line.AddOption("--rows", options->rows, "Write this many rows (default 16384)");
       command_line.AddOption(
           "--features", options->features,
           "Scale the published feature counts by this fraction (default 0.0625)");
       command_line.AddOption("--seed", options->seed, "Start all random draws here (default 1)");
       command_line.AddOption("--partitions", options->partitions,
                              "Split the rows into this many files (default 1)");
       command_line.AddOption(
           "--stripe-rows", options->stripe_rows,
           "End a stripe after this many rows (default: 2048 to 8192, an eighth of "
           "the table; 2048 with off)");
       command_line.AddOption("--compression", options->compression,
                              "Compress with zstd, lz4, snappy, zlib or none (default: what "
                              "--optimize chooses; zstd with off)");
       command_line
           .AddOption("--optimize", options->optimize,
                      "Choose codec, dictionaries and widths for jobs that read (read), for few "
                      "bytes (size) or both (balanced); off: none of it")
           ->Check(OneOf({"balanced", "read", "size", "off"}))
           ->ShowDefault();
       command_line.AddFlag("--explain", options->explain, "Print what was chosen, and its gain");
       command_line.AddFlag(
           "--clustered", options->clustered,
           "Put the rows of a session next to each other (default: rows in time order)");
       command_line
           .AddOption("--encrypt", options->encrypt,
                      "Encrypt columns: NAME=COLUMN[,COLUMN]:KEY_ID[:CIPHER], a group each "
                      "(aes128-gcm, aes256-gcm, aes128-ctr, aes256-ctr; default aes256-gcm)")
           ->TypeName("GROUP")
           ->OneValueEach();
       command_line
           .AddOption(
               "--keys", options->keys,
               "Take keys from this file (lines: id, key in hexadecimal; mode 0600), or from "
               "env:NAME")
           ->TypeName("PLACE");
       command_line.AddFlag("-f,--force", options->replace,
                            "Replace the table in an existing folder");
       command_line.AddFlag("-q,--quiet", options->quiet, "Print nothing but errors");
       return [options] { return Generate(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
