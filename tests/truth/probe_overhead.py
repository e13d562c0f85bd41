#!/usr/bin/env python3
"""What recording costs the rm1 pipeline, by level: runs with nothing, accounts and /proc (level 1), and eBPF (level 3), in
interleaved rounds whose order turns. The first of each round's runs is rotated, so drift of the machine falls on all alike.
Prints medians and quartiles of the loss of throughput, the collector's CPU and memory from the store, and the cost the store
claims against the one measured.

usage: probe_overhead.py HEADRACE [--pairs N] [--seconds S] [--levels 0,1,3]
Wants a quiet machine. Exit 3 when a gate is missed (level 1: 0.3 %, level 3: 1 %, collector: 1 % of a core, 64 MiB).
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

GATES = {1: 0.003, 3: 0.01}


def run(headrace, pipeline, level, database, seconds, name):
    """Rows per CPU-second-free second, and the run's id; level None: accounts off, nothing recorded."""
    command = [headrace, "run", pipeline, "--json", "--duration", f"{seconds}s", "--set", "consumer.step=0"]
    if level is None:
        command.append("--no-record")
    else:
        command += ["--db", database, "--level", str(level), "--name", name]
    done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return done["rows_per_second"], done["run_id"]


def query(headrace, database, sql):
    out = subprocess.run([headrace, "query", "--db", database, "--json", sql], capture_output=True, text=True, check=True).stdout
    return json.loads(out)["rows"]


def spread(values):
    quartiles = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    # The median's own interval, by resampling the pairs.
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), quartiles[0], quartiles[2], medians[50], medians[1949]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--levels", default="0,1,3")
    options = parser.parse_args()
    headrace = options.headrace.resolve()
    levels = [int(level) for level in options.levels.split(",")]
    cores = len(os.sched_getaffinity(0))
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "rm1"
        subprocess.run([headrace, "generate", "rm1", "-o", table, "--features", "0.0625", "--rows", str(options.rows), "--seed", "1"],
                       check=True, capture_output=True)
        database, pipeline = pathlib.Path(folder) / "runs.db", table / "pipeline.toml"
        run(headrace, pipeline, None, database, options.seconds, "")  # warms the page cache
        kinds = [None, *levels]
        losses = {level: [] for level in levels}
        for pair in range(options.pairs):
            # None stands next to each level once a round, before it and after it in turn.
            turn = pair % len(kinds)
            order = kinds[turn:] + kinds[:turn]
            if pair // len(kinds) % 2:
                order.reverse()
            rate = {kind: run(headrace, pipeline, kind, database, options.seconds, f"level{kind}")[0] for kind in order}
            for level in levels:
                losses[level].append(1 - rate[level] / rate[None])
            print(f"round {pair + 1:2}: off {rate[None]:9.0f} rows/s; " +
                  ", ".join(f"level {level} {losses[level][-1]:+.2%}" for level in levels), flush=True)
        print(f"\n{options.pairs} interleaved rounds of {options.seconds:g} s, {cores} cores; loss of throughput against nothing recorded")
        for level in levels:
            median, low, high, left, right = spread(losses[level])
            reached = query(headrace, database, f"SELECT MIN(accounting_level) AS low FROM run_summary WHERE name = 'level{level}'")[0]["low"]
            cost = query(headrace, database, "SELECT r.run_id, MAX(CASE WHEN metric = 'collector_cpu_ns' THEN last_value END) / duration_ns AS cpu, "
                         "MAX(CASE WHEN metric = 'collector_rss_bytes' THEN maximum_value END) AS rss, "
                         "MAX(CASE WHEN metric = 'collector_written_bytes' THEN last_value END) * 1e9 / duration_ns AS written "
                         f"FROM host_summary AS h JOIN run_summary AS r USING (run_id) WHERE r.name = 'level{level}' GROUP BY r.run_id")
            cpu, rss = statistics.median(row["cpu"] for row in cost), max(row["rss"] for row in cost)
            written = statistics.median(row["written"] for row in cost)
            kernel = query(headrace, database, "SELECT AVG(value) AS ns FROM (SELECT run_id, SUM(value) AS value FROM measurement_summary JOIN run_summary "
                           f"USING (run_id) WHERE metric = 'bpf_run_time_ns' AND name = 'level{level}' GROUP BY run_id)")[0]["ns"]
            # The pipeline is limited by the cores: what the collector takes of them, and BPF programs, is what it claims to cost.
            claimed = cpu / cores + (kernel / (options.seconds * 1e9 * cores) if kernel else 0)
            print(f"level {level} (reached {reached}): median {median:+.2%} [95 % {left:+.2%}, {right:+.2%}], quartiles [{low:+.2%}, {high:+.2%}]")
            print(f"    collector {cpu:.2%} of one core, {rss / 2**20:.1f} MiB at most, {written / 1024:.0f} KiB/s written")
            ratio = claimed / median if median > 0 else None
            print(f"    cost by the store {claimed:.2%} of the machine, measured {median:+.2%}" +
                  (f": a factor of {max(ratio, 1 / ratio):.2f}" if ratio else ": too small to compare"))
            if median > GATES.get(level, 1):
                missed.append(f"level {level} costs {median:.2%}, at most {GATES[level]:.1%} wanted")
            if cpu > 0.01:
                missed.append(f"the collector takes {cpu:.2%} of a core at level {level}, at most 1 % wanted")
            if rss > 64 * 2**20:
                missed.append(f"the collector takes {rss / 2**20:.0f} MiB at level {level}, at most 64 wanted")
    for line in missed:
        print("MISSED:", line)
    return 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
