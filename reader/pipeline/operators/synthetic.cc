#include "reader/pipeline/operators/synthetic.h"

#include "base/clock.h"

namespace headrace::reader {

Cost ParseTime(const SpecValue& table, const std::string& kind) {
  Cost cost;
  cost.mean = table.Duration(kind, 0);
  ParseRandomness(table, &cost);
  return cost;
}

Cost ParseSize(const SpecValue& table, const std::string& kind) {
  Cost cost;
  cost.mean = static_cast<double>(table.Bytes(kind, 0));
  ParseRandomness(table, &cost);
  return cost;
}

void Spin(double cpu_ns, const StopSignal& stop) {
  const int64_t deadline = ThreadCpuNs() + static_cast<int64_t>(cpu_ns);
  volatile uint64_t sink = 0;
  while (ThreadCpuNs() < deadline && !stop.stopped()) {
    uint64_t x = sink;
    for (int i = 0; i < 4000; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
  }
}

}  // namespace headrace::reader
