// What a trace format writes: tracks of counters and of slices. Each trace format is one of these.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collectors/store/read_store.h"

namespace headrace::dashboards {

// What each trace says of itself.
inline constexpr const char* kNotInTraces =
    "single visits of operators and single steps: the store keeps their sums per window";

struct TraceTrack {
  enum class Kind : uint8_t { kGroup, kCounter, kSlices };
  uint64_t id = 0;
  uint64_t parent = 0;  // a group; 0: the top
  uint64_t rank = 0;    // order among the tracks of one parent
  Kind kind = Kind::kGroup;
  std::string name;
  std::string unit;  // of a counter: "threads", "cores", "rows/s", "ratio", "bytes", ...
};

// What is said about a slice: texts and numbers by name, units in their names.
using TraceArguments = std::vector<std::pair<std::string, collectors::SqlValue>>;

// Writes one format. Times are nanoseconds since the run began.
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;
  // Before anything on the track; its parent comes first. Also for ExportPart::kCourses, where
  // descriptions of tracks are not to be written.
  virtual void Track(const TraceTrack& track) = 0;
  // On one track a slice lies within another or apart from it. Begin and End come in the order in
  // which they nest, at equal times, too.
  virtual void Begin(uint64_t track, int64_t at_ns, const std::string& name,
                     const TraceArguments& arguments) = 0;
  virtual void End(uint64_t track, int64_t at_ns) = 0;
  // A value that holds until the track's next one.
  virtual void Counter(uint64_t track, int64_t at_ns, double value) = 0;
};

}  // namespace headrace::dashboards
