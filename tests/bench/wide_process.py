#!/usr/bin/env python3
"""What recording a process of many threads costs, and what starting takes, of one headrace or of two in turns.

  threads  `profile -p` of a process of N threads, of which a share wakes 20 times a second: CPU time of the collector after its start,
           as a share of one core
  start    `profile -- true` at level 3 and at level 1: CPU time and wall clock of the whole command

usage: wide_process.py HEADRACE [HEADRACE...] [--threads 500,2000 or "" for none] [--busy 0] [--seconds 10] [--rounds 5] [--seed N]
Medians with the lowest and highest; arms in drawn order within each round.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

TARGET = """
import sys, threading, time
threading.stack_size(65536)
count, busy = int(sys.argv[1]), float(sys.argv[2])
def idle(): time.sleep(1e6)
def wakes():
    while True: time.sleep(0.05)
for i in range(1, count):
    threading.Thread(target=wakes if i < count * busy else idle, daemon=True).start()
print("ready", flush=True)
time.sleep(1e6)
"""


def cpu_of_children():
    times = os.times()
    return times.children_user + times.children_system


def fresh(folder):
    """A database of its own: versions of headrace may differ in its schema."""
    return os.path.join(folder, f"{time.monotonic_ns()}.db")


def record(headrace, pid, seconds, level, folder):
    database = fresh(folder)
    subprocess.run([headrace, "profile", "-p", str(pid), "-d", f"{seconds}s", "--db", database, *level], check=True, capture_output=True)
    text = subprocess.run([headrace, "query", "--db", database, "--json",
                           "SELECT value FROM measurement_summary WHERE metric = 'collector_cpu_ns'"],
                          check=True, capture_output=True, text=True).stdout
    answer = json.loads(text)
    rows = answer["rows"] if isinstance(answer, dict) else answer
    value = rows[0]["value"] if isinstance(rows[0], dict) else rows[0][0]
    return 100 * value / 1e9 / seconds


def start(headrace, level, folder):
    before, begin = cpu_of_children(), time.monotonic()
    subprocess.run([headrace, "profile", "--level", level, "--db", fresh(folder), "--", "true"], check=True,
                   capture_output=True)
    return cpu_of_children() - before, time.monotonic() - begin


def say(what, values, unit):
    print(f"{what:60s} {statistics.median(values):.2f} {unit} [{min(values):.2f}, {max(values):.2f}]", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace", nargs="+")
    parser.add_argument("--threads", default="500,2000")
    parser.add_argument("--busy", default="0")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    print(f"seed {options.seed}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        levels = {"level 1": ["--level", "1"], "default level": []}
        for threads in filter(None, options.threads.split(",")):
            arms = [(headrace, name) for headrace in options.headrace for name in levels]
            found = {arm: [] for arm in arms}
            for _ in range(options.rounds):
                for headrace, name in drawn.sample(arms, len(arms)):
                    target = subprocess.Popen([sys.executable, "-c", TARGET, threads, options.busy], stdout=subprocess.PIPE)
                    target.stdout.readline()
                    try:
                        found[headrace, name].append(record(headrace, target.pid, options.seconds, levels[name], folder))
                    finally:
                        target.kill()
                        target.wait()
            for (headrace, name), values in found.items():
                say(f"{threads} threads, {name}, {headrace}", values, "% of a core")
        arms = [(headrace, level) for headrace in options.headrace for level in ("1", "3")]
        found = {arm: [] for arm in arms}
        for _ in range(2 * options.rounds):
            for headrace, level in drawn.sample(arms, len(arms)):
                found[headrace, level].append(start(headrace, level, folder))
        for headrace in options.headrace:
            for i, clock in enumerate(("CPU time", "wall clock")):
                more = [three[i] - one[i] for one, three in zip(found[headrace, "1"], found[headrace, "3"])]
                say(f"start, level 3 over level 1, {clock}, {headrace}", more, "s")


if __name__ == "__main__":
    main()
