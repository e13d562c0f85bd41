// headrace runs: lists recorded runs; removes, tags, copies them.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/run_list.h"
#include "cli/verdict.h"
#include "collectors/store/store.h"
#include "dashboards/terminal/terminal.h"

namespace headrace::cli {
namespace {

struct RunsOptions {
  std::string database, output, tags, older_than, max_size, find, since, until;
  int64_t keep = -1;
  std::vector<std::string> runs;
  std::string run;
  bool json = false, all = false;
  CommandLine *remove = nullptr, *tag = nullptr, *copy = nullptr;
};

int List(const RunsOptions& options) {
  RunFilter filter;
  filter.find = options.find;
  if (!options.since.empty()) filter.since_ns = ParseWhen(options.since, "--since");
  if (!options.until.empty()) filter.until_ns = ParseWhen(options.until, "--until");
  if (options.json) {
    std::fputs(RunListJson(options.database, filter).c_str(), stdout);
    return 0;
  }
  constexpr size_t kUsualLines = 25;
  PrintRunList(options.database, filter, options.all ? SIZE_MAX : kUsualLines, options.all,
               dashboards::TerminalWidth(STDOUT_FILENO));
  return 0;
}

int Copy(const RunsOptions& options) {
  collectors::ReadStore store(options.database);
  const int64_t id = store.FindRun(options.run);
  store.CopyRun(id, options.output);
  fmt::print(stderr, "copied run {} to {}\n", id, Printable(options.output));
  return 0;
}

int Runs(const RunsOptions& options) {
  if (!options.remove->Parsed() && !options.tag->Parsed() && !options.copy->Parsed()) {
    return List(options);
  }
  if (options.copy->Parsed()) return Copy(options);
  { collectors::ReadStore exists(options.database); }  // never makes a database by a typing error
  collectors::RunStore store(options.database);
  if (options.remove->Parsed()) {
    const collectors::Retention retention =
        MakeRetention(options.older_than, options.keep, options.max_size);
    const bool any = retention.older_than_ns || retention.keep || retention.max_bytes;
    if (!any && options.runs.empty()) {
      throw Error(ExitCode::kUsage, "say which: runs, --older-than, --keep or --max-size",
                  "runs rm", "e.g. headrace runs rm --older-than 7d");
    }
    std::vector<int64_t> ids;  // all are found before one is removed
    for (const std::string& run : options.runs) ids.push_back(store.FindRun(run));
    for (const int64_t id : ids) store.RemoveRun(id);
    if (any) {
      for (const int64_t id : store.Retain(retention)) ids.push_back(id);
    }
    std::fprintf(stderr, "removed %zu run%s\n", ids.size(), ids.size() == 1 ? "" : "s");
  } else {
    const int64_t id = store.FindRun(options.run);
    store.SetTags(id, options.tags);
    std::fprintf(stderr, "tagged run %lld\n", static_cast<long long>(id));
  }
  return 0;
}

HR_COMMAND(
    "runs",
    {.summary = "lists recorded runs with their verdicts; removes, tags or copies them",
     .examples = "  headrace runs                          # what is recorded here\n"
                 "  headrace runs --find rm1 --since 7d    # some of them\n"
                 "  headrace runs tag nightly 'rm1 before' # words to find it by\n"
                 "  headrace runs copy nightly -o one.db   # one run as a database of its own\n"
                 "  headrace runs rm 3 4\n"
                 "  headrace runs rm --older-than 7d --keep 20\n",
     .exit_codes = "0 ok, 2 usage, 5 no such run or not a run store",
     .next = "headrace report RUN",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<RunsOptions>();
       options->database = DefaultDatabase();
       command_line.Group("Which runs are listed");
       command_line
           .AddOption("--find", options->find,
                      "List runs with this in their name, tags, program, pipeline or number")
           ->TypeName("WORD");
       command_line
           .AddOption("--since", options->since,
                      "Leave out runs that began before: 7d, 12h, 2026-11-25")
           ->Check(NotEmpty());
       command_line
           .AddOption("--until", options->until, "Leave out runs that began at this time or later")
           ->Check(NotEmpty());
       command_line.AddFlag("--all", options->all,
                            "List all runs, and each run of a comparison, not the newest 25 lines");
       command_line.AddOption("--db", options->database, "Use this database");
       command_line.AddFlag("--json", options->json,
                            "Print one JSON object (schema headrace.runs/1)");
       command_line.Fallthrough();  // --db may stand after rm, tag, copy
       options->remove = command_line.AddSubcommand("rm", "removes runs");
       options->remove->Fallthrough();
       options->remove->AddOption("RUN", options->runs, "Remove these: id, name or latest")
           ->TypeName("RUN");
       options->remove->AddOption("--older-than", options->older_than,
                                  "Remove finished runs that began longer ago, e.g. 7d, 12h");
       options->remove
           ->AddOption("--keep", options->keep, "Remove finished runs but the newest of them")
           ->Check(InRange(int64_t{0}, int64_t{1} << 40));
       options->remove->AddOption(
           "--max-size", options->max_size,
           "Remove the oldest finished runs until the database is no larger, e.g. 2GiB");
       options->tag = command_line.AddSubcommand("tag", "sets the tags of a run");
       options->tag->Fallthrough();
       options->tag->AddOption("RUN", options->run, "Tag this: id, name or latest")
           ->TypeName("RUN")
           ->Required();
       options->tag->AddOption("TAGS", options->tags, "Words separated by blanks; '' removes them")
           ->Required();
       options->copy =
           command_line.AddSubcommand("copy", "copies one run into a database of its own");
       options->copy->Fallthrough();
       options->copy->AddOption("RUN", options->run, "Copy this: id, name or latest")
           ->TypeName("RUN")
           ->Required();
       options->copy->AddOption("-o,--output", options->output, "Write this new file")->Required();
       return [options] { return Runs(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
