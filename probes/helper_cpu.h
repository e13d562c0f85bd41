// CPU time of probes that is not seen on the recorder's own reading thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace headrace::probes {

// Of the programs that probes run beside the recorder: part of what recording costs. Nanoseconds
// since this process began. Probes add to it; it never falls.
inline std::atomic<int64_t>& HelperCpuNs() {
  static std::atomic<int64_t> ns = 0;
  return ns;
}

// Of this process's work and its helpers' what is done once for each file or process, as reading
// the symbols of a library. It is part of what recording has cost, and says nothing of what
// recording is going to cost. Never more than has been added to this process's CPU time and to
// HelperCpuNs().
inline std::atomic<int64_t>& OnceCpuNs() {
  static std::atomic<int64_t> ns = 0;
  return ns;
}

// Of HelperCpuNs() what is not done only once, by the name of the probe that runs the programs: it
// goes when that probe is given up. Of the thread that reads probes alone.
inline std::map<std::string, int64_t>& LastingHelperCpuNs() {
  static std::map<std::string, int64_t> ns;
  return ns;
}

}  // namespace headrace::probes
