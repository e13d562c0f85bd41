// OpenTelemetry's metrics protocol (OTLP): a run's totals as an ExportMetricsServiceRequest, to a
// file or to a collector over HTTP.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "collectors/store/read_store.h"

namespace headrace::dashboards {

// The request in protobuf's wire format. Throws Error kBadData: no such run.
std::string OtlpMetrics(collectors::ReadStore& store, int64_t run_id);

// Where an endpoint takes metrics: its address and "/v1/metrics", unless that is its end already.
// Throws Error kUsage for what is no http or https address.
std::string OtlpAddress(const std::string& endpoint);

// What a collector answered that took the request.
struct OtlpAnswer {
  int64_t rejected_count = 0;  // data points it did not take
  std::string message;         // why, in its words
};
// Sends the request to the endpoint. `headers`: "key=value,key=value", as
// $OTEL_EXPORTER_OTLP_HEADERS has them. Waits for 10 s at most, follows no redirection. Throws
// Error kFailure where there is no answer, it is none of success, or values were rejected; kUsage
// for an endpoint or headers that cannot be.
void SendOtlp(const std::string& endpoint, const std::string& headers, const std::string& request);

// The answer's body (ExportMetricsServiceResponse). Bytes that are none are no rejection.
OtlpAnswer ParseOtlpAnswer(std::string_view body);

}  // namespace headrace::dashboards
