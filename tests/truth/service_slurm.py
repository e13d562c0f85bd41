#!/usr/bin/env python3
"""A preprocessing job on two machines of a Slurm cluster: each row comes exactly once while Slurm ends what it likes.

usage: service_slurm.py HEADRACE       exit code 77: Slurm, or network namespaces, cannot be had here

One controller and two nodes, each in a network and host-name namespace of its own, all on this machine and gone afterwards. The
dispatcher is packaging/slurm/dispatcher.sbatch, the workers are an array, workers.sbatch. While two ranks read, the throttle is
raised, workers are cancelled (they drain), the dispatcher is requeued, and twice a node is lost (its network is cut and what ran
there killed): one with workers, and later the dispatcher's, where another one stands by. The row logs of the ranks are compared
with those of a run that was left alone.

Of a node that is lost three times are printed: when Slurm's controller says in its log that it is down; for how long a rank got no
rows at most, from the loss on; and when both ranks had rows after that notice, which may take MOST_AFTER_NOTICE_S.
"""
import collections
import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HEADRACE = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODES = {"hr1": "10.213.7.11", "hr2": "10.213.7.12"}
HEAD = "10.213.7.1"
BRIDGE = "hrslurm0"
LIMIT_S = 240  # only a hang takes as long
MOST_AFTER_NOTICE_S = 5


def skip(why):
    print(f"skipped: {why}", flush=True)
    sys.exit(77)


def call(*words, check=True, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Cluster:
    """A controller and two nodes of Slurm."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        self.nodes = {}
        self.env = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf"}

    def start(self, *words, **more):
        log = open(f"{self.folder}/{os.path.basename(words[-1] if len(words) == 1 else words[0])}.log", "a")
        process = subprocess.Popen(words, stdout=log, stderr=log, env=self.env, start_new_session=True, **more)
        self.processes.append(process)
        return process

    def network(self):
        call("ip", "link", "add", BRIDGE, "type", "bridge")
        call("ip", "addr", "add", f"{HEAD}/24", "dev", BRIDGE)
        call("ip", "link", "set", BRIDGE, "up")
        for name, address in NODES.items():
            call("ip", "netns", "add", f"hrslurm-{name}")
            call("ip", "link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", f"hrslurm-{name}")
            call("ip", "link", "set", f"v{name}", "master", BRIDGE, "up")
            call("ip", "-n", f"hrslurm-{name}", "addr", "add", f"{address}/24", "dev", "eth0")
            call("ip", "-n", f"hrslurm-{name}", "link", "set", "eth0", "up")
            call("ip", "-n", f"hrslurm-{name}", "link", "set", "lo", "up")

    def configure(self):
        socket = f"{self.folder}/munge.socket"
        call("dd", "if=/dev/urandom", f"of={self.folder}/munge.key", "bs=1024", "count=1")
        os.chmod(f"{self.folder}/munge.key", 0o600)
        self.start("munged", "--foreground", "--force", f"--socket={socket}", f"--key-file={self.folder}/munge.key",
                   f"--pid-file={self.folder}/munged.pid", f"--seed-file={self.folder}/munged.seed", f"--log-file={self.folder}/munged.txt")
        host = os.uname().nodename
        with open(f"{self.folder}/slurm.conf", "w") as file:
            file.write("\n".join([
                "ClusterName=headrace", f"SlurmctldHost={host}({HEAD})", "AuthType=auth/munge", f"AuthInfo=socket={socket},cred_expire=10",
                "CredType=cred/munge", "SlurmUser=root", "SlurmdUser=root", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
                "MpiDefault=none", "SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU", "ReturnToService=2", "SlurmdTimeout=10",
                "KillWait=10", "MinJobAge=60", f"StateSaveLocation={self.folder}/state", f"SlurmdSpoolDir={self.folder}/spool.%n",
                f"SlurmctldPidFile={self.folder}/slurmctld.pid", f"SlurmdPidFile={self.folder}/slurmd.%n.pid",
                f"SlurmctldLogFile={self.folder}/slurmctld.txt", f"SlurmdLogFile={self.folder}/slurmd.%n.txt",
                "JobAcctGatherType=jobacct_gather/none", "AccountingStorageType=accounting_storage/none",
                *(f"NodeName={name} NodeAddr={address} CPUs=16 RealMemory=1000 State=UNKNOWN" for name, address in NODES.items()),
                "SlurmdParameters=config_overrides", "PartitionName=all Nodes=ALL LLN=YES Default=YES MaxTime=INFINITE State=UP", ""]))
        with open(f"{self.folder}/cgroup.conf", "w") as file:
            file.write(f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={self.folder}/cgroup\nCgroupAutomount=no\nConstrainCores=no\n")
        os.makedirs(f"{self.folder}/cgroup", exist_ok=True)

    def begin(self):
        self.network()
        self.configure()
        self.start("slurmctld", "-D", "-i")
        for name in NODES:
            self.start_node(name)
        begin = time.monotonic()
        while call("sinfo", "-h", "-t", "idle", "-o", "%D", env=self.env, check=False).strip() != str(len(NODES)):
            if time.monotonic() - begin > 60:
                skip("the nodes of the cluster do not come up: " + tail(f"{self.folder}/slurmd.hr1.txt") + tail(f"{self.folder}/slurmd.log")
                     + tail(f"{self.folder}/slurmctld.txt"))
            time.sleep(0.2)

    def start_node(self, name):
        self.nodes[name] = self.start("ip", "netns", "exec", f"hrslurm-{name}", "unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
                                      "sh", "-c", f"hostname {name} && exec slurmd -D")

    def lose(self, name):
        """The machine is gone: no packet comes from it, and what ran there is dead. Returns when."""
        call("ip", "link", "set", f"v{name}", "down")
        os.killpg(self.nodes[name].pid, signal.SIGKILL)
        return time.time()

    def bring_back(self, name):
        call("ip", "link", "set", f"v{name}", "up")
        self.start_node(name)

    def notice(self, name, after):
        """When the controller said of this node, after that time, that it is down; None: not yet."""
        with open(f"{self.folder}/slurmctld.txt") as file:
            for line in file:
                found = re.match(r"\[(\S+?)\] .*odes? (\S+) not responding, setting DOWN", line)
                if found and name in found[2].split(","):
                    when = datetime.datetime.fromisoformat(found[1]).timestamp()
                    if when > after:
                        return when
        return None

    def runs(self, job):
        return call("squeue", "-h", "-j", job, "-t", "RUNNING", "-o", "%i", env=self.env, check=False).strip() == job

    def state_of(self, name):
        return call("sinfo", "-h", "-n", name, "-o", "%t", env=self.env, check=False).strip()

    def end(self):
        for process in reversed(self.processes):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        for name in NODES:
            call("ip", "netns", "del", f"hrslurm-{name}", check=False)
            call("ip", "link", "del", f"v{name}", check=False)
        call("ip", "link", "del", BRIDGE, check=False)

    def sbatch(self, *words, **variables):
        # In sbatch's own environment: with --export=ALL,NAME=VALUE slurmd asks a login shell for more, which runs the user's profile.
        return call("sbatch", "--parsable", *words, env={**self.env, **variables}).strip()

    def tasks(self, job):
        """Array tasks that run: {id: node}."""
        said = call("squeue", "-h", "-r", "-j", job, "-t", "RUNNING", "-o", "%i %N", env=self.env, check=False)
        return dict(line.split() for line in said.splitlines())


def tail(path):
    try:
        with open(path) as file:
            return f" [{path}: {file.read()[-600:]}]"
    except OSError:
        return ""


def wait_for(what, holds, limit_s=LIMIT_S):
    begin = time.monotonic()
    while not holds():
        assert time.monotonic() - begin < limit_s, f"waited {limit_s} s for {what}"
        time.sleep(0.05)
    return time.monotonic() - begin


class Arrivals:
    """When rows came to each rank: [(time, bytes of its row log)]. A rank writes that with each checkpoint: every second step."""

    def __init__(self, logs):
        self.seen = {log: [(time.time(), 0)] for log in logs}
        self.stops = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.stops.wait(0.01):
            for log, seen in self.seen.items():
                size = os.path.getsize(log) if os.path.exists(log) else 0
                if size > seen[-1][1]:
                    seen.append((time.time(), size))

    def after(self, when):
        """When all ranks had rows that came after that time; None: not yet."""
        first = [next((at for at, _ in seen if at > when), None) for seen in self.seen.values()]
        return None if None in first else max(first)

    def longest_pause(self, begin, end):
        longest = 0
        for seen in self.seen.values():
            times = [begin] + [at for at, _ in list(seen) if begin < at < end] + [end]
            longest = max(longest, max(b - a for a, b in zip(times, times[1:])))
        return longest

    def end(self):
        self.stops.set()
        self.thread.join()


def rows_of(names):
    rows = []
    for name in names:
        if os.path.exists(name):
            with open(name) as file:
                rows += file.read().splitlines()
    return rows


def await_notice(cluster, name, lost):
    wait_for(f"Slurm to notice that {name} is lost", lambda: cluster.notice(name, lost) is not None)
    return cluster.notice(name, lost)


def lose_workers(cluster, arrivals, name, workers):
    lost_tasks = sum(1 for node in cluster.tasks(workers).values() if node == name)
    assert lost_tasks > 0, f"no worker runs on {name}"
    lost = cluster.lose(name)
    notice = await_notice(cluster, name, lost)
    wait_for("rows after the notice", lambda: arrivals.after(notice) is not None)
    goes_on = arrivals.after(notice) - notice
    wait_for("workers in the place of the lost ones",
             lambda: sum(1 for node in cluster.tasks(workers).values() if node != name) >= 6)
    replaced = time.time() - notice
    pause = arrivals.longest_pause(lost, time.time())
    print(f"  node {name} with {lost_tasks} workers lost: Slurm's notice after {notice - lost:.1f} s, rows for both ranks {goes_on:.2f} s after it;"
          f" the longest pause of a rank from the loss on {pause:.2f} s; 6 workers again {replaced:.1f} s after the notice", flush=True)
    assert goes_on <= MOST_AFTER_NOTICE_S, f"{goes_on:.1f} s from Slurm's notice to the next rows"
    cluster.bring_back(name)
    wait_for(f"{name} to come back", lambda: cluster.state_of(name) in ("idle", "mix", "alloc"))


def leader(address):
    """The node of the dispatcher whose address this is."""
    with open(address) as file:
        host = file.read().split(":")[1]
    return next(name for name, at in NODES.items() if at == host)


def lose_dispatcher(cluster, arrivals, name, address, workers):
    tasks = list(cluster.tasks(workers).values())
    lost = cluster.lose(name)
    wait_for("the dispatcher that stands by", lambda: leader(address) != name)
    begun = os.path.getmtime(address)
    notice = await_notice(cluster, name, lost)
    wait_for("rows after the notice", lambda: arrivals.after(max(notice, begun)) is not None)
    goes_on = arrivals.after(notice) - notice
    pause = arrivals.longest_pause(lost, time.time())
    print(f"  the dispatcher's node {name} with {tasks.count(name)} of {len(tasks)} workers lost: the other begins after {begun - lost:.1f} s; Slurm's notice after {notice - lost:.1f} s, rows for both"
          f" ranks {goes_on:.2f} s after it; the longest pause of a rank from the loss on {pause:.1f} s", flush=True)
    assert goes_on <= MOST_AFTER_NOTICE_S, f"{goes_on:.1f} s from Slurm's notice to the next rows"


def play(cluster, rows):
    scripts = f"{ROOT}/packaging/slurm"
    job = os.path.abspath("job")
    HEADRACE = os.path.abspath("headrace")
    first, second = NODES
    begin_dispatcher = lambda node, *more: cluster.sbatch(f"--nodelist={node}", f"--output=dispatcher.{node}.txt", f"{scripts}/dispatcher.sbatch",
                                                          os.path.abspath("t/pipeline.toml"), job, "2", *more, "--no-fleet", "--set",
                                                          "source.epochs=12", "--set", "pipeline.batch_rows=20", HEADRACE=HEADRACE)
    dispatchers = {first: begin_dispatcher(first)}
    wait_for("the dispatcher's address", lambda: os.path.exists(f"{job}/address"))
    dispatchers[second] = begin_dispatcher(second, "standby")
    workers = cluster.sbatch("--array=0-63%2", "--cpus-per-task=1", "--output=workers.txt", f"{scripts}/workers.sbatch", job, HEADRACE=HEADRACE,
                             HEADRACE_DRAIN_TIME="8s")
    print(f"  first workers after {wait_for('workers', lambda: len(cluster.tasks(workers)) == 2):.1f} s", flush=True)
    arrivals = Arrivals(["0.log", "1.log"])
    log = open("ranks.txt", "w")
    ranks = [subprocess.Popen([HEADRACE, "consume", f"service:@{job}/address", "--rank", f"{rank}/2", "--row-log", f"{rank}.log", "--step-time",
                               "150ms", "--checkpoint", f"{rank}.ckpt", "--checkpoint-every", "2"], stdout=log, stderr=log) for rank in range(2)]
    try:
        have = lambda: len(rows_of(["0.log", "1.log"]))
        wait_for("rows", lambda: have() > rows * 0.1)
        call("scontrol", "update", f"JobId={workers}", "ArrayTaskThrottle=6", env=cluster.env)
        print(f"  throttle 2 to 6: after {wait_for('more workers', lambda: len(cluster.tasks(workers)) >= 6):.1f} s", flush=True)
        task = sorted(cluster.tasks(workers))[0]
        call("scancel", task, env=cluster.env)
        wait_for("a worker to drain", lambda: task not in cluster.tasks(workers))
        print("  a worker drained", flush=True)
        wait_for("the dispatcher that stands by", lambda: cluster.runs(dispatchers[second]))
        requeued = time.monotonic()
        call("scontrol", "requeue", dispatchers[first], env=cluster.env)
        wait_for("the other dispatcher", lambda: leader(f"{job}/address") == second)
        print(f"  dispatcher requeued: the one that stands by begins after {time.monotonic() - requeued:.1f} s", flush=True)
        wait_for("the requeued dispatcher, which stands by now", lambda: cluster.runs(dispatchers[first]))
        print(f"  it stands by in turn after {time.monotonic() - requeued:.1f} s", flush=True)
        wait_for("workers on both nodes", lambda: set(cluster.tasks(workers).values()) == set(NODES))
        lose_workers(cluster, arrivals, first, workers)
        wait_for("the dispatcher that stood by there", lambda: cluster.runs(dispatchers[first]))
        # Complains of tasks that have finished, and does it for the others.
        call("scontrol", "update", f"JobId={workers}", "ArrayTaskThrottle=10", check=False, env=cluster.env)
        wait_for("workers on both nodes again", lambda: set(cluster.tasks(workers).values()) == set(NODES))
        lose_dispatcher(cluster, arrivals, second, f"{job}/address", workers)
        wait_for("the ranks", lambda: all(rank.poll() is not None for rank in ranks))
        assert [rank.returncode for rank in ranks] == [0, 0], f"ranks ended with {[rank.returncode for rank in ranks]}" + tail("ranks.txt")
    except AssertionError as error:
        raise AssertionError(f"{error}{tail('ranks.txt')}{tail('dispatcher.hr1.txt')}{tail('dispatcher.hr2.txt')}{tail('workers.txt')}{tail('slurmctld.txt')}") from error
    finally:
        arrivals.end()
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
            rank.wait()


def main():
    for program in ("slurmctld", "slurmd", "munged", "ip", "unshare", "sbatch"):
        if shutil.which(program) is None:
            skip(f"{program} is not here (Debian: slurm-wlm, munge, iproute2)")
    if os.geteuid() != 0:
        skip("only root makes network namespaces")
    probe = subprocess.run(["ip", "link", "add", BRIDGE, "type", "bridge"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"no bridge can be made here: {probe.stderr.strip()}")
    call("ip", "link", "del", BRIDGE)
    with tempfile.TemporaryDirectory(prefix="slurm") as scratch:
        os.chdir(scratch)
        shutil.copy(HEADRACE, "headrace")  # it may be built anew meanwhile
        subprocess.run([HEADRACE, "generate", "rm3", "-o", "t", "--rows", "4000", "--features", "0.02", "--stripe-rows", "128", "--partitions", "2"],
                       check=True, capture_output=True)
        subprocess.run([HEADRACE, "run", "t/pipeline.toml", "--no-record", "-q", "--epochs", "12", "--row-log", "whole.log"], check=True,
                       capture_output=True)
        want = sorted(rows_of(["whole.log"]))
        cluster = Cluster(scratch)
        try:
            cluster.begin()
            play(cluster, len(want))
        finally:
            cluster.end()
        got = rows_of(["0.log", "1.log"])
        twice = [line for line, count in collections.Counter(got).items() if count > 1]
        assert not twice, f"{len(twice)} rows twice: {twice[:3]}"
        assert sorted(got) == want, f"{len(got)} rows, expected {len(want)}"
        print(f"{len(got)} rows, each exactly once per epoch")


main()
