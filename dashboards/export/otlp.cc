// Messages of github.com/open-telemetry/opentelemetry-proto, version 1; field numbers by message.
#include "dashboards/export/otlp.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/terminal_text.h"
#include "dashboards/export/export.h"
#include "dashboards/export/proto_writer.h"
#include "dashboards/export/run_metrics.h"

namespace headrace::dashboards {
namespace {

constexpr uint64_t kCumulative = 2;  // AggregationTemporality
constexpr long kTimeoutMs = 10'000;
constexpr size_t kMaxAnswerBytes = 1 << 20;

ProtoWriter Attribute(const std::string& key, const std::string& value) {
  ProtoWriter any;
  any.Text(1, value);  // string_value
  ProtoWriter attribute;
  attribute.Text(1, key);
  attribute.Message(2, any);
  return attribute;
}

// Units as OpenTelemetry writes them (UCUM).
std::string OtlpUnit(const MetricFamily& family) {
  static constexpr std::pair<const char*, const char*> kUnits[] = {{"seconds", "s"},
                                                                   {"bytes", "By"},
                                                                   {"ratio", "1"},
                                                                   {"joules", "J"},
                                                                   {"watts", "W"},
                                                                   {"hertz", "Hz"},
                                                                   {"celsius", "Cel"},
                                                                   {"cores", "{core}"},
                                                                   {"", "1"},
                                                                   {"bytes_per_second", "By/s"},
                                                                   {"per_second", "1/s"}};
  for (const auto& [unit, ucum] : kUnits) {
    if (family.unit == unit) return ucum;
  }
  return family.unit;
}

ProtoWriter DataPoint(const MetricFamily::Sample& sample, uint64_t started_ns, uint64_t now_ns) {
  ProtoWriter point;
  point.Fixed64(2, started_ns);
  point.Fixed64(3, now_ns);
  point.Double(4, sample.value);
  for (const auto& [label, value] : sample.labels) point.Message(7, Attribute(label, value));
  return point;
}

std::string OtlpName(const MetricFamily& family) {
  return "headrace." + family.name + (family.unit.empty() ? "" : "_" + family.unit);
}

ProtoWriter OtlpMetric(const MetricFamily& family, uint64_t started_ns, uint64_t now_ns) {
  ProtoWriter data;
  for (const MetricFamily::Sample& sample : family.samples) {
    data.Message(1, DataPoint(sample, started_ns, now_ns));
  }
  if (family.counter) {
    data.Whole(2, kCumulative);
    data.Whole(3, 1);  // is_monotonic
  }
  ProtoWriter metric;
  // With its unit, though there is a field for that: a time and a count may share the rest.
  metric.Text(1, OtlpName(family));
  metric.Text(2, family.help);
  metric.Text(3, OtlpUnit(family));
  metric.Message(family.counter ? 7 : 5, data);  // sum, gauge
  return metric;
}

size_t TakeAnswer(char* bytes, size_t size, size_t count, void* into) {
  auto* answer = static_cast<std::string*>(into);
  if (answer->size() + size * count > kMaxAnswerBytes) return 0;  // ends the transfer
  answer->append(bytes, size * count);
  return size * count;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void AddHeader(const std::string& header, HeaderList* list) {
  if (header.find_first_of("\r\n") != std::string::npos) {
    throw Error(ExitCode::kUsage, "a header of the endpoint holds a line end");
  }
  curl_slist* longer = curl_slist_append(list->get(), header.c_str());
  if (longer == nullptr) throw Error(ExitCode::kResources, "no memory for a header");
  static_cast<void>(list->release());
  list->reset(longer);
}

HeaderList HeadersOf(const std::string& headers) {
  HeaderList list;
  AddHeader("Content-Type: application/x-protobuf", &list);
  for (size_t begin = 0; begin < headers.size();) {
    size_t end = headers.find(',', begin);
    if (end == std::string::npos) end = headers.size();
    const std::string pair = headers.substr(begin, end - begin);
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ExitCode::kUsage, "headers of the endpoint are not key=value,key=value");
    }
    AddHeader(pair.substr(0, equals) + ": " + pair.substr(equals + 1), &list);
    begin = end + 1;
  }
  return list;
}

void WriteOtlp(const ExportRequest& request, const ExportSink& sink) {
  sink(OtlpMetrics(request.store, request.run_id));
}

HR_EXPORT("otlp", {.ending = ".otlp",
                   .holds = "the same totals as openmetrics, as one ExportMetricsServiceRequest",
                   .opens = "any OpenTelemetry collector: --endpoint URL sends it over HTTP",
                   .binary = true,
                   .write = WriteOtlp});

}  // namespace

std::string OtlpMetrics(collectors::ReadStore& store, int64_t run_id) {
  const ExportedRun run = ReadExportedRun(store, run_id);
  const auto started_ns = static_cast<uint64_t>(run.started_realtime_ns);
  const uint64_t now_ns = started_ns + static_cast<uint64_t>(run.duration_ns);
  ProtoWriter resource;
  resource.Message(1, Attribute("service.name", run.program.empty() ? "headrace" : run.program));
  resource.Message(1, Attribute("host.name", run.hostname));
  ProtoWriter scope;
  scope.Text(1, "headrace");
  scope.Text(2, HEADRACE_VERSION);
  ProtoWriter scope_metrics;
  scope_metrics.Message(1, scope);
  for (const MetricFamily& family : ReadRunMetrics(store, run_id)) {
    scope_metrics.Message(2, OtlpMetric(family, started_ns, now_ns));
  }
  ProtoWriter resource_metrics;
  resource_metrics.Message(1, resource);
  resource_metrics.Message(2, scope_metrics);
  ProtoWriter request;
  request.Message(1, resource_metrics);
  return request.bytes();
}

std::string OtlpAddress(const std::string& endpoint) {
  if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://")) {
    throw Error(ExitCode::kUsage,
                fmt::format("'{}' is no http or https address", Printable(endpoint)), "--endpoint",
                "a collector on this machine is http://localhost:4318");
  }
  constexpr std::string_view kPath = "/v1/metrics";
  std::string address = endpoint;
  while (address.ends_with('/')) address.pop_back();
  if (!address.ends_with(kPath)) address += kPath;
  return address;
}

void SendOtlp(const std::string& endpoint, const std::string& headers, const std::string& request) {
  const std::string address = OtlpAddress(endpoint);
  const HeaderList list = HeadersOf(headers);
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) throw Error(ExitCode::kResources, "no memory for a connection", endpoint);
  std::string body;
  char message[CURL_ERROR_SIZE] = "";
  CURL* handle = curl.get();
  curl_easy_setopt(handle, CURLOPT_URL, address.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "headrace/" HEADRACE_VERSION);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, list.get());
  curl_easy_setopt(handle, CURLOPT_POST, 1L);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.data());
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.size()));
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, TakeAnswer);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, kTimeoutMs);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, kTimeoutMs);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, message);
  const CURLcode code = curl_easy_perform(handle);
  if (code != CURLE_OK) {
    throw Error(
        ExitCode::kFailure,
        fmt::format("sending failed: {}", message[0] != '\0' ? message : curl_easy_strerror(code)),
        address, "is a collector listening there?");
  }
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  if (status < 200 || status > 299) {
    throw Error(ExitCode::kFailure, fmt::format("the collector answered {}", status), address);
  }
  const OtlpAnswer answer = ParseOtlpAnswer(body);
  if (answer.rejected_count != 0) {
    throw Error(ExitCode::kFailure,
                fmt::format("the collector did not take {} of the values: {}",
                            answer.rejected_count, answer.message),
                address);
  }
}

OtlpAnswer ParseOtlpAnswer(std::string_view body) {
  OtlpAnswer answer;
  ProtoReader reader(body);
  while (const auto field = reader.Next()) {
    if (field->number != 1 || field->wire_type != 2) continue;  // partial_success
    ProtoReader partial(field->bytes);
    while (const auto part = partial.Next()) {
      if (part->number == 1 && part->wire_type == 0) {
        answer.rejected_count = static_cast<int64_t>(part->value);
      }
      if (part->number == 2 && part->wire_type == 2) answer.message = part->bytes;
    }
  }
  return answer;
}

}  // namespace headrace::dashboards
