#!/usr/bin/env python3
"""Two jobs share the eight workers of a pool: by weight, and a rank of one that stops costs the other nothing.

usage: service_pool.py HEADRACE [SETTLE_S] [WINDOW_S]      (default 60 and 60)

Workers sleep 40 ms for each split, so that they cost time and not cores; ranks take all that they get. For the weights 1:1 and
3:1: two jobs that want all eight; the rows that each delivers in a window that begins SETTLE_S after the second job's first rows.
Then the rank of the second job is stopped (SIGSTOP) for a window: what the first delivers meanwhile, against the window before. Then
the second job is ended: how long until the first has all workers. The rows that ranks delivered come from their status.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import slow_service

HEADRACE = os.path.abspath(sys.argv[1])
SETTLE_S = float(sys.argv[2]) if len(sys.argv) > 2 else 60
WINDOW_S = float(sys.argv[3]) if len(sys.argv) > 3 else 60
WORKERS = 8


def start(*words):
    return subprocess.Popen([HEADRACE, *words, "-q"], stdout=subprocess.DEVNULL)


def status(place):
    return slow_service.status(HEADRACE, place)


def rows(job):
    """Admitted by its ranks so far, and when."""
    said = status(job)
    return said["admitted_rows_count"], time.monotonic()


def rate(job, before):
    now = rows(job)
    return (now[0] - before[0]) / (now[1] - before[1])


def until(condition, limit_s=60):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() > begin + limit_s:
            sys.exit("it never came")
        time.sleep(0.05)
    return time.monotonic() - begin


class Job:
    def __init__(self, name, weight):
        self.place = os.path.abspath(name)
        self.up = start("service", "up", "t/slow.toml", "--job", self.place, "--pool", os.path.abspath("pool"), "--weight", str(weight),
                        "--workers", str(WORKERS), "--no-fleet", "--set", "source.epochs=0")
        until(lambda: status(self.place) is not None)
        self.rank = start("consume", "service:" + self.place)
        until(lambda: (status(self.place) or {}).get("admitted_rows_count"))

    def end(self):
        subprocess.run([HEADRACE, "service", "end", self.place, "-q"], stderr=subprocess.DEVNULL)
        for process in (self.rank, self.up):
            process.send_signal(signal.SIGCONT)
            process.wait(30)


def granted(place):
    return next((one["running_count"] for one in status(os.path.abspath("pool"))["jobs"] if one["place"] == place), 0)


def play(weight):
    pool = start("service", "pool", os.path.abspath("pool"), "--workers", str(WORKERS))
    until(lambda: status(os.path.abspath("pool")) is not None)
    a = Job("a", weight)
    until(lambda: granted(a.place) == WORKERS)
    b = Job("b", 1)
    time.sleep(SETTLE_S)
    before = rows(a.place), rows(b.place)
    time.sleep(WINDOW_S)
    pace = rate(a.place, before[0]), rate(b.place, before[1])
    fair = weight / (weight + 1)
    share = pace[0] / sum(pace)
    b.rank.send_signal(signal.SIGSTOP)
    time.sleep(1)
    before_stall = rows(a.place)
    time.sleep(WINDOW_S)
    stalled = rate(a.place, before_stall)
    b.end()
    back = until(lambda: granted(a.place) == WORKERS)
    lost = status(a.place)
    a.end()
    subprocess.run([HEADRACE, "service", "end", os.path.abspath("pool"), "-q"])
    pool.wait(30)
    print(f"weights {weight}:1: {pace[0]:.0f} and {pace[1]:.0f} rows/s, a share of {share:.3f} ({100 * (share / fair - 1):+.1f} % of {fair:.3f}; "
          f"of the other {100 * ((1 - share) / (1 - fair) - 1):+.1f} %); a rank of the other stopped: {stalled:.0f} rows/s "
          f"({100 * (stalled / pace[0] - 1):+.1f} %); the other ended: all workers after {back:.1f} s; workers lost {lost['workers_lost_count']}, "
          f"leases given again {lost['leased_again_count']}", flush=True)
    return abs(share / fair - 1) <= 0.1 and abs((1 - share) / (1 - fair) - 1) <= 0.1 and stalled / pace[0] > 0.97


def main():
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        slow_service.make_slow_table(HEADRACE)
        met = [play(weight) for weight in (1, 3)]
    sys.exit(0 if all(met) else 1)


main()
