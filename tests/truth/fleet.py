#!/usr/bin/env python3
"""Jobs of the preprocessing service with one planted limit each: the fleet report names it.

usage: fleet.py HEADRACE [--beside] [NAME...]      (default: all twelve; 77 where fewer than that can run)

--beside: two jobs at a time, of those in which nothing computes; one that is not named is tried again alone.

Each job runs on this machine for about 12 s: workers whose work is a sleep, so that cores do not matter where they are not the plant,
and ranks with a step of their own. Planted are slow stores (the test's own server), too few workers, a CPU quota, busy cores, slow
ranks, trainers that take no more, a worker and a dispatcher stopped by SIGSTOP in turns, one huge split, killed workers. At least 11
of 12 must be named. A job whose limit others' load may have become is tried again once.
"""
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from unknown_store import Server  # noqa: E402

HEADRACE = os.path.abspath(sys.argv[1])
SEED = int(os.environ.get("HEADRACE_SEED", random.SystemRandom().randrange(1 << 31)))
LIMIT_S = 60  # only a hang takes as long


class Skipped(Exception):
    pass


class Job:
    """The processes of one job."""

    def __init__(self, folder, work="20ms", workers=3, ranks=2, steps=("2ms",), mode="lockstep", epochs=1000, table=None, settings=(),
                 enter=None, seconds=12):
        self.folder = pathlib.Path(folder)
        self.seconds, self.enter, self.ranks = seconds, enter, ranks
        self.sockets = tempfile.mkdtemp(prefix="hrf-", dir="/tmp")
        self.env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        self.log = open(self.folder / "job.txt", "w")
        text = pathlib.Path("t/pipeline.toml").read_text()
        operator = f'{{ spin = "{work[5:]}", name = "work" }}' if work.startswith("spin ") else f'{{ sleep = "{work}", name = "work" }}'
        text = text.replace('operators = ["transform"]', f'operators = ["transform", {operator}]')
        where = os.path.abspath("t") if table is None else table
        text = text.replace('table = "."', f'table = "{where}"')
        (self.folder / "p.toml").write_text(text)
        chosen = [f"source.epochs={epochs}", "pipeline.batch_rows=100", *settings]
        self.dispatcher = self.start("service", "dispatcher", "p.toml", "--job", self.sockets, "--ranks", str(ranks), "--mode", mode,
                                     "--fleet", "f.db", *[word for one in chosen for word in ("--set", one)])
        self.workers = [self.start_worker() for _ in range(workers)]
        steps = list(steps) * ranks if len(steps) == 1 else list(steps)
        self.members = [self.start("consume", "service:" + self.sockets, "--rank", f"{rank}/{ranks}", "--step-time", steps[rank])
                        for rank in range(ranks)]

    def start(self, *words, enter=None):
        return subprocess.Popen([HEADRACE, *words], cwd=self.folder, stdout=self.log, stderr=self.log, env=self.env, preexec_fn=enter)

    def start_worker(self):
        return self.start("service", "worker", self.sockets, enter=self.enter)

    def run(self, hurt=None):
        """Until it is over or its time is; `hurt` is called every 50 ms."""
        begin = time.monotonic()
        while any(one.poll() is None for one in self.members):
            passed = time.monotonic() - begin
            if self.seconds and passed > self.seconds:
                break
            if passed > LIMIT_S:
                raise RuntimeError("the job hangs: " + (self.folder / "job.txt").read_text()[-2000:])
            if hurt:
                hurt(self, passed)
            time.sleep(0.05)
        for one in [self.dispatcher, *self.workers]:
            if one.poll() is None:
                one.send_signal(signal.SIGCONT)
        if self.dispatcher.poll() is None:
            subprocess.run([HEADRACE, "service", "end", self.sockets], env=self.env, capture_output=True, timeout=30)
        for one in [self.dispatcher, *self.members, *self.workers]:
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        self.log.close()
        shutil.rmtree(self.sockets, ignore_errors=True)
        found = subprocess.run([HEADRACE, "report", "--fleet", "f.db", "--json"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        if not found.stdout:
            raise RuntimeError(found.stderr + (self.folder / "job.txt").read_text()[-2000:])
        return json.loads(found.stdout)


def stop_in_turns(who, stopped_s, running_s):
    """`who` is stopped and goes on, again and again, from 2 s on."""
    state = {"stopped": False, "next": 2.0}

    def hurt(job, passed):
        process = who(job)
        if passed < state["next"] or process.poll() is not None:
            return
        state["stopped"] = not state["stopped"]
        process.send_signal(signal.SIGSTOP if state["stopped"] else signal.SIGCONT)
        state["next"] = passed + (stopped_s if state["stopped"] else running_s)
    return hurt


def kill_workers(every_s, back_s):
    """A worker dies, and its place is empty for a while: so a machine is lost."""
    draw = random.Random(SEED)
    state = {"next": 1.5, "back": []}

    def hurt(job, passed):
        for at, place in [one for one in state["back"] if passed > one[0]]:
            job.workers[place] = job.start_worker()
            state["back"].remove((at, place))
        if passed < state["next"]:
            return
        alive = [place for place, one in enumerate(job.workers) if one.poll() is None]
        if alive:
            place = draw.choice(alive)
            job.workers[place].kill()
            job.workers[place].wait()
            state["back"].append((passed + back_s, place))
        state["next"] = passed + every_s
    return hurt


class Quota:
    """A control group that gets this share of a core."""

    def __init__(self, share):
        self.group = None
        name = f"headrace-fleet-{os.getpid()}"
        for parent, files in (("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": int(100000 * share)}),
                              ("/sys/fs/cgroup", {"cpu.max": f"{int(100000 * share)} 100000"})):
            group = pathlib.Path(parent, name)
            try:
                group.mkdir()
            except OSError:
                continue
            try:
                for file, value in files.items():
                    (group / file).write_text(str(value))
                self.group = group
                return
            except OSError:
                group.rmdir()
        raise Skipped("no control group with a CPU quota can be made here")

    def enter(self):
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        for _ in range(50):
            try:
                return self.group.rmdir()
            except OSError:
                time.sleep(0.1)


def late_store(folder):
    return Job(folder, work="1ms", table=Server(pathlib.Path("t"), 0.12, 0).url("part-00000.dwrf")).run()


def full_store(folder):
    return Job(folder, work="1ms", table=Server(pathlib.Path("t"), 0, 2.5e6).url("part-00000.dwrf")).run()


def too_few_workers(folder):
    return Job(folder, work="40ms", workers=1).run()


def cpu_quota(folder):
    quota = Quota(0.3)
    try:
        return Job(folder, work="spin 20ms", workers=2, enter=quota.enter).run()
    finally:
        quota.close()


def busy_cores(folder):
    return Job(folder, work="spin 40ms", workers=4).run()


def slow_rank(folder):
    return Job(folder, work="10ms", ranks=3, steps=("2ms", "150ms", "2ms")).run()


def slow_rank_independent(folder):
    return Job(folder, work="10ms", ranks=3, steps=("2ms", "2ms", "500ms"), mode="independent").run()


def trainers(folder):
    return Job(folder, work="10ms", steps=("100ms",)).run()


def stopped_worker(folder):
    return Job(folder, workers=3).run(stop_in_turns(lambda job: job.workers[1], 1.5, 0.4))


def stopped_dispatcher(folder):
    return Job(folder, workers=2, work="20ms").run(stop_in_turns(lambda job: job.dispatcher, 1.2, 0.15))


def skewed_splits(folder):
    return Job(folder, workers=4, work="300ms", epochs=1, table=os.path.abspath("skewed"), seconds=0).run()


def killed_workers(folder):
    return Job(folder, workers=3, work="40ms").run(kill_workers(1.0, 2.0))


JOBS = {  # name: (how it is made, the limits that name it, the member to blame)
    "late store": (late_store, {"storage"}, None),
    "full store": (full_store, {"storage"}, None),
    "too few workers": (too_few_workers, {"workers"}, None),
    "CPU quota": (cpu_quota, {"quota"}, None),
    "busy cores": (busy_cores, {"machine"}, None),
    "slow rank": (slow_rank, {"slow_rank"}, "rank 1"),
    "slow rank, independent": (slow_rank_independent, {"slow_rank"}, "rank 2"),
    "trainers": (trainers, {"trainers"}, None),
    "stopped worker": (stopped_worker, {"straggler"}, "worker"),
    "stopped dispatcher": (stopped_dispatcher, {"dispatcher"}, None),
    "skewed splits": (skewed_splits, {"splits"}, None),
    "killed workers": (killed_workers, {"failures"}, None),
}


def make_tables():
    def generate(folder, rows, stripe, seed):
        subprocess.run([HEADRACE, "generate", "rm1", "-o", folder, "--rows", str(rows), "--features", "0.02", "--seed", str(seed),
                        "--stripe-rows", str(stripe)], check=True, capture_output=True, timeout=120)
    generate("t", 6000, 100, 1)
    generate("small", 600, 100, 1)
    generate("large", 2000, 2000, 1)
    os.mkdir("skewed")
    shutil.copy("small/part-00000.dwrf", "skewed/part-00000.dwrf")
    shutil.copy("large/part-00000.dwrf", "skewed/part-00001.dwrf")


def judge(name, folder):
    """Whether the plant was named, and a line about what was."""
    make, limits, member = JOBS[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    verdict = make(folder)["verdict"]
    if not verdict["decided"]:
        return False, verdict["reason"]
    blamed = verdict["member"] or ""
    shares = ", ".join(f"{one['limit']} {one['share_ratio']:.2f}" for one in verdict["shares"])
    text = (f"{verdict['limit']}{' ' + blamed if blamed else ''} (probability {verdict['probability']:.2f}, worst wait "
            f"{verdict['worst_stall_ratio']:.2f}; {shares})")
    return verdict["limit"] in limits and (member is None or blamed.startswith(member)), text


def attempt(name, folder):
    """Whether the plant was named, which is said; None for a job that cannot run here."""
    try:
        holds, text = judge(name, folder)
    except Skipped as why:
        print(f"skip {name}: {why}", flush=True)
        return None
    print(f"{'ok  ' if holds else 'MISS'} {name}: {text}", flush=True)
    return holds


def main():
    beside = "--beside" in sys.argv
    names = [word for word in sys.argv[2:] if word != "--beside"] or list(JOBS)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="headrace-fleet-"))
    os.chdir(folder)
    make_tables()
    print(f"seed {SEED}")
    folders = [folder / f"job{number}" for number in range(len(names))]
    with concurrent.futures.ThreadPoolExecutor(2 if beside else 1) as pool:
        first = list(pool.map(attempt, names, folders))
    skipped = [name for name, holds in zip(names, first) if holds is None]
    at_once = first.count(True)
    named = at_once + sum(attempt(name, at) is True for name, at, holds in zip(names, folders, first) if holds is False)
    tried = len(names) - len(skipped)
    print(f"{named} of {tried} named, {at_once} of them at the first try")
    if named < tried - 1:
        print(f"kept: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)
    if skipped and len(names) == len(JOBS) and tried < 11:
        sys.exit(77)


if __name__ == "__main__":
    main()
