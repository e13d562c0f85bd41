#!/usr/bin/env python3
"""How fast a job on one machine grows: `service up --workers 1 --most 8` with a rank that takes all there is, and workers that sleep.

usage: service_scale_up.py HEADRACE [TIMES]      (default 5)

Each worker's pipeline sleeps 40 ms for each split, so that workers cost time and not cores; the rank wants more than eight can do.
Printed are the times from the first batch to the decision for eight workers (the autoscaler looks every 5 s), from there until all
eight have sent a batch, and how long a worker alone needs from its start to its first batch.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import slow_service

HEADRACE = os.path.abspath(sys.argv[1])
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 5
MOST = 8


def status(folder):
    return slow_service.status(HEADRACE, folder)


def serving(now):
    return sum(one["sent_units_count"] > 0 for one in now["workers"]) if now else 0


def play():
    folder = tempfile.mkdtemp(dir=os.getcwd())
    os.chmod(folder, 0o700)
    began = time.monotonic()
    up = subprocess.Popen([HEADRACE, "service", "up", "t/slow.toml", "--job", folder, "--workers", "1", "--most", str(MOST), "--no-fleet", "-q",
                           "--set", "source.epochs=0"])
    rank = subprocess.Popen([HEADRACE, "consume", "service:" + folder, "-q"], stdout=subprocess.DEVNULL)
    first = wanted = all_serve = None
    steps = []
    try:
        while time.monotonic() < began + 180 and all_serve is None:
            now = status(folder)
            at = time.monotonic()
            if first is None and serving(now) > 0:
                first = at
            if now and now["autoscaler"]:
                want = now["autoscaler"]["wanted_count"]
                if want != (steps[-1][1] if steps else 1):
                    steps.append((at, want))
            if wanted is None and steps and steps[-1][1] == MOST:
                wanted = at
            if wanted is not None and serving(now) == MOST:
                all_serve = at
            time.sleep(0.05)
    finally:
        subprocess.run([HEADRACE, "service", "end", folder, "-q"], stderr=subprocess.DEVNULL)
        for process in (rank, up):
            process.wait(30)
    if all_serve is None:
        sys.exit(f"not all {MOST} serve after 180 s: {status(folder)}, {steps}")
    return {"start": first - began, "first decision": steps[0][0] - first, "decided for all": wanted - first, "all serve": all_serve - wanted,
            "decisions": len(steps)}


def main():
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        slow_service.make_slow_table(HEADRACE)
        seen = [play() for _ in range(TIMES)]
    for what in seen[0]:
        values = sorted(one[what] for one in seen)
        unit = "" if what == "decisions" else " s"
        print(f"{what}: {statistics.median(values):.2f} [{values[0]:.2f}, {values[-1]:.2f}]{unit}")


main()
