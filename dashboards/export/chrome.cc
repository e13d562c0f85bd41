// The JSON of Chrome's trace viewer (Trace Event Format). It knows processes and threads only: a
// group of tracks is a process there, and a track of slices one of its threads.
#include <fmt/format.h>

#include <map>
#include <vector>

#include "dashboards/export/escape.h"
#include "dashboards/export/trace.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

// Times are microseconds with three digits behind the point: exact nanoseconds.
std::string Microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

class ChromeWriter : public TraceWriter {
 public:
  ChromeWriter(ExportPart part, const ExportSink& sink) : part_(part), sink_(sink) {}

  void Track(const TraceTrack& track) override {
    const auto parent = paths_.find(track.parent);
    // The top group holds all others and has nothing of its own but slices.
    std::string path = track.name;
    if (parent != paths_.end() && track.parent != top_) path = parent->second + " / " + path;
    if (track.parent == 0) top_ = track.id;
    tracks_[track.id] = track;
    if (track.kind == TraceTrack::Kind::kGroup) {
      paths_[track.id] = path;
      Meta("process_name", track.id, 0, "name", JsonString(path));
      // Operators lie behind their stage: ranks of theirs are within 1,000,000 of one of its.
      const auto order = orders_.find(track.parent);
      const uint64_t base = order == orders_.end() ? 0 : order->second;
      orders_[track.id] =
          track.parent == top_ || track.parent == 0 ? track.rank * 1000 : base + track.rank % 1000;
      Meta("process_sort_index", track.id, 0, "sort_index", fmt::format("{}", orders_[track.id]));
    } else if (track.kind == TraceTrack::Kind::kSlices) {
      Meta("thread_name", track.parent, track.id, "name", JsonString(track.name));
    }
  }

  void Begin(uint64_t track, int64_t at_ns, const std::string& name,
             const TraceArguments& arguments) override {
    std::string args;
    for (const auto& [key, value] : arguments) {
      if (std::holds_alternative<std::monostate>(value)) continue;  // not known
      args += fmt::format("{}{}:{}", args.empty() ? "" : ",", JsonString(key), JsonValue(value));
    }
    Event(fmt::format(R"({{"ph":"B","name":{},"pid":{},"tid":{},"ts":{},"args":{{{}}}}})",
                      JsonString(name), tracks_[track].parent, track, Microseconds(at_ns), args));
  }

  void End(uint64_t track, int64_t at_ns) override {
    Event(fmt::format(R"({{"ph":"E","pid":{},"tid":{},"ts":{}}})", tracks_[track].parent, track,
                      Microseconds(at_ns)));
  }

  void Counter(uint64_t track, int64_t at_ns, double value) override {
    const TraceTrack& counter = tracks_[track];
    Event(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{{}:{}}}}})",
                      JsonString(counter.name), counter.parent, Microseconds(at_ns),
                      JsonString(counter.unit), value));
  }

 private:
  void Meta(const char* name, uint64_t process, uint64_t thread, const char* key,
            const std::string& value) {
    if (part_ == ExportPart::kCourses) return;
    Event(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"{}":{}}}}})", name,
                      process, thread, key, value));
  }

  void Event(const std::string& event) {
    sink_(first_ ? "\n" : ",\n");
    first_ = false;
    sink_(event);
  }

  const ExportPart part_;
  const ExportSink& sink_;
  bool first_ = true;
  uint64_t top_ = 0;
  std::map<uint64_t, TraceTrack> tracks_;
  std::map<uint64_t, std::string> paths_;
  std::map<uint64_t, uint64_t> orders_;
};

void WriteChrome(const ExportRequest& request, const ExportSink& sink) {
  if (request.part != ExportPart::kCourses) {
    const ExportedRun run = ReadExportedRun(request.store, request.run_id);
    sink(fmt::format(
        R"({{"displayTimeUnit":"ms","otherData":{{"run":"{}","name":{},"program":{},)"
        R"("started_realtime_ns":"{}","headrace_version":{},"not_in_this_trace":{}}},"traceEvents":[)",
        run.run_id, JsonString(run.name), JsonString(run.program), run.started_realtime_ns,
        JsonString(run.headrace_version), JsonString(kNotInTraces)));
  }
  ChromeWriter writer(request.part, sink);
  WriteTrace(request, &writer);
  if (request.part != ExportPart::kCourses) sink("\n]}\n");
}

HR_EXPORT(
    "chrome",
    {.ending = ".trace.json",
     .holds =
         "the same as perfetto as JSON, which is three times as large; viewers fail from about "
         "1 GB",
     .opens = "chrome://tracing, https://ui.perfetto.dev, speedscope, VizTracer's vizviewer",
     .by_time = true,
     .write = WriteChrome,
     .count_rows = CountTraceRows});

}  // namespace
}  // namespace headrace::dashboards
