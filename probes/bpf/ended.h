// Keeps figures of processes that have ended, so that a map's size bounds only the processes that
// run now.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {

class EndedFigures {
 public:
  // Turns an entry into measurements: counters only, whose metric names are literals.
  using Emit = std::function<void(const Record& key, const Record& value, Sink& sink)>;

  // Like program.ForEach(map), for maps whose key has a member `tgid`. Entries of processes gone
  // for more than a second are taken out of the map once; what they emitted is emitted from then on
  // by every call.
  void ForEach(Program& program, const std::string& map, Sink& sink, const Emit& emit);
  void Clear();

 private:
  struct Kept {
    std::map<std::pair<std::string_view, Labels>, Measurement> measurements;
    int64_t looked_ns = 0;
  };
  bool LongGone(int64_t pid, int64_t now);

  std::map<std::string, Kept> maps_;
  std::map<int64_t, int64_t> gone_since_;  // 0: it still ran when last checked
  int64_t looked_ns_ = 0;
};

}  // namespace headrace::probes::bpf
