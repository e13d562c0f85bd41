#!/usr/bin/env bats
# Losses: with tiny maps and rings every lost event is counted, and the report says what they make wrong.
bats_require_minimum_version 1.5.0
load helpers

# The report as one line: where it is wrapped does not matter.
unwrapped() { { "$HEADRACE" report --full || [ $? -eq 4 ]; } | tr -s ' \n' ' '; }

@test "the banner names what losses affect, in text and JSON" {
  HEADRACE_BPF_MAP_ENTRIES=3 HEADRACE_BPF_RING_BYTES=4096 "$HEADRACE" run small.toml --duration 2s -q
  reached=$("$HEADRACE" query --format csv "SELECT accounting_level FROM run_summary" | tail -1)
  [ "$reached" -ge 3 ] || skip "no eBPF here"
  "$HEADRACE" query --format csv "SELECT what FROM loss_summary WHERE lost_count > 0" > lost
  grep -q '^offcpu: threads' lost
  unwrapped > report
  grep -q "LOST where each operator's time goes, and Threads: b and q too low, c too high" report
  grep -q ' COST .* events lost' report
  ! grep -q '; 0 events lost' report
  # Every kind is in the JSON with what it affects.
  "$HEADRACE" report --json > report.json || [ $? -eq 4 ]
  [ "$(jq '[.losses[] | select(.lost_count > 0)] | length' report.json)" -eq "$(tail -n +2 lost | wc -l)" ]
  [ "$(jq '[.losses[] | select(.lost_count > 0 and .affects == "")] | length' report.json)" -eq 0 ]
}

@test "without losses there is no banner" {
  "$HEADRACE" run small.toml -q
  unwrapped > report
  grep -q '; 0 events lost' report
  ! grep -q ' LOST ' report
}

@test "limits of maps and rings that make no sense are refused" {
  for setting in MAP_ENTRIES=-5 MAP_ENTRIES=abc MAP_ENTRIES=0 MAP_ENTRIES=999999999999; do
    run env "HEADRACE_BPF_$setting" "$HEADRACE" profile -- true
    one_line_error 2 "HEADRACE_BPF_MAP_ENTRIES: '${setting#*=}' is not allowed: .*1 to 65536"
  done
  run env HEADRACE_BPF_RING_BYTES=5000 "$HEADRACE" run small.toml
  one_line_error 2 "HEADRACE_BPF_RING_BYTES: '5000' is not allowed: .*power of two"
}
