#!/usr/bin/env python3
"""The wheel for 64-bit ARM on Debian's stock kernel for that processor, in an emulated machine (tests/pmu/guest.py):
kernel_arm64.py WHEELS SYSTEM FOLDER. SYSTEM: a C library and a Python for that processor. What the console says goes to FOLDER.

The demo is recorded and judged there, and BPF programs that were compiled here load."""
import pathlib
import shutil
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "pmu"))
import guest  # noqa: E402

# Which parts of SYSTEM no program asks for; the guest's file system is in its memory.
UNUSED = ("share", "gconv", "config-3.11-aarch64-linux-gnu")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    wheels, system, folder = map(pathlib.Path, sys.argv[1:])
    wheel = next(wheels.glob("headrace-*.whl"), None)
    if wheel is None:
        guest.skip("no wheel here: make wheel ARCH=aarch64")
    check = guest.Checks("the wheel for 64-bit ARM")
    machine = guest.Guest("wheel_arm64", "arm64", str(folder), ["-cpu", "neoverse-n1", "-smp", "2", "-m", "2048"])
    for file in system.rglob("*"):
        path = file.relative_to(system)
        if file.is_file() and not set(UNUSED) & set(path.parts):
            machine.add(f"/{path}", file)
    shutil.rmtree(folder / "wheel", ignore_errors=True)
    with zipfile.ZipFile(wheel) as contents:
        contents.extractall(folder / "wheel")
    program, = (folder / "wheel").glob("*.data/scripts/headrace")
    program.chmod(0o755)
    machine.add("/usr/bin/headrace", program)
    for file in (folder / "wheel/headrace").rglob("*"):
        if file.is_file():
            machine.add(f"/opt/{file.relative_to(folder / 'wheel')}", file)
    machine.add("/opt/train.py", text="""import sys, time
sys.path.insert(0, "/opt")
import headrace
for _ in range(40):
    with headrace.operator("load"):
        time.sleep(0.05)
""")
    machine.command("doctor", 100, "/usr/bin/headrace", "doctor")
    machine.command("demo", 100, "/usr/bin/headrace", "demo", "--duration", "5s")
    machine.command("profile", 100, "/usr/bin/headrace", "profile", "-q", "--db", "/tmp/run.db", "--", "/usr/bin/python3.11", "/opt/train.py")
    machine.command("operators", 60, "/usr/bin/headrace", "query", "--db", "/tmp/run.db", "SELECT/**/operator/**/FROM/**/operator_summary")
    machine.run(500)
    check("boots and ends", machine.ended, f"{machine.seconds:.0f} s")
    probes = {line.split("  ")[0]: line for line in machine.output("doctor").splitlines()}
    for probe in ("off-CPU time", "system calls", "block IO", "CPU stacks"):
        check(f"{probe} by BPF", " ok " in probes.get(probe, ""), probes.get(probe, "not named"))
    check("the demo ends with a verdict", machine.status("demo") == 0 and " limit " in machine.output("demo"), f"status {machine.status('demo')}")
    check("a Python program is recorded", machine.status("profile") == 0, f"status {machine.status('profile')}")
    check("by its operator", "load" in machine.output("operators").split(), machine.output("operators").strip())
    check.end(machine)


main()
