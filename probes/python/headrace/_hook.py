"""The import hook of `headrace profile`: accounts for the loaders of a program that was not changed for it.

Nothing is imported that the program does not import: when it imports a module that is known here, that module's
functions are replaced once it has run. What is made differently in another version is left alone, and said. A wrapped
loader (headrace.wrap) stays accounted once.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys


def _torch_dataloader(module):
    from headrace import _loader

    _loader.account_for_all(module.DataLoader)


_KNOWN = {
    "torch.utils.data.dataloader": _torch_dataloader,
}


class _Loader(importlib.abc.Loader):
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
            sys.stderr.write("headrace: %s is seen from outside: %r\n" % (module.__name__, error))

    def __getattr__(self, name):
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        change = _KNOWN.get(name)
        if change is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is None:
                continue
            if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                spec.loader = _Loader(spec.loader, change)
            return spec
        return None


class _Package(importlib.abc.MetaPathFinder):
    """Finds this package where the program has none of its own."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name != "headrace":
            return None
        return importlib.util.spec_from_file_location(
            name, os.path.join(self.folder, "__init__.py"), submodule_search_locations=[self.folder])


def install(folder):
    """`folder`: of this package."""
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_Package(folder))
