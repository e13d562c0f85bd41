#!/usr/bin/env bats
# Accelerators beside the trainer's waits, from end to end: a driver's library that is made for the test tells how busy devices are.
bats_require_minimum_version 1.5.0
load helpers

setup_file() {
  cc -std=c11 -Wall -Wextra -Werror -O1 -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 "$BATS_TEST_DIRNAME/fake_nvml.c" \
    -o "$BATS_FILE_TMPDIR/libnvidia-ml.so.1"
}

# with_devices BUSY COMMAND...: headrace COMMAND where that is how busy devices are, in per cent.
with_devices() {
  local busy=$1
  shift
  FAKE_NVML_BUSY=$busy LD_LIBRARY_PATH=$BATS_FILE_TMPDIR "$HEADRACE" "$@"
}
# Two processes compute, the main process takes what they made and hardly works.
loader() { printf 'echo "0 $$" > pids; exec python3 "%s/../../docs/examples/outside.py" 7 0.002' "$BATS_TEST_DIRNAME"; }

verdict() { "$HEADRACE" report latest --json | jq -e ".verdict | $1"; }
page() { "$HEADRACE" report latest | tr -s ' \n' ' '; }

@test "doctor finds the devices" {
  with_devices "29 96" doctor --json > doctor.json
  jq -e '.probes[] | select(.name == "accelerator") | .state == "ok" and .detail == "2 devices"' doctor.json
}

@test "a device that idles while the consumer waits is said beside the limit" {
  FAKE_NVML_PIDS=$PWD/pids with_devices 29 profile -q --no-hook -- sh -c "$(loader)"
  verdict '.accelerator | .idle_ratio > 0.70 and .idle_ratio < 0.72 and .story == "plain" and .devices == "gpu0"'
  verdict '.accelerator | .idle_waiting_least_ratio <= .idle_waiting_most_ratio and .idle_waiting_most_ratio <= 0.72'
  [[ "$(page)" == *" gpu GPU 0 is idle 71.0 % of the time"*"; the consumer waits for data in "*" of that time"* ]]
  [[ "$(page)" != *"whether an accelerator computes"* ]]
  # Its user is the recorded process: so what keeps it busy bounds the gain.
  "$HEADRACE" report latest --json | jq -e --arg pid "$(cut -d' ' -f2 pids)" '.accelerators[0] | .pids == $pid and .use_ratio > 0.28'
  verdict '.state == "undecided" or (.predicted.most_gain_ratio // 9) <= 2.5'
}

@test "a busy device speaks against a limit in the loading" {
  with_devices 96 profile -q --no-hook -- sh -c "$(loader)"
  verdict '.state == "undecided" and .accelerator.story == "busy anyway" and .limit.probability <= 0.5'
  [[ "$(page)" == *" gpu GPU 0 is busy 96.0 % of the time "*"The two disagree"* ]]
  [[ "$(page)" == *"torch.cuda.synchronize()"* ]]
}

@test "a device of others alone says nothing" {
  echo "0 1" > pids  # the first process of the machine
  FAKE_NVML_PIDS=$PWD/pids with_devices 96 profile -q --no-hook -- python3 "$BATS_TEST_DIRNAME/../../docs/examples/outside.py" 5 0.002
  verdict 'has("accelerator") | not'
  [[ "$(page)" == *"whether an accelerator computes"* ]]
}

@test "a device that idles although the trainer never waits is held up by the step" {
  cat > trainer.toml <<'TOML'
pipeline = { name = "trainer" }
source = { synthetic = { elements = 100000, rows = 8 } }
consumer = { step = "20ms" }
stage = [{ name = "load", operators = [{ sleep = "1ms" }] }]
TOML
  with_devices "40 0" run trainer.toml --duration 7s > /dev/null
  verdict '(.state | test("consumer")) and .accelerator.story == "host work" and .accelerator.devices == "gpu0"'
  [[ "$(page)" == *" gpu GPU 0 is idle 60.0 % of the time "*"Probably not the GPU but work of the step on the CPU limits it"* ]]
}
