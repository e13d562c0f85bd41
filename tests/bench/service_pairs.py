#!/usr/bin/env python3
"""What it costs to read through the preprocessing service: one worker and one rank against `headrace run`, in interleaved rounds.

usage: service_pairs.py HEADRACE [ROUNDS] [KIND ...]      (default: 9 rounds of unix, shm, tcp and tls)

Each round reads the same table once in one process, and once through each kind of connection with a dispatcher, a worker and a
rank, in drawn order. Rates are from the first batch to the end. CPU time
is that of all processes, from their start. Printed are medians of the rounds' ratios to the run of the same round.

With CORES=LIST, as of taskset, the run and the worker have those cores alone, and the dispatcher and the rank the others: a worker on
n cores against a run on n cores. Without, all processes share all cores.
"""
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

HEADRACE = os.path.abspath(sys.argv[1])
WORDS = sys.argv[2:]
ROUNDS = int(WORDS.pop(0)) if WORDS and WORDS[0].isdigit() else 9
KINDS = WORDS or ["unix", "shm", "tcp", "tls"]
CORES = os.environ.get("CORES")
ALL = os.sched_getaffinity(0)
SETTINGS = ["--set", f"source.epochs={os.environ.get('EPOCHS', '8')}"]


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def at_work(*command):
    return ["taskset", "-c", CORES, HEADRACE, *command] if CORES else [HEADRACE, *command]


def beside(*command):
    if not CORES:
        return [HEADRACE, *command]
    taken = subprocess.run(["taskset", "-c", CORES, "python3", "-c", "import os; print(*os.sched_getaffinity(0))"], check=True,
                           capture_output=True, text=True).stdout.split()
    others = ALL - {int(core) for core in taken}
    return ["taskset", "-c", ",".join(map(str, others)), HEADRACE, *command]


def rates(output, before):
    result = json.loads(output)
    return result["steady_rows_per_second"], (cpu_s() - before) / result["rows_count"]


def on_box():
    before = cpu_s()
    done = subprocess.run(at_work("run", "t/pipeline.toml", "--no-record", "--json", *SETTINGS), check=True, capture_output=True, text=True)
    return rates(done.stdout, before)


def service(kind):
    folder = os.path.abspath("job")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder, 0o700)
    is_network = kind in ("tcp", "tls")
    before = cpu_s()
    dispatcher = subprocess.Popen(beside("service", "dispatcher", "t/pipeline.toml", "--job", folder, "-q", "--no-fleet", *SETTINGS,
                                         *(["--listen", f"{kind}:127.0.0.1:0"] if is_network else [])))
    place = f"@{folder}/address" if is_network else folder
    worker = subprocess.Popen(at_work("service", "worker", place, "-q"))
    shared = ["--shared-memory"] if kind == "shm" else []
    done = subprocess.run(beside("consume", "service:" + place, "--json", "-q", *shared), check=True, capture_output=True, text=True)
    assert worker.wait(60) == 0 and dispatcher.wait(60) == 0
    return rates(done.stdout, before)


def spread(ratios):
    ratios = sorted(ratios)
    return f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"


def main():
    seed = int(os.environ.get("HEADRACE_SEED", random.randrange(1 << 32)))
    print(f"HEADRACE_SEED={seed}, {ROUNDS} rounds", flush=True)
    draw = random.Random(seed)
    ratios = {kind: ([], []) for kind in KINDS}
    bases = []
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        subprocess.run([HEADRACE, "generate", "rm1", "-o", "t", "--rows", "40000", "--features", "0.2"], check=True, capture_output=True)
        on_box()
        for _ in range(ROUNDS):
            order = ["run", *KINDS]
            draw.shuffle(order)
            got = {kind: on_box() if kind == "run" else service(kind) for kind in order}
            base = got.pop("run")
            bases.append(base)
            for kind, (rate, cpu) in got.items():
                ratios[kind][0].append(rate / base[0])
                ratios[kind][1].append(cpu / base[1])
            print("  " + ", ".join(f"{kind} {ratios[kind][0][-1]:.2f} / {ratios[kind][1][-1]:.2f}" for kind in KINDS), flush=True)
    print(f"run: {statistics.median(rate for rate, _ in bases):.0f} rows/s, {1e6 * statistics.median(cpu for _, cpu in bases):.1f} us of CPU a row")
    for kind in KINDS:
        print(f"{kind}: rows/s {spread(ratios[kind][0])}, CPU time a row {spread(ratios[kind][1])} of the run's (median, least, most)")


main()
