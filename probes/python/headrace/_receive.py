"""What the trainer's own thread does for a batch that a DataLoader's worker made: it takes bytes from a pipe, unpickles
them, keeps batches that came before their turn, starts workers and ends them. All that is loading, none of it training.

The iterator of the loader gets a class of its own, derived from the one it had; its queue gets another function to
receive with. Both are torch's own insides: one that is made differently is left alone.
"""
import sys
import time
import weakref

from headrace import _account, _pin
from headrace._account import PINNER, RECEIVER, WORKERS, is_consumer, thread
from headrace._library import NONE, active, function, python_function, quicken
from headrace._operator import _begin, _end, _end_one, operator

_pass_on = function("hrx_pass_on")
_wait_in = function("hrx_wait_in")
_wait_in_end = function("hrx_wait_in_end")
_thread_stage = function("hrx_thread_stage")
_waited_since = function("hrx_waited_since")
_stage_here = function("hrx_stage_here")

_OPERATORS = {name: operator(name, kind) for name, kind in {
    "receive": "receive", "unpickle": "deserialize", "unpickle_by_name": "deserialize", "in_order": "order", "sampler": "sample",
    "start_workers": "start", "end_workers": "start"}.items()}
_RECEIVE, _IN_ORDER = _OPERATORS["receive"], _OPERATORS["in_order"]
_START, _SAMPLER = _OPERATORS["start_workers"], _OPERATORS["sampler"]
_receiver = python_function("hrx_receiver")
if _receiver is not None:
    python_function("hrx_loader_handles")(_RECEIVE.handle, _IN_ORDER.handle, _SAMPLER.handle)
_MOST = 0x7FFFFFFF


def sources(inner):
    """Stages before the trainer, in pipeline order."""
    return (WORKERS, PINNER, RECEIVER) if pins(inner) else (WORKERS, RECEIVER)


def pins(inner):
    """Whether another thread takes the batches, to pin them."""
    return inner._data_queue is not inner._worker_result_queue


def stage_id():
    """The receiver has no threads of its own: it is work of the trainer's."""
    return _account.stage_id(RECEIVER, 0, 1)


def register(name):
    """The operator's id in the receiver's stage, for calls that take no handle."""
    op = _OPERATORS[name]
    return _account.register_operator(_account.encoded(op.name), _account.encoded(op.kind), stage_id())


class between_epochs:
    """Around what a trainer's thread does for its workers outside its requests for batches. It is waiting of the step
    under way, or of the next one. `loader`: for which workers start; only where it is done again is it work for batches."""

    def __init__(self, name, loader=None):
        self.op, self.before = _OPERATORS[name], NONE
        self.counts = loader is None or _started_before(loader)

    def __enter__(self):
        self.begin_ns, self.inside = time.monotonic_ns(), thread.between_requests
        thread.between_requests = True
        self.entered = self.counts and active() and bool(is_consumer())
        if self.entered:
            self.before = _stage_here()
            _thread_stage(stage_id())
            self.op.begin()
        return self

    def __exit__(self, kind, error, traceback):
        thread.between_requests = self.inside
        if self.entered:
            _end(self.op.handle)
            _thread_stage(self.before)
            if not self.inside:  # else the outer one's wait holds it, as where old workers are collected
                _waited_since(self.begin_ns)
        return None


_loaders = weakref.WeakSet()  # whose workers have been started
_started = {}  # how many loaders of a kind there were of those
_ONCE_EACH = 3  # loaders of a kind, for training, validation and tests, may each start once and go; more are made again and again


def _kind(loader):
    dataset = type(getattr(loader, "dataset", None))
    return dataset.__module__, dataset.__qualname__, getattr(loader, "num_workers", None), getattr(loader, "batch_size", None)


def _started_before(loader):
    try:
        if loader in _loaders:
            return True
        kind = _kind(loader)
        # Those that are there at once do not stand for each other.
        gone = _started.get(kind, 0) - sum(_kind(each) == kind for each in _loaders)
        return gone >= _ONCE_EACH
    except TypeError:  # it cannot be hashed
        return False


def _has_started(loader):
    if loader not in _loaders:
        _loaders.add(loader)
        kind = _kind(loader)
        _started[kind] = _started.get(kind, 0) + 1


class Receiving:
    """State of one epoch: whether its first batch has come, and whether workers were started again for it. That they
    start once is so in any program; only where they do it again is it work for batches."""

    def __init__(self, again):
        self.new, self.first = again, True

    @staticmethod
    def of(inner, loader, new):
        """None where the iterator is made differently."""
        try:
            inner._headrace_receiving = receiving = Receiving(new and _started_before(loader))
            if not _seen(inner):
                return None
            _has_started(loader)
        except (AttributeError, TypeError):
            return None
        return receiving

    def begin_epoch(self):
        if self.new and _begin(_START.handle):  # nothing comes before the workers have started
            _START.begin()

    def got_first(self):
        self.first = False
        if self.new:
            self.new = False
            _end(_START.handle)
            _START.count(completions=1)

    def end_epoch(self):
        """An epoch's end, or an error: what is asked next starts again."""
        self.first, self.new = True, False


def early_batches(iterator):
    """How many batches arrived before their turn and are kept until then."""
    tasks = iterator._task_info
    try:
        # What a worker whose dataset has ended was asked for stays outstanding.
        if False not in iterator._workers_status:
            return len(tasks) - iterator._tasks_outstanding  # the others are still with the workers
    except AttributeError:
        pass
    return sum(len(task) > 1 for task in tasks.values())


# Methods of torch's iterators, as they are overridden. They are called for every batch: what they override is found once.

def _next_index(kind, handle=_SAMPLER.handle):
    """Which rows the next batch is of is found by the trainer's own thread."""
    find = kind._next_index

    def _next_index(self):
        if _begin(handle):
            _SAMPLER.begin()
        try:
            indices = find(self)
        except BaseException:
            _end(handle)
            raise
        _end_one(handle, 0)
        return indices

    return _next_index


def _try_get_data(kind):
    get = kind._try_get_data

    def _try_get_data(self, *arguments, **named):
        receiving = self._headrace_receiving
        if receiving.first and receiving.new:
            return get(self, *arguments, **named)  # waits for workers that start
        waiting = _IN_ORDER if early_batches(self) else _RECEIVE
        handle = waiting.handle
        if _wait_in(handle) and waiting.bind():
            _wait_in(handle)
        try:
            return get(self, *arguments, **named)
        finally:
            _wait_in_end(handle)

    return _try_get_data


class _Samples:
    """One whose sampler is accounted for."""


class _Receives(_Samples):
    """A _MultiProcessingDataLoaderIter."""

    def _shutdown_workers(self):
        if self._shutdown or between_epochs is None:  # or the interpreter is going away
            return super()._shutdown_workers()
        with between_epochs("end_workers"):
            return super()._shutdown_workers()


_classes = {}  # class of an iterator and one of ours -> the one that is both


def _overridden(kind, by):
    made = _classes.get((kind, by))
    if made is None:
        methods = [_next_index, _try_get_data] if by is _Receives else [_next_index]
        made = _classes[kind, by] = type(kind.__name__, (by, kind), {
            "__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__,
            **{method.__name__: method(kind) for method in methods}})
        if not issubclass(kind, _Samples):  # whose method is one of these already
            made._headrace_find, made._headrace_get = kind._next_index, getattr(kind, "_try_get_data", None)
            for method in methods:
                quicken(made, method.__name__)
    return made


def see_sampler(inner):
    """Accounts for the sampler of an iterator that makes its batches itself, where it is made as we know it."""
    kind = type(inner)
    try:
        if not issubclass(kind, _Samples) and callable(inner._next_index):
            inner.__class__ = _overridden(kind, _Samples)
    except (AttributeError, TypeError):
        pass


def _unpickling():
    """Tensors come by the name of their memory, or the worker is asked for it: what that takes is not alike."""
    multiprocessing = sys.modules.get("torch.multiprocessing")
    strategy = getattr(multiprocessing, "get_sharing_strategy", None)
    return _OPERATORS["unpickle_by_name" if strategy and strategy() == "file_system" else "unpickle"]


def _seen(inner):
    kind = type(inner)
    if issubclass(kind, _Receives):
        return True
    for name in ("_try_get_data", "_shutdown_workers", "_shutdown", "_task_info", "_data_queue"):
        getattr(inner, name)
    pinned = pins(inner)
    receive, unpickle = inner._worker_result_queue._recv_bytes, _unpickling()
    if pinned:
        _pin.see(inner._worker_result_queue, _RECEIVE)

    handle, unpickle_handle = _RECEIVE.handle, unpickle.handle

    def recv_bytes(*arguments):
        if pinned and not thread.given:  # the first batch, which that thread already waited for
            return receive(*arguments)
        if _begin(handle):
            _RECEIVE.begin()
        data = receive(*arguments)
        size = len(data)
        if size > _MOST:  # more than fits into a C int
            _RECEIVE.count(bytes_in=size)
            size = 0
        # Unpickling is left with the wait around it, once the queue has returned.
        if _pass_on(handle, unpickle_handle, size):
            unpickle.bind()
            _pass_on(handle, unpickle_handle, size)
        return data

    inner.__class__ = _overridden(kind, _Receives)
    if _receiver is not None and not pinned:
        recv_bytes = _receiver(receive, recv_bytes, handle, unpickle_handle, unpickle.bind)
    inner._worker_result_queue._recv_bytes = recv_bytes
    return True
