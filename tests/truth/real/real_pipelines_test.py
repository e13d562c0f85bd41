#!/usr/bin/env python3
"""Pipelines that are not ours, with a planted limit: `headrace profile -- COMMAND` must name it.

usage: real_pipelines_test.py HEADRACE REAL_READER [--only SUBSTRING] [--python-torch P] [--python-tensorflow P]
The interpreters that have torch and tensorflow come from the options, from $HEADRACE_TORCH_PYTHON and
$HEADRACE_TENSORFLOW_PYTHON, or are this one. Cases whose library is not installed are left out and say so.
exit: 0 when every planted limit was named; 77 when eBPF cannot be used here, or when one was not named and other programs
kept the machine busy; 1 otherwise.

Other load on the machine can be the true limit, so a case that names another one is measured once more, for twice as
long; both answers are printed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import consistency  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
OTHERS_LIMIT = 0.3  # cores used by other programs from which a planted limit may not be the true one
# CPU of the producers and the cores are one planted limit: which of the two binds depends on how many cores are free.
CPU = {"producers", "cores"}


def cases(options, seconds):
    reader = [options.real_reader]
    torch = [options.python_torch, str(HERE / "dataloader.py")]
    tensorflow = [options.python_tensorflow, str(HERE / "tfdata.py")]
    length = ["--seconds", str(seconds)]

    def loader(limit, workers, start="fork"):
        return torch + ["--limit", limit, "--workers", str(workers), "--start", start] + length

    yield "reader: readers", None, reader + ["readers"] + length, CPU, "reader"
    yield "reader: consumer", None, reader + ["consumer"] + length, {"consumer"}, ""
    yield "reader: storage", None, reader + ["storage"] + length, {"storage"}, "reader"
    yield "reader: lock", None, reader + ["lock"] + length, {"lock"}, "reader"
    yield "torch: 1 worker, CPU", "torch", loader("worker", 1), CPU, "pt_data_worker"
    yield "torch: 4 workers, CPU", "torch", loader("worker", 4), CPU, "pt_data_worker"
    yield "torch: 2 spawned workers, CPU", "torch", loader("worker", 2, "spawn"), CPU, "pt_data_worker"
    yield "torch: 2 workers, trainer", "torch", loader("trainer", 2), {"consumer"}, ""
    yield "torch: 2 workers, storage", "torch", loader("storage", 2), {"storage"}, "pt_data_worker"
    yield "torch: 2 workers, sleep", "torch", loader("sleep", 2), {"sleep"}, "pt_data_worker"
    yield "torch: no worker, CPU", "torch", loader("worker", 0), {"alone"}, ""
    yield "torch: no worker, storage", "torch", loader("storage", 0), {"storage", "alone"}, ""
    yield "tf.data: map", "tensorflow", tensorflow + ["--limit", "map"] + length, CPU, ""
    yield "tf.data: trainer", "tensorflow", tensorflow + ["--limit", "trainer"] + length, {"consumer"}, ""
    yield "tf.data: storage", "tensorflow", tensorflow + ["--limit", "storage"] + length, {"storage"}, ""


def importable(python, module):
    done = subprocess.run([python, "-c", f"import {module}"], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def report(headrace, database, name):
    done = subprocess.run([headrace, "report", name, "--db", database, "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(f"report {name}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    answer = json.loads(done.stdout)
    if contradictions := consistency.of_report(answer):
        raise RuntimeError(f"{name}: the report contradicts itself: {contradictions}")
    return answer


def measure(options, folder, name, command):
    database = str(folder / "real.db")
    done = subprocess.run([options.headrace, "profile", "--db", database, "--name", name, "--quiet", "--"] + command +
                          ["--dir", str(folder)], capture_output=True, text=True, timeout=180)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    answer = report(options.headrace, database, name)
    return answer["verdict"], json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace")
    parser.add_argument("real_reader")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--python-torch", default=os.environ.get("HEADRACE_TORCH_PYTHON", sys.executable))
    parser.add_argument("--python-tensorflow", default=os.environ.get("HEADRACE_TENSORFLOW_PYTHON", sys.executable))
    options = parser.parse_args()
    doctor = json.loads(subprocess.run([options.headrace, "doctor", "--json"], capture_output=True, text=True).stdout)
    blocked = [p for p in doctor["probes"] if p["name"] in ("off-CPU time", "eBPF") and p["state"] == "unavailable"]
    if blocked:
        print(f"skipped: who ends whose waits cannot be seen here: {blocked[0]['detail']}")
        return SKIPPED
    missing = {"torch": importable(options.python_torch, "torch"),
               "tensorflow": importable(options.python_tensorflow, "tensorflow")}
    passed = failed = left_out = 0
    others_most = 0.0
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = pathlib.Path(name).resolve()
        again = dict((c[0], c) for c in cases(options, 2 * options.seconds))
        for case, library, command, expected, group in cases(options, options.seconds):
            if options.only not in case:
                continue
            if library and missing[library]:
                left_out += 1
                print(f"left out  {case}: {missing[library]}", flush=True)
                continue
            for attempt in (command, again[case][2]):
                verdict, truth = measure(options, folder, f"{case} {attempt is command}", attempt)
                limit = verdict.get("limit", {})
                others = verdict.get("cores_used_by_others") or 0.0
                right = limit.get("kind") in expected and group in limit.get("group", "")
                print(f"{'ok' if right else 'MISSED':9} {case}: {limit.get('name')} ({limit.get('kind')}, probability "
                      f"{limit.get('probability')}, {limit.get('group')}); stall {verdict.get('stall_ratio')}, by its "
                      f"own clock {truth['stall_ratio']:.3f}; {others:.2f} cores used by others", flush=True)
                if right:
                    break
            passed, failed = passed + right, failed + (not right)
            if not right:
                others_most = max(others_most, others)
    print(f"{passed} passed, {failed} failed, {left_out} skipped")
    if failed and others_most > OTHERS_LIMIT:
        print(f"skipped: other programs used {others_most:.2f} cores, so what was planted may not have been the limit")
        return SKIPPED
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
