"""Pools of multiprocessing and of concurrent.futures whose results the trainer takes: what their workers do, and how
long the trainer waits.

A pool is accounted for from the first result on that the program's main thread takes of it, and only where no loader
feeds that thread: one that saves checkpoints is no stage of the pipeline. What a pool's workers call is an operator, by
the function's name; sending its result is another. Pools are seen where they are made and where their results are taken;
the workers' loops are the library's own, which get other queues.
"""
import functools
import mmap
import sys
import threading
import time
import weakref

from headrace import _account
from headrace._account import TRAINER, Process, thread
from headrace._batches import _NO_STAGE, Batches, ReadyBatches
from headrace._library import active, function
from headrace._operator import _end_one, operator

_begin_after = function("hrx_begin_after")
_idle = function("hrx_idle")
_waited_since = function("hrx_waited_since")

_SEND = operator("send", "serialize")


class _Feed:
    """A pool: the stage that its workers are, and whether the trainer takes its results, which its processes see."""

    def __init__(self, stage, threads):
        self.stage, self.threads = stage, threads
        self._on = bytearray(1) if threads else mmap.mmap(-1, 1)
        self._lock, self.joined, self.taker = threading.Lock(), 0, None
        self.ready = 0  # results that nobody has taken yet

    def add_ready(self, count):
        with self._lock:
            self.ready += count

    @property
    def taken(self):
        return self._on[0]

    def take(self):
        self._on[0] = 1

    def join(self):
        """The calling thread is a worker. Returns whether instrumentation is on."""
        if not _account.ensure():
            return False
        thread.given = True
        if self.threads:
            with self._lock:  # threads are made as they are needed
                self.joined += 1
                stage = _account.stage_id(self.stage, self.joined)
                _account.set_stage_parallelism(stage, self.joined)
        else:
            stage = _account.stage_id(self.stage, 1)
        _account.move_to(stage)
        return True


# ---- The workers' side ----

class _Worker:
    """What one worker does in turn: a call, sending the result, waiting for the next call."""

    def __init__(self, feed):
        self.feed, self.call, self.items, self.idle, self.joined = feed, None, 0, _SEND.handle, False

    def begin(self, called, arguments):
        self.call = None
        if not active() or not (self.feed.taken and (self.joined or self._join())):
            return
        called, self.items = _unwrapped(called, arguments)
        if hasattr(called, "_headrace_operator"):  # accounts for itself
            call = _WAITS
        else:
            call = operator(_name_of(called), "thread_call" if self.feed.threads else "call")
        if _begin_after(self.idle, call.handle) and call.bind():
            _begin_after(self.idle, call.handle)
        self.call = call

    def _join(self):
        self.joined = self.feed.join()
        return self.joined

    def end(self, send=None, *arguments):
        """The call has ended. `send`: passes its result on."""
        call, self.call = self.call, None
        if call is None:
            return None if send is None else send(*arguments)
        _end_one(call.handle, self.items)
        if send is None:
            self.idle = call.handle
            _idle(call.handle)
            return None
        _SEND.begin()
        try:
            return send(*arguments)
        finally:
            _end_one(_SEND.handle, 0)
            self.idle = _SEND.handle
            _idle(_SEND.handle)


_WAITS = operator("call", "call")


def _unwrapped(called, arguments):
    """The program's own function, and how many elements it is called for: a pool may hand out several at once."""
    items = 1
    name = getattr(called, "__name__", "")
    if name in ("mapstar", "starmapstar") and arguments:
        chunk = arguments[0]  # (function, elements)
        called, items = chunk[0], len(chunk[1])
    while isinstance(called, functools.partial):
        if getattr(called.func, "__name__", "") == "_process_chunk" and called.args:
            items = len(arguments[0]) if arguments and hasattr(arguments[0], "__len__") else 1
            called = called.args[0]
        else:
            called = called.func
    return called, items


def _name_of(called):
    name = getattr(called, "__name__", None) or type(called).__name__
    return name if isinstance(name, str) else "call"


class _Queue:
    """A pool's queue as one of its workers sees it."""

    def __init__(self, inner, worker):
        self._inner, self._worker = inner, worker

    def __getattr__(self, name):
        if name in ("_inner", "_worker"):
            raise AttributeError(name)
        return getattr(self._inner, name)


class _PoolTasks(_Queue):
    def get(self):
        task = self._inner.get()
        if task is not None:
            self._worker.begin(task[2], task[3])
        return task


class _ExecutorCalls(_Queue):
    def get(self, *arguments, **named):
        item = self._inner.get(*arguments, **named)
        if item is not None:
            self._worker.begin(item.fn, item.args)
        return item


class _Results(_Queue):
    def put(self, *arguments):
        if self._worker.feed.threads:  # nothing is sent
            self._worker.end()
            return self._inner.put(*arguments)
        return self._worker.end(self._inner.put, *arguments)


_feeds = {}  # id of the queue that a pool's workers get their calls from -> its feed


def _loop(inner, tasks):
    """The workers' loop `inner`(calls, results, ...) with other queues."""

    @functools.wraps(inner)
    def loop(calls, results, *arguments, **named):
        # Where processes are started anew, nothing tells whether their results are taken: they are taken to be.
        feed = _feeds.get(id(calls))
        if feed is None and active():
            feed = _Feed(_STAGES[inner.__name__], False)
            feed.take()
        if feed is not None:
            if not feed.threads:
                Process.default_stage = feed.stage  # what it takes of pools of its own is none of a trainer's
            worker = _Worker(feed)
            calls, results = tasks(calls, worker), _Results(results, worker)
        return inner(calls, results, *arguments, **named)

    return loop


_STAGES = {"worker": "Pool", "_process_worker": "ProcessPoolExecutor"}


class _Call:
    """A function that a thread of an executor runs."""

    def __init__(self, called, feed):
        self.called, self.feed = called, feed

    def __call__(self, /, *arguments, **named):
        if not self.feed.taken:
            return self.called(*arguments, **named)
        worker = getattr(thread, "worker", None)
        if worker is None or worker.feed is not self.feed:
            worker = thread.worker = _Worker(self.feed)
        worker.begin(self.called, arguments)
        try:
            return self.called(*arguments, **named)
        finally:
            worker.end()


# ---- The trainer's side ----

class _ReadyResults(ReadyBatches):
    """The results that a pool has made and nobody has taken: as many as it likes, as far as anyone can tell."""

    def __init__(self, feed):
        self.feed, self.numbers = feed, []

    def occupancies(self):
        return (max(0, self.feed.ready),)

    def register(self):
        self.numbers = [_account.register_queue(b"results", _account.stage_id(self.feed.stage, 0),
                                                _account.stage_id(TRAINER, 1, 1), 0)]


class _Takes(Batches):
    """The results of one pool, as the thread takes them: each is a batch."""

    def __init__(self, feed):
        super().__init__(iter(()), queue=_ReadyResults(feed))
        self.feed = feed

    def _prepare(self):
        if not _account.become_consumer(self.feed.stage):
            return False
        self._source = self._stage = _NO_STAGE
        self._queue.register()
        self._served = 0
        return True

    def take(self, call):
        self._next = call
        return self.__next__()


def _is_taker():
    """Whether results that the calling thread takes now are batches of a trainer's."""
    if Process.default_stage is not None or Process.has_loader or not active():
        return False
    if threading.current_thread() is not threading.main_thread() and not _account.is_consumer():
        return False
    events = sys.modules.get("asyncio.events")  # a loop hands results on that are there
    return events is None or events._get_running_loop() is None


def _take(feed, call):
    """call() takes a result of that pool."""
    if feed is None:
        return call()
    if _account.is_asking():  # by who makes a batch for the thread
        feed.take()
        return call()
    if not _is_taker():
        return call()
    feed.take()
    if feed.taker is None:
        feed.taker = _Takes(feed)
    return feed.taker.take(call)


def _waiting(wait):
    """Event.wait() of who waits for any of several results, which it then takes."""

    def waits(*arguments, **named):
        if _account.is_asking() or not _is_taker():
            return wait(*arguments, **named)
        begin_ns = time.monotonic_ns()
        try:
            return wait(*arguments, **named)
        finally:
            _waited_since(begin_ns)

    return waits


# ---- What is replaced in the libraries ----

def _once(kind):
    """Whether that class or module is seen for the first time."""
    if "_headrace_accounted" in vars(kind):
        return False
    kind._headrace_accounted = True
    return True


def _is_made_by_ray():
    """Whether the pool that is being made is for what Ray does itself, as reading the files' footers: its results are no
    batches."""
    frame = sys._getframe(2)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("multiprocessing", "concurrent.futures", "headrace", "_headrace")):
            return module.startswith("ray.")
        frame = frame.f_back
    return False


def _with_feed(kind, name, make_feed):
    """Method `name` of a class makes the pool's queue: from then on it has a feed."""
    inner = getattr(kind, name)

    @functools.wraps(inner)
    def made(self, /, *arguments, **named):
        result = inner(self, *arguments, **named)
        if _is_made_by_ray():
            return result
        try:
            calls, feed = make_feed(self)
            self._headrace_feed = feed
            if calls is not None:
                _feeds[id(calls)] = feed
                weakref.finalize(self, _feeds.pop, id(calls), None)
        except (AttributeError, TypeError, OSError):
            pass  # made differently in this version: seen from outside
        return result

    setattr(kind, name, made)


def _of_pool(kind):
    """Results of that class remember the pool that they come from."""
    inner = kind.__init__

    @functools.wraps(inner)
    def __init__(self, pool, /, *arguments, **named):
        self._headrace_feed = getattr(pool, "_headrace_feed", None)
        inner(self, pool, *arguments, **named)

    kind.__init__ = __init__


def _taking(kind, name, *others):
    inner = getattr(kind, name)

    @functools.wraps(inner)
    def taken(self, /, *arguments, **named):
        feed = self.__dict__.get("_headrace_feed")
        if feed is None:
            return inner(self, *arguments, **named)
        came = True  # also where what came is an error of the call's
        try:
            return _take(feed, functools.partial(inner, self, *arguments, **named))
        except BaseException as error:  # each library has had a TimeoutError of its own
            came = not isinstance(error, (StopIteration, KeyboardInterrupt)) and type(error).__name__ != "TimeoutError"
            raise
        finally:
            if came and _is_single(self):
                feed.add_ready(-1)
            if came and not others:  # it stays what it is, however often it is asked for
                self.__dict__.pop("_headrace_feed", None)

    for each in (name, *others):
        setattr(kind, each, taken)


def _is_single(result):
    """Whether it is made at once, and taken once: not what comes in parts."""
    return "_number_left" not in result.__dict__


def _counting(kind):
    """A result of that class becomes ready."""
    inner = kind._set

    @functools.wraps(inner)
    def _set(self, /, *arguments, **named):
        feed = self.__dict__.get("_headrace_feed")
        if feed is not None and _is_single(self):
            feed.add_ready(1)
        return inner(self, *arguments, **named)

    kind._set = _set


def account_for_pools(module):
    """multiprocessing.pool"""
    if not _once(module):
        return
    thread_pool = getattr(module, "ThreadPool", None)
    _with_feed(module.Pool, "_setup_queues", lambda pool: (pool._inqueue, _Feed("Pool", False)))
    if thread_pool is not None:
        _with_feed(thread_pool, "_setup_queues", lambda pool: (pool._inqueue, _Feed("ThreadPool", True)))
    module.worker = _loop(module.worker, _PoolTasks)
    for kind in (module.ApplyResult, module.IMapIterator):
        _of_pool(kind)
        _counting(kind)
    _counting(module.IMapUnorderedIterator)
    _taking(module.ApplyResult, "get")
    _taking(module.IMapIterator, "next", "__next__")


def account_for_processes(module):
    """concurrent.futures.process"""
    if not _once(module):
        return
    kind = module.ProcessPoolExecutor
    _with_feed(kind, "__init__", lambda pool: (pool._call_queue, _Feed("ProcessPoolExecutor", False)))
    module._process_worker = _loop(module._process_worker, _ExecutorCalls)
    _submitting(kind, lambda called, feed: called)
    _account_for_futures()


def account_for_threads(module):
    """concurrent.futures.thread"""
    if not _once(module):
        return
    kind = module.ThreadPoolExecutor
    _with_feed(kind, "__init__", lambda pool: (None, _Feed(_thread_stage_name(pool), True)))
    _submitting(kind, _Call)
    _account_for_futures()


def _thread_stage_name(executor):
    """By the prefix of its threads, where the program chose one."""
    prefix = executor._thread_name_prefix
    return "ThreadPoolExecutor" if not prefix or prefix == "ThreadPoolExecutor-0" else prefix


def _submitting(kind, called_as):
    inner = kind.submit

    @functools.wraps(inner)
    def submit(self, fn, /, *arguments, **named):
        feed = self.__dict__.get("_headrace_feed")
        if feed is None:
            return inner(self, fn, *arguments, **named)
        future = inner(self, called_as(fn, feed), *arguments, **named)
        future._headrace_feed = feed
        # With its feed: who waits for the result may have taken it, and the feed off it, before this is called.
        future.add_done_callback(functools.partial(_done, feed))
        return future

    kind.submit = submit


def _done(feed, future):
    if not future.cancelled():
        feed.add_ready(1)


def _account_for_futures():
    base = sys.modules["concurrent.futures._base"]
    if not _once(base):
        return
    _taking(base.Future, "result")
    install = base._create_and_install_waiters

    @functools.wraps(install)
    def installed(futures, *arguments, **named):
        waiter = install(futures, *arguments, **named)
        if any("_headrace_feed" in future.__dict__ for future in futures):
            waiter.event.wait = _waiting(waiter.event.wait)
        return waiter

    base._create_and_install_waiters = installed
