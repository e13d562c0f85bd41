"""Runs small programs as a user would: in a process of their own, with accounts in a folder of their own."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
BINARY = pathlib.Path(os.environ.get("HEADRACE_BINARY_DIR", SOURCE / "build"))
LIBRARY = BINARY / "libheadrace_account.so.1"
HEADRACE = os.environ.get("HEADRACE", str(BINARY / "headrace"))


class Result:
    def __init__(self, done, left):
        self.status, self.stdout, self.stderr, self.left = done.returncode, done.stdout, done.stderr, left

    @property
    def answer(self):
        """What the program's last line says, as JSON."""
        return json.loads(self.stdout.strip().splitlines()[-1])


class ProgramTest(unittest.TestCase):
    """Tests that run programs; `python` may be another interpreter."""

    python = sys.executable

    def setUp(self):
        if not LIBRARY.exists():
            self.skipTest(f"{LIBRARY} is not built")
        self.temporary = tempfile.TemporaryDirectory(prefix="headrace-python-")
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.accounts = self.folder / "accounts"
        self.accounts.mkdir()

    def environment(self, **changes):
        """A change to None leaves the variable out."""
        environment = dict(os.environ, HEADRACE_ACCOUNT_LIBRARY=str(LIBRARY), HEADRACE_ACCOUNT_DIR=str(self.accounts),
                           PYTHONPATH=os.pathsep.join([str(SOURCE / "probes/python"), str(HERE)]),
                           PYTHONDONTWRITEBYTECODE="1")
        environment.pop("HEADRACE_ACCOUNTS", None)
        environment.update(changes)
        return {name: value for name, value in environment.items() if value is not None}

    def script(self, code, name="program.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(code))
        return str(path)

    def run_program(self, code, *arguments, python=None, status=0, timeout=120, **environment):
        done = subprocess.run([python or self.python, self.script(code), *arguments], capture_output=True, text=True,
                              timeout=timeout, env=self.environment(**environment), cwd=self.folder)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr[-3000:])
        return Result(done, sorted(os.listdir(self.accounts)))
