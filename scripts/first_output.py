#!/usr/bin/env python3
"""How long each command takes to its first output: on a terminal, as a person sees it, and on a pipe.

usage: first_output.py HEADRACE [ROUNDS]
       first_output.py --start A B    how long `--version` of two builds takes, 60 pairs in turn

Each line below is started ROUNDS times (default 7), once each in a round, and ended with Ctrl-C when it has said something. Printed are
median and slowest of the times to the first byte on stdout or stderr, as a table in Markdown. Slower than 0.3 s in the median on a
terminal is marked: a pipe gets data, and progress every two seconds.
"""
import os
import pathlib
import pty
import select
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

LIMIT_S = 0.3
LINES = """apply 1
cat rm1/part-00000.dwrf --limit 1
characterize rm1 --quick -o study
compare a.toml b.toml
completion bash
config
consume unix:batches.sock
demo --duration 5s
doctor
export 1 --format csv --view operator_summary
generate rm1 --rows 100000 -o large
inspect rm1
layout rm1
man run
plan 1
profile -- sleep 5
profile -p PID -d 5s
query "SELECT * FROM operator_summary"
report 1
report 1 --full
report 1 --format html
rewrite rm1 -o again
run rm1/pipeline.toml --duration 5s
runs
serve --port 0
service up rm1/pipeline.toml --ranks 1 --workers 1
top --once
tune rm1/pipeline.toml
--help
--version"""


def first_byte(words, folder, terminal):
    """Seconds to the first byte, or None where the command ended without one."""
    environment = dict(os.environ, HEADRACE_CONFIG="", TERM="xterm")
    environment.pop("HEADRACE_DB", None)
    reading, writing = pty.openpty() if terminal else os.pipe()
    started = time.monotonic()
    process = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=writing, stderr=writing,
                               start_new_session=True)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], 60)
    took = time.monotonic() - started
    try:
        said = bool(ready and os.read(reading, 1))
    except OSError:  # a terminal whose last writer has ended
        said = False
    time.sleep(0.05)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    end = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < end:  # nobody may wait for room in the pipe
        if select.select([reading], [], [], 0.1)[0]:
            try:
                os.read(reading, 65536)
            except OSError:
                time.sleep(0.05)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(reading)
    return took if said else None


def prepare(headrace, folder):
    def run(*arguments):
        subprocess.run([headrace, *arguments], cwd=folder, check=True, capture_output=True, env=dict(os.environ, HEADRACE_CONFIG=""))
    run("generate", "rm1", "-o", "rm1", "--rows", "4096", "--features", "0.05")
    run("run", "rm1/pipeline.toml", "--duration", "3s", "--db", "headrace.db")
    pipeline = (folder / "rm1/pipeline.toml").read_text().replace('table = "."', f'table = "{folder}/rm1"')
    for name in ("a.toml", "b.toml"):
        (folder / name).write_text(pipeline)


def start(programs):
    """Prints how many times as long the second of two programs takes to start: median and quartiles of the pairs' ratios."""
    ratios = []
    for number in range(60):
        took = {}
        for which in (0, 1) if number % 2 else (1, 0):
            began = time.perf_counter()
            subprocess.run([programs[which], "--version"], stdout=subprocess.DEVNULL, check=True)
            took[which] = time.perf_counter() - began
        ratios.append(took[1] / took[0])
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"B takes {middle:.1f} times as long as A to start [{low:.1f}, {high:.1f}]")


def main():
    if sys.argv[1:2] == ["--start"] and len(sys.argv) == 4:
        start(sys.argv[2:])
        return
    headrace, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    times = {}
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(["sleep", "3600"]) as target:
        folder = pathlib.Path(name)
        prepare(headrace, folder)
        for number in range(rounds):
            for line in LINES.splitlines():
                for terminal in (True, False):
                    subprocess.run(["rm", "-rf", "study", "large", "again", "headrace-demo", "batches.sock"], cwd=folder, check=True)
                    words = [headrace, *shlex.split(line.replace("PID", str(target.pid)))]
                    times.setdefault((line, terminal), []).append(first_byte(words, folder, terminal))
        target.kill()
    print("| command | terminal: median, slowest | pipe: median, slowest | |\n|---|---|---|---|")
    slow = 0
    for line in LINES.splitlines():
        cells, late = [], False
        for terminal in (True, False):
            said = [took for took in times[line, terminal] if took is not None]
            if len(said) < rounds / 2:
                cells.append("says nothing until it ends")
                continue
            late = late or (terminal and statistics.median(said) > LIMIT_S)
            cells.append(f"{1000 * statistics.median(said):.0f} ms, {1000 * max(said):.0f} ms")
        slow += late
        print(f"| `{line}` | {cells[0]} | {cells[1]} | {'slow' if late else ''} |")
    print(f"\n{slow} of {len(LINES.splitlines())} take longer than {LIMIT_S} s on a terminal")


main()
