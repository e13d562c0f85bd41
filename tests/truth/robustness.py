#!/usr/bin/env python3
"""Collectors and targets that die at random moments, targets that execute other images, fork a thousand children, or exit
at once: the store stays valid, every run is marked, nothing is left in the kernel, and the target's output is what it is
without us.

usage: robustness.py HEADRACE [N]      N rounds of each kind (default 10)
HEADRACE_SEED sets the moments.
"""
import ctypes
import json
import os
import pathlib
import platform
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent

TARGET = r"""
#include "headrace/account.h"
#include <sys/wait.h>
static void nap(long ns) { struct timespec t = {0, ns}; nanosleep(&t, 0); }
static void work(long ms) {
  hr_account_open("target");
  uint32_t stage = hr_stage("work", 1, 0), op = hr_operator("spin", "spin", stage);
  hr_thread_begin(stage);
  unsigned long sum = 0;
  for (long i = 0; i < ms; i++) {
    hr_enter(op);
    for (int k = 0; k < 1000; k++) sum = sum * 31 + (unsigned long)i;
    nap(1000000);
    hr_leave();
    hr_done(op, 1, 1, 8, 8);
    hr_step(1000000, 0, 1);
    printf("%ld %lu\n", i, sum);
    fflush(stdout);
  }
}
int main(int argc, char** argv) {
  long n = argc > 2 ? atol(argv[2]) : 0;
  if (!strcmp(argv[1], "work")) work(n);
  if (!strcmp(argv[1], "exec")) {
    work(n);
    execl(argv[0], argv[0], "work", argv[2], (char*)0);
    return 99;
  }
  if (!strcmp(argv[1], "fork")) {
    int sum = 0;
    hr_account_open("forker");
    for (long i = 0; i < n; i++) {
      pid_t child = fork();
      if (child == 0) _exit((int)(i & 63));
      int status;
      waitpid(child, &status, 0);
      sum += WEXITSTATUS(status);
    }
    printf("children %ld sum %d\n", n, sum);
  }
  if (!strcmp(argv[1], "exit")) { puts("bye"); return 3; }
  return 0;
}
"""


class BpfAttr(ctypes.Structure):
    _fields_ = [("start_id", ctypes.c_uint32), ("next_id", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("pad", ctypes.c_uint8 * 120)]


def programs():
    """Ids of all BPF programs in the kernel; None where that may not be asked."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    ids, attr = set(), BpfAttr()
    while True:
        if libc.syscall(number, 11, ctypes.byref(attr), 128) != 0:
            return ids if ctypes.get_errno() == 2 else None
        ids.add(attr.next_id)
        attr.start_id = attr.next_id


def owned():
    """Ids of the programs some living process holds, so that others who use BPF here do not count."""
    ids = set()
    for info in pathlib.Path("/proc").glob("[0-9]*/fdinfo/*"):
        try:
            for line in info.read_text().splitlines():
                if line.startswith("prog_id:"):
                    ids.add(int(line.split()[1]))
        except (OSError, ValueError):
            pass
    return ids


class Robustness:
    def __init__(self, headrace, rounds, folder):
        self.headrace, self.rounds, self.folder = str(headrace), rounds, pathlib.Path(folder)
        seed = int(os.environ.get("HEADRACE_SEED", "20"))
        print(f"HEADRACE_SEED={seed}")
        self.random = random.Random(seed)
        (self.folder / "accounts").mkdir()
        (self.folder / "headrace").symlink_to(SOURCE / "probes/account")
        (self.folder / "t.c").write_text(TARGET)
        self.target = str(self.folder / "target")
        subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-I", folder, "-o", self.target, self.folder / "t.c", "-lpthread"], check=True)
        self.database = str(self.folder / "r.db")
        self.env = dict(os.environ, HEADRACE_ACCOUNT_DIR=str(self.folder / "accounts"))
        self.before = programs()
        self.failures = 0
        self.kills = self.started = 0

    def check(self, condition, what):
        if not condition:
            self.failures += 1
            print("FAILED:", what, flush=True)

    def plain(self, *arguments):
        done = subprocess.run([self.target, *arguments], capture_output=True, env=self.env)
        return done.stdout, done.returncode

    def profile(self, *arguments, **more):
        # Every other one without the kernel's programs: it is up sooner, so other moments are met.
        self.started += 1
        level = ["--level", "1"] if self.started % 2 else []
        return subprocess.Popen([self.headrace, "profile", "-q", "--db", self.database, *level, *arguments], env=self.env, stdin=subprocess.DEVNULL, **more)

    def child_of(self, pid):
        for _ in range(30000):
            try:
                children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            except OSError:
                return None
            if children:
                return int(children[0])
            time.sleep(0.001)
        return None

    def foreign(self, pid):
        """What of ours is open in a process that is none of ours."""
        found = []
        for fd in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            try:
                link = os.readlink(fd)
            except OSError:
                continue
            if "bpf" in link or "perf_event" in link or link.startswith(self.database):
                found.append(link)
        return found

    def ended(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
        except OSError:
            return True

    def moment(self, most):
        time.sleep(self.random.random() * most)

    def collector_killed(self):
        """SIGKILL of a collector that is attached to a process: the process goes on."""
        expected, code = self.plain("work", "400")
        for _ in range(self.rounds):
            target = subprocess.Popen([self.target, "work", "400"], stdout=subprocess.PIPE, env=self.env)
            collector = self.profile("-p", str(target.pid), stderr=subprocess.DEVNULL)
            self.moment(0.6)
            collector.kill()
            collector.wait()
            self.kills += 1
            output = target.communicate()[0]
            self.check(output == expected and target.returncode == code, "the target's output after its collector was killed")

    def profiler_killed(self):
        """SIGKILL of `profile -- CMD`: the command goes on."""
        expected, _ = self.plain("work", "200")
        for _ in range(self.rounds):
            out = self.folder / "out"
            with open(out, "wb") as file:
                profiler = self.profile("--", self.target, "work", "200", stdout=file, stderr=subprocess.DEVNULL)
                child = self.child_of(profiler.pid)
                self.moment(0.5)
                released = child and pathlib.Path(f"/proc/{child}/exe").exists() and os.readlink(f"/proc/{child}/exe") == self.target
                if released:
                    self.check(not self.foreign(child), f"descriptors of ours in the command: {self.foreign(child)}")
                profiler.kill()
                profiler.wait()
                self.kills += 1
            end = time.time() + 120
            while child and not self.ended(child) and time.time() < end:
                time.sleep(0.005)
            output = out.read_bytes()
            # Held back or ended before the kill, it has run not at all or to its end.
            self.check(output == expected or (not released and output == b""), "the command's output after its profiler was killed")

    def target_killed(self):
        """SIGKILL of the command: the profiler says so and the run is whole."""
        expected, _ = self.plain("work", "300")
        for _ in range(self.rounds):
            profiler = self.profile("--", self.target, "work", "300", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            child = self.child_of(profiler.pid)
            self.moment(0.6)
            try:
                os.kill(child, signal.SIGKILL)
                self.kills += 1
            except (OSError, TypeError):
                pass
            output, errors = profiler.communicate()
            self.check(expected.startswith(output), "the output of a killed command is a part of its own")
            self.check(profiler.returncode in (0, 137), f"exit {profiler.returncode} for a killed command: {errors[-300:]}")

    def odd_targets(self):
        for arguments in (["exec", "150"], ["fork", "1000"], ["exit"]):
            expected = self.plain(*arguments)
            for _ in range(max(1, self.rounds // 10)):
                profiler = self.profile("--", self.target, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                output, errors = profiler.communicate()
                self.check((output, profiler.returncode) == expected, f"'{' '.join(arguments)}': {output!r} {profiler.returncode} {errors[-300:]!r}")
        for _ in range(self.rounds):  # attached in the moment of its end
            target = subprocess.Popen([self.target, "work", "20"], stdout=subprocess.PIPE, env=self.env)
            self.moment(0.03)
            collector = self.profile("-p", str(target.pid), stderr=subprocess.PIPE)
            output = target.communicate()[0]
            errors = collector.communicate()[1]
            self.check(len(output.splitlines()) == 20, "the output of a process that ends while a collector attaches")
            self.check(collector.returncode in (0, 5), f"exit {collector.returncode}: {errors[-300:]!r}")

    def store(self):
        runs = json.loads(subprocess.run([self.headrace, "runs", "--json", "--db", self.database], check=True, capture_output=True).stdout)["runs"]
        states = {}
        for run in runs:
            states[run["state"]] = states.get(run["state"], 0) + 1
        self.check("recording" not in states, f"runs still marked as being recorded: {states}")
        with sqlite3.connect(self.database) as database:
            self.check(database.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "the integrity of the store")
            self.check(not database.execute("PRAGMA foreign_key_check").fetchall(), "rows without their run")
            odd = database.execute("SELECT COUNT(*) FROM (SELECT run_id FROM operator_summary AS s GROUP BY run_id HAVING SUM(busy_ns) != "
                                   "(SELECT SUM(busy_ns) FROM operator_interval AS i WHERE i.run_id = s.run_id))").fetchone()[0]
            self.check(odd == 0, f"{odd} runs whose course does not add up to their totals")
        return len(runs), states

    def kernel(self):
        if self.before is None:
            return "programs not listed: no right to"
        left = set()
        for _ in range(600):  # the kernel frees them a moment after the last descriptor closed
            left = programs() - self.before - owned()
            if not left:
                break
            time.sleep(0.1)
        self.check(not left, f"BPF programs left behind: {sorted(left)}")
        return "no BPF program left behind"

    def run(self):
        for part in (self.collector_killed, self.profiler_killed, self.target_killed, self.odd_targets):
            begin = time.time()
            part()
            print(f"{part.__name__}: {time.time() - begin:.1f} s", flush=True)
        count, states = self.store()
        kernel = self.kernel()
        print(f"{self.kills} kills, {count} runs {states}, {kernel}, {self.failures} failures")
        return 1 if self.failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(Robustness(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 10, temporary).run())
