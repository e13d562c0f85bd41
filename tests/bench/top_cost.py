#!/usr/bin/env python3
"""CPU time of `headrace top` on a terminal of its own, over a run that is being recorded; verdicts included.

usage: top_cost.py HEADRACE DATABASE [SECONDS]
"""
import os
import pty
import resource
import select
import sys
import time

headrace, database, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 45
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm-256color"
    os.execv(headrace, [headrace, "top", "--db", database])
end = time.monotonic() + seconds
while time.monotonic() < end:
    if select.select([terminal], [], [], 0.2)[0]:
        os.read(terminal, 65536)
os.write(terminal, b"q")
try:
    while os.read(terminal, 65536):
        pass
except OSError:
    pass  # it has ended
os.waitpid(pid, 0)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{100 * (used.ru_utime + used.ru_stime) / seconds:.2f} % of a core over {seconds:.0f} s")
