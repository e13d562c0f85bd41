// pprof's profile.proto (github.com/google/pprof/proto), compressed with gzip as its tools expect.
#include <fmt/format.h>

#include <unordered_map>
#include <vector>

#include "base/gzip.h"
#include "dashboards/export/export.h"
#include "dashboards/export/proto_writer.h"
#include "dashboards/export/stacks.h"
#include "dashboards/sql_values.h"
#include "dashboards/stack_kinds.h"

namespace headrace::dashboards {
namespace {

// Of Profile.
constexpr uint32_t kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5,
                   kStringTable = 6, kTimeNanos = 9, kDurationNanos = 10, kComment = 13,
                   kDefaultSampleType = 14;
// Of Sample, and of its Label.
constexpr uint32_t kLocationIds = 1, kValues = 2, kLabel = 3;
constexpr uint32_t kLabelKey = 1, kLabelText = 2, kLabelNumber = 3;

// A value of a sample for each kind of stacks, then its bytes.
constexpr size_t kBytesIn = std::size(kStackKinds), kBytesOut = kBytesIn + 1,
                 kNumSampleTypes = kBytesOut + 1;

class Profile {
 public:
  Profile() {
    Text("");  // the first text is the empty one
    for (const StackKind& kind : kStackKinds) AddType(kind.key, "nanoseconds");
    AddType("bytes_in", "bytes");
    AddType("bytes_out", "bytes");
    profile_.Signed(kDefaultSampleType, Text("cpu"));
  }

  void Program(const std::string& name) {
    ProtoWriter mapping;
    mapping.Whole(1, 1);  // id
    mapping.Signed(5, Text(name));
    mapping.Whole(7, 1);  // has functions: there is nothing for a tool to look up
    profile_.Message(kMapping, mapping);
  }
  void Comment(const std::string& text) { profile_.Signed(kComment, Text(text)); }
  void Times(int64_t started_ns, int64_t duration_ns) {
    profile_.Signed(kTimeNanos, started_ns);
    profile_.Signed(kDurationNanos, duration_ns);
  }

  // `stack.time_ns` is not used: values are by sample type.
  void Sample(const ExportedStack& stack, const int64_t (&values)[kNumSampleTypes]) {
    std::vector<uint64_t> locations;
    for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
      locations.push_back(Location(*frame));
    }
    ProtoWriter sample;
    sample.Packed(kLocationIds, locations);
    std::vector<uint64_t> numbers(std::begin(values), std::end(values));
    sample.Packed(kValues, numbers);
    const std::pair<const char*, const std::string&> labels[] = {{"stage", stack.stage},
                                                                 {"operator", stack.operator_name},
                                                                 {"process", stack.process},
                                                                 {"thread", stack.thread}};
    for (const auto& [key, value] : labels) {
      if (value.empty()) continue;
      ProtoWriter label;
      label.Signed(kLabelKey, Text(key));
      label.Signed(kLabelText, Text(value));
      sample.Message(kLabel, label);
    }
    if (stack.pid != 0) {
      ProtoWriter label;
      label.Signed(kLabelKey, Text("pid"));
      label.Signed(kLabelNumber, stack.pid);
      sample.Message(kLabel, label);
    }
    profile_.Message(kSample, sample);
  }

  std::string Finish() {
    for (const std::string& text : texts_in_order_) profile_.Text(kStringTable, text);
    return profile_.bytes();
  }

 private:
  int64_t Text(const std::string& text) {
    const auto [it, added] = texts_.try_emplace(text, static_cast<int64_t>(texts_.size()));
    if (added) texts_in_order_.push_back(text);
    return it->second;
  }

  void AddType(const char* name, const char* unit) {
    ProtoWriter type;
    type.Signed(1, Text(name));
    type.Signed(2, Text(unit));
    profile_.Message(kSampleType, type);
  }

  // Functions and locations are one to one: there are no addresses here.
  uint64_t Location(const std::string& frame) {
    const auto [it, added] = locations_.try_emplace(frame, locations_.size() + 1);
    if (added) {
      ProtoWriter function;
      function.Whole(1, it->second);
      function.Signed(2, Text(frame));
      profile_.Message(kFunction, function);
      ProtoWriter line;
      line.Whole(1, it->second);
      ProtoWriter location;
      location.Whole(1, it->second);
      location.Whole(2, 1);  // the mapping
      location.Message(4, line);
      profile_.Message(kLocation, location);
    }
    return it->second;
  }

  ProtoWriter profile_;
  std::unordered_map<std::string, int64_t> texts_;
  std::vector<std::string> texts_in_order_;
  std::unordered_map<std::string, uint64_t> locations_;
};

void WritePprof(const ExportRequest& request, const ExportSink& sink) {
  const ExportedRun run = ReadExportedRun(request.store, request.run_id);
  Profile profile;
  profile.Program(run.program.empty() ? "program" : run.program);
  profile.Times(run.started_realtime_ns, run.duration_ns);
  profile.Comment(fmt::format("headrace run {} {}", run.run_id, run.name));
  profile.Comment(
      "cpu: on a CPU; off_cpu: blocked inside an operator; waiting: at a queue or outside "
      "operators; python: Python functions, busy or waiting. Sampled stacks, or operators' totals "
      "where no stacks were recorded");
  profile.Comment("bytes_in and bytes_out: what each operator took and gave");
  for (const ExportedStack& stack : ReadStacks(request.store, request.run_id)) {
    int64_t values[kNumSampleTypes] = {};
    values[&FindStackKind(stack.kind) - kStackKinds] = stack.time_ns;
    profile.Sample(stack, values);
  }
  const collectors::SqlResult operators = request.store.Query(
      "SELECT stage, operator, bytes_in_bytes, bytes_out_bytes, on_cpu_ns FROM operator_summary "
      "WHERE run_id = ?1 ORDER BY stage_index, position_index",
      {request.run_id});
  std::string unknown;
  for (const auto& row : operators.rows) {
    ExportedStack stack;
    stack.stage = TextOf(row[0]);
    stack.operator_name = TextOf(row[1]);
    if (!WholeOf(row[4])) unknown += (unknown.empty() ? "" : ", ") + stack.operator_name;
    int64_t values[kNumSampleTypes] = {};
    values[kBytesIn] = WholeOf(row[2]).value_or(0);
    values[kBytesOut] = WholeOf(row[3]).value_or(0);
    if (values[kBytesIn] == 0 && values[kBytesOut] == 0) continue;
    if (!stack.stage.empty()) stack.frames.push_back("stage " + stack.stage);
    stack.frames.push_back("operator " + stack.operator_name);
    profile.Sample(stack, values);
  }
  if (!unknown.empty()) {
    profile.Comment("CPU time not separated from waiting, so not in operators' totals: " + unknown);
  }
  sink(Gzipped(profile.Finish()));
}

HR_EXPORT(
    "pprof",
    {.ending = ".pb.gz",
     .holds = "time on a CPU, blocked and waiting, and bytes, by stage, operator and function, as "
              "frames and as labels",
     .opens = "go tool pprof -http=: FILE, Pyroscope, Parca",
     .binary = true,
     .write = WritePprof});

}  // namespace
}  // namespace headrace::dashboards
