#!/usr/bin/env python3
"""Bench B0, accounting truth: operators of known CPU time, known sleep, known bytes and known lock hold on this host, with one, two
and four computing threads for each core. What the accounts recover is compared with what was asked for. Prints a line for each for
`accuracy render` (docs/accuracy.md).

usage: accounting.py HEADRACE [--seconds S] [--repeat N] > FILE
exit: 0 when every figure is within its limit, 77 when this machine cannot tell time on the CPU from time off it, else 1
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "truth"))
from pipelines_truth import must, rows_of  # noqa: E402

ROWS, BYTES = 64, 65536
SPIN_MS, SLEEP_MS, HOLD_MS, OTHER_MS = 2.0, 5.0, 1.0, 1.0
CPU, BLOCKED, IDENTITY, UNRELATED = 0.02, 0.05, 0.05, 0.03  # limits of relative errors
SKIPPED = 77


def text(threads, other_ms):
    """`threads` that compute, beside ones that sleep, ones that hold a lock, and one more whose cost may change."""
    return "\n".join([
        'pipeline = { name = "accounting" }',
        f'source = {{ synthetic = {{ rows = {ROWS}, bytes = "{BYTES // 1024}KiB" }}, epochs = 0 }}',
        'consumer = { step = "0ms" }',
        "stage = [",
        f'  {{ name = "burn", operators = [{{ spin = "{SPIN_MS}ms", name = "burn" }}], parallelism = {threads} }},',
        f'  {{ name = "wait", operators = [{{ sleep = "{SLEEP_MS}ms", name = "wait" }}], parallelism = 8 }},',
        f'  {{ name = "hold", operators = [{{ lock = "{HOLD_MS}ms", lock_name = "table" }}], parallelism = 2 }},',
        f'  {{ name = "other", operators = [{{ spin = "{other_ms}ms", name = "other" }}], parallelism = 1 }},',
        "]"]) + "\n"


class Bench:
    def __init__(self, headrace, folder, seconds):
        self.headrace, self.folder, self.seconds = headrace, folder, seconds
        self.db = folder / "accounting.db"
        self.failed, self.runs = 0, 0

    def record(self, threads, other_ms=OTHER_MS):
        """The run's operators, stages, lock and process as dictionaries."""
        self.runs += 1
        name = f"run{self.runs}"
        path = self.folder / f"{name}.toml"
        path.write_text(text(threads, other_ms))
        must([self.headrace, "run", path, "--db", self.db, "--name", name, "--duration", f"{self.seconds}s", "--quiet"])

        def rows(what, columns):
            return rows_of(self.headrace, self.db, f"SELECT {columns} FROM {what} JOIN run_summary USING (run_id) WHERE name = '{name}'")
        return {
            "operators": {r["operator"]: r for r in rows("operator_summary", "operator, stage, completions_count, on_cpu_ns, "
                          "blocked_ns, busy_ns, wait_in_ns, wait_out_ns, bytes_out_bytes, source")},
            "stages": {r["stage"]: r for r in rows("stage_summary", "stage, lifetime_ns, on_cpu_ns")},
            "lock": rows("resource_summary", "resource, acquisitions_count, hold_ns")[0],
            "process_ns": next(r["last_value"] for r in rows("host_summary", "metric, last_value") if r["metric"] == "process_cpu_ns"),
        }

    def say(self, what, load, expected, recovered, limit):
        self.failed += abs(recovered / expected - 1) > limit
        print("\t".join(["account", what, str(load), f"{expected:.6g}", f"{recovered:.6g}", f"{limit:g}"]), flush=True)

    def check(self, run, load):
        each = {name: {key: row[key] / row["completions_count"] for key in ("on_cpu_ns", "blocked_ns", "bytes_out_bytes")
                       if row[key] is not None} for name, row in run["operators"].items() if row["completions_count"]}
        self.say("CPU time of an operator that computes", load, SPIN_MS * 1e6, each["burn"]["on_cpu_ns"], CPU)
        if "blocked_ns" in each["wait"]:
            self.say("time that an operator sleeps", load, SLEEP_MS * 1e6, each["wait"]["blocked_ns"], BLOCKED)
        self.say("bytes of an operator", load, BYTES, each["burn"]["bytes_out_bytes"], CPU)
        holder = next(name for name, row in run["operators"].items() if row["stage"] == "hold")
        self.say("CPU time under a lock", load, HOLD_MS * 1e6, each[holder]["on_cpu_ns"], CPU)
        for stage in ("burn", "wait", "hold", "other"):
            of = [row for row in run["operators"].values() if row["stage"] == stage]
            told = sum(row["busy_ns"] + row["wait_in_ns"] + row["wait_out_ns"] for row in of)
            self.say("c + b + q + w against the threads' lifetime", load, run["stages"][stage]["lifetime_ns"], told, IDENTITY)
        self.say("CPU time of all stages against the process's", load, run["process_ns"],
                 sum(row["on_cpu_ns"] for row in run["stages"].values()), IDENTITY)


def main():
    parser = argparse.ArgumentParser(add_help=True)
    parser.add_argument("headrace", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="headrace-b0-") as folder:
        bench = Bench(options.headrace, pathlib.Path(folder), options.seconds)
        first = bench.record(cores)
        if any(row["on_cpu_ns"] is None for row in first["operators"].values()):
            print("skipped: this machine does not tell the CPU time of operators", file=sys.stderr)
            return SKIPPED
        if first["operators"]["wait"]["blocked_ns"] is None:
            print("time that operators sleep is left out: the scheduler is not traced here", file=sys.stderr)
        bench.check(first, 1)
        for i in range(options.repeat):
            for load in (1, 2, 4):
                if i + load > 1:
                    bench.check(bench.record(load * cores), load)
            doubled = bench.record(cores, 2 * OTHER_MS)["operators"]
            for name, what in (("burn", "on_cpu_ns"), ("wait", "blocked_ns")):
                was, now = first["operators"][name], doubled[name]
                if was[what] is None or now[what] is None:
                    continue
                bench.say("cost of an operator when an unrelated one's doubles", 1, was[what] / was["completions_count"],
                          now[what] / now["completions_count"], UNRELATED)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
