// headrace cat: prints the rows of a DWRF file.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/keys_option.h"
#include "cli/remote_option.h"
#include "experiments/keys.h"
#include "reader/dwrf/row_reader.h"
#include "reader/dwrf/text.h"
#include "reader/dwrf/verify.h"
#include "reader/source/open.h"

namespace headrace::cli {
namespace {

namespace dwrf = reader::dwrf;

struct CatOptions {
  std::string file, keys;
  reader::SourceOptions source;
  std::vector<std::string> columns;
  std::string format = "ndjson";
  uint64_t limit = UINT64_MAX, offset = 0;
  bool skip_bad = false, no_verify = false, verify = false;
};

// The reader of our output went away: an end like any other, not a failure.
struct OutputClosed {};

void WriteOut(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) throw OutputClosed{};
    if (n < 0) throw ErrnoError(errno, "write to", "standard output");
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// "a,map2[k1,k2],b" -> a, map2[k1,k2], b: commas inside brackets belong to the key.
std::vector<std::string> SplitColumns(const std::vector<std::string>& options) {
  std::vector<std::string> names;
  for (const std::string& text : options) {
    std::string name;
    int depth = 0;
    for (const char c : text) {
      if (c == '[') ++depth;
      if (c == ']') --depth;
      if (c == ',' && depth <= 0) {
        if (!name.empty()) names.push_back(name);
        name.clear();
      } else {
        name += c;
      }
    }
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

// A table is a folder of files; rows are printed of one.
void RefuseFolder(const std::string& place) {
  std::error_code error;
  if (!std::filesystem::is_directory(place, error)) return;
  std::string first;
  for (std::filesystem::directory_iterator at(place, error), end; !error && at != end;
       at.increment(error)) {
    const std::string path = at->path().string();
    if (at->path().extension() == ".dwrf" && (first.empty() || path < first)) first = path;
  }
  throw Error(
      ExitCode::kBadData, "is a folder", Printable(place),
      first.empty() ? "there is no .dwrf file in it" : "name a file in it: " + Printable(first));
}

int Cat(const CatOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  RefuseFolder(options.file);
  const auto file = dwrf::FileReader::Open(reader::OpenSource(options.file, options.source),
                                           experiments::OpenWithKeys(options.keys));
  if (!file->tail().postscript.has_writer_version()) {
    fmt::print(stderr,
               "note: nothing in {} says whether it is DWRF or an old Apache ORC; read as DWRF\n",
               Printable(options.file));
  }
  if (options.verify) fmt::print(stderr, "{}", dwrf::VerificationText(dwrf::Verify(file)));
  dwrf::RowReaderOptions reading;
  for (const std::string& name : SplitColumns(options.columns)) {
    reading.columns.push_back(dwrf::ColumnSelection::Parse(name, file->schema()));
  }
  reading.verify_checksums = !options.no_verify;
  reading.skip_bad = options.skip_bad;
  uint64_t skipped = 0;
  reading.on_skip = [&](const std::string& what) {
    ++skipped;
    fmt::print(stderr, "headrace cat: {}\n", what);
  };
  dwrf::RowReader rows(file, std::move(reading));
  if (options.offset > 0) rows.SeekToRow(std::min(options.offset, file->num_rows()));
  const auto format =
      options.format == "canonical" ? dwrf::TextFormat::kCanonical : dwrf::TextFormat::kNdjson;
  dwrf::RowPrinter printer(rows.schema(), format, WriteOut);
  reader::Column batch;
  try {
    uint64_t left = options.limit;
    try {
      while (left > 0 && rows.NextBatch(std::min<uint64_t>(left, 4096), 32 << 20, &batch)) {
        printer.Print(batch, 0, batch.rows);
        left -= batch.rows;
      }
    } catch (const Error&) {
      printer.Flush();  // rows before the damage are whole
      throw;
    }
    printer.Flush();
  } catch (const OutputClosed&) {
    return 0;
  }
  if (skipped > 0)
    fmt::print(stderr, "headrace cat: {} part{} left out of {}\n", skipped, skipped == 1 ? "" : "s",
               Printable(options.file));
  return 0;
}

HR_COMMAND(
    "cat",
    {.summary = "prints the rows of a DWRF file",
     .examples =
         "  headrace cat part-00000.dwrf --limit 3                      # three rows as JSON "
         "lines\n"
         "  headrace cat part-00000.dwrf --columns 'label,sparse[17]'   # one column, one key of a "
         "map\n"
         "  headrace cat part-00000.dwrf --format canonical | sha256sum # equal rows, equal hash\n"
         "  headrace cat damaged.dwrf --skip-bad                        # what is whole; the rest "
         "is named on stderr\n"
         "  headrace cat part-00000.dwrf --verify > rows.ndjson         # none, if the metadata "
         "says otherwise\n",
     .exit_codes = "0 ok (also with --skip-bad), 1 the storage failed, 2 unknown column or a place "
                   "that cannot be, 5 damaged or foreign data, 6 an encrypted column without its "
                   "key, or access denied, 7 a row too large",
     .next = "headrace inspect FILE",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<CatOptions>();
       AddKeysOption(&command_line, &options->keys);
       command_line
           .AddOption("FILE", options->file,
                      "DWRF file to read, also http://, https:// or s3://BUCKET/KEY")
           ->Required()
           ->TypeName("FILE");
       AddRemoteOptions(&command_line, &options->source);
       command_line
           .AddOption("--columns", options->columns, "Print only these: a,b,map1[17],map1[key]")
           ->TypeName("NAMES")
           ->OneValueEach();
       command_line.AddOption("--limit", options->limit, "Stop after N rows")->TypeName("N");
       command_line.AddOption("--offset", options->offset, "Start at row N")->TypeName("N");
       command_line
           .AddOption("--format", options->format,
                      "Write ndjson (maps as arrays of [key, value], binary as {\"hex\"}) or "
                      "canonical (exact, hashable)")
           ->Check(OneOf({"ndjson", "canonical"}))
           ->ShowDefault();
       auto* verify =
           command_line.AddFlag("--verify", options->verify,
                                "First compare row counts, statistics and row indexes with all "
                                "rows; print none if they differ");
       command_line
           .AddFlag("--skip-bad", options->skip_bad,
                    "Leave out damaged stripes; with --no-verify only damaged columns (null) and "
                    "keys (absent)")
           ->Excludes(verify);
       command_line
           .AddFlag("--no-verify", options->no_verify, "Read without comparing stripe checksums")
           ->Excludes(verify);
       return [options] { return Cat(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
