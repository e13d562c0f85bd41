// The tables of [source] about the storage: device, throttle, fault, remote, tier.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/spec/sections.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {

void ParseDevice(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("device");
  if (!table) return;
  table.CheckKeys("[source.device]", {"ns_per_request", "ns_per_byte"});
  DeviceCost cost;
  cost.ns_per_request = table.Number("ns_per_request", -1);
  cost.ns_per_byte = table.Number("ns_per_byte", -1);
  if (cost.ns_per_request < 0 || cost.ns_per_byte < 0)
    table.Fail("[source.device] has ns_per_request and ns_per_byte, neither below 0");
  spec->device_cost = cost;
}

// A preset, and single figures in its place.
void ParseThrottle(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("throttle");
  if (!table) return;
  table.CheckKeys("[source.throttle]", {"preset", "bandwidth", "iops", "latency", "seek"});
  ThrottleOptions& throttle = spec->throttle;
  const std::string preset = table.Text("preset", "");
  if (!preset.empty()) {
    const std::optional<ThrottleOptions> found = ThrottlePreset(preset);
    if (!found) {
      table["preset"].Fail(fmt::format("unknown preset '{}'{}", Printable(preset, 40),
                                       DidYouMean(preset, {"disk", "ssd", "remote"})));
    }
    throttle = *found;
  }
  if (const SpecValue bandwidth = table["bandwidth"])
    throttle.bytes_per_second = bandwidth.Rate("bandwidth");
  throttle.iops = table.Number("iops", throttle.iops);
  if (throttle.iops < 0) table["iops"].Fail("iops must not be below 0");
  if (const SpecValue latency = table["latency"])
    throttle.latency_ns = static_cast<int64_t>(latency.Duration("latency"));
  if (const SpecValue seek = table["seek"])
    throttle.seek_ns = static_cast<int64_t>(seek.Duration("seek"));
}

void ParseFault(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("fault");
  if (!table) return;
  table.CheckKeys("[source.fault]", {"seed", "errors", "short", "flips", "stalls", "stall"});
  FaultOptions& fault = spec->io.fault;
  fault.seed = table.Count("seed", 1, 0, UINT64_MAX >> 1);
  const auto share = [&](const char* key, double* value) {
    *value = table.Number(key, 0);
    if (!(*value >= 0 && *value <= 1))
      table[key].Fail(fmt::format("{} is a share of reads, from 0 to 1", key));
  };
  share("errors", &fault.error_ratio);
  share("short", &fault.short_ratio);
  share("flips", &fault.flip_ratio);
  share("stalls", &fault.stall_ratio);
  if (const SpecValue stall = table["stall"])
    fault.stall_ns = static_cast<int64_t>(stall.Duration("stall"));
}

void ParseRemote(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("remote");
  if (!table) return;
  table.CheckKeys("[source.remote]",
                  {"endpoint", "region", "timeout", "stall", "retries", "connections", "ca_file"});
  RemoteOptions& remote = spec->io.remote;
  remote.endpoint = table.Text("endpoint", "");
  if (!remote.endpoint.empty() && !remote.endpoint.starts_with("http://") &&
      !remote.endpoint.starts_with("https://"))
    table["endpoint"].Fail("an endpoint is http://HOST:PORT or https://HOST");
  remote.region = table.Text("region", remote.region);
  const auto duration = [&](const char* key, int64_t* value) {
    const SpecValue node = table[key];
    if (!node) return;
    *value = static_cast<int64_t>(node.Duration(key));
    if (*value < 1'000'000) node.Fail(fmt::format("{} must be at least 1ms", key));
  };
  duration("timeout", &remote.timeout_ns);
  duration("stall", &remote.stall_ns);
  remote.retries = static_cast<uint32_t>(table.Count("retries", remote.retries, 0, 1000));
  remote.connections =
      static_cast<uint32_t>(table.Count("connections", remote.connections, 1, 256));
  const std::string ca_file = table.Text("ca_file", "");
  if (!ca_file.empty()) remote.ca_file = table.Path(ca_file);
}

void ParseTier(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("tier");
  if (!table) return;
  table.CheckKeys("[source.tier]", {"budget", "policy", "popularity", "folder"});
  if (const SpecValue budget = table["budget"])
    spec->tier.budget_bytes = static_cast<uint64_t>(budget.Bytes("budget"));
  const std::string folder = table.Text("folder", "");
  if (!folder.empty()) spec->tier.folder = table.Path(folder);
  if (!folder.empty() && !table["budget"])
    table["folder"].Fail("a tier in a folder needs budget = \"...\": the bytes it may take");
  const std::string popularity = table.Text("popularity", "");
  if (!popularity.empty()) spec->tier.popularity = table.Path(popularity);
  if (!popularity.empty() && !spec->tier.enabled())
    table["popularity"].Fail(
        "popularity says what the tier keeps, and without a budget there is no tier");
  spec->tier.policy =
      table.IsSecond("policy", "lru", "pinned") ? TierPolicy::kPinned : TierPolicy::kLru;
}

}  // namespace headrace::reader
