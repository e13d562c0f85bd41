"""Where no accounts can be kept: one line at most, and the program runs as if the package were not there."""
import os
import subprocess
import unittest

from programs import BINARY, ProgramTest

PROGRAM = """
import headrace, os, sys, threading
@headrace.operator("f")
def f(x): return x + 1
class Loader:
    def __iter__(self): return iter([[1, 2], [3]])
    def __len__(self): return 2
total = 0
for batch in headrace.wrap(Loader()):
    with headrace.operator("sum") as op:
        total += sum(f(x) for x in batch)
        op.rows(len(batch)); op.bytes(read=1); op.count(rows=1)
        headrace.rows(1); headrace.bytes(made=2)
    headrace.step(rows=2)
headrace.queue("q", capacity=2).level(1)
with headrace.stage("s"): total += f(0)
opened = headrace.open("x")
headrace.close()
if os.fork() == 0:
    f(1); os._exit(0)
os.wait()
print(total, opened)
"""


class Without(ProgramTest):
    def check(self, warning, opened="False", **environment):
        result = self.run_program(PROGRAM, **environment)
        self.assertEqual(result.stdout, f"10 {opened}\n")
        self.assertEqual(result.left, [])
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1 if warning else 0, result.stderr)
        if warning:
            self.assertIn(warning, lines[0])

    def test_missing_library(self):
        self.check("no instrumentation", HEADRACE_ACCOUNT_LIBRARY="/nonexistent/lib.so")

    def test_file_that_is_no_library(self):
        path = self.folder / "garbage.so"
        path.write_bytes(os.urandom(4096))
        self.check("garbage.so", HEADRACE_ACCOUNT_LIBRARY=str(path))

    def test_library_of_something_else(self):
        self.check("hrx_account_abi", HEADRACE_ACCOUNT_LIBRARY="libm.so.6")

    def test_library_of_another_abi(self):
        other = BINARY / "tests/python/libother_abi.so"
        if not other.exists():
            self.skipTest(f"{other} is not built")
        self.check("ABI 2, this package knows 1", HEADRACE_ACCOUNT_LIBRARY=str(other))

    def test_switched_off(self):
        self.check(None, HEADRACE_ACCOUNTS="off")

    def test_folder_that_does_not_exist(self):
        self.check("No such file or directory", HEADRACE_ACCOUNT_DIR="/nonexistent/folder")

    def test_full_file_system(self):
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(self.accounts)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"cannot mount a small tmpfs: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", str(self.accounts)], check=True)
        self.check("No space left on device")

    def test_no_stderr(self):
        result = self.run_program("import sys; sys.stderr = None\nimport headrace\nwith headrace.operator('x'): print(1)",
                                  HEADRACE_ACCOUNT_LIBRARY="/nonexistent/lib.so")
        self.assertEqual((result.stdout, result.stderr), ("1\n", ""))

    def test_level_1(self):
        self.check(None, opened="True", HEADRACE_ACCOUNT_LEVEL="1")


if __name__ == "__main__":
    unittest.main()
