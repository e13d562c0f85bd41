// Exports: a recorded run in the file formats of other tools. A format is one file of this folder
// that ends in HR_EXPORT; everything comes from the store's documented views (docs/store.md), and a
// format that cannot hold something says so in its own words (docs/export.md).
//
// What was not measured is left out of a file. It is never written as 0.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "collectors/store/read_store.h"

namespace headrace::dashboards {

// Takes the next bytes of a file. May throw Error, which ends the export.
using ExportSink = std::function<void(std::string_view)>;

// What of a file is written. A file's size is estimated from its fixed part and samples of its
// courses; the parts are not files by themselves.
enum class ExportPart : uint8_t {
  kAll,
  kFixed,   // what does not grow with the number of windows: names, slices, totals
  kCourses  // the rows of interval views alone
};

struct ExportRequest {
  collectors::ReadStore& store;
  int64_t run_id = 0;
  // Windows that begin in [since_ns, until_ns), nanoseconds since the run began. By default all.
  int64_t since_ns = INT64_MIN, until_ns = INT64_MAX;
  std::string view{};        // of formats that hold one view
  std::string kind = "cpu";  // of formats that hold one kind of stacks: a key of kStackKinds
  // The database's path, for a trace's phases, which analysis finds; empty: a trace without them.
  std::string database{};
  ExportPart part = ExportPart::kAll;

  bool whole_run() const { return since_ns == INT64_MIN && until_ns == INT64_MAX; }
};

struct ExportFormat {
  std::string ending;  // ".pftrace": what its files usually end in
  std::string holds;   // what of a run it has, for people
  std::string opens;   // which tool opens it
  bool binary = false;
  bool by_time = false;  // --since and --until choose a part of the run
  bool by_view = false;  // one view, named by the request
  bool by_kind = false;  // one kind of stacks
  // Writes the file. Throws Error.
  std::function<void(const ExportRequest&, const ExportSink&)> write;
  // Rows of interval views that kAll would read; absent: the file is small, so it is written once
  // more to know its size.
  std::function<int64_t(const ExportRequest&)> count_rows = nullptr;
};

#define HR_EXPORT(name, ...)                        \
  [[maybe_unused]] static const bool HR_REGISTRAR = \
      ::headrace::Registry<::headrace::dashboards::ExportFormat>::Global().Add(name, __VA_ARGS__)

// The format of that name. Throws Error kUsage, which names the nearest one.
const ExportFormat& FindExport(const std::string& name);
// The name of the format whose files end as `file` does; empty: none, or more than one.
std::string FormatOfFile(std::string_view file);
// Throws Error kUsage for a request that the format cannot obey: a part of the run, a view or a
// kind that it does not have, or a part of the run in which nothing was recorded.
void CheckExport(const std::string& name, const ExportRequest& request);
// Bytes that the file will have, within 20 %: exact for small ones, else from samples that take a
// fraction of the time. Throws Error.
uint64_t EstimateExport(const std::string& name, const ExportRequest& request);
// "about 1.21 MiB (1268431 bytes)", and a second line where viewers of the format fail at that
// size.
std::string SizeText(const std::string& name, uint64_t bytes);
// Writes the file in pieces of about 64 KiB. Throws Error.
void WriteExport(const std::string& name, const ExportRequest& request, const ExportSink& sink);
// The formats, what each has and which tool opens it, as a text of at most 100 columns.
std::string ListExports();

// What every format says of a run (view run_summary).
struct ExportedRun {
  int64_t run_id = 0;
  std::string name, tags, state, program, command, hostname, kernel, cpu_model, headrace_version;
  int64_t pid = 0;
  int64_t started_realtime_ns = 0;  // since 1970
  int64_t duration_ns = 0;
  int64_t accounting_level = 0;
  std::string accounting_note;
};
ExportedRun ReadExportedRun(collectors::ReadStore& store, int64_t run_id);

}  // namespace headrace::dashboards
