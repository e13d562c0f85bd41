#!/usr/bin/env python3
"""statement_cost.py HEADRACE [OTHER]: CPU time of `report` and `plan` of runs with 10, 100 and 1000 operators.

Each pipeline has five stages of operators that compute, and is recorded once by HEADRACE for six seconds. With --lasting SECONDS the stored
course is made as that of a run that lasted so long, in the windows that the rollup leaves (tests/web/day.py). With --times N it is made N times
as long by copying its intervals: without a rollup. With OTHER, an older or newer program, both read the same store, taken in turn; its time
comes second, then how many times as much the first took (medians), and the most memory of each.

usage: statement_cost.py HEADRACE [OTHER] [--lasting SECONDS | --times N] [--rounds N] [--operators 10,100,1000]
"""
import argparse
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "web"))
import day  # noqa: E402

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


def last(path, seconds, operators):
    """The run lasts so long, in the windows of a rollup; each operator is at work in every window that it was."""
    with sqlite3.connect(path) as db:
        day.make_day(db, seconds * day.SECOND_NS, operators=1, active=1, sooner=max(1, operators // 100))


def cost(command, folder):
    """CPU seconds and MiB."""
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 4):  # 4: undecided
        raise subprocess.CalledProcessError(child.returncode, command)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace")
    parser.add_argument("other", nargs="?")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--lasting", type=int, default=0, help="seconds")
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
            if options.lasting:
                last(folder / store, options.lasting, operators)
            for command in ("report", "plan"):
                taken = [[] for _ in programs]
                for _ in range(options.rounds):
                    for program, times in zip(programs, taken):
                        times.append(cost([program, command, "1", "--db", store], folder))
                medians = [statistics.median(seconds for seconds, _ in times) for times in taken]
                spread = ", ".join(f"{median:.3f} s [{min(times)[0]:.3f}, {max(times)[0]:.3f}] {max(mib for _, mib in times):.0f} MiB"
                                   for median, times in zip(medians, taken))
                ratio = f"; {medians[0] / medians[1]:.1f} times" if len(medians) > 1 else ""
                print(f"{command} of {operators} operators: {spread}{ratio}", flush=True)


if __name__ == "__main__":
    main()
