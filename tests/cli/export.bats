#!/usr/bin/env bats
# `headrace export`: the command's manners, and its files read by the tools they are for. A tool that is not here is a skipped test that
# says so. HEADRACE_EXPORT_PYTHON names an interpreter that has perfetto, opentelemetry-proto and prometheus-client (PyPI).
load helpers

record_once() { "$HEADRACE" run small.toml --quiet --name first --duration 1500ms; }
setup_file() { prepare record_once; }
setup() {
  HEADRACE=${HEADRACE:-$BATS_TEST_DIRNAME/../../build/headrace}
  PYTHON=${HEADRACE_EXPORT_PYTHON:-python3}
  DIR=$(mktemp -d)
  cd "$DIR"
  export HEADRACE_DB=$DIR/runs.db NO_COLOR=1
  take
}

has_python() { "$PYTHON" -c "import $1" 2> /dev/null || skip "$PYTHON has no module $1"; }

@test "the formats are listed with what they have and what opens them" {
  run "$HEADRACE" export --list
  [ "$status" -eq 0 ]
  for format in perfetto chrome pprof folded speedscope openmetrics prometheus otlp csv ndjson arrow; do
    grep -q "^$format " <<< "$output" || { echo "$output"; false; }
  done
}

@test "every format is written, by its name and by the file's ending" {
  "$HEADRACE" export --list | sed -n 's/^\([a-z][a-z]*\) .*/\1/p' > formats
  [ "$(wc -l < formats)" -ge 10 ]
  while read -r format; do
    view=()
    case $format in csv | ndjson | arrow) view=(--view operator_interval) ;; esac
    "$HEADRACE" export first --format "$format" "${view[@]}" -o "$format.out" 2> err || { cat err; false; }
    grep -q "^about .* bytes) of $format$\|^about .* bytes)$" err || { cat err; false; }
    [ -s "$format.out" ]
  done < formats
  "$HEADRACE" export first -o run.pftrace
  cmp run.pftrace perfetto.out
  run "$HEADRACE" export first -o run.unknown
  one_line_error 2 "run.unknown: no format has files that end so; give --format"
}

@test "a file that exists is kept unless asked, and nothing half is left" {
  echo keep > run.pftrace
  run "$HEADRACE" export first -o run.pftrace
  one_line_error 2 "run.pftrace.*exists"
  [ "$(cat run.pftrace)" = keep ]
  "$HEADRACE" export first -o run.pftrace -f
  [ "$(head -c 1 run.pftrace | od -An -tx1)" = " 0a" ]  # field 1 of a Trace
  run "$HEADRACE" export first --format csv --view nosuch -o other.csv
  one_line_error 2 "no view 'nosuch'"
  [ ! -e other.csv ]
}

@test "the estimate comes alone, and is right" {
  for format in perfetto chrome pprof openmetrics; do
    estimate=$("$HEADRACE" export first --format $format --estimate | sed -n 's/.*(\([0-9]*\) bytes).*/\1/p')
    size=$("$HEADRACE" export first --format $format 2> /dev/null | wc -c)
    [ "$estimate" -eq "$size" ] || { echo "$format: $estimate, $size"; false; }
  done
}

@test "data goes to standard output, talk to standard error" {
  "$HEADRACE" export first --format csv --view run_summary > out.csv 2> err
  [ "$(wc -l < out.csv)" -ge 2 ]
  grep -q "^opens with: " err
  "$HEADRACE" export first --format ndjson --view operator_summary 2> /dev/null | jq -e '.operator | length > 0' > /dev/null
  "$HEADRACE" export first --format chrome 2> /dev/null | jq -e '.traceEvents | length > 100' > /dev/null
}

@test "binary data goes to no terminal" {
  command -v script > /dev/null || skip "no script(1) to make a terminal"
  run script -qec "$HEADRACE export first --format perfetto" /dev/null
  [ "$status" -eq 2 ] || { echo "$status: $output"; false; }
  [[ "$output" == *"not for a terminal"* ]]
}

@test "what cannot be is refused in one line" {
  run "$HEADRACE" export first --format perfeto
  one_line_error 2 "did you mean 'perfetto'"
  run "$HEADRACE" export nosuch --format perfetto
  one_line_error 5 "nosuch"
  run "$HEADRACE" export first --format pprof --since 1s
  one_line_error 2 "leave --since and --until out"
  run "$HEADRACE" export first --format csv
  one_line_error 2 "--view NAME"
  run "$HEADRACE" export first --format perfetto --since 1h
  one_line_error 2 "after the run's end"
  run "$HEADRACE" export first --format perfetto --since 1s --until 500ms
  one_line_error 2 "--until is not after --since"
  run "$HEADRACE" export first --format otlp --endpoint localhost:4318
  one_line_error 2 "no http or https address"
}

@test "a part of the run is smaller and begins where it was asked to" {
  "$HEADRACE" export first --format csv --view step_interval --since 500ms > part.csv 2> /dev/null
  "$HEADRACE" export first --format csv --view step_interval > all.csv 2> /dev/null
  [ "$(wc -l < part.csv)" -lt "$(wc -l < all.csv)" ]
  [ "$(sed -n 2p part.csv | cut -d, -f2)" -ge 500000000 ]
}

@test "otlp: a collector takes it, refuses it, takes a part" {
  cat > collector.py <<'PY'
import http.server, sys
class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        open("got.otlp", "wb").write(body)
        open("got.txt", "w").write(f"{self.path} {self.headers['Content-Type']} {self.headers['Api-Key']}")
        part = b"\x0a\x09\x08\x07\x12\x05no\nno" if "part" in self.path else b""
        self.send_response(503 if "full" in self.path else 200)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
open("port.tmp", "w").write(str(server.server_port))
import os
os.rename("port.tmp", "port")
server.serve_forever()
PY
  python3 collector.py &
  collector=$!
  until_true 10 test -e port
  at=http://127.0.0.1:$(cat port)
  run env OTEL_EXPORTER_OTLP_HEADERS=Api-Key=secret "$HEADRACE" export first --endpoint "$at"
  kept=$status said=$output
  run "$HEADRACE" export first --endpoint "$at/full"
  full=$status
  run "$HEADRACE" export first --endpoint "$at/part"
  kill $collector
  [ "$kept" -eq 0 ] || { echo "$said"; false; }
  [ "$full" -eq 1 ]
  [ "$status" -eq 1 ]
  [[ "$output" == *"did not take 7 of the values: no\\x0ano"* ]] || { echo "$output"; false; }
  [[ "$(cat got.txt)" == "/part/v1/metrics application/x-protobuf"* ]]
  "$HEADRACE" export first -o direct.otlp
  cmp got.otlp direct.otlp
}

@test "other tools: protoc decodes perfetto, pprof and otlp" {
  command -v protoc > /dev/null || skip "no protoc"
  for format in perfetto otlp; do
    "$HEADRACE" export first --format $format 2> /dev/null | protoc --decode_raw > $format.txt
    [ "$(wc -l < $format.txt)" -gt 100 ]
  done
  "$HEADRACE" export first --format pprof 2> /dev/null | gunzip | protoc --decode_raw > pprof.txt
  [ "$(wc -l < pprof.txt)" -gt 20 ]
}

@test "other tools: Perfetto's own messages" {
  has_python perfetto
  "$HEADRACE" export first -o run.pftrace
  "$PYTHON" - <<'PY'
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
trace = Trace()
trace.ParseFromString(open("run.pftrace", "rb").read())
names, counters, unknown, open_slices = {}, 0, 0, {}
for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        names[track.uuid] = track.name
        assert not track.parent_uuid or track.parent_uuid in names, track
        counters += track.HasField("counter")
    if packet.HasField("track_event"):
        event = packet.track_event
        assert event.track_uuid in names, event
        if event.type == event.TYPE_SLICE_BEGIN:
            open_slices.setdefault(event.track_uuid, []).append(packet.timestamp)
        elif event.type == event.TYPE_SLICE_END:
            assert open_slices[event.track_uuid].pop() <= packet.timestamp
        else:
            assert event.type == event.TYPE_COUNTER
    assert packet.WhichOneof("data") in ("track_descriptor", "track_event", "clock_snapshot"), packet
assert counters > 20, counters
assert "stage load" in names.values() and "operator parse" in names.values(), names
assert not any(open_slices.values())
PY
}

@test "other tools: OpenTelemetry's own messages" {
  has_python opentelemetry.proto
  "$HEADRACE" export first -o m.otlp
  "$PYTHON" - <<'PY'
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
request = ExportMetricsServiceRequest()
request.ParseFromString(open("m.otlp", "rb").read())
metrics = {metric.name: metric for metric in request.resource_metrics[0].scope_metrics[0].metrics}
busy = metrics["headrace.operator_busy_seconds"]
assert busy.unit == "s" and busy.sum.is_monotonic and busy.sum.aggregation_temporality == 2, busy
labels = {a.key: a.value.string_value for a in busy.sum.data_points[0].attributes}
assert labels["stage"] and labels["operator"], labels
assert all(p.as_double > 0 and p.time_unix_nano > p.start_time_unix_nano > 0 for p in busy.sum.data_points)
PY
}

@test "other tools: Prometheus' strict reader of OpenMetrics" {
  has_python prometheus_client
  "$HEADRACE" export first -o m.om
  "$PYTHON" - <<'PY'
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = {family.name: family for family in text_string_to_metric_families(open("m.om").read())}
assert families["headrace_operator_busy_seconds"].type == "counter"
assert families["headrace_operator_busy_seconds"].unit == "seconds"
assert families["headrace_run"].type == "info"
assert len(families) > 30, len(families)
PY
}

@test "other tools: promtool finds nothing to say of metrics and alert rules" {
  command -v promtool > /dev/null || skip "no promtool (Debian: prometheus)"
  "$HEADRACE" export first --format prometheus 2> /dev/null | promtool check metrics
  promtool check rules "$BATS_TEST_DIRNAME/../../packaging/grafana/alerts.yml"
}

@test "other tools: go tool pprof" {
  command -v go > /dev/null || skip "no go"
  "$HEADRACE" export first -o p.pb.gz
  # Go builds the tool when it is first asked for, which takes a minute of CPU time: where the user's own cache keeps it.
  GOCACHE=$(go env GOCACHE || echo "$DIR/go")
  export GOCACHE
  run env HOME="$DIR" go tool pprof -top -sample_index=waiting p.pb.gz
  [[ "$output" != *"no such tool"* ]] || skip "this go has no tool pprof"
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  env HOME="$DIR" go tool pprof -raw p.pb.gz > raw.txt
  grep -q "operator:\[parse\]" raw.txt
}

@test "other tools: pyarrow" {
  has_python pyarrow
  "$HEADRACE" export first --view run_summary -o r.arrow
  "$HEADRACE" export first --view operator_interval -o o.arrow
  "$PYTHON" - <<'PY'
import pyarrow, pyarrow.feather
runs = pyarrow.feather.read_table("r.arrow")
assert runs.num_rows == 1 and runs.column("name").to_pylist() == ["first"], runs
assert runs.column("started_realtime_ns").type == pyarrow.int64()
operators = pyarrow.feather.read_table("o.arrow")
operators.validate(full=True)
assert operators.num_rows > 5 and set(operators.column("operator").to_pylist()) >= {"load", "parse"}, operators
PY
}

@test "other tools: speedscope's schema" {
  schema=${HEADRACE_SPEEDSCOPE_SCHEMA:-}
  [ -n "$schema" ] || skip "HEADRACE_SPEEDSCOPE_SCHEMA names no file-format-schema.json (npm: speedscope)"
  has_python jsonschema
  "$HEADRACE" export first -o s.speedscope.json
  "$PYTHON" -c 'import json, jsonschema, sys; jsonschema.validate(json.load(open("s.speedscope.json")), json.load(open(sys.argv[1])))' "$schema"
}

@test "names of others stay names in every format" {
  small_pipeline
  sed 's/name = "parse"/name = "pa\\u001B[2J\\"rse\\u202E;,"/' small.toml > evil.toml
  "$HEADRACE" run evil.toml --quiet --name evil --duration 1s 2> err || { cat err; skip "this pipeline's names are refused"; }
  for format in perfetto chrome pprof folded speedscope openmetrics prometheus otlp; do
    "$HEADRACE" export evil --format $format -o evil.$format 2> /dev/null
  done
  jq -e . evil.chrome > /dev/null
  jq -e . evil.speedscope > /dev/null
  ! grep -q $'\e' evil.folded evil.openmetrics evil.prometheus
  if command -v promtool > /dev/null; then promtool check metrics < evil.prometheus; fi
}
