#!/usr/bin/env python3
"""Whether a worker of a preprocessing job stays within `pipeline.memory` while its ranks are slow: random settings.

  service_memory.py HEADRACE [COUNT]        (COUNT settings, 50 by hand; HEADRACE_SEED repeats a run)

A dispatcher, one worker and one to three ranks, which take a batch each 20 to 200 ms: what the worker has waits in its lanes. The
worker runs in a memory cgroup (v1) whose limit is the budget, where one can be made; nothing may be killed. Its peak of resident
memory (VmHWM), asked for while it runs, must be within the budget. A budget that is too small must be refused in one line that
names a sufficient one, and that one is then tried. Rings in shared memory are outside of the budget, and are added: docs/service.md.
"""
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import memory_group

MIB = 1 << 20
SECONDS = 5  # of each, once batches come
LIMIT_S = 120


def number_in(path):
    with open(path) as file:
        return int(file.read().split()[-1])


def peak_of(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            found = re.search(r"VmHWM:\s+(\d+) kB", file.read())
        return int(found[1]) * 1024 if found else 0
    except OSError:
        return 0


def rings_of(pid):
    """Bytes of shared memory that it made for ranks, each mapped twice in a row."""
    inodes = {}
    try:
        with open(f"/proc/{pid}/maps") as file:
            for line in file:
                if "headrace.delivery" in line:
                    place, inode = line.split()[0], line.split()[4]
                    begin, end = (int(one, 16) for one in place.split("-"))
                    inodes[inode] = min(inodes.get(inode, end - begin), end - begin)
    except OSError:
        pass
    return sum(inodes.values())


def settings_of(pick):
    chosen = {"pipeline.memory": pick.choice([96, 128, 160, 192, 256, 512]), "pipeline.batch_rows": pick.choice([32, 100, 256, 512, 1024]),
              "source.epochs": 0, "decode.parallelism": pick.choice([1, 2, 4]), "fetch.parallelism": pick.choice([1, 2]),
              "decode.queue": pick.choice([1, 4, 16]), "batch.queue": pick.choice([1, 8, 64])}
    ranks, kind, step_ms = pick.randrange(1, 4), pick.choice(["unix", "shm", "tcp", "tcp"]), pick.choice([20, 50, 200])
    if kind == "tcp":  # as a network that holds batches up would have it: each rank's are compressed by themselves
        chosen["delivery.wire"] = pick.choice(["auto", "raw", "lz4", "zstd"])
    return chosen, ranks, kind, step_ms


class Job:
    def __init__(self, headrace, pipeline, settings, ranks, kind, step_ms, group, limit):
        self.folder = os.path.abspath("job")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder, 0o700)
        place = f"@{self.folder}/address" if kind == "tcp" else self.folder
        words = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        listen = ["--listen", "tcp:127.0.0.1:0"] if kind == "tcp" else []
        self.errors = open("worker.txt", "w+")

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w") as procs:
                procs.write(str(os.getpid()))
        if group:
            with open(os.path.join(group, "memory.limit_in_bytes"), "w") as file:
                file.write(str(limit))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.dispatcher = subprocess.Popen([headrace, "service", "dispatcher", pipeline, "--job", self.folder, "--no-fleet", "-q", "--ranks",
                                            str(ranks), *words, *listen], **quiet)
        self.worker = subprocess.Popen([headrace, "service", "worker", place, "-q"], stdout=subprocess.DEVNULL, stderr=self.errors,
                                       preexec_fn=enter if group else None)
        shared = ["--shared-memory"] if kind == "shm" else []
        self.ranks = [subprocess.Popen([headrace, "consume", "service:" + place, "--rank", f"{rank}/{ranks}", "--checkpoint", f"{rank}.ckpt",
                                        "--checkpoint-every", "1", "--step-time", f"{step_ms}ms", "-q", *shared], **quiet)
                      for rank in range(ranks)]

    def end(self):
        for process in [*self.ranks, self.worker, self.dispatcher]:
            process.kill()
            process.wait()
        self.errors.seek(0)
        return self.errors.read().strip()


def play(headrace, pipeline, settings, ranks, kind, step_ms, group):
    """(peak resident bytes, rings, what the worker said, whether batches came, its exit code if it ended)"""
    for rank in range(3):
        if os.path.exists(f"{rank}.ckpt"):
            os.remove(f"{rank}.ckpt")
    budget = settings["pipeline.memory"] * MIB
    # A ring holds four of the largest frames, of at most a quarter of the budget each.
    limit = budget * (1 + ranks) if kind == "shm" else budget
    job = Job(headrace, pipeline, {**settings, "pipeline.memory": f"{settings['pipeline.memory']}MiB"}, ranks, kind, step_ms, group, limit)
    until, came, peak, rings = time.monotonic() + LIMIT_S, None, 0, 0
    while time.monotonic() < until and job.worker.poll() is None:
        peak, rings = max(peak, peak_of(job.worker.pid)), max(rings, rings_of(job.worker.pid))
        if came is None and all(os.path.exists(f"{rank}.ckpt") for rank in range(ranks)):
            came = time.monotonic()
        if came is not None and time.monotonic() > came + SECONDS:
            break
        time.sleep(0.05)
    code = job.worker.poll()
    return peak, rings, job.end(), came is not None, code


def main():
    headrace = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    seed = int(os.environ.get("HEADRACE_SEED", random.randrange(1 << 32)))
    print(f"HEADRACE_SEED={seed}", flush=True)
    pick = random.Random(seed)
    group, reason = memory_group.own_group("headrace-service")
    if group is None:
        print("without the cgroup half:", reason)
    wrong, shares, refused = [], [], 0
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        subprocess.run([headrace, "generate", "rm1", "-o", "t", "--rows", "8192", "--features", "0.05", "--stripe-rows", "1024"], check=True,
                       capture_output=True)
        for number in range(count):
            settings, ranks, kind, step_ms = settings_of(pick)
            peak, rings, said, has_come, code = play(headrace, "t/pipeline.toml", settings, ranks, kind, step_ms, group)
            if not has_come and (needed := re.search(r"at least (\d+)MiB", said)):
                refused += 1
                settings["pipeline.memory"] = int(needed[1])
                peak, rings, said, has_come, code = play(headrace, "t/pipeline.toml", settings, ranks, kind, step_ms, group)
            text = f"{settings}, {ranks} ranks by {kind}, step {step_ms} ms"
            share = (peak - rings) / (settings["pipeline.memory"] * MIB)
            shares.append(share)
            kills = 0
            if group:
                with open(os.path.join(group, "memory.oom_control")) as file:
                    found = re.search(r"oom_kill (\d+)", file.read())
                kills = int(found[1]) if found else 0
            if not has_come or code is not None:
                wrong.append(f"{text}: {'no batches came' if not has_come else f'the worker ended with {code}'}: {said}")
            elif share > 1:
                wrong.append(f"{text}: {peak / MIB:.0f} MiB, {rings / MIB:.0f} of them rings")
            print(f"  {number}: {peak / MIB:.0f} MiB, of them {rings / MIB:.0f} rings, of {settings['pipeline.memory']} ({100 * share:.0f} %): {text}",
                  flush=True)
            if group and kills:
                wrong.append(f"{text}: killed for memory")
                break
    if group:
        os.rmdir(group)
    print(f"{count} settings, {refused} budgets were refused first: at most {100 * max(shares):.0f} % of the budget, median "
          f"{100 * statistics.median(shares):.0f} %; {len(wrong)} wrong")
    for one in wrong:
        print("WRONG:", one)
    sys.exit(1 if wrong else 0)


main()
