#!/usr/bin/env python3
"""Makes the databases that the pages are tested with, by this program where a program can.

usage: stores.py HEADRACE FOLDER

  recorded.db  run 1: `headrace demo`; run 2: the same pipeline without probes; a comparison of two pairs of runs
  empty.db     a database without a run
  blind.db     run 1 of recorded.db, of which every probe is unavailable and nothing of theirs is left
  long.db      run 1 of recorded.db, its middle repeated until it lasts a day, with a thousand operators (day.py)
  fleet.db     a job of the preprocessing service
"""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

from day import make_day

headrace, folder = sys.argv[1], pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)


def call(*arguments):
    result = subprocess.run([headrace, *arguments], capture_output=True, text=True, cwd=folder, check=False)
    if result.returncode not in (0, 4):  # 4: a verdict was withheld
        sys.exit(f"stores: headrace {' '.join(arguments)}: exit code {result.returncode}\n{result.stderr}")


def copy(name):
    shutil.copyfile(folder / "recorded.db", folder / name)
    connection = sqlite3.connect(folder / name)
    connection.execute("PRAGMA foreign_keys = OFF")
    return connection


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
    connection = copy("long.db")
    connection.execute("DELETE FROM runs WHERE run_id <> 1")
    make_day(connection)


def make_fleet():
    job = f"web-{os.getpid()}"
    call("generate", "rm3", "-o", "rm3", "--rows", "2000", "--features", "0.02", "--stripe-rows", "256")
    up = ["service", "up", "rm3/pipeline.toml", "--job", job, "--ranks", "2", "--workers", "2", "--set", "pipeline.batch_rows=50"]
    rank = ["consume", f"service:{job}", "--step-time", "320ms", "--rank"]
    started = [subprocess.Popen([headrace, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for words in ([*up, "--fleet", "fleet.db"], [*rank, "0/2"], [*rank, "1/2"])]
    if any(one.wait(timeout=300) for one in started):
        sys.exit("stores: a job of the preprocessing service failed")


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
make_fleet()
print(folder)
