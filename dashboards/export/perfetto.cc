// Perfetto's trace format, protos/perfetto/trace of github.com/google/perfetto: a Trace is a
// sequence of TracePackets. Field numbers are named by message.
#include <algorithm>

#include "dashboards/export/proto_writer.h"
#include "dashboards/export/trace.h"

namespace headrace::dashboards {
namespace {

constexpr uint32_t kTracePacket = 1;  // of Trace
// Of TracePacket.
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                   kSequenceFlags = 13, kTrackDescriptor = 60;
// Of TrackEvent, and its types.
constexpr uint32_t kDebugAnnotations = 4, kType = 9, kTrackUuid = 11, kEventName = 23,
                   kDoubleCounterValue = 44;
constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kCounter = 4;
// Of TrackDescriptor.
constexpr uint32_t kUuid = 1, kTrackName = 2, kParentUuid = 5, kCounterDescriptor = 8,
                   kChildOrdering = 11, kSiblingOrderRank = 12;
constexpr uint64_t kExplicitOrder = 3;
constexpr uint32_t kUnitName = 6;  // of CounterDescriptor
// Of DebugAnnotation.
constexpr uint32_t kIntValue = 4, kDoubleValue = 5, kStringValue = 6, kAnnotationName = 10;
// Of ClockSnapshot, its Clock, and the clocks.
constexpr uint32_t kClocks = 1, kPrimaryClock = 2, kClockId = 1, kClockTime = 2;
constexpr uint64_t kRealtime = 1, kBoottime = 6;

// Track ids are unique within a file; those of other files that are looked at together begin
// elsewhere.
uint64_t UuidOf(int64_t run_id, uint64_t track) {
  return track + (static_cast<uint64_t>(run_id) << 24);
}

class PerfettoWriter : public TraceWriter {
 public:
  PerfettoWriter(int64_t run_id, ExportPart part, const ExportSink& sink)
      : run_id_(run_id), part_(part), sink_(sink) {}

  // The trace's time is the run's; the machine's clock beside it, so that a viewer shows both.
  void Clocks(int64_t started_realtime_ns) {
    ProtoWriter snapshot;
    for (const auto& [id, time] :
         {std::pair{kBoottime, int64_t{0}}, std::pair{kRealtime, started_realtime_ns}}) {
      ProtoWriter clock;
      clock.Whole(kClockId, id);
      clock.Whole(kClockTime, static_cast<uint64_t>(time));
      snapshot.Message(kClocks, clock);
    }
    snapshot.Whole(kPrimaryClock, kBoottime);
    ProtoWriter packet;
    packet.Message(kClockSnapshot, snapshot);
    packet.Whole(kSequenceId, 1);
    packet.Whole(kSequenceFlags, 1);  // the sequence begins
    Put(packet);
  }

  void Track(const TraceTrack& track) override {
    if (part_ == ExportPart::kCourses) return;
    ProtoWriter descriptor;
    descriptor.Whole(kUuid, UuidOf(run_id_, track.id));
    descriptor.Text(kTrackName, track.name);
    if (track.parent != 0) descriptor.Whole(kParentUuid, UuidOf(run_id_, track.parent));
    if (track.kind == TraceTrack::Kind::kCounter) {
      ProtoWriter counter;
      counter.Text(kUnitName, track.unit);
      descriptor.Message(kCounterDescriptor, counter);
    }
    if (track.kind == TraceTrack::Kind::kGroup) {
      descriptor.Whole(kChildOrdering, kExplicitOrder);
    }
    descriptor.Whole(kSiblingOrderRank, std::min<uint64_t>(track.rank, INT32_MAX));
    ProtoWriter packet;
    packet.Whole(kSequenceId, 1);
    packet.Message(kTrackDescriptor, descriptor);
    Put(packet);
  }

  void Begin(uint64_t track, int64_t at_ns, const std::string& name,
             const TraceArguments& arguments) override {
    ProtoWriter event;
    event.Whole(kType, kSliceBegin);
    event.Whole(kTrackUuid, UuidOf(run_id_, track));
    event.Text(kEventName, name);
    for (const auto& [key, value] : arguments) {
      ProtoWriter annotation;
      annotation.Text(kAnnotationName, key);
      if (const auto* whole = std::get_if<int64_t>(&value)) {
        annotation.Signed(kIntValue, *whole);
      } else if (const auto* real = std::get_if<double>(&value)) {
        annotation.Double(kDoubleValue, *real);
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        if (text->empty()) continue;
        annotation.Text(kStringValue, *text);
      } else {
        continue;  // not known
      }
      event.Message(kDebugAnnotations, annotation);
    }
    Event(at_ns, event);
  }

  void End(uint64_t track, int64_t at_ns) override {
    ProtoWriter event;
    event.Whole(kType, kSliceEnd);
    event.Whole(kTrackUuid, UuidOf(run_id_, track));
    Event(at_ns, event);
  }

  void Counter(uint64_t track, int64_t at_ns, double value) override {
    ProtoWriter event;
    event.Whole(kType, kCounter);
    event.Whole(kTrackUuid, UuidOf(run_id_, track));
    event.Double(kDoubleCounterValue, value);
    Event(at_ns, event);
  }

 private:
  void Event(int64_t at_ns, const ProtoWriter& event) {
    ProtoWriter packet;
    packet.Whole(kTimestamp, static_cast<uint64_t>(std::max<int64_t>(0, at_ns)));
    packet.Whole(kSequenceId, 1);
    packet.Message(kTrackEvent, event);
    Put(packet);
  }

  void Put(const ProtoWriter& packet) {
    ProtoWriter trace;
    trace.Message(kTracePacket, packet);
    sink_(trace.bytes());
  }

  const int64_t run_id_;
  const ExportPart part_;
  const ExportSink& sink_;
};

void WritePerfetto(const ExportRequest& request, const ExportSink& sink) {
  PerfettoWriter writer(request.run_id, request.part, sink);
  if (request.part != ExportPart::kCourses) {
    writer.Clocks(ReadExportedRun(request.store, request.run_id).started_realtime_ns);
  }
  WriteTrace(request, &writer);
}

HR_EXPORT("perfetto",
          {.ending = ".pftrace",
           .holds = "the run over time: for each stage, operator and queue what its threads did in "
                    "each window; phases, decisions, processes, the machine",
           .opens = "https://ui.perfetto.dev, or trace_processor",
           .binary = true,
           .by_time = true,
           .write = WritePerfetto,
           .count_rows = CountTraceRows});

}  // namespace
}  // namespace headrace::dashboards
