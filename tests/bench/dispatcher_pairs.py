#!/usr/bin/env python3
"""Two builds of dispatcher_bench in pairs, in drawn order: what a change of the dispatcher gives.

usage: dispatcher_pairs.py BEFORE AFTER [PAIRS [WORKERS [RANKS [SPLITS [UNITS]]]]]      (default 3 1000 16 1000000 10)

BEFORE and AFTER are executables. Of each figure it prints the medians, and the median and range of the pairs' ratios.
"""
import random
import re
import statistics
import subprocess
import sys

SIDES = {"before": sys.argv[1], "after": sys.argv[2]}
PAIRS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
SIZE = (sys.argv[4:8] + ["1000", "16", "1000000", "10"][len(sys.argv[4:8]):])
LINE = re.compile(r"^(\S.*?)\s+([\d.]+) (\S*)\s+goal ")


def figures(side):
    done = subprocess.run([SIDES[side], *SIZE], check=True, capture_output=True, text=True)
    found = {}
    for line in done.stdout.splitlines():
        if match := LINE.match(line):
            found[f"{match[1]} ({match[3]})" if match[3] else match[1]] = float(match[2])
    return found


def main():
    seed = random.randrange(1 << 32)
    random.seed(seed)
    print(f"{' '.join(SIZE)}: workers, ranks, splits, units of a split; seed {seed}", flush=True)
    pairs = []
    for number in range(PAIRS):
        pair = {}
        for side in random.sample(list(SIDES), 2):
            pair[side] = figures(side)
        pairs.append(pair)
        print(f"  pair {number + 1} of {PAIRS}", flush=True)
    for what in pairs[0]["before"]:
        before, after = ([pair[side][what] for pair in pairs] for side in SIDES)
        ratios = sorted(b / a for a, b in zip(before, after) if a > 0)
        shown = f"ratio {statistics.median(ratios):.3g} [{ratios[0]:.3g}, {ratios[-1]:.3g}]" if ratios else "ratio unavailable"
        print(f"{what:56} {statistics.median(before):10.4g} -> {statistics.median(after):10.4g}  {shown}")


main()
