#!/usr/bin/env python3
"""Solves the first objective of plans with HiGHS (PyPI: highspy), from the file that `headrace plan --lp` writes, and compares.

usage: highs.py HEADRACE DATABASE [RUN...]
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

import highspy

headrace, database, *runs = sys.argv[1:]
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6}
count, agree, worst = 0, 0, 0.0
with tempfile.TemporaryDirectory() as folder:
    lp = str(pathlib.Path(folder) / "plan.lp")
    for run, cores, threads, memory in itertools.product(runs or ["1"], (1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 8), ("60M", "4GiB")):
        words = [headrace, "plan", run, "--db", database, "--cores", str(cores), "--max-threads", str(threads), "--memory", memory]
        said = subprocess.run([*words, "--lp", lp, "-f", "--explain"], capture_output=True, text=True, check=False).stdout
        ours = re.search(r"least seconds a batch\s+([0-9.e+-]+) (s|ms|us)", said)
        unit = re.search(r"T in units of ([0-9.e+-]+) s", said)
        if not ours or not unit:  # no plan fits this budget
            continue
        solver = highspy.Highs()
        solver.silent()
        solver.readModel(lp)
        solver.run()
        theirs = solver.getInfo().objective_function_value * float(unit[1])
        difference = abs(theirs / (float(ours[1]) * UNITS[ours[2]]) - 1)
        count, agree, worst = count + 1, agree + (difference < 1e-4), max(worst, difference)
print(f"{count} programs, {agree} agree within 1e-4, largest difference {worst:.2g}")
sys.exit(0 if count > 0 and agree == count else 1)
