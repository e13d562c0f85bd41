// headrace runs: lists recorded runs; removes, tags, copies them.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/verdict.h"
#include "collectors/store/store.h"

namespace headrace::cli {
namespace {

struct RunsOptions {
  std::string database, output, tags, older_than, max_size;
  int64_t keep = -1;
  std::vector<std::string> runs;
  std::string run;
  bool json = false;
  CommandLine *remove = nullptr, *tag = nullptr, *copy = nullptr;
};

std::string LocalTime(int64_t realtime_ns) {
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

int List(const RunsOptions& options) {
  collectors::ReadStore store(options.database);
  const collectors::SqlResult runs = store.Query(
      "SELECT run_id, name, tags, state, program, started_realtime_ns, duration_ns, "
      "accounting_level, steps_count FROM run_summary LEFT JOIN step_summary USING (run_id) "
      "ORDER BY run_id");
  const auto text = [](const collectors::SqlValue& value) {
    const auto* s = std::get_if<std::string>(&value);
    return s ? *s : std::string();
  };
  const auto integer = [](const collectors::SqlValue& value) {
    const auto* i = std::get_if<int64_t>(&value);
    return i ? *i : int64_t{0};
  };
  if (options.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& row : runs.rows) {
      nlohmann::ordered_json steps;  // null: no consumer recorded steps
      if (const auto* count = std::get_if<int64_t>(&row[8])) steps = *count;
      list.push_back({{"run_id", integer(row[0])},
                      {"name", text(row[1])},
                      {"tags", text(row[2])},
                      {"state", text(row[3])},
                      {"program", text(row[4])},
                      {"started_realtime_ns", integer(row[5])},
                      {"duration_ns", integer(row[6])},
                      {"accounting_level", integer(row[7])},
                      {"steps_count", steps}});
    }
    const nlohmann::ordered_json out = {{"schema", "headrace.runs/1"}, {"runs", std::move(list)}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  if (runs.rows.empty()) {
    fmt::print(stderr, "no runs in {} yet; record one with: headrace run PIPELINE\n",
               Printable(options.database));
    return 0;
  }
  fmt::print("{:>5}  {:<24} {:<12} {:<20} {:>9} {:>9}  {:<16} {}\n", "run", "name", "state",
             "started", "length", "steps", "program", "tags");
  for (const auto& row : runs.rows) {
    const auto* steps = std::get_if<int64_t>(&row[8]);
    std::string line = fmt::format(
        "{:>5}  {:<24} {:<12} {:<20} {:>9} {:>9}  {:<16} {}", integer(row[0]),
        Printable(text(row[1]), 60), Printable(text(row[3]), 20), LocalTime(integer(row[5])),
        FormatDuration(static_cast<double>(integer(row[6]))), steps ? std::to_string(*steps) : "-",
        Printable(text(row[4]), 40), Printable(text(row[2])));
    while (line.back() == ' ') line.pop_back();
    fmt::print("{}\n", line);
  }
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
    {.summary = "lists recorded runs; removes, tags or copies them",
     .examples = "  headrace runs                          # what is recorded here\n"
                 "  headrace runs tag nightly 'rm1 before' # words to find it by\n"
                 "  headrace runs copy nightly -o one.db   # one run as a database of its own\n"
                 "  headrace runs rm 3 4\n"
                 "  headrace runs rm --older-than 7d --keep 20\n",
     .exit_codes = "0 ok, 2 usage, 5 no such run or not a run store",
     .next = "headrace report RUN",
     .configure = [](CommandLine& command_line) -> std::function<int()> {
       auto options = std::make_shared<RunsOptions>();
       options->database = DefaultDatabase();
       command_line.AddOption("--db", options->database,
                              "Use this database (default $HEADRACE_DB or ./headrace.db)");
       command_line.AddFlag("--json", options->json,
                            "Print one JSON object (schema headrace.runs/1)");
       command_line.Fallthrough();  // --db may stand after rm, tag, copy
       options->remove = command_line.AddSubcommand("rm", "removes runs");
       options->remove->Fallthrough();
       options->remove->AddOption("RUN", options->runs, "Remove these: id, name or latest");
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
       options->tag->AddOption("RUN", options->run, "Tag this: id, name or latest")->Required();
       options->tag->AddOption("TAGS", options->tags, "Words separated by blanks; '' removes them")
           ->Required();
       options->copy =
           command_line.AddSubcommand("copy", "copies one run into a database of its own");
       options->copy->Fallthrough();
       options->copy->AddOption("RUN", options->run, "Copy this: id, name or latest")->Required();
       options->copy->AddOption("-o", options->output, "Write this new file")->Required();
       return [options] { return Runs(*options); };
     }});

}  // namespace
}  // namespace headrace::cli
