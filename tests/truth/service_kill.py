#!/usr/bin/env python3
"""Processes of a preprocessing job killed at random moments: each row comes exactly once per epoch.

usage: service_kill.py HEADRACE [KILLS] [folder|tcp|tls]      (default 20, and any of the three for each job)

A dispatcher, workers and ranks run as processes; a launcher starts again what ended, and all ranks from their checkpoints when
one of them failed. Killed are workers, the dispatcher and ranks; workers are also stopped for longer than the dispatcher's
patience (SIGSTOP) and go on. Where `ss -K` can do it, TCP connections are cut under processes that live. The row logs of the ranks together, "EPOCH ROW HASH" a line, are compared with those of a run that
was left alone. Ranks 1 to 3, two epochs, both modes and orders, sockets and shared memory, TCP and TLS on this machine, sampling. HEADRACE_SEED sets the moments.
"""
import collections
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HEADRACE = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
NETWORKS = sys.argv[3:] or ["folder", "tcp", "tls"]
SEED = int(os.environ.get("HEADRACE_SEED", random.SystemRandom().randrange(1 << 31)))
ROWS = 4000
LIMIT_S = 240  # only a hang takes as long


def make_pipeline(sampled):
    with open("t/pipeline.toml") as file:
        text = file.read()
    if sampled:
        text += '\n[[transform]]\nop = "sampling"\nrate = 0.5\n'
    name = f"t/{'sampled' if sampled else 'whole'}.toml"
    with open(name, "w") as file:
        file.write(text)
    return name


class Job:
    """The processes of one job, and who is started again."""

    def __init__(self, random_, pipeline):
        self.random = random_
        self.ranks = random_.randrange(1, 4)
        self.mode = random_.choice(["lockstep", "independent"])
        self.network = random_.choice(NETWORKS)
        self.shared = self.network == "folder" and random_.random() < 0.5
        self.step = random_.choice(["5ms", "20ms", "60ms"])
        self.settings = {"pipeline.batch_rows": random_.choice([20, 64, 100]), "source.epochs": 2,
                         "decode.parallelism": random_.randrange(1, 3), "batch.parallelism": random_.randrange(1, 3)}
        self.settings["pipeline.order"] = random_.choice(["any", "file"]) if self.mode == "lockstep" else "any"
        if self.settings["pipeline.order"] == "file":
            self.settings["batch.parallelism"] = 1
        self.pipeline = pipeline
        self.folder = os.path.abspath("job")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder, 0o700)
        for rank in range(3):
            for leftover in (f"{rank}.ckpt", f"{rank}.log"):
                if os.path.exists(leftover):
                    os.remove(leftover)
        self.log = open("job.txt", "a")
        self.place = self.folder if self.network == "folder" else f"@{self.folder}/address"
        self.dispatcher = self.start_dispatcher()
        self.workers = [self.start_worker() for _ in range(random_.randrange(1, 4))]
        self.members = [self.start_rank(rank) for rank in range(self.ranks)]
        self.stopped = {}  # worker process -> when it goes on
        self.generations = 1

    def __str__(self):
        return f"{self.ranks} ranks, {self.mode}, {'shm' if self.shared else self.network}, step {self.step}, {self.settings}, {self.pipeline}"

    def start(self, *words):
        return subprocess.Popen([HEADRACE, *words], stdout=self.log, stderr=self.log)

    def start_dispatcher(self):
        chosen = [part for key, value in self.settings.items() for part in ("--set", f"{key}={value}")]
        return self.start("service", "dispatcher", self.pipeline, "--job", self.folder, "--ranks", str(self.ranks),
                          "--mode", self.mode, *chosen,
                          *([] if self.network == "folder" else ["--listen", f"{self.network}:127.0.0.1:0"]))

    def start_worker(self):
        return self.start("service", "worker", self.place)

    def start_rank(self, rank):
        return self.start("consume", "service:" + self.place, "--rank", f"{rank}/{self.ranks}", "--row-log", f"{rank}.log",
                          "--checkpoint", f"{rank}.ckpt", "--checkpoint-every", str(self.random.choice([1, 2, 5])), "--resume",
                          "--step-time", self.step, *(["--shared-memory"] if self.shared else []))

    def is_over(self):
        return all(member.poll() == 0 for member in self.members)

    def tend(self):
        """What the launcher does all the time."""
        for worker, until in list(self.stopped.items()):
            if time.monotonic() > until:
                if worker.poll() is None:
                    worker.send_signal(signal.SIGCONT)
                del self.stopped[worker]
        if self.dispatcher.poll() is not None and not self.is_over():
            self.dispatcher = self.start_dispatcher()
        for place, worker in enumerate(self.workers):
            if worker.poll() is not None:
                self.workers[place] = self.start_worker()
        if any(member.poll() not in (None, 0) for member in self.members):
            self.generations += 1
            for member in self.members:
                member.kill()
                member.wait()
            order = list(range(self.ranks))
            self.random.shuffle(order)
            for rank in order:
                self.members[rank] = self.start_rank(rank)

    def hurt(self):
        ways = ["worker", "worker", "worker", "dispatcher", "dispatcher", "rank", "stop"]
        if self.network != "folder" and CUTS:
            ways += ["cut", "cut"]
        what = self.random.choice(ways)
        if what == "worker":
            self.random.choice(self.workers).kill()
        elif what == "dispatcher":
            self.dispatcher.kill()
            self.dispatcher.wait()
        elif what == "rank":
            self.random.choice(self.members).kill()
        elif what == "cut":
            cut(self.random.choice([self.dispatcher, *self.workers, *self.members]).pid, self.random)
        else:
            worker = self.random.choice(self.workers)
            if worker.poll() is None and worker not in self.stopped:
                worker.send_signal(signal.SIGSTOP)
                self.stopped[worker] = time.monotonic() + self.random.uniform(0.5, 7)
        return what

    def end(self):
        for process in [self.dispatcher, *self.workers, *self.members]:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.log.close()


def connections_of(pid):
    """Local ports of a process's TCP connections."""
    said = subprocess.run(["ss", "-tnpH", "state", "established"], capture_output=True, text=True).stdout
    return [line.split()[2].rsplit(":", 1)[1] for line in said.splitlines() if f"pid={pid}," in line]


def cut(pid, random_):
    ports = connections_of(pid)
    if ports:
        subprocess.run(["ss", "-K", "sport", "=", random_.choice(ports)], capture_output=True)


def can_cut():
    """Whether this kernel, and this user, can end somebody else's connection."""
    if shutil.which("ss") is None:
        return False
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        subprocess.run(["ss", "-K", "sport", "=", str(one.getsockname()[1])], capture_output=True)
        one.settimeout(0.2)
        try:
            one.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True
        return False


def rows_of_rank(rank):
    if not os.path.exists(f"{rank}.log"):
        return []
    with open(f"{rank}.log") as file:
        return file.read().splitlines()


def rows_of(ranks):
    return [line for rank in range(ranks) for line in rows_of_rank(rank)]


def play(random_, pipeline, want_in_order, kills, counts):
    """One job, hurt until it ends or enough was killed. Returns the kills."""
    want = sorted(want_in_order)
    job = Job(random_, pipeline)
    begin = time.monotonic()
    hurt_at = begin + random_.uniform(0.0, 0.6)
    done = 0
    try:
        while not job.is_over():
            assert time.monotonic() - begin < LIMIT_S, f"{job}: hangs; job.txt says\n{open('job.txt').read()[-3000:]}"
            if done < kills and time.monotonic() > hurt_at:
                counts[job.hurt()] += 1
                done += 1
                hurt_at = time.monotonic() + random_.uniform(0.02, 0.8)
            job.tend()
            time.sleep(0.01)
    finally:
        job.end()
    got = rows_of(job.ranks)
    twice = [line for line, count in collections.Counter(got).items() if count > 1]
    assert not twice, f"{job}: {len(twice)} rows twice: {twice[:3]}"
    assert sorted(got) == want, f"{job}: {len(got)} rows, expected {len(want)}; missing {sorted(set(want) - set(got))[:3]}"
    if job.settings["pipeline.order"] == "file":
        place = {line: number for number, line in enumerate(want_in_order)}
        for rank in range(job.ranks):
            places = [place[line] for line in rows_of_rank(rank)]
            assert places == sorted(places), f"{job}: rank {rank} has rows out of the table's order"
    print(f"  {done} kills, {job.generations} generations: {job}: {len(got)} rows once", flush=True)
    return done


def main():
    global CUTS
    CUTS = can_cut()
    print(f"HEADRACE_SEED={SEED}{'' if CUTS else '; no connection is cut: ss -K does nothing here'}", flush=True)
    random_ = random.Random(SEED)
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        subprocess.run([HEADRACE, "generate", "rm3", "-o", "t", "--rows", str(ROWS), "--features", "0.02", "--stripe-rows", "256",
                        "--partitions", "2"], check=True, capture_output=True)
        wanted = {}
        for sampled in (False, True):
            name = make_pipeline(sampled)
            subprocess.run([HEADRACE, "run", name, "--no-record", "-q", "--epochs", "2", "--set", "pipeline.order=file", "--row-log", "whole.log"], check=True,
                           capture_output=True, timeout=LIMIT_S)
            with open("whole.log") as file:
                wanted[name] = file.read().splitlines()
        kills = rows = jobs = 0
        while kills < KILLS:
            name = random_.choice(list(wanted))
            kills += play(random_, name, wanted[name], min(KILLS - kills, random_.randrange(3, 12)), counts)
            rows += len(wanted[name])
            jobs += 1
    print(f"{kills} kills ({', '.join(f'{what} {count}' for what, count in sorted(counts.items()))}), {jobs} jobs: {rows} rows, each "
          "exactly once per epoch")


main()
