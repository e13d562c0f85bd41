#!/usr/bin/env bats
# The report of a real run of the reader: what its parts say must be so, whatever the machine makes of the figures.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$HEADRACE" generate rm1 --features 0.02 --rows 4000 --seed 4 -o t > /dev/null 2>&1
  "$HEADRACE" rewrite t --layout map -o maps > /dev/null 2>&1
  cp t/pipeline.toml maps/
  local to="--db r.db --quiet --duration 2s"
  "$HEADRACE" run t/pipeline.toml $to --name idle --set consumer.step=50ms > /dev/null 2>&1
  "$HEADRACE" run maps/pipeline.toml $to --name maps --set consumer.step=0 > /dev/null 2>&1
  "$HEADRACE" run t/pipeline.toml $to --name disk --set consumer.step=2ms --set source.throttle.preset=disk --set source.coalesce_gap=0 > /dev/null 2>&1
}

setup() { cd "$BATS_FILE_TMPDIR"; }
teardown() { :; }

# check RUN PYTHON: the report of that run as `r`, its recommendations by id as `says`.
check() {
  not_slowed
  # 4: undecided, which a busy machine may make of a run; what is asked here holds all the same.
  "$HEADRACE" report "$1" --db r.db --json > "$1.json" || [ $? -eq 4 ]
  python3 - "$1.json" <<PY
import json, sys
r = json.load(open(sys.argv[1]))
says = {x["id"]: x for x in r["recommendations"]}
assert sorted(int(id[1:]) for id in says) == list(range(1, len(says) + 1)) and len(says) >= 24, says.keys()
for x in says.values():
    assert x["advice"] in ("fires", "may gain", "does not fire", "cannot say") and x["why"], x
    assert x["advice"] not in ("cannot say", "may gain") or x["record"], x
    assert x["advice"] != "fires" or x["do"], x
border = {x["border"]: x for x in r["bytes"]}
$2
PY
}

@test "a consumer that sleeps: do nothing, and nothing promises a gain" {
  check idle '
assert r["recommendations"][0]["id"] == "R22", r["recommendations"][0]
assert says["R22"]["advice"] == "fires"
assert all(x["advice"] != "fires" for x in says.values() if x["id"] not in ("R22", "R23"))
assert r["work"]["cores_wanted"] > 0
binding = [x for x in r["resource_ladder"] if x["binding"]]
assert [x["kind"] for x in binding] == ["consumer"], binding
'
}

@test "bytes: each border follows from the one before it" {
  check idle '
def of(name): return next(x for x in r["bytes"] if x["border"].startswith(name))
stored, selected, read, over = of("stored"), of("selected"), of("read from"), of("of it over-read")
assert selected["bytes"] < stored["bytes"], (selected, stored)
assert abs(read["bytes"] - over["bytes"] - selected["bytes"]) <= 1e-6 * read["bytes"]
assert of("decompressed")["bytes_per_row"] > selected["bytes_per_row"]
assert of("tensors")["bytes_per_row"] > 0
assert of("sent")["bytes"] is None and "within the process" in of("sent")["bytes_unavailable"]
assert r["reads"]["mean_size_bytes"] > 0 and 0 <= r["reads"]["over_read_ratio"] < 1
shares = [x["cpu_ratio"] for x in r["stage_split"]]
assert abs(sum(shares) - 1) < 0.02, shares
classes = {x["name"] for x in r["transform_classes"]}
assert {"feature generation", "sparse normalisation", "dense normalisation"} <= classes, classes
'
}

@test "whole maps are to be flattened; flattened ones are not" {
  check maps '
assert says["R4"]["advice"] == "fires", says["R4"]
assert says["R4"]["gain_ratio"] > 0.2 and says["R4"]["gain_ratio_low"] >= 0
assert says["R4"]["storage_bytes_per_row_then"] < says["R4"]["storage_bytes_per_row"]
assert "--layout flat" in says["R4"]["command"]
'
  check disk 'assert says["R4"]["advice"] == "does not fire", says["R4"]'
}

@test "small requests to a disk: join them, and no worker helps" {
  check disk '
assert says["R5"]["advice"] == "fires", says["R5"]
assert says["R5"]["storage_requests_per_row_then"] < says["R5"]["storage_requests_per_row"]
assert says["R5"]["storage_bytes_per_row_then"] > says["R5"]["storage_bytes_per_row"]
assert says["R1"]["advice"] == "does not fire" and "device throttle" in says["R1"]["why"], says["R1"]
assert says["R22"]["advice"] == "does not fire"
causes = {x["cause"]: x["step_ratio"] for x in r["stall_causes"]}
assert causes["storage"] > 0.5, causes
'
}

@test "text: recommendations stand behind the verdict block, and the other formats have them too" {
  run "$HEADRACE" report disk --db r.db --full
  [[ "$output" == *"Recommendations"*"Resource ladder"*"Bytes at each stage boundary"*"Where the CPU time goes"* ]]
  [[ "$output" == *"effect   storage: "*" | reader: "*" | trainer: "* ]]
  [[ "${output%%Recommendations*}" == *" limit "*" cost "* ]]
  run "$HEADRACE" report disk --db r.db --format md
  [[ "$output" == *"## Recommendations"*"| R5 |"* ]]
}

@test "money only at the user's price, and the assumption beside it" {
  run "$HEADRACE" report idle --db r.db --json
  [ "$(jq -r '.per_million_rows[] | select(.what == "price of the cores") | .amount' <<< "$output")" = null ]
  run "$HEADRACE" report idle --db r.db --core-hour-price 0.05 --json
  [ "$(jq '.per_million_rows[] | select(.what == "price of the cores") | .amount > 0' <<< "$output")" = true ]
  [[ "$output" == *"0.05 an hour for each core kept"* ]]
  for price in -1 nan inf 1e999 5x ""; do
    run "$HEADRACE" report idle --db r.db --core-hour-price "$price"
    [ "$status" -eq 2 ]
  done
}

@test "requests that cost nothing, joined over holes: a smaller gap, and no rewriting of the table" {
  "$HEADRACE" run t/pipeline.toml --db r.db --quiet --duration 2s --name slow --set consumer.step=0 \
    --set source.throttle.bandwidth=10MB/s > /dev/null 2>&1
  check slow '
assert r["reads"]["over_read_ratio"] > 0.2, r["reads"]
assert says["R5"]["advice"] == "fires" and "coalesce_gap=0" in says["R5"]["command"], says["R5"]
assert says["R5"]["storage_bytes_per_row_then"] < says["R5"]["storage_bytes_per_row"]
assert says["R6"]["advice"] == "does not fire" and "R5" in says["R6"]["why"], says["R6"]
assert not any("as much as 0 B" in x["why"] for x in says.values())
'
}
