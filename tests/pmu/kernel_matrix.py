#!/usr/bin/env python3
"""The BPF programs on Debian's stock 6.1 kernel: do they load, attach, and see what they are for?

  kernel_matrix.py BUILD_FOLDER

Runs the built tests of the probes, and the built headrace, in two guests: one with two processors
for what is counted, and one whose clock is tied to the number of instructions, so that times are
exact however busy this machine is. Prints one line a check."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading

import guest

DISK_MODULES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev",
                "virtio_pci", "virtio_blk", "crc16", "mbcache", "jbd2", "crc32c_generic", "ext4"]

# What 6.1 has under other names than newer kernels, and what the tests of it are called.
COUNTED = [
    ("BpfProgram.TheSmallestProgramLoadsOrSaysWhyNot", "processes are followed"),
    ("BpfIo.BlockRequestsReachTheOperatorThatReads", "block requests (block_getrq)"),
    ("BpfIo.ReadCallsAreExactByOperator", "read calls"),
    ("BpfIo.WhatEntersThePageCacheReachesTheOperator", "page cache"),
    ("BpfIo.IoUringReadsReachTheOperatorThatSubmits", "io_uring (io_uring_submit_sqe)"),
    ("BpfIo.ASlowReaderClosesItsWindow", "TCP bytes and receive windows (copied_seq)"),
    ("BpfIo.PageFaultsReachTheOperatorThatTouches", "page faults"),
    ("BpfIo.FaultsThatReadADeviceAreMajor", "major faults"),
    ("BpfIo.ReclaimLoadsAndIsQuietWithoutPressure", "memory reclaim"),
    ("OffCpu.FollowsChildrenFromTheFork", "children are followed from the fork"),
    ("OffCpu.AnExecByAnyThreadIsFollowed", "programs are followed through exec"),
    ("OffCpu.ATinyMapLosesAloud", "losses are counted"),
    ("OffCpu.StopLeavesNothingInTheKernel", "nothing stays in the kernel"),
    ("OffCpu.WithoutPrivilegeItIsUnavailableAndSaysWhy", "without privilege: the reason"),
    ("OffCpuStacks.FindsWhereThreadsSleepAndWaitForLocks", "off-CPU stacks"),
    ("FramePointers/CpuStacksOf.OperatorsHaveTheirSharesAndTheirFunctions/without", "CPU stacks"),
]
TIMED = [
    ("OffCpu.SplitsOperatorsByCauseAsTheThreadsThemselvesDo", "off-CPU time by operator and cause"),
    ("OffCpu.NamesTheCauseOfEveryWait", "the cause of every wait"),
]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if os.uname().machine != "x86_64":
        guest.skip("the guest runs the programs built for this machine, which is no x86-64")
    build = os.path.abspath(sys.argv[1])
    folder = os.path.join(build, "pmu")
    guest.need("mkfs.ext4", "debugfs", "gcc", "strip", "ldd")
    tests = os.path.join(build, "probes_test")
    check = guest.Checks("kernel matrix")

    # With a thread for each emulated processor the guest's kernel stood still in three runs of four (soft
    # lockup, no timer on the other processor).
    counting = guest.Guest("matrix_counted", "amd64", folder,
                           ["-cpu", "max", "-smp", "2", "-m", "1536"], "tcg,thread=single")
    disk = os.path.join(folder, "matrix.disk")
    with open(disk, "wb") as file:
        file.truncate(192 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", disk], check=True)
    counting.extra += ["-drive", "file=%s,format=raw,if=virtio,cache=unsafe" % disk]
    counting.add("/guest/disk", text="/data\n")
    counting.add_modules(DISK_MODULES)
    timing = guest.Guest("matrix_timed", "amd64", folder,
                         ["-cpu", "max", "-smp", "1", "-m", "768", "-icount", "shift=0,sleep=off"])
    for machine in (counting, timing):
        machine.add_program("/bin/probes_test", tests)
        for program in ("env", "sleep", "setpriv", "sh", "cat", "tail"):
            machine.add_program("/bin/" + program, shutil.which(program))
    for kind in ("with", "without"):
        target = os.path.join(build, "stack_target_" + kind)
        counting.add_program(target, target)
    counting.add_program("/bin/headrace", os.path.join(build, "headrace"))

    filters = [":".join(name for name, _ in part) for part in (COUNTED, TIMED)]
    # CAP_SYS_RESOURCE, which raises limits, is taken away: the programs must do without.
    without = ["/bin/setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]
    counting.command("rights", 10, *without, "/bin/cat", "/proc/self/status")
    counting.command("tests", 150, *without, "/bin/env", "HEADRACE_TEST_FOLDER=/data",
                     "/bin/probes_test", "--gtest_color=no", "--gtest_filter=" + filters[0])
    counting.command("doctor", 60, "/bin/headrace", "doctor")
    counting.command("doctor_user", 60, "/bin/setpriv", "--reuid=1000", "--regid=1000",
                     "--clear-groups", "/bin/headrace", "doctor")
    counting.add("/guest/work.sh", text="for i in 1 2 3 4 5 6 7 8 9; do cat /bin/headrace > "
                 "/data/copy; cat /data/copy > /dev/null; sleep 0.1; done\n")
    counting.command("profile", 90, "/bin/headrace", "profile", "--db", "/data/run.db", "--",
                     "/bin/sh", "/guest/work.sh")
    counting.add("/guest/query.sh", text="""
query() { headrace query --db /data/run.db --format csv "$1" | tail -n +2; }
query "select 'run ' || state || ' level ' || accounting_level from runs"
query "select 'requests ' || sum(requests_count) from io_summary"
query "select 'off_cpu ' || sum(blocked_ns) from off_cpu_summary"
""")
    counting.command("query", 60, "/bin/sh", "/guest/query.sh")
    timing.command("tests", 150, "/bin/probes_test", "--gtest_color=no",
                   "--gtest_filter=" + filters[1])

    threads = [threading.Thread(target=machine.run, args=(180,)) for machine in (counting, timing)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for machine in (counting, timing):
        version = re.search(r"@guest ready after (\d+) ms", machine.console)
        check("%s: boots and ends" % machine.name, version is not None and machine.ended,
              "%.0f s" % machine.seconds)
    rights = re.search(r"^CapEff:\s*([0-9a-f]+)", counting.output("rights"), re.M)
    check("what follows runs without CAP_SYS_RESOURCE",
          rights is not None and not int(rights.group(1), 16) >> 24 & 1,
          rights.group(1) if rights else "")
    for machine, part in ((counting, COUNTED), (timing, TIMED)):
        text = machine.output("tests")
        for name, what in part:
            line = re.search(r"\[ +(OK|SKIPPED|FAILED) +\] %s" % re.escape(name), text)
            state = line.group(1) if line else "not run"
            reason = re.search(r"%s\n[^\n]*Skipped\n([^\n]*)" % re.escape(name), text)
            check(what, state == "OK", "" if state == "OK" else
                  "%s %s" % (state, reason.group(1) if reason else name))
    doctor, user, query = (counting.output(n) for n in ("doctor", "doctor_user", "query"))
    bpf = ["off-CPU time", "block IO", "file reads", "io_uring", "page faults", "memory reclaim",
           "CPU stacks", "off-CPU stacks", "system calls"]
    unusable = [name for name in bpf if not re.search(r"^%s +ok" % name, doctor, re.M)]
    check("doctor, root: every BPF probe but sockets is ok",
          counting.status("doctor") == 0 and not unusable, ", ".join(unusable))
    sockets = re.search(r"^sockets +degraded +(.*)", doctor, re.M)
    check("doctor, root: sockets are degraded, and it says why", sockets is not None,
          sockets.group(1).strip() if sockets else "")
    refused = [name for name in bpf if re.search(
        r"^%s +unavailable +this process lacks CAP_BPF" % name, user, re.M)]
    check("doctor, ordinary user: each says what it lacks",
          counting.status("doctor_user") == 0 and len(refused) == len(bpf),
          "%d of %d probes" % (len(refused), len(bpf)))
    check("profile -- COMMAND records a run", counting.status("profile") == 0
          and "run complete" in query, "%.0f s" % (counting.results.get("profile", (0, "", 0))[2]
                                                   / 1000))
    numbers = dict(re.findall(r"^(\w+) ([\d.]+)$", query, re.M))
    check("  with block requests and off-CPU time",
          float(numbers.get("requests", 0)) > 0 and float(numbers.get("off_cpu", 0)) > 0,
          query.replace("\n", "; ").strip("; "))
    store = os.path.join(folder, "run.db")
    if os.path.exists(store):
        os.remove(store)
    subprocess.run(["debugfs", "-R", "dump /run.db %s" % store, disk], capture_output=True)
    found = "no store"
    try:
        if os.path.exists(store):
            found = sqlite3.connect(store).execute("pragma integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        found = str(error)
    check("  in a store that is valid", found == "ok", found)
    check.end(counting, timing)


main()
