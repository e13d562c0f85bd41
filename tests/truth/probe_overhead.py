#!/usr/bin/env python3
"""What recording costs the rm1 pipeline, by level: runs with nothing recorded (accounts off, no collector) beside runs at level 0
(from outside), 1 (accounts, /proc) and 3 (eBPF), in rounds of one run each. A round's order is drawn at random, the next round
runs it backwards (A B C D, D C B A), so that slow drift of the machine cancels; each loss is a ratio within one round.

Prints, for each level, the median loss of throughput (rows per second as the pipeline itself counts them) and the median growth
of CPU time per row (pipeline and collector), both with the 95 % interval of the median; the
collector's share of one core and its largest memory; and the cost that the run's report claims against the one measured.

With --together the two of a pair run at the same time, one on each half of the cores, halves swapped from pair to pair: what
other guests of the machine do to its caches and memory hits both alike. The loss is then the growth of the pipeline's CPU time
per row, eBPF programs in its threads included, and the collector's share of the whole machine; a pair with nothing recorded on
either side (level "none") shows what the method itself makes of no difference.

usage: probe_overhead.py HEADRACE [--rounds N] [--seconds S] [--levels 0,1,3] [--minutes M] [--seed N] [--together]
Wants a quiet machine; 30 rounds take 12 minutes. Exit 3 when a gate is missed (level 1: 0.3 %, level 3: 1 % of throughput;
collector: 1 % of a core, 64 MiB; claimed against measured: a factor of 1.5, where the measurement is sharp enough to tell).
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from halves import halves, pinned  # noqa: E402

GATES = {1: 0.003, 3: 0.01}


def query(headrace, database, sql):
    out = subprocess.run([headrace, "query", "--db", database, "--json", sql], capture_output=True, text=True, check=True).stdout
    return json.loads(out)["rows"]


class Bench:
    def __init__(self, headrace, pipeline, database, seconds):
        self.headrace, self.pipeline, self.database, self.seconds = headrace, pipeline, database, seconds

    def start(self, level, cpus=None):
        command = [self.headrace, "run", self.pipeline, "--json", "--duration", f"{self.seconds}s", "--set", "consumer.step=0"]
        if level is None:
            command.append("--no-record")
        else:
            command += ["--db", self.database, "--level", str(level), "--name", f"level{level}"]
        command = pinned(command, cpus) if cpus else command
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    @staticmethod
    def finish(*processes):
        """What each printed at its end."""
        outputs = [process.communicate()[0] for process in processes]  # short: no pipe fills meanwhile
        for process in processes:
            if process.returncode != 0:
                raise subprocess.CalledProcessError(process.returncode, process.args)
        return [json.loads(output) for output in outputs]

    def together(self, level, cpus):
        """The loss as a share of the machine, with nothing recorded beside `level` at the same time."""
        first = random.random() < 0.5  # which of the two starts first makes a difference, too
        started = {side: self.start(level if side else None, cpus[side]) for side in ((0, 1) if first else (1, 0))}
        seen = self.finish(started[0], started[1])
        plain, recorded = (done["cpu_s"] / done["rows_count"] for done in seen)
        growth = recorded / plain - 1
        if level is None:
            return growth
        share = query(self.headrace, self.database, "SELECT last_value * 1.0 / duration_ns AS share FROM host_summary "
                      f"JOIN run_summary USING (run_id) WHERE metric = 'collector_cpu_ns' AND run_id = {seen[1]['run_id']}")
        return growth + share[0]["share"] / len(cpus[0] + cpus[1])

    def run(self, level):
        """Rows per second and CPU seconds per row. Level None: accounts off, nothing recorded."""
        [done] = self.finish(self.start(level))
        cpu = done["cpu_s"]
        if level is not None:  # from the run's begin on: what comes before is there once, however long the run
            cpu += query(self.headrace, self.database, "SELECT last_value FROM host_summary WHERE metric = 'collector_cpu_ns' "
                         f"AND run_id = {done['run_id']}")[0]["last_value"] / 1e9
        return done["rows_per_second"], cpu / done["rows_count"]


def median_and_interval(values):
    """The median and its 95 % interval, by resampling the rounds."""
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(4000))
    return statistics.median(values), medians[100], medians[3899]


def run_together(bench, options, levels, generator):
    begin = time.monotonic()
    cpus = halves()
    losses = {level: [] for level in [None, *levels]}
    rounds = 0
    while rounds < options.rounds and (time.monotonic() - begin < options.minutes * 60 or rounds < 2):
        if rounds % 2 == 0:
            order = list(losses)
            generator.shuffle(order)
        for level in order:
            losses[level].append(bench.together(level, cpus))
        cpus.reverse()
        rounds += 1
    print(f"\n{rounds} rounds, each level beside nothing recorded at the same time, {options.seconds:g} s each, "
          f"in {(time.monotonic() - begin) / 60:.1f} minutes")
    # The two halves of the cores need not be equal: a loss is the mean of two neighbouring pairs, one with each.
    return {level: median_and_interval([(a + b) / 2 for a, b in zip(seen[::2], seen[1::2])]) for level, seen in losses.items()}


def text(what):
    median, low, high = what
    return f"{median:+.2%} [{low:+.2%}, {high:+.2%}]"


def agreement(claimed, measured):
    """How the claim compares with a measurement, and whether it misses the factor of 1.5 for certain."""
    median, low, high = measured
    if median <= 0 or low <= 0:
        certain = high > 0 and claimed > 1.5 * high
        return f"not told apart from nothing (at most {high:.2%})", certain
    factor = max(claimed / median, median / claimed) if claimed > 0 else float("inf")
    return f"a factor of {factor:.2f}", claimed > 1.5 * high or claimed < low / 1.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace", type=pathlib.Path)
    parser.add_argument("--rounds", "--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=4.5)
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--levels", default="0,1,3")
    parser.add_argument("--minutes", type=float, default=14.5, help="no new round after so long")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1000))
    options = parser.parse_args()
    headrace = options.headrace.resolve()
    levels = [int(level) for level in options.levels.split(",")]
    cores = len(os.sched_getaffinity(0))
    generator = random.Random(options.seed)
    print(f"seed {options.seed}, {cores} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    missed = []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "rm1"
        subprocess.run([headrace, "generate", "rm1", "-o", table, "--features", "0.0625", "--rows", str(options.rows), "--seed", "1"],
                       check=True, capture_output=True)
        bench = Bench(headrace, table / "pipeline.toml", pathlib.Path(folder) / "runs.db", options.seconds)
        bench.run(None)  # warms the page cache
        if options.together:
            losses = run_together(bench, options, levels, generator)
            for level, loss in losses.items():
                gate = GATES.get(level)
                print(f"| {'none' if level is None else level} | {text(loss)} | {f'{gate:.1%}' if gate else ''} |")
                if gate and loss[1] > gate:
                    missed.append(f"level {level} costs {loss[0]:.2%}, at most {gate:.1%} wanted")
            for line in missed:
                print("MISSED:", line)
            return 3 if missed else 0
        losses, growths = {level: [] for level in levels}, {level: [] for level in levels}
        order = [None, *levels]
        rounds = 0
        while rounds < options.rounds and (time.monotonic() - begin < options.minutes * 60 or rounds < 2):
            if rounds % 2 == 0:
                generator.shuffle(order)
            else:
                order.reverse()
            seen = {level: bench.run(level) for level in order}
            rounds += 1
            for level in levels:
                losses[level].append(1 - seen[level][0] / seen[None][0])
                growths[level].append(seen[level][1] / seen[None][1] - 1)
            print(f"round {rounds:2}: nothing {seen[None][0]:7.0f} rows/s, {seen[None][1] * 1e6:.2f} us of CPU a row; " +
                  ", ".join(f"level {level} {losses[level][-1]:+.1%} {growths[level][-1]:+.1%}" for level in levels), flush=True)
        print(f"\n{rounds} rounds of {len(order)} runs of {options.seconds:g} s in {(time.monotonic() - begin) / 60:.1f} minutes")
        print("| level | loss of throughput, median [95 %] | growth of CPU time a row | collector, of one core | its memory | claimed, of the machine |")
        print("|---|---|---|---|---|---|")
        notes = []
        for level in levels:
            where = f"name = 'level{level}'"
            loss, growth = median_and_interval(losses[level]), median_and_interval(growths[level])
            reached = query(headrace, bench.database, f"SELECT MIN(accounting_level) AS low FROM run_summary WHERE {where}")[0]["low"]
            cost = query(headrace, bench.database, "SELECT MAX(CASE WHEN metric = 'collector_cpu_ns' THEN last_value END) / duration_ns AS cpu, "
                         "MAX(CASE WHEN metric = 'collector_rss_bytes' THEN maximum_value END) AS rss "
                         f"FROM host_summary JOIN run_summary AS r USING (run_id) WHERE r.{where} GROUP BY run_id")
            kernel = query(headrace, bench.database, "SELECT run_id, SUM(value) / duration_ns AS share FROM measurement_summary "
                           f"JOIN run_summary USING (run_id) WHERE metric = 'bpf_run_time_ns' AND {where} GROUP BY run_id")
            cpu, rss = statistics.median(row["cpu"] for row in cost), max(row["rss"] for row in cost)
            programs = statistics.median(row["share"] for row in kernel) if kernel else 0
            # As the report's COST line has it: the collector and the programs in the kernel, of all cores.
            claimed = (cpu + programs) / cores
            print(f"| {level} (reached {reached}) | {text(loss)} | {text(growth)} | {cpu:.2%} | {rss / 2**20:.1f} MiB | "
                  f"{claimed:.2%} ({cpu / cores:.2%} collector, {programs / cores:.2%} eBPF programs) |")
            for what, measured in (("throughput", loss), ("CPU time", growth)):
                words, wrong = agreement(claimed, measured)
                notes.append(f"level {level}: claimed {claimed:.2%}, measured by {what} {text(measured)}: {words}")
                if wrong:
                    missed.append(notes[-1])
            if loss[0] > GATES.get(level, 1):
                missed.append(f"level {level} costs {loss[0]:.2%} of throughput, at most {GATES[level]:.1%} wanted" +
                              (" (the interval reaches below it)" if loss[1] <= GATES[level] else ""))
            if cpu > 0.01:
                missed.append(f"the collector takes {cpu:.2%} of a core at level {level}, at most 1 % wanted")
            if rss > 64 * 2**20:
                missed.append(f"the collector takes {rss / 2**20:.0f} MiB at level {level}, at most 64 wanted")
        print()
        for line in notes:
            print(line)
    for line in missed:
        print("MISSED:", line)
    return 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
