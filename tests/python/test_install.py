"""As an end user: `cmake --install`, then Python with nothing but the prefix; then pip, where setuptools is there."""
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import unittest

from programs import BINARY, HERE, ProgramTest

PROGRAM = """
import headrace, segments, sys
with headrace.operator("decode") as op: op.rows(2)
from headrace import _library
print(segments.mine().operators[("main", "decode")]["rows"], headrace.__file__, _library.library._name)
"""


class Install(ProgramTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("cmake") or not (BINARY / "cmake_install.cmake").exists():
            self.skipTest("no cmake, or no build folder, to install from")
        self.prefix = self.folder / "prefix"
        script = BINARY / "probes/python/cmake_install.cmake"  # this part; all of it: `make install`
        for part in (script, BINARY / "probes/cmake_install.cmake"):
            if part.exists():
                subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={self.prefix}", "-P", str(part)], check=True,
                               capture_output=True)

    def run_installed(self, python, path, **environment):
        return self.run_program(PROGRAM, python=python, HEADRACE_ACCOUNT_LIBRARY=None,
                                PYTHONPATH=os.pathsep.join(map(str, filter(None, [path, HERE]))), **environment)

    def test_path(self):
        result = self.run_installed(None, self.prefix / "share/headrace/python")
        rows, package, library = result.stdout.split()
        self.assertEqual(rows, "2")
        self.assertTrue(package.startswith(str(self.prefix)), package)
        self.assertEqual(os.path.realpath(library), os.path.realpath(self.prefix / "lib/libheadrace_account.so.1"))
        self.assertEqual(result.stderr, "")

    def test_moved_prefix(self):
        other = self.folder / "other"
        self.prefix.rename(other)
        result = self.run_installed(None, other / "share/headrace/python")
        self.assertIn(str(other), result.stdout.split()[2])

    def test_c_program(self):
        if not shutil.which("cc") or not shutil.which("pkg-config"):
            self.skipTest("no cc or no pkg-config")
        source = self.folder / "program.c"
        source.write_text("""#include <headrace/account_library.h>
int main(void) {
  uint32_t op;
  if (hrx_account_open("program") != 0 || !hrx_account_is_open()) return 1;
  op = hrx_operator("decode", "codec", hrx_stage("main", 1, 0));
  hrx_enter(op);
  hrx_leave();
  return op == 0 ? 0 : 2;
}
""")
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "headrace-account"], capture_output=True, text=True,
                               check=True, env=dict(os.environ, PKG_CONFIG_PATH=str(self.prefix / "lib/pkgconfig")))
        program = str(self.folder / "program")
        subprocess.run(["cc", str(source), "-o", program, "-Wl,-rpath," + str(self.prefix / "lib"), *flags.stdout.split()],
                       check=True)
        done = subprocess.run([program], env=self.environment())
        self.assertEqual(done.returncode, 0)
        self.assertEqual(os.listdir(self.accounts), [])

    def test_pip(self):
        missing = [name for name in ("setuptools", "pip") if not importlib.util.find_spec(name)]
        if missing:
            self.skipTest(f"no {' and no '.join(missing)} here")
        version = importlib.metadata.version("setuptools")
        if int(version.split(".")[0]) < 61:
            self.skipTest(f"setuptools {version} knows no pyproject.toml; 61 does")
        target = self.folder / "site"
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps",
                               "--disable-pip-version-check", "--root-user-action=ignore", "--target", str(target),
                               str(self.prefix / "share/headrace/python")], capture_output=True, text=True,
                              cwd=self.folder, timeout=120)
        if done.returncode != 0 and "wheel" in done.stderr and not importlib.util.find_spec("wheel"):
            self.skipTest("no wheel here, which this setuptools needs")
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        result = self.run_installed(None, target)
        rows, package, library = result.stdout.split()
        self.assertTrue(package.startswith(str(target)), package)
        self.assertEqual(os.path.realpath(library), os.path.realpath(self.prefix / "lib/libheadrace_account.so.1"))


if __name__ == "__main__":
    unittest.main()
