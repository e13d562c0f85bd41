"""The import hook of `headrace profile`: accounts for the loaders of a program that was not changed for it.

Nothing is imported that the program does not import: when it imports a module that is known here, that module's
functions are replaced once it has run. What is made differently in another version is left alone, and said. A wrapped
loader (headrace.wrap) stays accounted once.
"""
import _thread
import functools
import importlib.util
import os
import sys


def _reaches_workers():
    """Whether a Python that is started now gets this hook, and with it this package."""
    return os.path.join(_folder, "hook") in os.environ.get("PYTHONPATH", "").split(os.pathsep)


def _torch_dataloader(module):
    from headrace import _loader

    _loader.account_for_all(module.DataLoader, _reaches_workers)


def _by(name, change):
    """That function of a module of this package, which is imported where it is needed."""

    def changed(module):
        package = __import__("headrace." + name)
        getattr(getattr(package, name), change)(module)

    return changed


def _at_first_use(kind, change):
    """Changes a library when the first object of that class is made: most programs import it and make none."""
    make = kind.__init__

    @functools.wraps(make)
    def __init__(self, /, *arguments, **named):
        if kind.__init__ is __init__:
            kind.__init__ = make
            try:
                change()
            except Exception as error:
                _say("%s is seen from outside: %r" % (kind.__module__, error))
        return kind.__init__(self, *arguments, **named)

    kind.__init__ = __init__


def _pools(name, kind):
    def change(module):
        def account():
            from headrace import _pools

            getattr(_pools, name)(module)

        if _is_made_anew():  # its pool is its parent's
            account()
        else:
            _at_first_use(getattr(module, kind), account)

    return change


def _is_made_anew():
    """Whether this is a process of multiprocessing, made by spawn or forkserver, that is about to get what it runs."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and getattr(process.current_process(), "_inheriting", False)


def _say(text):
    try:
        sys.stderr.write("headrace: %s\n" % text)
    except (AttributeError, OSError, ValueError):
        pass  # no stderr


def _version_in(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("__version__"):
                return line.partition("=")[2].strip(" \n\"'")
    return "unknown"


def _say_other_version(init):
    """The program's own package is used instead of this one: `init` is its __init__.py."""
    try:
        theirs, ours = _version_in(init), _version_in(os.path.join(_folder, "__init__.py"))
    except (OSError, ValueError):
        return
    if theirs != ours:
        _say("this Python has its own headrace package %s (%s), and this headrace is %s; what it sees of the loader may be "
             "wrong: install %s there, or uninstall it" % (theirs, os.path.dirname(init), ours, ours))


_KNOWN = {
    "torch.utils.data.dataloader": _torch_dataloader,
    "tensorflow.python.data.ops.iterator_ops": _by("_tfdata", "account_for_iterators"),
    "keras.src.backend.tensorflow.trainer": _by("_tfdata", "account_for_fit"),
    "keras.src.trainers.data_adapters.py_dataset_adapter": _by("_tfdata", "account_for_py_datasets"),
    "ray.data.iterator": _by("_raydata", "account_for_iterators"),
    "ray.data._internal.execution.operators.map_operator": _by("_raydata", "account_for_tasks"),
    "multiprocessing.pool": _pools("account_for_pools", "Pool"),
    "concurrent.futures.process": _pools("account_for_processes", "ProcessPoolExecutor"),
    "concurrent.futures.thread": _pools("account_for_threads", "ThreadPoolExecutor"),
}


class _Loader:
    """The module's own loader, and afterwards the change to what it made."""

    def __init__(self, inner, change):
        self.inner, self.change = inner, change

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.inner
        self.inner.exec_module(module)
        try:
            self.change(module)
        except Exception as error:
            _say("%s is seen from outside: %r" % (module.__name__, error))

    def __getattr__(self, name):
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


class _Finder:
    """Finds the modules that are known here by the other finders, and this package where the program has none of its own:
    a folder that happens to be called headrace is none."""

    def __init__(self):
        self.searching = set()  # (thread, name): finders that ask others in turn must not ask each other for ever

    def find_spec(self, name, path=None, target=None):
        change = _KNOWN.get(name)
        search = (_thread.get_ident(), name)
        if (change is None and name != "headrace") or search in self.searching:
            return None
        self.searching.add(search)
        try:
            spec = self._by_others(name, path, target)
        finally:
            self.searching.discard(search)
        if name == "headrace":
            if spec is not None and spec.origin is not None:
                _say_other_version(spec.origin)
                return spec
            return importlib.util.spec_from_file_location(
                name, os.path.join(_folder, "__init__.py"), submodule_search_locations=[_folder])
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, change)
        return spec

    def _by_others(self, name, path, target):
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


_folder = None  # of this package


def install(folder):
    """`folder`: of this package."""
    global _folder
    _folder = folder
    sys.meta_path.insert(0, _Finder())
