#!/usr/bin/env python3
"""How batches of a job should be sent over a slow link, and what `delivery.wire = "auto"` makes of it.

usage: service_wire.py HEADRACE [ROUNDS] [RATE ...]      (default: 3 rounds of 1gbit; needs root, for a network namespace)

A worker in a network namespace of its own sends to a rank outside, over a link that a token bucket keeps to RATE in both directions
(`tc ... tbf`). Each round reads the table with every wire in drawn order; the same with "none": over the loopback device. Printed are the
rows/s of each wire as ratios to the "raw" of the same round, and what "auto" said. Ends with 1 where "auto" has less than 0.9 of the best
(medians), did not compress at a RATE that lets lz4 win, or did on the loopback device.
"""
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

HEADRACE = os.path.abspath(sys.argv[1])
WORDS = sys.argv[2:]
ROUNDS = int(WORDS.pop(0)) if WORDS and WORDS[0].isdigit() else 3
RATES = WORDS or ["1gbit", "none"]
WIRES = ["raw", "narrow", "lz4", "zstd", "auto"]
SPACE, HERE, THERE = "hrwire", "10.77.0.1", "10.77.0.2"
EPOCHS = os.environ.get("EPOCHS", "20")


def call(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout


def link(rate):
    call("ip", "netns", "add", SPACE)
    call("ip", "link", "add", "vhrwire", "type", "veth", "peer", "name", "eth0", "netns", SPACE)
    call("ip", "addr", "add", f"{HERE}/24", "dev", "vhrwire")
    call("ip", "link", "set", "vhrwire", "up")
    call("ip", "-n", SPACE, "addr", "add", f"{THERE}/24", "dev", "eth0")
    call("ip", "-n", SPACE, "link", "set", "eth0", "up")
    call("ip", "-n", SPACE, "link", "set", "lo", "up")
    bucket = ["root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms"]
    call("tc", "qdisc", "add", "dev", "vhrwire", *bucket)
    call("ip", "netns", "exec", SPACE, "tc", "qdisc", "add", "dev", "eth0", *bucket)


def unlink():
    call("ip", "netns", "del", SPACE, check=False)
    call("ip", "link", "del", "vhrwire", check=False)


def job(rate, wire):
    """Rows a second of the rank, and what the worker said about the wire."""
    folder = os.path.abspath("job")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder, 0o700)
    is_far = rate != "none"
    settings = ["--set", f"source.epochs={EPOCHS}", "--set", f"delivery.wire={wire}"]
    far = ["--insecure"] if is_far else []
    dispatcher = subprocess.Popen([HEADRACE, "service", "dispatcher", "t/pipeline.toml", "--job", folder, "-q", "--no-fleet", *far, *settings,
                                   "--listen", f"tcp:{HERE if is_far else '127.0.0.1'}:0"])
    place = f"@{folder}/address"
    inside = ["ip", "netns", "exec", SPACE] if is_far else []
    worker = subprocess.Popen([*inside, HEADRACE, "service", "worker", place, *far], stderr=subprocess.PIPE, text=True)
    rank = subprocess.run([HEADRACE, "consume", "service:" + place, "--json", "-q", *far], check=True, capture_output=True, text=True)
    said = worker.communicate(timeout=60)[1]
    assert worker.returncode == 0 and dispatcher.wait(60) == 0, said
    result = json.loads(rank.stdout)
    return result["steady_rows_per_second"], [line for line in said.splitlines() if "batches are" in line]


def main():
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None:
        print("skipped: needs root, ip and tc")
        sys.exit(77)
    seed = int(os.environ.get("HEADRACE_SEED", random.randrange(1 << 32)))
    print(f"HEADRACE_SEED={seed}, {ROUNDS} rounds", flush=True)
    draw = random.Random(seed)
    is_right = True
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        subprocess.run([HEADRACE, "generate", "rm1", "-o", "t", "--rows", "20000", "--features", "0.2"], check=True, capture_output=True)
        for rate in RATES:
            ratios = {wire: [] for wire in WIRES}
            base, chosen = [], 0
            try:
                if rate != "none":
                    link(rate)
                for _ in range(ROUNDS):
                    got = {}
                    for wire in draw.sample(WIRES, len(WIRES)):
                        got[wire] = job(rate, wire)
                    base.append(got["raw"][0])
                    for wire in WIRES:
                        ratios[wire].append(got[wire][0] / got["raw"][0])
                    compressed = [line for line in got["auto"][1] if "compressed with" in line]
                    chosen += bool(compressed)
                    print("  " + ", ".join(f"{wire} {ratios[wire][-1]:.2f}" for wire in WIRES), "|", *(got["auto"][1] or ["auto stays raw"]), flush=True)
            finally:
                if rate != "none":
                    unlink()
            where = "the loopback device" if rate == "none" else f"a link of {rate}"
            print(f"{where}: raw {statistics.median(base):.0f} rows/s;",
                  ", ".join(f"{wire} {statistics.median(ratios[wire]):.2f} [{min(ratios[wire]):.2f}, {max(ratios[wire]):.2f}]" for wire in WIRES[1:]),
                  f"of it; auto compressed in {chosen} of {ROUNDS}", flush=True)
            typical = {wire: statistics.median(ratios[wire]) for wire in WIRES}
            best = max(typical.values())
            should_pack = rate != "none" and typical["lz4"] > 1.1 * typical["narrow"]
            is_right = is_right and typical["auto"] >= 0.9 * best and (chosen == ROUNDS if should_pack else rate != "none" or chosen == 0)
    sys.exit(not is_right)


main()
