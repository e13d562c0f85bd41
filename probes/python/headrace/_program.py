"""Finds the program headrace for what runs it: `python -m headrace` and headrace.report()."""
import os
import pathlib
import shutil
import sys
import sysconfig


class ProgramMissing(RuntimeError):
    """There is no program headrace; says what to do."""


def program():
    """The path of the program: $HEADRACE alone where it is set; else the one installed with this package, else the one in $PATH."""
    named = os.environ.get("HEADRACE")
    if named:
        return named
    here = pathlib.Path(__file__).resolve().parent
    # PREFIX/share/headrace/python/headrace, or an environment's site-packages; a folder that `pip install --target` filled.
    folders = [here.parents[3] / "bin", here.parent / "bin", pathlib.Path(sys.executable).parent,
               pathlib.Path(sysconfig.get_path("scripts"))]
    for folder in folders:
        installed = folder / "headrace"
        if installed.is_file() and os.access(installed, os.X_OK):
            return str(installed)
    found = shutil.which("headrace")
    if found:
        return found
    raise ProgramMissing("the program headrace is not in $PATH; set HEADRACE to where it is")
