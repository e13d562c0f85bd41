# `headrace profile -- COMMAND` puts this folder first in PYTHONPATH, so that every Python below it runs this file when it
# starts. It must be readable by any Python; it takes the folder off sys.path again, and from Python 3.4 on runs the
# sitecustomize that would have been run without it.
import os
import sys


def _install(here):
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    if sys.version_info < (3, 9) or os.environ.get("HEADRACE_ACCOUNTS") == "off":
        return
    import importlib.util

    package = os.path.dirname(here)
    spec = importlib.util.spec_from_file_location("_headrace_hook", os.path.join(package, "_hook.py"))
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    hook.install(package)


def _run_the_one_before():
    if sys.version_info < (3, 4):
        return
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


try:
    _install(os.path.dirname(os.path.abspath(__file__)))
except Exception as error:
    try:
        sys.stderr.write("headrace: no import hook in this Python: %r\n" % (error,))
    except Exception:
        pass
_run_the_one_before()
