// headrace inspect: shows what a DWRF file says about itself.
#include "reader/dwrf/inspect.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/inspect_table.h"
#include "cli/keys_option.h"
#include "cli/remote_option.h"
#include "experiments/keys.h"
#include "reader/dwrf/verify.h"
#include "reader/source/open.h"

namespace headrace::cli {
namespace {

namespace dwrf = reader::dwrf;

struct InspectOptions {
  std::string file, keys;
  reader::SourceOptions source;
  bool json = false, streams = false, verify = false;
};

// Of a folder, its files in a list; what only one file can answer is refused.
int InspectFolder(const InspectOptions& options, const std::vector<std::string>& files) {
  if (options.streams || options.verify)
    throw Error(ExitCode::kUsage, files.size() == 1 ? "is a table" : "is a table of several files",
                options.file,
                fmt::format("{} looks at one file: {}", options.streams ? "--streams" : "--verify",
                            ShellWord(files[0])));
  return InspectTable(options.file, files, options.source, experiments::OpenWithKeys(options.keys),
                      options.json);
}

int Inspect(const InspectOptions& options) {
  std::error_code ignored;
  const bool folder = reader::IsRemote(options.file)
                          ? options.file.ends_with('/')
                          : std::filesystem::is_directory(options.file, ignored);
  if (folder) return InspectFolder(options, reader::ListTable(options.file, options.source));
  const auto file = dwrf::FileReader::Open(reader::OpenSource(options.file, options.source),
                                           experiments::OpenWithKeys(options.keys));
  if (!file->tail().postscript.has_writer_version()) {
    fmt::print(stderr,
               "note: nothing in {} says whether it is DWRF or an old Apache ORC; read as DWRF\n",
               Printable(options.file));
  }
  std::optional<dwrf::Verification> verified;
  if (options.verify) verified = dwrf::Verify(file);
  const std::string text = options.json
                               ? dwrf::InspectJson(*file, verified ? &*verified : nullptr)
                               : dwrf::InspectText(*file, {.streams = options.streams}) +
                                     (verified ? "\n" + dwrf::VerificationText(*verified) : "");
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!options.json)
    fmt::print(stderr, "next: {} cat {} --limit 3\n", ShellWord(ProgramName()),
               ShellWord(options.file));
  return 0;
}

HR_COMMAND(
    "inspect",
    {.summary =
         "shows what a DWRF file or a table of them says about itself: types, stripes, statistics",
     .examples =
         "  headrace inspect part-00000.dwrf                                  # an overview\n"
         "  headrace inspect rm1                                              # the files of a "
         "table\n"
         "  headrace inspect part-00000.dwrf --streams                        # every stream with "
         "its bytes\n"
         "  headrace inspect part-00000.dwrf --verify                         # is the metadata "
         "true?\n"
         "  headrace inspect part-00000.dwrf --json | jq '.stripes[0].flattened_maps'\n",
     .exit_codes = "0 ok, 1 the storage failed, 2 an impossible place, 5 not a whole DWRF file, "
                   "or files with different columns, 6 keys that cannot be used, or access denied",
     .next = "headrace cat FILE --limit 3",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<InspectOptions>();
       AddKeysOption(&command_line, &options->keys);
       command_line
           .AddOption("FILE", options->file,
                      "Look at this DWRF file, or folder of them; also http://, https:// or "
                      "s3://BUCKET/KEY")
           ->Required()
           ->TypeName("FILE");
       AddRemoteOptions(&command_line, &options->source);
       command_line.AddFlag("--json", options->json,
                            "Print everything as JSON (headrace.inspect/1)");
       command_line.AddFlag(
           "--verify", options->verify,
           "Compare row counts, statistics and row indexes with all rows; exit 5 if they "
           "differ");
       command_line.AddFlag("--streams", options->streams,
                            "List every stream instead of sums by kind");
       return [options] { return Inspect(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
