"""Finds and loads libheadrace_account; without it every call of the package does nothing.

The functions keep the interpreter's lock (ctypes.PyDLL): they take tens of nanoseconds and never wait, so giving the
lock away and taking it back would cost more than the call. Those called for every element are functions of the
interpreter's own kind where it lets the library make some (hrx_python_calls), which costs a fifth of a call by ctypes.
Else they have no argtypes: ctypes then passes a Python int as a C int without a conversion object, which halves the cost.
"""
import ctypes
import os
import sys
from ctypes import c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p, py_object

ABI = 1
NONE = 0xFFFFFFFF  # no stage, no operator, no queue
MAX_HANDLES = 1024
_NAME = "libheadrace_account.so.1"

# name: (result, arguments); arguments None: ints, passed as C ints.
_SIGNATURES = {
    "hrx_account_is_open": (c_int, []),
    "hrx_account_open": (c_int, [c_char_p]),
    "hrx_account_close": (None, []),
    "hrx_stage": (c_uint32, [c_char_p, c_uint32, c_uint32]),
    "hrx_stage_parallelism": (None, [c_uint32, c_uint32]),
    "hrx_operator": (c_uint32, [c_char_p, c_char_p, c_uint32]),
    "hrx_queue": (c_uint32, [c_char_p, c_uint32, c_uint32, c_uint32]),
    "hrx_queue_level": (None, [c_uint32, c_uint32]),
    "hrx_thread_begin": (None, [c_uint32]),
    "hrx_thread_end": (None, []),
    "hrx_stage_here": (c_uint32, []),
    "hrx_thread_stage": (None, [c_uint32]),
    "hrx_bind": (None, [c_uint32, c_uint32, c_uint32]),
    "hrx_consumer_begin": (None, [c_uint32]),
    "hrx_is_consumer": (c_int, []),
    "hrx_consumer_step": (c_int, [c_int64]),
    "hrx_count": (c_int, [c_uint32, c_uint64, c_uint64, c_uint64, c_uint64]),
    "hrx_count_here": (None, [c_uint64, c_uint64, c_uint64]),
    "hrx_begin": (c_int, None),
    "hrx_begin_after": (c_int, None),
    "hrx_end": (c_int, None),
    "hrx_end_one": (c_int, None),
    "hrx_idle": (c_int, None),
    "hrx_pass_on": (c_int, None),
    "hrx_wait_in": (c_int, None),
    "hrx_wait_in_end": (c_int, None),
    "hrx_waited_since": (None, [c_uint64]),
    "hrx_next_begin": (c_int, None),
    "hrx_next_end": (c_uint32, None),
    "hrx_next_failed": (None, None),
    "hrx_next_closed": (None, None),
    "hrx_next_one": (c_int, None),
    "hrx_end_some": (c_int, None),
    "hrx_end_idle": (c_int, None),
    "hrx_ask": (c_int, [c_void_p]),
    "hrx_got": (c_int, [c_void_p, c_uint32]),
    "hrx_got_none": (None, [c_void_p]),
    "hrx_source_looked": (c_int, [c_void_p]),
    "hrx_is_asking": (c_int, []),
    "hrx_python_calls": (c_int, [py_object]),
    "hrx_queue_sampled": (None, None),
    "hrx_queue_capacity": (None, [c_uint32, c_uint32]),
    "hrx_step": (None, [c_uint64, c_uint64, c_uint64]),
    "hrx_done": (None, [c_uint32, c_uint64, c_uint64, c_uint64, c_uint64]),
    "hrx_worked": (None, [c_uint32, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64]),
    "hrx_stage_lived": (None, [c_uint32, c_uint64, c_uint64, c_uint64]),
}


def _candidates():
    """Paths to try, in order: the one asked for alone; or beside the package, where it was installed, the loader's."""
    asked = os.environ.get("HEADRACE_ACCOUNT_LIBRARY")
    if asked:
        return [asked]
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.join(here, _NAME)]
    # PREFIX/share/headrace/python/headrace, as `cmake --install` leaves it, perhaps moved as a whole
    prefix = os.path.abspath(os.path.join(here, *[os.pardir] * 4))
    paths += [os.path.join(prefix, folder, _NAME) for folder in ("lib", "lib64")]
    try:
        from headrace import _installed  # says where, in a copy made by pip
        paths.append(_installed.LIBRARY)
    except ImportError:
        pass
    paths = [path for path in paths if os.path.exists(path)]
    others = [os.path.join("/usr/local/lib", _NAME)]  # the dynamic loader's cache may be older than an installation
    return paths + [_NAME] + [path for path in others if os.path.exists(path)]


def _load():
    """Returns (library, None), or (None, why it is not there)."""
    if not sys.platform.startswith("linux"):
        return None, "instrumentation needs Linux"
    reasons = []
    for path in _candidates():
        try:
            # RTLD_GLOBAL: extension modules that include headrace/account.h share the segment.
            library = ctypes.PyDLL(path, mode=ctypes.RTLD_GLOBAL)
            library.hrx_account_abi.restype, library.hrx_account_abi.argtypes = c_uint32, []
            abi = library.hrx_account_abi()
            if abi != ABI:
                reasons.append(f"{path} writes instrumentation of ABI {abi}, this package knows {ABI}")
                continue
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(library, name)
                function.restype = result
                if arguments is not None:
                    function.argtypes = arguments
        except (OSError, AttributeError) as error:
            reasons.append(" ".join(str(error).split()))
            continue
        return library, None
    return None, reasons[0]


disabled = os.environ.get("HEADRACE_ACCOUNTS") == "off"  # on purpose: nothing to say
library, reason = (None, None) if disabled else _load()
_warned = False


def warn(text):
    """One line on stderr, once in a process; a worker process leaves it to its parent."""
    global _warned
    if _warned:
        return
    _warned = True
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return
    try:
        sys.stderr.write(f"headrace: {text}\n")
    except (AttributeError, OSError, ValueError):
        pass  # no stderr


def active():
    """Whether this process can be instrumented at all: the library is there and nobody switched it off. Says so if not."""
    if library is not None:
        return True
    if not disabled:
        warn(f"no instrumentation: {reason} (install libheadrace_account, or set HEADRACE_ACCOUNT_LIBRARY to its file)")
    return False


_calls = {}  # by name: functions of the interpreter's own kind
if library is not None:
    library.hrx_python_calls(_calls)


def function(name):
    """The library's function, or one that does nothing."""
    if library is None:
        return lambda *arguments: NONE
    return _calls.get(name) or getattr(library, name)


def python_function(name):
    """A function that the library has for Python alone; None where there is none."""
    return _calls.get(name)


_method = python_function("hrx_method")


def quicken(kind, name):
    """Puts the method of that name that the library has (python_loader.c) in the place of that class's own, which it
    calls where anything is not as usual: as _headrace_slow_NAME."""
    if _method is not None:
        setattr(kind, "_headrace_slow_" + name, getattr(kind, name))
        setattr(kind, name, _method(kind, name))


class Source(ctypes.Structure):
    """hrx_source: what a source of batches and its requests need."""

    _fields_ = [("op", c_uint32), ("stage", c_uint32), ("served", c_uint32), ("reserved", c_uint32),
                ("look_every_ns", c_uint64), ("look_ns", c_uint64), ("taken", c_int64)]
