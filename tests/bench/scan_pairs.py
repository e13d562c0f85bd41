#!/usr/bin/env python3
"""scan_pairs.py OLD NEW TABLE...: two builds of scan_bench read the same tables in turn.

Prints for each table the CPU time of a scan (ns a row) of both, the ratio of neighbours with its 10th and 90th percentile, and what each
step takes. $HEADRACE_ISA holds for both.

usage: scan_pairs.py OLD NEW TABLE... [--rounds N]
"""
import argparse
import json
import random
import statistics
import subprocess

STEPS = ("footer", "plan", "fetch", "decompress", "decode", "extract")


def ask(process, command):
    process.stdin.write(command + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def scan_ns(process):
    answer = ask(process, "scan")
    return answer["cpu_seconds"] * 1e9 / answer["rows"]


def in_turn(processes, measure):
    """What measure() says of both, in drawn order."""
    order = [0, 1]
    random.shuffle(order)
    return [answer for _, answer in sorted((i, measure(processes[i])) for i in order)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    for table in args.tables:
        processes = [subprocess.Popen([program, table, "--gap", "1024"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                     for program in (args.old, args.new)]
        in_turn(processes, scan_ns)  # into the page cache
        scans = [in_turn(processes, scan_ns) for _ in range(args.rounds)]
        steps = []
        for _ in range(args.rounds):
            both = in_turn(processes, lambda process: json.dumps(ask(process, "steps")))
            steps.append([json.loads(answer) for answer in both])
        ratios = sorted(new / old for old, new in scans)
        low, high = ratios[len(ratios) // 10], ratios[-1 - len(ratios) // 10]
        old, new = (statistics.median(pair[side] for pair in scans) for side in (0, 1))
        print(f"{table}: {old:.0f} -> {new:.0f} ns a row, {statistics.median(ratios):.2f} [{low:.2f}, {high:.2f}]")
        for step in STEPS:
            before, after = (statistics.median(pair[side][step] for pair in steps) for side in (0, 1))
            print(f"  {step:<10} {before:6.0f} -> {after:.0f}")
        for process in processes:
            process.stdin.close()
            process.wait()


if __name__ == "__main__":
    main()
