load helpers

# unprivileged COMMAND...: runs it as a user without rights, who can read the executable.
unprivileged() {
  [ "$(id -u)" -eq 0 ] || { "$@"; return; }
  command -v setpriv > /dev/null || skip "setpriv (util-linux) is not installed"
  setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

@test "doctor lists every probe once, with a reason and a fix where one is missing" {
  "$HEADRACE" doctor --json > doctor.json
  jq -e '.schema == "headrace.doctor/1" and (.probes | length >= 18)' doctor.json
  jq -e '[.probes[].name] | length == (unique | length)' doctor.json
  jq -e '[.probes[].name] | contains(["operator accounts", "clock", "pressure", "cgroup", "disk", "nic", "process", "energy", "accelerator"])' doctor.json
  jq -e 'all(.probes[]; (.detail != "") and (.summary != "") and (.used_by != "") and (.state == "ok" or (.fix != "" and .affects != "")))' doctor.json
  jq -e '.cores_count > 0 and .memory_bytes > 0 and .cpu_model != ""' doctor.json
}

@test "doctor's text names what is missing and fits 120 columns" {
  run "$HEADRACE" doctor
  [ "$status" -eq 0 ]
  [[ "$output" == *"usable: "*" of "*" probes"* ]]
  echo "$output" | awk 'length($0) > 120 { print "too long: " $0; bad = 1 } END { exit bad }'
  if [[ "$output" == *" unavailable "* ]]; then
    [[ "$output" == *"to change it: "* && "$output" == *"missing: "* ]]
  fi
}

@test "doctor as an unprivileged user says what each probe lacks, and stays usable" {
  cp "$HEADRACE" headrace && chmod 755 "$DIR" headrace
  unprivileged ./headrace doctor --json > doctor.json || { echo "exit $?"; false; }
  jq -e 'all(.probes[]; .state == "ok" or (.detail != "" and .fix != "" and .affects != ""))' doctor.json
  jq -e '.probes[] | select(.name == "fork events") | .state == "ok" or (.fix | contains("CAP_NET_ADMIN"))' doctor.json  # allowed to all since Linux 6.6
  jq -e '.probes[] | select(.name == "off-CPU time") | .state == "unavailable"' doctor.json
  jq -e '.probes[] | select(.name == "scheduler") | .state == "ok"' doctor.json
}

@test "doctor --calibrate measures, stores and removes its file" {
  "$HEADRACE" doctor --calibrate --json > doctor.json 2> talk.txt
  [ -s talk.txt ]
  jq -e '[.calibration.ceilings[].metric] | contains(["memory_read_bytes_per_s", "memory_copy_bytes_per_s", "decompress_bytes_per_s", "hash_bytes_per_s", "decrypt_bytes_per_s", "clock_read_ns"])' doctor.json
  jq -e 'all(.calibration.ceilings[]; (.metric == "counter_drift_ratio") or (.value > 0 and .minimum_value <= .value and .value <= .maximum_value))' doctor.json
  jq -e '([.calibration.ceilings[] | select(.metric == "storage_read_bytes_per_s")] | length == 12) or any(.calibration.skipped[]; .part == "storage" and .reason != "" and .fix != "")' doctor.json
  run "$HEADRACE" query "SELECT COUNT(*) AS n FROM calibration_summary WHERE metric = 'memory_read_bytes_per_s'" --format csv
  [ "$status" -eq 0 ] || { echo "$output"; false; }
  [[ "$output" != *$'\n'"0" ]]
  [ -z "$(find . -name '*calibrate*')" ]
}

@test "doctor --calibrate skips storage in memory, with the reason" {
  [ -d /dev/shm ] || skip "no /dev/shm"
  "$HEADRACE" doctor --calibrate --json --folder /dev/shm > doctor.json 2> /dev/null
  jq -e '.calibration.skipped[] | select(.part == "storage") | .reason | contains("tmpfs")' doctor.json
}

@test "doctor --calibrate into an impossible database fails in one line" {
  run "$HEADRACE" doctor --calibrate --json --db /nonexistent/runs.db
  [ "$status" -ne 0 ]
  [[ "$output" == *"/nonexistent/runs.db"* ]]
}
