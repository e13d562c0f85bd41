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
  throttle.bytes_per_second = table.Rate("bandwidth", throttle.bytes_per_second);
  throttle.iops = table.Number("iops", throttle.iops);
  if (throttle.iops < 0) table["iops"].Fail("iops must not be below 0");
  const auto duration = [&](const char* key, int64_t* ns) {
    *ns = static_cast<int64_t>(table.Duration(key, static_cast<double>(*ns)));
  };
  duration("latency", &throttle.latency_ns);
  duration("seek", &throttle.seek_ns);
}

void ParseFault(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("fault");
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
  fault.stall_ns = static_cast<int64_t>(table.Duration("stall", 0));
}

void ParseRemote(const SpecValue& source, PipelineSpec* spec) {
  const SpecValue table = source.Table("remote");
  table.CheckKeys("[source.remote]",
                  {"endpoint", "region", "timeout", "stall", "retries", "connections", "ca_file"});
  RemoteOptions& remote = spec->io.remote;
  remote.endpoint = table.Text("endpoint", "");
  if (!remote.endpoint.empty() && !remote.endpoint.starts_with("http://") &&
      !remote.endpoint.starts_with("https://"))
    table["endpoint"].Fail("an endpoint is http://HOST:PORT or https://HOST");
  remote.region = table.Text("region", remote.region);
  const auto duration = [&](const char* key, int64_t* value) {
    *value = static_cast<int64_t>(table.Duration(key, static_cast<double>(*value)));
    if (*value < 1'000'000) table[key].Fail(fmt::format("{} must be at least 1ms", key));
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
  table.CheckKeys("[source.tier]", {"budget", "policy", "popularity", "folder"});
  spec->tier.budget_bytes = table.Bytes("budget", spec->tier.budget_bytes);
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
