"""wrap(): the consumer's wait for its next batch, and the workers of a PyTorch DataLoader.

A DataLoader is not changed: wrap() returns a shallow copy of a subclass, whose iterators are made from a view of the
loader in which dataset, collate_fn and worker_init_fn are accounted. The loader's own attributes stay what they were,
inside the workers too.
"""
import copy
import functools
import sys
import time

from headrace import _account, _receive
from headrace._account import LOADER, TRAINER, WORKERS, Process
from headrace._library import NONE, active, function
from headrace._operator import _begin, _end, _end_one, operator

_begin_after = function("hrx_begin_after")
_idle = function("hrx_idle")
_next_begin = function("hrx_next_begin")
_next_end = function("hrx_next_end")
_next_failed = function("hrx_next_failed")
_next_closed = function("hrx_next_closed")
_queue_sampled = function("hrx_queue_sampled")
_consumer_step = function("hrx_consumer_step")
_consumer_waited = function("hrx_consumer_waited")

_LOOK_EVERY_NS = 2_000_000
_NO_STAGE = 0x7FFFFFFF  # of a call without argtypes
_LOADER_ATTRIBUTES = ("dataset", "collate_fn", "worker_init_fn", "num_workers", "batch_size", "_get_iterator")


# ---- Rows of a batch ----

def _first_dimension(value):
    shape = getattr(value, "shape", None)
    if shape is None:
        return None
    try:
        return int(shape[0])
    except (TypeError, ValueError, IndexError, KeyError):
        return None


def rows_of(batch, collated):
    """Rows of a batch where they can be told, else 0. `collated`: a list holds one column an element, as torch's
    default_collate leaves it, rather than one row."""
    for _ in range(4):
        rows = _first_dimension(batch)
        if rows is not None:
            return rows
        if isinstance(batch, (str, bytes, bytearray)) or not hasattr(batch, "__len__"):
            return 0
        if not len(batch):
            return 0
        if hasattr(batch, "keys") and hasattr(batch, "values"):
            batch = next(iter(batch.values()))
            collated = True
        elif isinstance(batch, (tuple, list)):
            inner = batch[0]
            is_column = collated or isinstance(batch, tuple)
            if not is_column or not hasattr(inner, "__len__") or isinstance(inner, (str, bytes, bytearray)):
                return len(batch)
            batch = inner
        else:
            return len(batch)
    return 0


def _rows(batch, rows, collated):
    try:
        n = rows_of(batch, collated) if rows is None else rows(batch) if callable(rows) else rows
        return min(max(0, int(n)), 0x7FFFFFFF)
    except Exception:  # an odd batch is no reason to end the program
        return 0


# ---- The consumer's side ----

class Batches:
    """An iterator that accounts for its consumer: the wait for each batch, batches, rows, and steps."""

    def __init__(self, inner, rows=None, collated=False, makes_itself=False, queue=None, receiving=None):
        self._inner, self._next = inner, inner.__next__
        self._rows, self._collated, self._queue = rows, collated, queue
        self._makes_itself = makes_itself  # the calling thread makes the batches of a DataLoader without workers
        self._receiving = receiving  # what of the work for a request the calling thread does, beside workers
        self._prepared, self._source, self._stage, self._served = False, _NO_STAGE, _NO_STAGE, 0

    def __iter__(self):
        return self

    def _prepare(self):
        """Registers what is needed in this segment, on this thread."""
        if self._queue:
            sources = _receive.SOURCES if self._receiving is not None else (WORKERS,)
        else:
            sources = (LOADER,) if self._makes_itself else ()
        if not _account.become_consumer(*sources):
            return False
        self._source = self._stage = _NO_STAGE
        if self._receiving is not None:
            self._stage = min(_receive.stage_id(), _NO_STAGE)
            self._source = min(_receive.register("receive"), _NO_STAGE)
        elif not self._queue:
            # Operators entered inside a request belong to the part that makes batches, not to the trainer.
            self._stage = min(_account.stage_id(LOADER, 1), _NO_STAGE)
        if self._makes_itself:
            self._source = min(_account.register_operator(b"fetch", b"fetch", self._stage), _NO_STAGE)
        if self._queue:
            self._queue.register()
        self._served = 0
        return True

    def __next__(self):
        if not self._prepared or _next_begin(self._source, self._stage, self._served):
            self._prepared = self._prepare()
            _next_begin(self._source, self._stage, self._served)
        queue, receiving = self._queue, self._receiving
        if receiving is not None and receiving.first:
            _consumer_waited(*receiving.begin_epoch())
        if queue is not None:
            queue.look(0)
        try:
            batch = self._next()
        except BaseException:
            if queue is not None:
                queue.look(0, last=True)
            if receiving is not None:
                receiving.end_epoch()
            _next_failed(self._source)
            self._served = 0
            raise
        if receiving is not None and receiving.first:
            receiving.got_first()
        self._served = _next_end(self._source, _rows(batch, self._rows, self._collated))
        if queue is not None:
            queue.look(1)
        return batch

    def __del__(self):
        try:
            if self._served:
                _next_closed(self._served)
        except Exception:  # the interpreter is going away
            pass

    def __getattr__(self, name):
        if name in ("_inner", "_served"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __reduce__(self):
        raise TypeError("an iterator of headrace.wrap() cannot be pickled: wrap it in the process that uses it")


_OWN_NAMES = {"_inner", "_next", "_rows", "_collated", "_queue", "_makes_itself", "_receiving", "_prepared", "_source",
              "_stage", "_served"}


class _LoaderBatches(Batches):
    """Of a DataLoader: takes the place of its iterator for whoever asks what it is."""

    @property
    def __class__(self):
        return type(self._inner)

    def __setattr__(self, name, value):
        if name in _OWN_NAMES:
            object.__setattr__(self, name, value)
        else:
            setattr(self._inner, name, value)

    def __reduce_ex__(self, protocol):
        return self._inner.__reduce_ex__(protocol)


class _SizedLoaderBatches(_LoaderBatches):
    def __len__(self):
        return len(self._inner)


class _SizedBatches(Batches):
    def __len__(self):
        return len(self._inner)


def _batches(inner, **options):
    return (_SizedBatches if hasattr(type(inner), "__len__") else Batches)(inner, **options)


class Wrapped:
    """An iterable whose iterators account for their consumer; everything else is the iterable's own."""

    def __init__(self, inner, rows):
        self._inner, self._rows = inner, rows

    def __iter__(self):
        return _batches(iter(self._inner), rows=self._rows)

    def __getattr__(self, name):
        if name in ("_inner", "_rows"):
            raise AttributeError(name)  # while being unpickled
        return getattr(self._inner, name)

    def __getitem__(self, index):
        return self._inner[index]


class _SizedWrapped(Wrapped):
    def __len__(self):
        return len(self._inner)


class _ReadyBatches:
    """The batches that workers have made and the consumer has not taken yet: looked at when it asks and when it got
    one. The iterator's attributes are read with care: they are torch's own."""

    def __init__(self, iterator, received):
        self.iterator, self.received = iterator, received
        self.number, self.taken, self.next_ns = NONE, -1, 0
        self.capacity = iterator._prefetch_factor * iterator._num_workers
        self.occupancy()

    def occupancy(self):
        iterator = self.iterator
        ready = iterator._worker_result_queue.qsize()
        if iterator._data_queue is not iterator._worker_result_queue:
            ready += iterator._data_queue.qsize()  # pinned
        return ready + sum(len(task) > 1 for task in iterator._task_info.values())  # arrived before their turn

    def register(self):
        taker = _receive.stage_id() if self.received else _account.stage_id(TRAINER, 1, 1)
        self.number = _account.register_queue(b"batches", _account.stage_id(WORKERS, 0), taker, self.capacity)
        self.taken, self.next_ns = -1, 0

    def look(self, taken, last=False):
        """`taken`: batches taken since the last call. Looks now and then: a look costs microseconds."""
        if self.number == NONE:
            return
        if self.taken >= 0:
            self.taken += taken
        now_ns = time.monotonic_ns()
        if now_ns < self.next_ns and not last:
            return
        self.next_ns = now_ns + _LOOK_EVERY_NS
        try:
            _queue_sampled(self.number, self.occupancy(), self.taken)
            self.taken = 0
        except Exception:  # closed, or made differently in this version
            self.number = NONE


# ---- The workers' side: what a DataLoader's iterator is given instead of the loader's own ----

_GETITEM = operator("getitem", "fetch")
_NEXT = operator("next", "fetch")
_COLLATE = operator("collate", "batch")


class _Own:
    """Stands for an object in everything: attributes, class, and as a pickle."""

    __slots__ = ("_headrace_inner",)

    def __init__(self, inner):
        object.__setattr__(self, "_headrace_inner", inner)

    def __getattr__(self, name):
        return getattr(self._headrace_inner, name)

    def __setattr__(self, name, value):
        setattr(self._headrace_inner, name, value)

    def __delattr__(self, name):
        delattr(self._headrace_inner, name)

    @property
    def __class__(self):
        return type(self._headrace_inner)

    def __len__(self):
        return len(self._headrace_inner)

    def __reduce_ex__(self, protocol):
        return type(self), (self._headrace_inner,)


class _MapItems(_Own):
    """A dataset that is asked for items by index."""

    __slots__ = ()

    def __getitem__(self, index):
        if _begin_after(_COLLATE.handle, _GETITEM.handle):
            _GETITEM.begin()
        try:
            item = self._headrace_inner[index]
        except BaseException:
            _end(_GETITEM.handle)
            raise
        _end_one(_GETITEM.handle, 1)
        return item


class _MapItemLists(_MapItems):
    """One that can be asked for all items of a batch at once."""

    __slots__ = ()

    def __getitems__(self, indices):
        if _begin_after(_COLLATE.handle, _GETITEM.handle):
            _GETITEM.begin()
        try:
            items = self._headrace_inner.__getitems__(indices)
        except BaseException:
            _end(_GETITEM.handle)
            raise
        _end(_GETITEM.handle)
        try:
            _GETITEM.count(completions=len(items), rows=len(items))
        except TypeError:
            pass
        return items


class _IterableItems(_Own):
    """A dataset that gives one item after the other."""

    __slots__ = ()

    def __iter__(self):
        return _Items(iter(self._headrace_inner))


class _Items:
    __slots__ = ("_inner", "_next")

    def __init__(self, inner):
        self._inner, self._next = inner, inner.__next__

    def __iter__(self):
        return self

    def __next__(self):
        if _begin_after(_COLLATE.handle, _NEXT.handle):
            _NEXT.begin()
        try:
            item = self._next()
        except BaseException:
            _end(_NEXT.handle)
            raise
        _end_one(_NEXT.handle, 1)
        return item

    def __getattr__(self, name):
        return getattr(self._inner, name)


class _Collate:
    """A collate_fn. In a worker, what follows it is waiting: for room, that is for the next index to arrive."""

    def __init__(self, inner, batched, in_worker):
        self.inner, self.batched, self.in_worker = inner, batched, in_worker

    def __call__(self, samples):
        handle = _COLLATE.handle
        if _begin_after(handle, handle):
            _COLLATE.begin()
        try:
            batch = self.inner(samples)
        except BaseException:
            _end(handle)
            raise
        _end_one(handle, len(samples) if self.batched and hasattr(samples, "__len__") else 1)
        if self.in_worker:
            _idle(handle)
        return batch


class _WorkerInit:
    """A worker_init_fn, which runs first in every worker process."""

    def __init__(self, inner, source):
        self.inner, self.source = inner, source

    def __call__(self, worker_id):
        become_worker(self.source)
        if self.inner is not None:
            self.inner(worker_id)


def become_worker(source):
    """The calling process is a worker of a DataLoader."""
    if not active():
        return
    Process.default_stage = WORKERS
    if _account.ensure():
        _account.thread.given = True
        _account.move_to(_account.stage_id(WORKERS, 1))
        source.bind()
        _COLLATE.bind()
        _idle(_COLLATE.handle)
    # Code of the dataset that asks for itself gets itself.
    try:
        worker = sys.modules["torch.utils.data._utils.worker"]
        info = worker.get_worker_info()
        if type(info.dataset).__module__ == __name__:
            object.__setattr__(info, "dataset", info.dataset._headrace_inner)  # frozen in some versions
    except (KeyError, AttributeError, TypeError):
        pass


class _View(_Own):
    """A loader as its iterator sees it."""

    __slots__ = ("_headrace_changed",)

    def __init__(self, loader, changed):
        object.__setattr__(self, "_headrace_changed", changed)
        _Own.__init__(self, loader)

    def __getattribute__(self, name):
        if name in ("dataset", "collate_fn", "worker_init_fn"):
            return object.__getattribute__(self, "_headrace_changed")[name]
        return object.__getattribute__(self, name)


def _is_data_pipe(dataset):
    data = sys.modules.get("torch.utils.data")
    kinds = tuple(kind for kind in (getattr(data, "IterDataPipe", None), getattr(data, "MapDataPipe", None)) if kind)
    return isinstance(dataset, kinds)


def _is_iterable_kind(loader):
    dataset = loader.dataset
    iterable = getattr(sys.modules.get("torch.utils.data"), "IterableDataset", None)
    if iterable is not None and isinstance(dataset, iterable):
        return True
    return not hasattr(dataset, "__getitem__")


def _accounted(loader):
    """What of the loader is replaced for its iterators."""
    dataset = loader.dataset
    source = _GETITEM
    if _is_data_pipe(dataset):
        pass  # torch takes pipes apart, which a stand-in would not survive
    elif _is_iterable_kind(loader):
        dataset, source = _IterableItems(dataset), _NEXT
    elif getattr(dataset, "__getitems__", None):
        dataset = _MapItemLists(dataset)
    else:
        dataset = _MapItems(dataset)
    has_workers = loader.num_workers > 0
    batched = getattr(loader, "batch_sampler", None) is not None or loader.batch_size is not None
    return {
        "dataset": dataset,
        "collate_fn": _Collate(loader.collate_fn, batched, has_workers),
        "worker_init_fn": _WorkerInit(loader.worker_init_fn, source) if has_workers else loader.worker_init_fn,
    }


def _get_iterator(self):
    return type(self)._headrace_base._get_iterator(_View(self, _accounted(self)))


def _iter(self):
    return iterate(self, type(self)._headrace_base.__iter__, self._headrace_rows)


def iterate(loader, make, rows=None):
    """The accounted iterator of a loader whose class makes its iterators by make(loader)."""
    if loader.num_workers <= 0:
        inner, receiving, queue = make(loader), None, None
    else:
        before = getattr(loader, "_iterator", None)  # of persistent workers
        with _receive.between_epochs("start_workers" if before is None else "receive", loader):
            inner = make(loader)
        receiving = queue = None
        if not isinstance(inner, Batches):
            receiving = _receive.Receiving.of(inner, loader, new=inner is not before)
            try:
                queue = _ReadyBatches(inner, receiving is not None)
            except Exception:  # made differently in this version: its queue is not seen
                queue = _NoQueue()
    if isinstance(inner, Batches):
        return inner
    batched = getattr(loader, "batch_sampler", None) is not None or loader.batch_size is not None
    kind = _SizedLoaderBatches if hasattr(type(inner), "__len__") else _LoaderBatches
    return kind(inner, rows=rows, collated=batched, makes_itself=loader.num_workers == 0, queue=queue,
                receiving=receiving)


def account_for_all(kind, reaches_workers):
    """Every loader of that class from here on, as if each were wrapped. reaches_workers(): whether processes that are
    started anew can import this package; else what they are given is left as it is."""
    if "_headrace_accounted" in kind.__dict__:
        return
    make, get_iterator = kind.__iter__, kind._get_iterator

    def __iter__(self):
        wrapped = hasattr(type(self), "_headrace_base")
        return iterate(self, make) if active() and not wrapped else make(self)

    def _get_iterator(self):
        if type(self) is not _View and active() and (_forks(self) or reaches_workers()):
            self = _View(self, _accounted(self))
        return get_iterator(self)

    for own, replaced in ((__iter__, make), (_get_iterator, get_iterator)):
        functools.update_wrapper(own, replaced)
        setattr(kind, own.__name__, own)
    kind._headrace_accounted = True


def _forks(loader):
    """Whether its workers are copies of this process, which have what it has imported."""
    if loader.num_workers <= 0:
        return True
    context = getattr(loader, "multiprocessing_context", None) or sys.modules.get("multiprocessing")
    try:
        return context.get_start_method() == "fork"
    except AttributeError:
        return False


class _NoQueue:
    """Workers whose queue cannot be seen."""

    def register(self):
        pass

    def look(self, taken, last=False):
        pass


def _reduce_ex(self, protocol):
    plain = _with_class(self, type(self)._headrace_base)
    rows = plain.__dict__.pop("_headrace_rows", None)
    return wrap, (plain, rows)


_classes = {}  # class of a loader -> the accounted subclass


def _with_class(loader, kind):
    other = copy.copy(loader) if "_headrace_base" not in type(loader).__dict__ else None
    if other is None:  # copy() would go through _reduce_ex
        other = object.__new__(type(loader))
        other.__dict__.update(loader.__dict__)
    object.__setattr__(other, "__class__", kind)
    return other


def _accounted_loader(loader, rows):
    base = type(loader)
    kind = _classes.get(base)
    if kind is None:
        kind = type(base.__name__, (base,), {
            "__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__,
            "__iter__": _iter, "_get_iterator": _get_iterator, "__reduce_ex__": _reduce_ex, "_headrace_base": base})
        _classes[base] = kind
    other = _with_class(loader, kind)
    other.__dict__["_headrace_rows"] = rows
    return other


def wrap(iterable, rows=None):
    """Accounts for the consumer of an iterable of batches: its wait for each, batches, rows, and its steps.

        loader = headrace.wrap(DataLoader(dataset, batch_size=32, num_workers=4))
        for batch in loader: train(batch)

    For a PyTorch DataLoader its workers, too: every item and every collated batch. Returns an object of the same
    class for a DataLoader, else one with the attributes of the iterable; an iterator gives an iterator. `rows`: how
    many a batch has, as a number or a function of the batch; by default its first dimension or length. A wrapped
    object wrapped again is itself."""
    if isinstance(iterable, (Wrapped, Batches)) or hasattr(type(iterable), "_headrace_base"):
        return iterable
    is_iterator = hasattr(type(iterable), "__next__")
    if not (is_iterator or hasattr(type(iterable), "__iter__") or hasattr(type(iterable), "__getitem__")):
        raise TypeError(f"cannot wrap {type(iterable).__name__!r}: not iterable")
    if not active():
        return iterable
    if is_iterator:
        return _batches(iterable, rows=rows)
    if all(hasattr(iterable, name) for name in _LOADER_ATTRIBUTES):
        try:
            return _accounted_loader(iterable, rows)
        except Exception:  # a loader that cannot be copied: its consumer is accounted for, its workers are not
            pass
    return (_SizedWrapped if hasattr(type(iterable), "__len__") else Wrapped)(iterable, rows)


def step(rows=None):
    """Ends a step of the consumer here. Without calls of it steps are inferred: from one request for a batch to the
    next. `rows`: by default those of the batches taken since the last step."""
    if not active():
        return
    count = -1 if rows is None else max(0, int(rows))
    if _consumer_step(count) and _account.become_consumer():
        _consumer_step(count)
