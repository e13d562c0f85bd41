#!/usr/bin/env python3
"""Makes the databases that the pages are tested with, by this program where a program can.

usage: stores.py HEADRACE FOLDER

  recorded.db  run 1: `headrace demo`; run 2: the same pipeline without probes; a comparison of two pairs of runs
  empty.db     a database without a run
  blind.db     run 1 of recorded.db, of which every probe is unavailable and nothing of theirs is left
  long.db      run 1 of recorded.db, its middle repeated until it lasts a day
"""
import pathlib
import shutil
import sqlite3
import subprocess
import sys

headrace, folder = sys.argv[1], pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
DAY_NS = 24 * 3600 * 10**9
MOST_COPIES = 600  # of the middle; with longer windows they make a day


def call(*arguments):
    result = subprocess.run([headrace, *arguments], capture_output=True, text=True, cwd=folder, check=False)
    if result.returncode not in (0, 4):  # 4: a verdict was withheld
        sys.exit(f"stores: headrace {' '.join(arguments)}: exit code {result.returncode}\n{result.stderr}")


def copy(name):
    shutil.copyfile(folder / "recorded.db", folder / name)
    connection = sqlite3.connect(folder / name)
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection


def columns(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def tables(connection):
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]


def make_blind():
    connection = copy("blind.db")
    connection.execute("DELETE FROM runs WHERE run_id <> 1")
    for table in ("measurement_intervals", "measurements", "stacks", "host_intervals", "host_metrics"):
        if table in tables(connection):
            connection.execute(f"DELETE FROM {table}")
    connection.execute("UPDATE probes SET state = 'unavailable', reason = 'bpf() failed: operation not permitted', fix = 'run it with CAP_BPF'")
    connection.commit()


def make_long():
    """Windows of a second half way into the run are written again and again, stretched so that they fill a day."""
    connection = copy("long.db")
    connection.execute("DELETE FROM runs WHERE run_id <> 1")
    lasted = connection.execute("SELECT duration_ns FROM runs WHERE run_id = 1").fetchone()[0]
    first, last = lasted // 4, lasted // 2
    scale = DAY_NS / (MOST_COPIES * (last - first))
    for table in tables(connection):
        names = columns(connection, table)
        if "start_ns" not in names or "run_id" not in names or table == "detail_ranges":
            continue
        rows = connection.execute(f"SELECT {', '.join(names)} FROM {table} WHERE run_id = 1 AND start_ns >= ? AND start_ns < ?", (first, last)).fetchall()
        connection.execute(f"DELETE FROM {table} WHERE run_id = 1")
        at = names.index("start_ns")
        stretched = [i for i, name in enumerate(names) if name.endswith("_ns") and name != "start_ns" and name != "step_ns"]
        made = []
        for number in range(MOST_COPIES):
            for row in rows:
                cells = list(row)
                for i in stretched:
                    if isinstance(cells[i], (int, float)):
                        cells[i] = int(cells[i] * scale)
                cells[at] = int((row[at] - first + number * (last - first)) * scale)
                made.append(cells)
        connection.executemany(f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", made)
    connection.execute("UPDATE runs SET duration_ns = ?, name = 'a day' WHERE run_id = 1", (DAY_NS,))
    connection.commit()
    connection.execute("VACUUM")


call("demo", "--folder", "table", "--db", "recorded.db", "--duration", "6s")
call("run", "table/pipeline.toml", "--db", "recorded.db", "--name", "no probe", "--duration", "3s", "--no-probe", "--quiet")
# Too few for a verdict, and enough for a page.
call("compare", "table/pipeline.toml", "--a", "decode.parallelism=1", "--b", "decode.parallelism=2", "--pairs", "2", "--duration", "1s", "--level", "1", "--db", "recorded.db", "-q")
# A database has no run where all of them were removed.
copy("empty.db").close()
runs = sqlite3.connect(folder / "empty.db").execute("SELECT run_id FROM runs").fetchall()
call("runs", "rm", *[str(row[0]) for row in runs], "--db", "empty.db")
make_blind()
make_long()
print(folder)
