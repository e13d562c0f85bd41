"""As an end user: `cmake --install`, then programs in C, C++ and Python with nothing but the prefix; then pip."""
import importlib.util
import os
import re
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

    def build_and_run(self, compiler, name, code):
        """Compiles `code` against the prefix alone, as pkg-config says, and runs it: its exit status."""
        if not shutil.which(compiler) or not shutil.which("pkg-config"):
            self.skipTest(f"no {compiler} or no pkg-config")
        source = self.folder / name
        source.write_text(code)
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "headrace-account"], capture_output=True, text=True,
                               check=True, env=dict(os.environ, PKG_CONFIG_PATH=str(self.prefix / "lib/pkgconfig")))
        program = str(self.folder / "program")
        built = subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", str(source), "-o", program,
                                "-Wl,-rpath," + str(self.prefix / "lib"), *flags.stdout.split(), "-lpthread"],
                               capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(built.returncode, 0, built.stderr)
        return subprocess.run([program], env=self.environment()).returncode

    def test_c_program(self):
        self.assertEqual(self.build_and_run("cc", "program.c", """#include <headrace/account_library.h>
int main(void) {
  uint32_t op;
  if (hrx_account_open("program") != 0 || !hrx_account_is_open()) return 1;
  op = hrx_operator("decode", "codec", hrx_stage("main", 1, 0));
  hrx_enter(op);
  hrx_leave();
  return op == 0 ? 0 : 2;
}
"""), 0)
        self.assertEqual(os.listdir(self.accounts), [])

    def test_cpp_program_with_scopes(self):
        self.assertEqual(self.build_and_run("c++", "program.cc", """#include <headrace/account.h>
#include <headrace/scope.h>
int main() {
  if (hr_account_open("program") != 0) return 1;
  const uint32_t stage = hr_stage("main", 1, 0);
  const uint32_t op = hr_operator("decode", "codec", stage);
  headrace::account::ThreadScope thread(stage);
  headrace::account::OperatorScope scope(op);
  scope.Done(1, 10, 20);
  return op == 0 ? 0 : 2;
}
"""), 0)
        self.assertEqual(os.listdir(self.accounts), [])

    def pip_install(self, python, *options):
        """The documented line, then the package as `python` sees it: rows counted, its file, its library."""
        done = subprocess.run([str(python), "-m", "pip", "install", "--no-index", "--no-build-isolation",
                               "--disable-pip-version-check", *options, str(self.prefix / "share/headrace/python")],
                              capture_output=True, text=True, cwd=self.folder, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])

    def check_package(self, result, place):
        rows, package, library = result.stdout.split()
        self.assertEqual(rows, "2")
        self.assertTrue(package.startswith(str(place)), package)
        self.assertEqual(os.path.realpath(library), os.path.realpath(self.prefix / "lib/libheadrace_account.so.1"))

    def test_pip(self):
        if not importlib.util.find_spec("pip"):
            self.skipTest("no pip here")
        target = self.folder / "site"
        self.pip_install(sys.executable, "--root-user-action=ignore", "--target", str(target))
        self.check_package(self.run_installed(None, target), target)

    def test_pip_in_a_fresh_environment(self):
        """Whatever setuptools Python brings, and without the package wheel."""
        if not importlib.util.find_spec("ensurepip"):
            self.skipTest("this Python makes no environments with pip: no ensurepip")
        place = self.folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, capture_output=True, timeout=600)
        python = place / "bin/python"
        self.pip_install(python)
        self.check_package(self.run_installed(str(python), None), place)
        # In another's way: nothing is written into the folder it is installed from.
        self.assertEqual([name for name in os.listdir(self.prefix / "share/headrace/python")
                          if name not in ("headrace", "pyproject.toml", "wheel_backend.py", "__pycache__")], [])

    def test_versions_agree(self):
        """The package says the version of the project in each place that names one."""
        source = HERE.parent.parent
        project = re.search(r"project\(headrace VERSION ([0-9.]+)", (source / "CMakeLists.txt").read_text()).group(1)
        package = source / "probes/python"
        self.assertIn(f'\nversion = "{project}"\n', (package / "pyproject.toml").read_text())
        self.assertIn(f'__version__ = "{project}"', (package / "headrace/__init__.py").read_text())


if __name__ == "__main__":
    unittest.main()
