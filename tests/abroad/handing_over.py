#!/usr/bin/env python3
"""handing_over.py PYTHON: what the first workers of a DataLoader bring where batches are small, and what handing them over costs.

Workers compute in Python for so long for a batch of N small tensors, and the trainer for 1 ms. Rates are of no workers, of two, and of two whose
tensors are shared by name (torch.multiprocessing.set_sharing_strategy("file_system")), taken in turn; medians of the rounds. `over`: how much longer a
batch takes with two workers than the slower of the trainer and of two cores that share all the work.

usage: handing_over.py PYTHON [--rounds N] [--seconds S]
"""
import argparse
import statistics
import subprocess
import sys

STEP_S = 0.001
CASES = [(load_ms, tensors) for load_ms in (2, 8, 30) for tensors in (2, 8)]
KINDS = {"none": (0, ""), "two": (2, ""), "two, by name": (2, "file_system")}


def burn(seconds, clock):
    end = clock() + seconds
    while clock() < end:
        sum(range(200))


def one(load_ms, tensors, workers, strategy, seconds):
    """Prints batches a second. Runs in a process of its own."""
    import os
    import time

    import torch
    from torch.utils.data import DataLoader

    if strategy:
        torch.multiprocessing.set_sharing_strategy(strategy)
    torch.set_num_threads(1)

    def collate(rows):
        burn(load_ms / 1e3, time.thread_time)
        return [torch.zeros(64) for _ in range(tensors)]

    batches = iter(DataLoader(range(1 << 30), batch_size=8, collate_fn=collate, num_workers=workers))
    for _ in range(4):
        next(batches)
    begin, count = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        next(batches)
        burn(STEP_S, time.thread_time)
        count += 1
    print(count / (time.monotonic() - begin), flush=True)
    os._exit(0)


def main():
    if sys.argv[1:2] == ["--one"]:
        return one(float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], float(sys.argv[6]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    rates = {}
    for _ in range(options.rounds):
        for load_ms, tensors in CASES:
            for kind, (workers, strategy) in KINDS.items():
                done = subprocess.run([options.python, __file__, "--one", str(load_ms), str(tensors), str(workers), strategy, str(options.seconds)],
                                      check=True, capture_output=True, text=True)
                rates.setdefault((load_ms, tensors, kind), []).append(float(done.stdout))
    print("| work for a batch, tensors | " + " | ".join(KINDS) + " | of no workers | by name, of two | over |")
    print("|---|" + "---|" * (len(KINDS) + 3))
    for load_ms, tensors in CASES:
        median = {kind: statistics.median(rates[load_ms, tensors, kind]) for kind in KINDS}
        spread = {kind: f"[{min(rates[load_ms, tensors, kind]):.0f}, {max(rates[load_ms, tensors, kind]):.0f}]" for kind in KINDS}
        least_s = max(STEP_S, (load_ms / 1e3 + STEP_S) / 2)
        print(f"| {load_ms} ms, {tensors} | " + " | ".join(f"{median[kind]:.0f} {spread[kind]}" for kind in KINDS)
              + f" | {median['two'] / median['none']:.2f} | {median['two, by name'] / median['two']:.2f}"
              + f" | {1e3 * (1 / median['two'] - least_s):.1f} ms |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
