#!/usr/bin/env python3
"""statement_cost.py HEADRACE [OTHER]: CPU time of `report` and `plan` of runs with 10, 100 and 1000 operators.

Each pipeline has five stages of operators that compute, and is recorded once by HEADRACE for six seconds. With --times N the stored
course of each run is made N times as long by copying its intervals, as of a run that lasted so long without a roll-up. With OTHER, an
older or newer program, both read the same store, taken in turn; its time comes second, then how many times as much the first took (medians).

usage: statement_cost.py HEADRACE [OTHER] [--times N] [--rounds N] [--operators 10,100,1000]
"""
import argparse
import os
import pathlib
import sqlite3
import statistics
import subprocess
import tempfile

STAGES = 5


def pipeline_text(operators):
    per_stage = operators // STAGES
    lines = [f'pipeline = {{ name = "wide-{operators}" }}', 'source = { synthetic = { rows = 64, bytes = "64KiB" }, epochs = 0 }',
             'consumer = { step = "4ms" }', "stage = ["]
    for stage in range(STAGES):
        stage_ns = 8e6 if stage == 1 else 2e6
        spins = ", ".join([f'{{ spin = "{int(stage_ns / per_stage)}ns" }}'] * per_stage)
        lines.append(f'  {{ name = "s{stage}", operators = [{spins}] }},')
    return "\n".join([*lines, "]", ""])


def lengthen(path, times):
    """Copies the intervals of the run behind themselves."""
    with sqlite3.connect(path) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%intervals'")]
        span = max(db.execute(f"SELECT MAX(start_ns) FROM {table}").fetchone()[0] or 0 for table in tables) + 500_000_000
        for table in tables:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            values = ", ".join(f"start_ns + k * {span}" if column == "start_ns" else column for column in columns)
            db.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) WITH RECURSIVE n(k) AS (VALUES (1) UNION ALL SELECT k + 1 "
                       f"FROM n WHERE k < {times - 1}) SELECT {values} FROM {table}, n")
        db.execute(f"UPDATE runs SET duration_ns = duration_ns * {times}")


def cpu_s(command, folder):
    before = os.times()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace")
    parser.add_argument("other", nargs="?")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operators", default="10,100,1000")
    options = parser.parse_args()
    programs = [os.path.abspath(p) for p in (options.headrace, options.other) if p]
    with tempfile.TemporaryDirectory() as name:
        for operators in map(int, options.operators.split(",")):
            folder = pathlib.Path(name)
            (folder / "wide.toml").write_text(pipeline_text(operators))
            store = f"wide-{operators}.db"
            subprocess.run([programs[0], "run", "wide.toml", "--db", store, "--quiet", "--duration", "6s"], cwd=folder, check=True)
            if options.times > 1:
                lengthen(folder / store, options.times)
            for command in ("report", "plan"):
                taken = [[] for _ in programs]
                for _ in range(options.rounds):
                    for program, times in zip(programs, taken):
                        times.append(cpu_s([program, command, "1", "--db", store], folder))
                medians = [statistics.median(times) for times in taken]
                spread = ", ".join(f"{median:.3f} s [{min(times):.3f}, {max(times):.3f}]" for median, times in zip(medians, taken))
                ratio = f"; {medians[0] / medians[1]:.1f} times" if len(medians) > 1 else ""
                print(f"{command} of {operators} operators: {spread}{ratio}", flush=True)


if __name__ == "__main__":
    main()
