#!/usr/bin/env python3
"""Runs killed at random moments and resumed: each surviving row is delivered exactly once per epoch.

usage: checkpoint_kill.py HEADRACE [KILLS]      (default 15)

The reference consumer's own row log is the witness: a line "EPOCH ROW HASH" per row. The log and the
checkpoint are of one moment, so what a killed run delivered behind its last checkpoint is cut off and
delivered again. Each configuration is killed and resumed until it ends, then the next begins, until
the number of kills is reached. Order any and file, shuffling, sampling, two epochs, other threads and
batch sizes after each kill. HEADRACE_SEED sets the moments.
"""
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HEADRACE = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 15
SEED = int(os.environ.get("HEADRACE_SEED", random.SystemRandom().randrange(1 << 31)))
ROWS = 3000
LIMIT_S = 300  # only a hang takes as long


def pipeline(folder, order, shuffle, worker):
    """The generated pipeline with sampling, and the operators this configuration is about."""
    with open(os.path.join(folder, "pipeline.toml")) as file:
        text = file.read()
    join = (["shuffle"] if shuffle else []) + ["batch", "tensorize"] + (["rebatch"] if worker else [])
    text = text.replace('"batch", "tensorize"', ", ".join(f'"{op}"' for op in join))
    text = re.sub(r'(?m)^order = .*$', f'order = "{order}"', text)
    keys = f"shuffle_rows = {shuffle}\n" if shuffle else ""
    text = text.replace("[pipeline]\n", "[pipeline]\n" + keys)
    text += '\n[[transform]]\nop = "sampling"\nrate = 0.5\n'
    name = os.path.join(folder, f"{order}-{shuffle}-{worker}.toml")
    with open(name, "w") as file:
        file.write(text)
    return name


def command(name, log, *more, epochs=2):
    return [HEADRACE, "run", name, "--no-record", "--json", "--checksum", "--epochs", str(epochs), "--row-log", log, *more]


def settings(random_, order, worker):
    batch = random_.choice([40, 64, 100])
    chosen = {"pipeline.batch_rows": batch, "fetch.parallelism": random_.randrange(1, 4),
              "decode.parallelism": random_.randrange(1, 4), "consumer.step": random_.choice(["0", "1ms", "4ms"])}
    if worker:
        chosen["pipeline.worker_rows"] = random_.randrange(8, batch + 1)
    if order == "any":
        chosen["batch.parallelism"] = random_.randrange(1, 3)
    return [part for key, value in chosen.items() for part in ("--set", f"{key}={value}")]


def main():
    print(f"HEADRACE_SEED={SEED}", flush=True)
    moments = random.Random(SEED)
    kills = runs = lines = finished = 0
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        subprocess.run([HEADRACE, "generate", "rm3", "-o", "t", "--rows", str(ROWS), "--features", "0.02", "--stripe-rows", "256",
                        "--partitions", "2"], check=True, capture_output=True)
        configurations = [(order, shuffle, worker) for order in ("file", "any") for shuffle in (0, 700) for worker in (0, 1)]
        expected = {}
        for place in range(10**9):
            order, shuffle, worker = configuration = configurations[place % len(configurations)]
            name = pipeline("t", order, shuffle, worker)
            if configuration not in expected:  # without interruption
                done = subprocess.run(command(name, "whole.log"), capture_output=True, text=True, timeout=LIMIT_S)
                assert done.returncode == 0, done.stderr
                with open("whole.log") as file:
                    expected[configuration] = (file.read().splitlines(), json.loads(done.stdout)["checksum"])
            if kills >= KILLS and place >= len(configurations[:2]):
                break
            for leftover in ("at.ckpt", "rows.log"):
                if os.path.exists(leftover):
                    os.remove(leftover)
            while True:
                runs += 1
                process = subprocess.Popen(
                    command(name, "rows.log", "--checkpoint", "at.ckpt", "--checkpoint-every", str(moments.choice([1, 2, 5])),
                            "--resume", *settings(moments, order, worker)),
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=scratch)
                # A moment between the first checkpoint of this run and its end, or before any.
                deadline = time.monotonic() + moments.uniform(0, 0.2)
                while time.monotonic() < deadline and process.poll() is None:
                    time.sleep(0.002)
                if kills < KILLS:
                    process.kill()
                out, error = process.communicate(timeout=LIMIT_S)
                if process.returncode == -9:
                    kills += 1
                    continue
                assert process.returncode == 0, (process.returncode, error)
                break
            finished += 1
            with open("rows.log") as file:
                got = file.read().splitlines()
            want, sums = expected[configuration]
            if order == "any":
                twice = [line for line, count in collections.Counter(got).items() if count > 1]
                assert not twice, f"{configuration}: delivered twice: {twice[:3]}"
                assert sorted(got) == sorted(want), f"{configuration}: {len(got)} rows, expected {len(want)}"
            else:
                assert got == want, f"{configuration}: rows differ from those of an uninterrupted run"
            own = json.loads(out)["checksum"]
            assert own["rows_count"] == len(want) and own["multiset"] == sums["multiset"], (configuration, own, sums)
            if order == "file":
                assert own["ordered"] == sums["ordered"], configuration
            lines += len(got)
            left = [entry for entry in os.listdir(".") if ".tmp" in entry]
            assert not left, f"left behind: {left}"
    print(f"{kills} kills, {runs} runs, {finished} ends: {lines} rows, each exactly once per epoch and in its place")


main()
