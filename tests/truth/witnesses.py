#!/usr/bin/env python3
"""Headrace's figures beside those of other tools, of one workload: block requests against bpftrace and
/proc/diskstats, system calls against strace and bpftrace, network bytes against the known transfer and the
interface's own counters over a veth pair. Prints a Markdown table. A witness that is absent is named with the reason.

usage: witnesses.py HEADRACE [--folder F]      (root; F: where a file of 64 MiB is read with O_DIRECT)
exit: 0 all within bounds, 1 not, 77 nothing could be compared
"""
import argparse
import ctypes
import mmap
import os
import pathlib
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

FILE_BYTES = 64 << 20
COMM = "hr_witness"
TRANSFER_BYTES = 48 << 20


def workload(path, address):
    """The measured program: prints its own ledger."""
    pathlib.Path("/proc/self/comm").write_text(COMM)
    draw = random.Random(7)
    ledger = {"pread64": 0, "read_bytes": 0, "received_bytes": 0}

    def pread(fd, buffer, at):
        # os.preadv with one buffer is preadv; libc's pread gives pread64.
        n = LIBC.pread(fd, ctypes.byref(buffer), len(buffer), ctypes.c_long(at))
        ledger["pread64"] += 1
        ledger["read_bytes"] += n

    buffers = {size: (ctypes.c_char * size).from_buffer(mmap.mmap(-1, size)) for size in (4096, 16384, 65536)}
    before = disk_counters(path)
    direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
    for _ in range(3000):
        size = draw.choice(list(buffers))
        pread(direct, buffers[size], draw.randrange(FILE_BYTES // size) * size)
    cached = os.open(path, os.O_RDONLY)
    for _ in range(5000):
        pread(cached, buffers[4096], draw.randrange(1 << 20))
    after = disk_counters(path)
    if address:
        peer = socket.create_connection((address, 7777))
        while piece := peer.recv(1 << 16):
            ledger["received_bytes"] += len(piece)
    ledger["disk_requests"], ledger["disk_bytes"] = (b - a for a, b in zip(before, after))
    print(ledger, file=sys.stderr)
    sys.stderr.flush()
    pathlib.Path(path + ".ledger").write_text(repr(ledger))


LIBC = ctypes.CDLL(None, use_errno=True)


def device_of(path):
    number = os.stat(path).st_dev
    return os.major(number), os.minor(number)


def disk_counters(path):
    """Reads completed and bytes read of the device, from /proc/diskstats."""
    major, minor = device_of(path)
    for line in pathlib.Path("/proc/diskstats").read_text().splitlines():
        words = line.split()
        if (int(words[0]), int(words[1])) == (major, minor):
            return int(words[3]), int(words[5]) * 512
    return 0, 0


def interface_bytes(name):
    return int(pathlib.Path(f"/sys/class/net/{name}/statistics/rx_bytes").read_text())


class Network:
    """A veth pair into a network namespace, where a server sends a known number of bytes."""

    def __init__(self):
        self.reason, self.server = None, None
        if not shutil.which("ip"):
            self.reason = "ip is not installed"
            return
        for command in (["netns", "add", "hr_witness"], ["link", "add", "hr_w0", "type", "veth", "peer", "name", "hr_w1"],
                        ["link", "set", "hr_w1", "netns", "hr_witness"], ["addr", "add", "10.213.77.1/30", "dev", "hr_w0"],
                        ["link", "set", "hr_w0", "up"], ["-n", "hr_witness", "addr", "add", "10.213.77.2/30", "dev", "hr_w1"],
                        ["-n", "hr_witness", "link", "set", "hr_w1", "up"]):
            done = subprocess.run(["ip", *command], capture_output=True, text=True)
            if done.returncode != 0:
                self.reason = f"ip {' '.join(command)}: {done.stderr.strip()}"
                self.close()
                return
        program = ("import socket\ns = socket.create_server(('10.213.77.2', 7777))\nprint('ready', flush=True)\n"
                   f"c = s.accept()[0]\nleft = {TRANSFER_BYTES}\npiece = bytes(1 << 16)\n"
                   "while left > 0:\n  left -= c.send(piece[:left])\n")
        self.server = subprocess.Popen(["ip", "netns", "exec", "hr_witness", sys.executable, "-c", program],
                                       stdout=subprocess.PIPE, text=True)
        self.server.stdout.readline()

    def close(self):
        if self.server:
            self.server.kill()
            self.server.wait()
        subprocess.run(["ip", "link", "del", "hr_w0"], capture_output=True)
        subprocess.run(["ip", "netns", "del", "hr_witness"], capture_output=True)


def has_tracepoint(name):
    listed = subprocess.run(["bpftool", "btf", "dump", "file", "/sys/kernel/btf/vmlinux"], capture_output=True, text=True)
    return f"'btf_trace_{name}'" in listed.stdout


class Bpftrace:
    """bpftrace counting beside us, in a mount namespace with tracefs."""

    def __init__(self, path):
        self.process, self.reason, self.hook = None, None, "block_io_start"
        if not shutil.which("bpftrace"):
            self.reason = "bpftrace is not installed"
            return
        major, minor = device_of(path)
        # Requests are counted where they start, in the reader's context: some are issued by a kernel thread for it.
        self.hook = "block_io_start" if has_tracepoint("block_io_start") else "block_rq_issue"
        program = (f"tracepoint:block:{self.hook} /args->dev == {major << 20 | minor} && comm == \"{COMM}\"/ "
                   "{ @requests = count(); @bytes = sum(args->bytes); } "
                   f"tracepoint:block:block_rq_issue /args->dev == {major << 20 | minor} && comm == \"{COMM}\"/ "
                   "{ @issued = count(); @issued_bytes = sum(args->bytes); } "
                   f"tracepoint:syscalls:sys_exit_pread64 /comm == \"{COMM}\"/ {{ @calls = count(); @read = sum(args->ret); }} "
                   "BEGIN { printf(\"ready\\n\"); }")
        self.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", "mount -t tracefs t /sys/kernel/tracing 2>/dev/null; exec bpftrace -B line -e \"$0\"",
             program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while (line := self.process.stdout.readline()) and "ready" not in line:
            pass
        if not line:
            self.reason = (self.process.stderr.read().strip().splitlines() or ["it ended"])[-1]
            self.process.wait()
            self.process = None

    def stop(self):
        if not self.process:
            return {}
        self.process.send_signal(2)
        text = self.process.communicate(timeout=20)[0]
        counts = {}
        for line in text.splitlines():
            if line.startswith("@"):
                name, value = line[1:].split(": ")
                counts[name] = int(value)
        return counts


def strace_calls(path):
    """Calls of the workload's threads by name, by strace -c -f, of a run of its own."""
    if not shutil.which("strace"):
        return None, "strace is not installed"
    out = path + ".strace"
    done = subprocess.run(["strace", "-c", "-f", "-o", out, sys.executable, __file__, "--workload", path], capture_output=True,
                          text=True)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["it failed"])[-1]
    calls = {}
    for line in pathlib.Path(out).read_text().splitlines():
        words = line.split()
        if len(words) >= 5 and words[0][0].isdigit():
            calls[words[-1]] = int(words[3])
    return calls, None


def main():
    if len(sys.argv) >= 3 and sys.argv[1] == "--workload":
        workload(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace", type=pathlib.Path)
    parser.add_argument("--folder", default=".")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("witnesses need root")
        return 77
    folder = tempfile.mkdtemp(dir=options.folder)
    network = Network()
    try:
        return compare(options.headrace.resolve(), folder, network)
    finally:
        network.close()
        shutil.rmtree(folder)


def compare(headrace, folder, network):
    path = f"{folder}/data"
    with open(path, "wb") as file:
        for _ in range(FILE_BYTES >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if disk_counters(path) == (0, 0):
        print("the folder is on no block device that /proc/diskstats names")
        return 77
    bpftrace = Bpftrace(path)
    interface = None if network.reason else interface_bytes("hr_w0")
    database = f"{folder}/runs.db"
    done = subprocess.run([headrace, "profile", "--deep", "-q", "--db", database, "--", sys.executable, __file__, "--workload",
                           path, *([] if network.reason else ["10.213.77.2"])], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return 1
    if interface is not None:
        time.sleep(0.2)
        interface = interface_bytes("hr_w0") - interface
    seen = bpftrace.stop()
    ledger = eval(pathlib.Path(path + ".ledger").read_text())  # our own output
    strace, strace_reason = strace_calls(path)

    rows = sqlite3.connect(database).execute(
        "SELECT metric, coalesce(pid, 0), subject, cause, value FROM measurement_summary WHERE bucket IS NULL").fetchall()
    probes = dict(sqlite3.connect(database).execute("SELECT probe, reason FROM probe_status"))
    pids = {row[1] for row in rows if row[0] == "file_reads_count"}

    def ours(metric, subject=None, cause=None, everybody=False):
        values = [row[4] for row in rows if row[0] == metric and (everybody or row[1] in pids)
                  and subject in (None, row[2]) and cause in (None, row[3])]
        return round(sum(values)) if values else None

    table, failed = [], []

    def line(what, witness, mine, theirs, bound, note="", one_sided=False):
        if mine is None or theirs is None:
            table.append((what, witness, "-" if mine is None else f"{mine:,}", "-", note or "not measured"))
            return
        difference = abs(mine - theirs) / max(theirs, 1)
        ok = bound is None or difference <= bound or (one_sided and mine < theirs)
        table.append((what, witness, f"{mine:,}", f"{theirs:,}", f"{mine - theirs:+,} ({difference:.3%})" + (f"; {note}" if note else "")))
        if not ok:
            failed.append(f"{what} against {witness}: {difference:.2%}, at most {bound:.1%}")

    requests, size = ours("block_requests_count", cause="read"), ours("block_bytes", cause="read")
    tracer = bpftrace.reason
    line("block requests read", f"bpftrace {bpftrace.hook}, by comm", requests, seen.get("requests"), 0.01, tracer)
    line("block bytes read", f"bpftrace {bpftrace.hook}, by comm", size, seen.get("bytes"), 0.02, tracer)
    line("block requests read", "bpftrace block_rq_issue, by comm", requests, seen.get("issued"), None,
         tracer or "theirs lack what a kernel thread issued")
    line("block bytes read", "bpftrace block_rq_issue, by comm", size, seen.get("issued_bytes"), None,
         tracer or "theirs lack what a kernel thread issued")
    line("block requests read", "/proc/diskstats, whole device", requests, ledger["disk_requests"], 0.05, "theirs have others' reads",
         one_sided=True)
    line("block bytes read", "/proc/diskstats, whole device", size, ledger["disk_bytes"], 0.05, "theirs have others' reads",
         one_sided=True)
    calls, call_bytes = ours("file_reads_count", subject="pread64"), ours("file_read_bytes", subject="pread64")
    line("pread64 calls", "the program's ledger and its start-up", calls, ledger["pread64"], 0.01)
    line("pread64 calls", "bpftrace sys_exit_pread64, by comm", calls, seen.get("calls"), 0.01, tracer)
    line("pread64 bytes", "bpftrace sys_exit_pread64, by comm", call_bytes, seen.get("read"), 0.001, tracer)
    line("pread64 calls", "strace -c -f, a run of its own", calls, strace.get("pread64") if strace else None, 0.01, strace_reason)
    received = ours("socket_received_bytes")
    line("TCP bytes received", "the known transfer", received, None if network.reason else ledger["received_bytes"], 0, network.reason)
    line("TCP bytes received", "/sys/class/net/*/statistics/rx_bytes of the veth", received, interface, 0.05,
         network.reason or "theirs contain headers")

    print("| what | witness | headrace | witness | difference |\n|---|---|---|---|---|")
    for cells in table:
        print("| " + " | ".join(cells) + " |")
    for name in ("block IO", "system calls", "sockets"):
        if probes.get(name):
            print(f"\n{name}: {probes[name]}")
    for reason in failed:
        print(f"\nFAILED {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
