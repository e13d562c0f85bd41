#!/usr/bin/env python3
"""Runs COMMAND in a session of its own and returns its exit code: watched.py SECONDS COMMAND... If anything of the session is left after
SECONDS, says what each of its processes but shells waits for, so that a hang that shows once in a hundred runs can be found, ends them and
returns 124."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

SHELLS = {"bash", "sh", "cat", "bats"}


def read(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def session_of(root):
    """Processes of the session, also those whose parents have gone."""
    for entry in pathlib.Path("/proc").iterdir():
        fields = read(entry / "stat").rpartition(")")[2].split() if entry.name.isdigit() else []
        if len(fields) > 3 and int(fields[3]) == root and fields[0] != "Z":
            yield entry


def say_where(root):
    gdb = shutil.which("gdb")
    for process in session_of(root):
        if read(process / "comm").strip() in SHELLS:
            continue
        print(f"# process {process.name}: {read(process / 'cmdline').replace(chr(0), ' ')[:300]}")
        for task in (process / "task").iterdir():
            print(f"#   {read(task / 'comm').strip()} in {read(task / 'wchan')}, system call {' '.join(read(task / 'syscall').split()[:4])}")
            for line in read(task / "stack").splitlines()[:6]:
                print(f"#     {line}")
        if gdb:
            try:
                told = subprocess.run([gdb, "-p", process.name, "-batch", "-ex", "thread apply all bt 12"], capture_output=True, text=True,
                                      timeout=30).stdout
            except subprocess.TimeoutExpired:
                continue
            for line in [line for line in told.splitlines() if line.startswith(("Thread", "#"))][:60]:
                print(f"#     {line}")


def end(root):
    for _ in range(3):  # one may have started another meanwhile
        for process in session_of(root):
            try:
                os.kill(int(process.name), signal.SIGKILL)
            except ProcessLookupError:
                pass


def main():
    seconds, command = float(sys.argv[1]), sys.argv[2:]
    # Told through a pipe, as ctest is: whoever holds its other end is not at its end.
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as tests:
        def stop(number, _):
            end(tests.pid)
            os._exit(128 + number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)

        def late(*_):
            print(f"# watched: not at its end after {seconds:g} s", flush=True)
            say_where(tests.pid)
            sys.stdout.flush()
            end(tests.pid)
            os._exit(124)

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        for line in tests.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.flush()
        code = tests.wait()
        signal.setitimer(signal.ITIMER_REAL, 0)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
