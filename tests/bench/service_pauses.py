#!/usr/bin/env python3
"""How long a rank waits when parts of a preprocessing job go: drained workers, killed ones, stopped ones, the dispatcher.

usage: service_pauses.py HEADRACE [WHAT=TIMES ...]      (default: drain=200 kill=20 stop=10 dispatcher=20)

A job without end on this machine: a dispatcher, 4 workers that can do several times what is asked for, two ranks in lockstep with
a step of 20 ms. One thing happens at a time, and a second passes before the next. A rank writes its checkpoint after each step
(into memory), which is looked at every millisecond: the time between two, less the step, is what it waited. Waits are counted from
0.1 s before each event to a second after it, beside as many seconds in which nothing happened; the longest of each is one figure.
Ranks keep --queue 2 batches, or with QUEUE=100 two seconds of them. STEP_MS sets the step, SPLIT_ROWS the size of splits (256).
Of drained workers it says how long they took to go.

At the end `service status` says how many leases were given again: none, if all that went were drained.
"""
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HEADRACE = os.path.abspath(sys.argv[1])
WANTED = dict(word.split("=") for word in sys.argv[2:] or ["drain=200", "kill=20", "stop=10", "dispatcher=20"])
STEP_S = float(os.environ.get("STEP_MS", "20")) / 1000
QUEUE = os.environ.get("QUEUE", "2")
SPLIT_ROWS = int(os.environ.get("SPLIT_ROWS", "256"))
RANKS, WORKERS = 2, 4
APART_S = 1.0
SEED = int(os.environ.get("HEADRACE_SEED", random.SystemRandom().randrange(1 << 31)))


class Steps(threading.Thread):
    """When each step of a rank was over."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.times, self.lock = path, [], threading.Lock()
        self.start()

    def run(self):
        last = None
        while True:
            try:
                found = os.stat(self.path)
                now = (found.st_ino, found.st_mtime_ns)
            except FileNotFoundError:
                now = None
            if now is not None and now != last:
                with self.lock:
                    self.times.append(time.monotonic())
                last = now
            time.sleep(0.001)

    def longest_wait(self, begin, end):
        """Of the steps that were over in this time."""
        with self.lock:
            times = [one for one in self.times if one >= begin - 5]
        waits = [b - a - STEP_S for a, b in zip(times, times[1:]) if b >= begin and a <= end]
        return max(waits) if waits else end - begin

    def count(self):
        with self.lock:
            return len(self.times)


class Job:
    def __init__(self):
        self.folder = os.path.abspath("job")
        os.mkdir(self.folder, 0o700)
        self.settings = ["--set", "source.epochs=0", "--set", "pipeline.batch_rows=64"]
        self.dispatcher = self.start_dispatcher()
        self.workers = [self.start_worker() for _ in range(WORKERS)]
        self.ranks = [self.start("consume", "service:" + self.folder, "--rank", f"{rank}/{RANKS}", "--checkpoint", f"{rank}.ckpt",
                                 "--checkpoint-every", "1", "--step-time", f"{round(1000 * STEP_S)}ms", "--queue", QUEUE)
                      for rank in range(RANKS)]
        self.steps = [Steps(f"{rank}.ckpt") for rank in range(RANKS)]
        self.gone_after = []

    def start(self, *words):
        return subprocess.Popen([HEADRACE, *words, "-q"], stdout=subprocess.DEVNULL)

    def start_dispatcher(self):
        return self.start("service", "dispatcher", "t/pipeline.toml", "--job", self.folder, "--ranks", str(RANKS), "--no-fleet",
                          *self.settings)

    def start_worker(self):
        return self.start("service", "worker", self.folder)

    def status(self):
        until = time.monotonic() + 30
        while True:  # there may be no dispatcher for a moment
            said = subprocess.run([HEADRACE, "service", "status", self.folder, "--json"], capture_output=True, text=True)
            if said.returncode == 0:
                return json.loads(said.stdout)
            assert time.monotonic() < until, said.stderr
            time.sleep(0.05)

    def await_serving(self):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            working = [one for one in self.status()["workers"] if not one["draining"] and one["sent_units_count"] > 0]
            if len(working) == WORKERS:
                return working
            time.sleep(0.1)
        sys.exit("the workers do not serve")

    def drain(self):
        one = random.choice(self.await_serving())
        process = next(each for each in self.workers if each.pid == one["pid"])
        begin = time.monotonic()
        subprocess.run([HEADRACE, "service", "drain", self.folder, str(one["worker"]), "-q"], check=True)
        assert process.wait(120) == 0, "a drained worker ends with 0"
        self.gone_after.append(time.monotonic() - begin)
        self.workers[self.workers.index(process)] = self.start_worker()
        return begin

    def replace(self, place):
        self.workers[place].kill()
        self.workers[place].wait()
        self.workers[place] = self.start_worker()

    def kill(self):
        self.await_serving()
        place = random.randrange(WORKERS)
        begin = time.monotonic()
        self.replace(place)
        return begin

    def stop(self):
        """As a machine that vanishes: its connections stay, and nothing comes."""
        self.await_serving()
        place = random.randrange(WORKERS)
        begin = time.monotonic()
        self.workers[place].send_signal(signal.SIGSTOP)
        time.sleep(6)
        self.replace(place)
        return begin

    def dispatcher_killed(self):
        self.await_serving()
        begin = time.monotonic()
        self.dispatcher.kill()
        self.dispatcher.wait()
        self.dispatcher = self.start_dispatcher()
        return begin

    def end(self):
        for process in [self.dispatcher, *self.workers, *self.ranks]:
            process.kill()
            process.wait()


def spread(seconds):
    ordered = sorted(1000 * one for one in seconds)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return f"median {statistics.median(ordered):.0f} ms, 99th percentile {at(0.99):.0f}, most {ordered[-1]:.0f}"


def main():
    random.seed(SEED)
    print(f"HEADRACE_SEED={SEED}, step {1000 * STEP_S:.0f} ms, --queue {QUEUE}, {RANKS} ranks, {WORKERS} workers", flush=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as scratch:
        os.chdir(scratch)
        # A unit of 1.2 MB, more than a socket's buffer: of small ones thousands lie there, and a drain waits until ranks took them.
        subprocess.run([HEADRACE, "generate", "rm1", "-o", "t", "--rows", str(max(8192, 8 * SPLIT_ROWS)), "--features", "0.2",
                        "--stripe-rows", str(SPLIT_ROWS)], check=True, capture_output=True)
        job = Job()
        try:
            for what, times in WANTED.items():
                act = {"drain": job.drain, "kill": job.kill, "stop": job.stop, "dispatcher": job.dispatcher_killed}[what]
                waits, still = [], []
                job.await_serving()
                again = job.status()["leased_again_count"]
                for _ in range(int(times)):
                    quiet_from = time.monotonic()
                    time.sleep(APART_S)
                    still += [steps.longest_wait(quiet_from, time.monotonic()) for steps in job.steps]
                    begin = act()
                    time.sleep(APART_S)
                    waits += [steps.longest_wait(begin - 0.1, time.monotonic()) for steps in job.steps]
                status = job.status()
                print(f"{what}, {times} times: the longest wait of a rank {spread(waits)}; of a second without one {spread(still)}; "
                      f"longer than a step {sum(one > STEP_S for one in waits)} of {len(waits)}, without one "
                      f"{sum(one > STEP_S for one in still)} of {len(still)}; leases given again "
                      f"{status['leased_again_count'] - (again if what != 'dispatcher' else 0)}", flush=True)
                if what == "drain":
                    print(f"  workers were gone after: {spread(job.gone_after)}", flush=True)
                assert all(rank.poll() is None for rank in job.ranks), "a rank ended"
        finally:
            job.end()
    shutil.rmtree(scratch, ignore_errors=True)


main()
