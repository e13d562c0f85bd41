#!/usr/bin/env python3
"""What `headrace top` costs on a terminal of its own over a run that is being recorded, and how soon it shows something.

usage: top_cost.py HEADRACE DATABASE [--seconds 45] [--frames 9]
Prints the median time, and the range, from the start until the first stage is on the screen, and the CPU time of the view that is then
watched: of all, and of the thread that reads and draws, apart from the verdicts'.
"""
import argparse
import os
import pathlib
import pty
import select
import signal
import statistics
import time


def begin(headrace, database):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.environ["LINES"], os.environ["COLUMNS"] = "40", "120"
        os.execv(headrace, [headrace, "top", "--db", database])
    return pid, terminal


def end(pid, terminal):
    os.write(terminal, b"q")
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass  # it has ended
    os.waitpid(pid, 0)


def first_frame(headrace, database):
    began = time.monotonic()
    pid, terminal = begin(headrace, database)
    seen = b""
    while b"STAGE" not in seen:
        if not select.select([terminal], [], [], 10)[0]:
            os.kill(pid, signal.SIGKILL)
            raise SystemExit("top showed no stage for ten seconds")
        seen += os.read(terminal, 65536)
    took = time.monotonic() - began
    end(pid, terminal)
    return took


def cpu_seconds(stat):
    fields = pathlib.Path(stat).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headrace")
    parser.add_argument("database")
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--frames", type=int, default=9)
    arguments = parser.parse_args()
    took = [first_frame(arguments.headrace, arguments.database) for _ in range(arguments.frames)]
    print(f"first frame: {1000 * statistics.median(took):.0f} ms [{1000 * min(took):.0f}, {1000 * max(took):.0f}]")
    pid, terminal = begin(arguments.headrace, arguments.database)
    until = time.monotonic() + arguments.seconds
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            os.read(terminal, 65536)
    whole, drawing = cpu_seconds(f"/proc/{pid}/stat"), cpu_seconds(f"/proc/{pid}/task/{pid}/stat")
    end(pid, terminal)
    print(f"CPU time over {arguments.seconds:.0f} s: {100 * whole / arguments.seconds:.2f} % of a core, "
          f"{100 * drawing / arguments.seconds:.2f} % without verdicts")


if __name__ == "__main__":
    main()
