"""The process's instrumentation and what is registered in it: stages and operators.

Ids belong to one segment of one process. After a fork, or after close() and open(), everything is registered again
where it is used next: the library's calls by handle return 1 until that is done.
"""
import os
import sys
import threading

from headrace import _library
from headrace._library import NONE, active, function

register_operator = function("hrx_operator")
register_queue = function("hrx_queue")
_register_stage = function("hrx_stage")
set_stage_parallelism = function("hrx_stage_parallelism")
thread_begin = function("hrx_thread_begin")
thread_end = function("hrx_thread_end")
stage_here = function("hrx_stage_here")
thread_stage = function("hrx_thread_stage")
bind = function("hrx_bind")
_is_open = function("hrx_account_is_open")
_consumer_begin = function("hrx_consumer_begin")
is_consumer = function("hrx_is_consumer")
_is_asking = function("hrx_is_asking")

# Stages that wrap() makes: worker processes, the thread that copies their batches into pinned memory, the thread that
# takes batches, its part that makes them itself, and the part that takes them from workers.
WORKERS, PINNER, TRAINER, LOADER, RECEIVER = "workers", "pin_memory", "trainer", "loader", "receiver"
_SEQUENTIAL = (PINNER, RECEIVER)
_MAX_STAGES = 64


class _Thread(threading.local):
    given = False  # its stage was given by stage(), not by default
    between_requests = False  # in between_epochs
    asking = False  # for a batch, beside the requests that the library knows
    worker = None  # of a pool of threads, that it is


class Process:
    """What this process has registered."""

    tried = False  # to open the segment
    closed = False  # by close(), until open()
    forked = False
    program = None
    default_stage = None  # of all its threads, in a worker process
    has_loader = False  # one feeds it, so that what else it takes is none of its batches
    workers = 0  # of the loaders that batches are taken from
    stages = {}  # name -> id
    group_sizes = {}  # default stage -> threads seen at once
    lock = threading.RLock()


thread = _Thread()


def is_asking():
    """Whether the calling thread is inside a request for a batch that is accounted for."""
    return thread.asking or _is_asking() == 1


def _renew():
    """Forgets every id: the segment is another one, or will be."""
    Process.tried = False
    Process.workers = 0
    Process.stages = {}
    Process.group_sizes = {}


def _after_fork_in_child():
    # The library has let the parent's segment go; locks may have been held by threads that are no more here.
    Process.lock = threading.RLock()
    Process.default_stage = None
    Process.has_loader = False
    Process.forked = True
    thread.given = thread.asking = False
    _renew()


os.register_at_fork(after_in_child=_after_fork_in_child)


def encoded(name):
    return name.encode("utf-8", "replace").replace(b"\0", b"?")


def open(program=None):
    """Opens the instrumentation of this process, which operator() and wrap() do by themselves.

    `program` is shown as the pipeline's name; by default the script's. Returns whether instrumentation is on."""
    if program is not None:
        Process.program = str(program)
    if not active():
        return False
    if Process.closed:
        Process.closed = False
        _renew()
    return ensure()


def close():
    """Ends the instrumentation of this process; also done at exit. Nothing is kept until open() is called."""
    if _library.library is not None:
        Process.closed = True
        _library.library.hrx_account_close()


def _at_process_end():
    if not Process.closed:
        close()


def ensure():
    """Opens the segment once and returns whether there is one; says why if it cannot be."""
    if Process.tried or Process.closed or _library.library is None:
        return bool(_is_open()) if _library.library is not None else False
    with Process.lock:
        if Process.tried:
            return bool(_is_open())
        program = Process.program or os.path.basename((getattr(sys, "argv", None) or [""])[0]) or "python"
        error = -_library.library.hrx_account_open(encoded(program))
        Process.tried = True
    if error:
        folder = os.environ.get("HEADRACE_ACCOUNT_DIR") or "/dev/shm"
        _library.warn(f"no instrumentation: {folder}/headrace.{os.getpid()}: {os.strerror(error)} (free space there, "
                      "or set HEADRACE_ACCOUNT_DIR)")
        return False
    # Processes of multiprocessing end without the C library's exit handlers.
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, _at_process_end, exitpriority=-100)
    return bool(_is_open())


def stage_id(name, parallelism=1, max_parallelism=0):
    """Registers a stage once; the same name gives the same id."""
    known = Process.stages.get(name)
    if known is None:
        known = _register_stage(encoded(name), parallelism, max_parallelism)
        Process.stages[name] = known
    return known


def _group(name):
    """A thread's or process's name without its number: ThreadPoolExecutor-0_3 -> ThreadPoolExecutor-0."""
    return name.rstrip("0123456789").rstrip("-_:/ (") or name


def _thread_group(some):
    # "Thread-3 (fill)" since Python 3.10
    return some.name.partition(" (")[2].rstrip(")") or _group(some.name)


def _process_group():
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return _group(process.current_process().name)
    return "forked" if Process.forked else "main"


def _default_stage():
    """The stage of a thread that joined none: that of its process if it is a worker, else its group of threads."""
    if Process.default_stage is not None:
        return stage_id(Process.default_stage)
    me = threading.current_thread()
    if me is threading.main_thread():
        return stage_id(_process_group())
    name = _thread_group(me)
    alike = sum(1 for other in threading.enumerate() if _thread_group(other) == name)
    with Process.lock:
        stage = stage_id(name, alike)
        if alike > Process.group_sizes.get(name, 1):
            Process.group_sizes[name] = alike
            set_stage_parallelism(stage, alike)
    return stage


def declare_workers(count):
    """That many worker processes make batches for this one now. It is said here, not by them: they register late and
    end before the program does."""
    if not count or count == Process.workers:
        return
    with Process.lock:
        Process.workers = count
        set_stage_parallelism(stage_id(WORKERS, 0), count)


def join_stage():
    """The calling thread's stage, given by default if it has none."""
    here = stage_here()
    if here == NONE:
        here = min(_default_stage(), _MAX_STAGES)
        thread_stage(here)
    return here


def move_to(stage):
    """The calling thread's time and operators belong to that stage (an id) from here on."""
    thread_begin(stage)
    thread_stage(min(stage, _MAX_STAGES))


def become_consumer(*source_stages):
    """The calling thread takes batches: it leaves a stage it has by default. Returns whether instrumentation is on."""
    if not ensure():
        return False
    with Process.lock:
        for name in source_stages:  # in pipeline order; 0 threads until somebody says otherwise
            stage_id(name, 1 if name == PINNER else 0, 1 if name in _SEQUENTIAL else 0)
        trainer = stage_id(TRAINER, 1, 1)
        # Its busy time is the consumer's computing, its wait the consumer's wait for a batch.
        step_operator = register_operator(b"step", b"consumer", trainer)
    if not thread.given and not is_consumer():
        move_to(trainer)
    _consumer_begin(step_operator)
    return True


class stage:
    """The threads that do one part of a pipeline: `with headrace.stage("decode", parallelism=4):` around what one of
    them does. Operators entered inside belong to it. `max_parallelism`: 0 no limit, 1 sequential by nature."""

    def __init__(self, name, parallelism=1, max_parallelism=0):
        self.name, self.parallelism, self.max_parallelism = str(name), int(parallelism), int(max_parallelism)
        self._before = []

    def __enter__(self):
        if active() and ensure():
            self._before.append((stage_here(), thread.given, os.getpid()))
            thread.given = True
            move_to(stage_id(self.name, self.parallelism, self.max_parallelism))
        return self

    def __exit__(self, kind, error, traceback):
        if self._before:
            before, given, pid = self._before.pop()
            if pid == os.getpid():
                thread.given = given
                thread_end()
                thread_stage(before)
        return None
