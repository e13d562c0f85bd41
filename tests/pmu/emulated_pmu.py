#!/usr/bin/env python3
"""Hardware counters without hardware: an emulated arm64 machine whose PMU counts every instruction.

  emulated_pmu.py BUILD_FOLDER

The counters' own code, built for arm64 (tests/pmu/arm64), runs on Debian's 6.1 kernel against loops
of known length; then on the same machine without a PMU. One processor: with instruction counting
the emulated counter is the machine's, not a processor's."""

import os
import re
import subprocess
import sys
import threading

import guest


def build(folder):
    """The guest's program, brought up to date; its path."""
    guest.need("cmake", "ninja", "aarch64-linux-gnu-g++")
    guest.package_root("arm64")
    machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True)
    for command in (
            ["cmake", "-S", os.path.join(guest.HERE, "arm64"), "-B", folder, "-G", "Ninja",
             "-DHEADRACE_PMU_CACHE=" + os.path.abspath(guest.cache_folder()),
             "-DHEADRACE_PMU_MACHINE=" + machine.stdout.strip()],
            ["cmake", "--build", folder]):
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode != 0:
            print(made.stdout[-8000:] + made.stderr[-8000:])
            sys.exit("the guest's program does not build")
    return os.path.join(folder, "pmu_guest")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = os.path.join(os.path.abspath(sys.argv[1]), "pmu")
    program = build(os.path.join(folder, "arm64"))
    if sys.argv[2:] == ["--build"]:
        return
    check = guest.Checks("emulated PMU")
    counting = guest.Guest("pmu", "arm64", folder, ["-cpu", "neoverse-n1", "-smp", "1", "-m", "512",
                                                    "-icount", "shift=0,sleep=off"])
    without = guest.Guest("no_pmu", "arm64", folder, ["-cpu", "cortex-a57,pmu=off", "-smp", "1",
                                                      "-m", "512"])
    small = os.path.join(folder, "pmu_guest.stripped")
    subprocess.run(["aarch64-linux-gnu-strip", "-o", small, program], check=True)
    for machine, names in ((counting, ("counters", "operators", "programs")),
                           (without, ("absent",))):
        machine.add("/bin/pmu_guest", small)
        for name in names:
            machine.command(name, 120, "/bin/pmu_guest", name)
    threads = [threading.Thread(target=machine.run, args=(150,)) for machine in (counting, without)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for machine, names in ((counting, ("counters", "operators", "programs")),
                           (without, ("absent",))):
        check("%s: boots and ends" % machine.name, machine.ended, "%.0f s" % machine.seconds)
        for name in names:
            lines = re.findall(r"^@check (ok|failed) (.*?) \| (.*)$", machine.output(name), re.M)
            for state, what, detail in lines:
                check(what, state == "ok", detail)
            expected = 1 if any(state == "failed" for state, _, _ in lines) else 0
            if machine.status(name) != expected or not lines:
                check("pmu_guest %s ends" % name, False, "status %s" % machine.status(name))
    check.end(counting, without)


main()
