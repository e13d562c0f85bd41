#!/usr/bin/env python3
"""What recording costs: one pipeline with accounts compiled in and collected against the same with accounts off, in
interleaved pairs (the order alternates). Prints each pair, the median loss of throughput and its spread.

usage: account_overhead.py HEADRACE [--pairs N] [--epochs N] [--pipeline FILE]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile


def rows_per_second(headrace, pipeline, recorded, database, epochs):
    command = [headrace, "run", pipeline, "--json", "--epochs", str(epochs), "--set", "consumer.step=0"]
    command += ["--db", database] if recorded else ["--no-record"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rows_per_second"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rows", type=int, default=16384)
    options = parser.parse_args()
    headrace = options.headrace.resolve()
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "rm1"
        subprocess.run([headrace, "generate", "rm1", "-o", table, "--features", "0.0625", "--rows", str(options.rows), "--seed", "1"],
                       check=True, capture_output=True)
        database = pathlib.Path(folder) / "runs.db"
        pipeline = table / "pipeline.toml"
        rows_per_second(headrace, pipeline, False, database, options.epochs)  # warms the page cache
        losses = []
        for pair in range(options.pairs):
            order = [True, False] if pair % 2 == 0 else [False, True]
            rate = {recorded: rows_per_second(headrace, pipeline, recorded, database, options.epochs) for recorded in order}
            losses.append(1 - rate[True] / rate[False])
            print(f"pair {pair + 1:2}: recorded {rate[True]:9.0f} rows/s, off {rate[False]:9.0f} rows/s, loss {losses[-1]:+.2%}", flush=True)
    losses.sort()
    quartiles = statistics.quantiles(losses, n=4)
    print(f"median loss {statistics.median(losses):+.2%}, quartiles [{quartiles[0]:+.2%}, {quartiles[2]:+.2%}], "
          f"range [{losses[0]:+.2%}, {losses[-1]:+.2%}], {options.pairs} pairs")


if __name__ == "__main__":
    main()
