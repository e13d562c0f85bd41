#!/usr/bin/env python3
"""What it costs to read through the preprocessing service: one worker and one rank against `headrace run`, in pairs.

usage: service_pairs.py HEADRACE [PAIRS] [--shared-memory|--tcp|--tls]      (default 9)

Each pair reads the same table twice, once in one process and once with a dispatcher, a worker and a rank, in drawn order. The rate
of the service is of the rank, from its first unit to its end; of the run, of the whole run. CPU time is that of all processes.
"""
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

HEADRACE = os.path.abspath(sys.argv[1])
WORDS = [word for word in sys.argv[2:] if not word.startswith("-")]
PAIRS = int(WORDS[0]) if WORDS else 9
SHARED = ["--shared-memory"] if "--shared-memory" in sys.argv else []
NETWORK = next((kind for kind in ("tcp", "tls") if f"--{kind}" in sys.argv), None)
SETTINGS = ["--set", "source.epochs=8"]


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def on_box():
    before = cpu_s()
    done = subprocess.run([HEADRACE, "run", "t/pipeline.toml", "--no-record", "--json", *SETTINGS], check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    return result["rows_count"] / result["duration_s"], (cpu_s() - before) / result["rows_count"]


def service():
    folder = os.path.abspath("job")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder, 0o700)
    before = cpu_s()
    up = subprocess.Popen([HEADRACE, "service", "up", "t/pipeline.toml", "--job", folder, "--workers", "1", "-q", "--no-fleet", *SETTINGS,
                           *(["--listen", f"{NETWORK}:127.0.0.1:0"] if NETWORK else [])])
    place = f"@{folder}/address" if NETWORK else folder
    done = subprocess.run([HEADRACE, "consume", "service:" + place, "--json", "-q", *SHARED], check=True, capture_output=True, text=True)
    assert up.wait(60) == 0
    result = json.loads(done.stdout)
    return result["rows_count"] / result["duration_s"], (cpu_s() - before) / result["rows_count"]


def main():
    rates, cpus = [], []
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        subprocess.run([HEADRACE, "generate", "rm1", "-o", "t", "--rows", "40000", "--features", "0.2"], check=True, capture_output=True)
        on_box(), service()
        for pair in range(PAIRS):
            if random.random() < 0.5:
                one, other = on_box(), service()
            else:
                other, one = service(), on_box()
            rates.append(other[0] / one[0])
            cpus.append(other[1] / one[1])
            print(f"  pair {pair + 1}: rows/s {rates[-1]:.2f}, CPU time a row {cpus[-1]:.2f} of the run's", flush=True)
    for what, ratios in (("rows/s", rates), ("CPU time a row", cpus)):
        ratios.sort()
        print(f"{what}: {statistics.median(ratios):.2f} of the run's (from {ratios[0]:.2f} to {ratios[-1]:.2f}, {len(ratios)} pairs)")


main()
