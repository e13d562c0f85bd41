// A run's totals as metrics: OpenMetrics, Prometheus' older text, OTLP. Read again line by line and
// field by field, and held against the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/terminal_text.h"
#include "dashboards/export/openmetrics.h"
#include "dashboards/export/otlp.h"
#include "dashboards/export/proto_writer.h"
#include "dashboards/export/run_metrics.h"
#include "probes/metric.h"
#include "tests/dashboards/export/exported_store.h"

namespace headrace::dashboards {
namespace {

using testing::HasSubstr;

// Names with their labels -> values, of a text that keeps the format's rules.
std::map<std::string, std::string> ReadMetrics(const std::string& text, bool open) {
  const std::regex described(R"(# (TYPE|UNIT|HELP) ([a-z][a-z0-9_]*) (.*))");
  const std::regex sample(
      R"re(([a-z][a-z0-9_]*)\{((?:[a-z_]+="(?:[^"\\]|\\[\\"n])*"(?:,|(?=\})))*)\} (-?[0-9.e+-]+))re");
  std::map<std::string, std::string> values;
  std::set<std::string> families;
  std::string family, type;
  std::istringstream lines(text);
  bool ended = false;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(ended) << "after the end: " << line;
    std::smatch match;
    if (line == "# EOF") {
      ended = true;
    } else if (std::regex_match(line, match, described)) {
      if (match[1] == "TYPE") {
        family = match[2];
        type = match[3];
        EXPECT_TRUE(families.insert(family).second) << family << " stands twice";
      }
      EXPECT_EQ(match[2], open && type == "info" && match[1] == "UNIT" ? "" : family);
      if (match[1] == "UNIT") {
        EXPECT_TRUE(family.ends_with("_" + match[3].str())) << line;
      }
    } else if (std::regex_match(line, match, sample)) {
      const std::string suffix = !open               ? ""
                                 : type == "counter" ? "_total"
                                 : type == "info"    ? "_info"
                                                     : "";
      EXPECT_EQ(match[1], family + suffix) << line;
      if (!open) {
        EXPECT_EQ(type == "counter", family.ends_with("_total")) << line;
      }
      const std::string key = match[1].str() + "{" + match[2].str() + "}";
      EXPECT_TRUE(values.emplace(key, match[3]).second) << line << " stands twice";
    } else {
      ADD_FAILURE() << "not a line of the format: " << line;
    }
  }
  EXPECT_EQ(ended, open);
  return values;
}

class Metrics : public ExportedStore {};

TEST_F(Metrics, TextsHaveTheTotalsOfTheRunInBaseUnits) {
  const int64_t run = Record();
  collectors::ReadStore store(path_);
  for (const bool open : {true, false}) {
    const auto values =
        ReadMetrics(open ? OpenMetrics(store, run) : PrometheusText(store, run), open);
    const std::string op = R"({run="1",stage="decode",operator="decompress"})";
    EXPECT_EQ(values.at("headrace_operator_busy_seconds_total" + op), "1.045");
    EXPECT_EQ(values.at("headrace_operator_in_bytes_total" + op), "10000");
    EXPECT_EQ(values.at(R"(headrace_queue_capacity{run="1",queue="ready"})"), "4");
    EXPECT_EQ(values.at(R"(headrace_steps_total{run="1"})"), "20");
    EXPECT_EQ(values.at(R"(headrace_host_cpu_seconds_total{run="1",cause="user"})"), "0.9");
    EXPECT_EQ(values.at(R"(headrace_lost_events_total{run="1",what="step records"})"), "3");
    EXPECT_EQ(
        values.at(R"(headrace_probe_works{run="1",probe="hardware counters",state="unavailable"})"),
        "0");
    EXPECT_EQ(values.count(R"(headrace_operator_on_cpu_seconds_total{run="1",stage="pack",)"
                           R"(operator="batch"})"),
              0u)
        << "what is not separated is no sample";
    EXPECT_EQ(
        values.at(
            R"(headrace_process_rss_bytes{run="1",process="reader",pid="4242",process_id="0"})"),
        "1000000");
  }
}

TEST_F(Metrics, HostileNamesStayLabels) {
  RecordedNames names = {kHostileName, kHostileName, kHostileName, kHostileName,
                         kHostileName, kHostileName, kHostileName, kHostileName};
  const int64_t run = Record(names);
  collectors::ReadStore store(path_);
  for (const bool open : {true, false}) {
    const std::string text = open ? OpenMetrics(store, run) : PrometheusText(store, run);
    EXPECT_GT(ReadMetrics(text, open).size(), 50u);
    for (size_t at = 0; at < text.size();) {
      const CodePoint c = CodePointAt(text, at);
      ASSERT_NE(c.length, 0u);
      ASSERT_TRUE(c.value == '\n' || !IsObeyed(c.value));
      at += c.length;
    }
  }
}

TEST(BaseUnits, OfEachUnitOfTheStore) {
  const struct {
    const char *metric, *unit, *name, *base;
    double divisor;
  } cases[] = {{"pressure_ns", "ns", "pressure", "seconds", 1e9},
               {"disk_bytes", "bytes", "disk", "bytes", 1},
               {"block_requests_count", "count", "block_requests", "", 1},
               {"ipc_ratio", "ratio", "ipc", "ratio", 1},
               {"link_bits_per_s", "bit/s", "link", "bytes_per_second", 8},
               {"gpu_pcie_bytes_per_s", "B/s", "gpu_pcie", "bytes_per_second", 1},
               {"cpu_frequency_hertz", "Hz", "cpu_frequency", "hertz", 1},
               {"strange\n\"x\"", "apples", "strange__x_", "", 1},
               {"9_total", "", "m_9_total_value", "", 1},
               {"", "", "m_", "", 1}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.metric);
    const BaseUnit base = InBaseUnits(c.metric, c.unit);
    EXPECT_EQ(base.name, c.name);
    EXPECT_EQ(base.unit, c.base);
    EXPECT_DOUBLE_EQ(base.divisor, c.divisor);
  }
}

TEST(BaseUnits, EveryMetricOfTheProjectHasAName) {
  std::set<std::string> names;
  for (const MetricFamily& family : RunFamilies()) {
    EXPECT_TRUE(names.insert(family.full_name()).second) << family.full_name();
  }
  for (const probes::Metric& metric : probes::Metrics()) {
    const BaseUnit base = InBaseUnits(metric.name, metric.unit);
    const MetricFamily family{base.name, base.unit, false, "", {}};
    EXPECT_TRUE(names.insert(family.full_name()).second)
        << metric.name << " has the name of another: " << family.full_name();
    EXPECT_FALSE(family.full_name().ends_with("_count")) << metric.name;
  }
}

TEST_F(Metrics, FamiliesOfOneNameDoNotMeet) {
  collectors::RunStore store(path_);
  collectors::RunInfo info;
  info.hostname = "elsewhere";
  const int64_t run = store.BeginRun(info);
  collectors::MeasurementBatch batch;
  batch.metrics = {{"a_ns", "ns", "gauge", "counter", "", ""},
                   {"a_seconds", "", "gauge", "counter", "", ""},
                   {"a b", "", "gauge", "counter", "", ""},
                   {"a\nb", "", "gauge", "counter", "", ""}};
  int64_t id = 0;
  for (const auto& metric : batch.metrics) {
    collectors::MeasurementRow row;
    row.id = id;
    row.metric = metric.metric;
    batch.definitions.push_back(row);
    row.id = id + 100;  // the same labels once more, which no collector does
    batch.definitions.push_back(row);
    batch.totals.push_back({id, 1, 1, 1, 1, 1, {}});
    batch.totals.push_back({id + 100, 1, 1, 1, 1, 1, {}});
    ++id;
  }
  store.Append(run, {}, batch);
  collectors::ReadStore reader(path_);
  ReadMetrics(OpenMetrics(reader, run), true);
}

TEST_F(Metrics, OtlpHasOnePointForEachSample) {
  RecordedNames names;
  names.op = kHostileName;
  const int64_t run = Record(names);
  collectors::ReadStore store(path_);
  size_t samples = 0;
  std::map<std::string, const MetricFamily*> by_name;
  const auto families = ReadRunMetrics(store, run);
  for (const MetricFamily& family : families) {
    samples += family.samples.size();
    const std::string name = "headrace." + family.full_name().substr(std::strlen("headrace_"));
    EXPECT_TRUE(by_name.emplace(name, &family).second) << name;
  }
  size_t points = 0, metrics = 0;
  const std::string bytes = OtlpMetrics(store, run);
  ProtoReader resources(bytes);
  const auto resource_metrics = resources.Next();
  ASSERT_TRUE(resource_metrics);
  ASSERT_FALSE(resources.Next());
  ProtoReader within(resource_metrics->bytes);
  EXPECT_EQ(within.Next()->number, 1u);  // the resource
  ProtoReader scope(within.Next()->bytes);
  EXPECT_EQ(scope.Next()->number, 1u);
  while (const auto metric = scope.Next()) {
    ASSERT_EQ(metric->number, 2u);
    ++metrics;
    std::string name;
    ProtoReader parts(metric->bytes);
    while (const auto part = parts.Next()) {
      if (part->number == 1) name = part->bytes;
      if (part->number != 5 && part->number != 7) continue;
      ASSERT_TRUE(by_name.contains(name)) << name;
      EXPECT_EQ(part->number == 7, by_name[name]->counter) << name;
      ProtoReader data(part->bytes);
      while (const auto point = data.Next()) {
        if (point->number != 1) continue;
        ++points;
        uint64_t start = 0, time = 0;
        ProtoReader fields(point->bytes);
        while (const auto field = fields.Next()) {
          if (field->number == 2) start = field->value;
          if (field->number == 3) time = field->value;
        }
        EXPECT_EQ(start, 1'700'000'000'123'456'789u);
        EXPECT_EQ(time, start + 10 * kWindow);
      }
    }
  }
  EXPECT_FALSE(scope.damaged());
  EXPECT_EQ(points, samples);
  EXPECT_EQ(metrics, families.size());
}

TEST(Otlp, AddressesOfEndpoints) {
  const struct {
    const char *endpoint, *address;
  } cases[] = {{"http://localhost:4318", "http://localhost:4318/v1/metrics"},
               {"https://c/", "https://c/v1/metrics"},
               {"http://c/otlp", "http://c/otlp/v1/metrics"},
               {"http://c/v1/metrics", "http://c/v1/metrics"},
               {"http://c/v1/metrics/", "http://c/v1/metrics"}};
  for (const auto& c : cases) EXPECT_EQ(OtlpAddress(c.endpoint), c.address);
  for (const char* bad : {"", "localhost:4318", "file:///etc/passwd", "ftp://c"}) {
    try {
      OtlpAddress(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage) << bad;
    }
  }
}

TEST(Otlp, AnswersOfCollectors) {
  ProtoWriter partial, answer;
  partial.Signed(1, 7);
  partial.Text(2, "no room");
  answer.Message(1, partial);
  const OtlpAnswer parsed = ParseOtlpAnswer(answer.bytes());
  EXPECT_EQ(parsed.rejected_count, 7);
  EXPECT_EQ(parsed.message, "no room");
  for (const char* nothing : {"", "{}", "\xff\xff",
                              "\x0a\x05"
                              "a"}) {
    EXPECT_EQ(ParseOtlpAnswer(nothing).rejected_count, 0);
  }
}

TEST(Otlp, NobodyListens) {
  try {
    SendOtlp("http://127.0.0.1:1", "", "x");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kFailure);
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.1:1/v1/metrics"));
  }
  for (const char* headers : {"novalue", "=x", "a=b\r\nEvil: 1"}) {
    try {
      SendOtlp("http://127.0.0.1:1", headers, "x");
      ADD_FAILURE() << headers;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage) << headers;
    }
  }
}

}  // namespace
}  // namespace headrace::dashboards
