// Fuzzes the parser of nodes files: any bytes are a file of plausible figures, or an Error with
// code 5 on one line.
//
// fuzz run: share=2 length=4096
// fuzz layers: base
// fuzz libs: fmt::fmt tomlplusplus::tomlplusplus
// fuzz sources: analysis/fleet/nodes.cc
#include <cmath>
#include <cstdint>
#include <string_view>

#include "analysis/fleet/nodes.h"
#include "base/check.h"
#include "base/error.h"

using namespace headrace;
using namespace headrace::analysis;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const NodesFile nodes = ParseNodes({reinterpret_cast<const char*>(data), size}, "nodes.toml");
    HR_CHECK(!nodes.types.empty() && nodes.types.size() <= 64, "types");
    HR_CHECK(nodes.headroom >= 0 && nodes.headroom < 1, "headroom");
    for (const NodeType& type : nodes.types) {
      HR_CHECK(!type.name.empty(), "name");
      HR_CHECK(type.price_per_hour >= 0 && type.cores > 0 && type.have >= 0, "figures");
      for (const auto& figure : {type.memory_bytes, type.memory_bandwidth_bytes_per_s,
                                 type.nic_bytes_per_s, type.disk_bytes_per_s}) {
        HR_CHECK(!figure || (std::isfinite(*figure) && *figure >= 1), "bytes");
      }
      HR_CHECK(type.watts_idle.has_value() == type.watts_peak.has_value(), "watts");
    }
    HR_CHECK(nodes.storage.latency_s >= 0 && nodes.dispatcher.latency_s >= 0, "latency");
    HR_CHECK(nodes.clients.count >= 1 && nodes.dispatcher.in_flight >= 1, "counts");
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kBadData, error.what());
    HR_CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos, "one line");
  }
  return 0;
}
