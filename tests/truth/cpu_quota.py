#!/usr/bin/env python3
"""cpu_quota.py HEADRACE: a pipeline in a control group that gets 0.6 of a core.

The page names the quota and advises no threads; a second thread, tried, gains nothing. Skipped (77) where no group with a quota can be made.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

QUOTA_US, PERIOD_US = 60000, 100000
PIPELINE = """
pipeline = { name = "quota" }
source = { synthetic = { rows = 64, bytes = "4KiB" }, epochs = 0 }
stage = [
  { name = "load", operators = [{ sleep = "1ms", name = "load" }], parallelism = 1 },
  { name = "parse", operators = [{ spin = "8ms", name = "parse" }], parallelism = 1 },
]
consumer = { step = "1ms" }
"""


def make_group():
    """The folder of a new group, and how its quota is written; exits where none can be made."""
    name = f"headrace-quota-{os.getpid()}"
    tried = []
    for parent, files in (("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": QUOTA_US}),
                          ("/sys/fs/cgroup/cpu,cpuacct", {"cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": QUOTA_US}),
                          ("/sys/fs/cgroup", {"cpu.max": f"{QUOTA_US} {PERIOD_US}"})):
        group = pathlib.Path(parent, name)
        try:
            group.mkdir()
        except OSError as error:
            tried.append(str(error))
            continue
        try:
            for file, value in files.items():
                (group / file).write_text(str(value))
            return group
        except OSError as error:
            tried.append(str(error))
            group.rmdir()
    print("skipped: no control group with a CPU quota can be made here: " + "; ".join(tried))
    sys.exit(77)


def main():
    headrace = os.path.abspath(sys.argv[1])
    group = make_group()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="headrace-quota-"))
    (folder / "pipeline.toml").write_text(PIPELINE)

    def of(arguments, inside=False):
        enter = (lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) if inside else None
        result = subprocess.run([headrace, *arguments], cwd=folder, preexec_fn=enter, capture_output=True, text=True, timeout=120)
        if result.returncode not in (0, 4):
            sys.exit(f"headrace {' '.join(arguments)}: exit {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout

    def record(threads):
        of(["run", "pipeline.toml", "--db", "q.db", "--quiet", "--duration", "6s", "--set", f"parse.parallelism={threads}"], inside=True)
        return float(of(["query", "--db", "q.db", "--format", "csv",
                         "SELECT steps_count * 1e9 / wall_ns FROM step_summary ORDER BY run_id DESC LIMIT 1"]).split()[-1])

    faults = []

    def check(holds, what):
        print(("ok   " if holds else "FAIL ") + what)
        if not holds:
            faults.append(what)

    try:
        one = record(1)
        page = of(["report", "latest", "--db", "q.db"])
        words = " ".join(page.split())
        check("CPU quota" in words, "the first page names the quota")
        check("of the quota's periods" in words, "it says how often the quota stopped the program")
        check("parse threads" not in words, "it advises no threads")
        two = record(2)
        check(two < 1.15 * one, f"a second thread brings nothing: {one:.1f} and {two:.1f} batches/s")
        if faults:
            print(page)
    finally:
        group.rmdir()
    if faults:
        print(f"kept: {folder}")
        sys.exit(1)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


if __name__ == "__main__":
    main()
