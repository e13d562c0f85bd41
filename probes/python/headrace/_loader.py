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
from headrace._account import WORKERS, Process
from headrace._batches import Batches, LoaderBatches, NoQueue, ReadyBatches, SizedLoaderBatches, batches_of
from headrace._library import active, function, python_function
from headrace._operator import _end, _end_one, operator

_begin_after = function("hrx_begin_after")
_idle = function("hrx_idle")
_end_idle = function("hrx_end_idle")
_end_some = function("hrx_end_some")
_items = python_function("hrx_items")
_collated = python_function("hrx_collated")
_consumer_step = function("hrx_consumer_step")

_LOADER_ATTRIBUTES = ("dataset", "collate_fn", "worker_init_fn", "num_workers", "batch_size", "_get_iterator")


class Wrapped:
    """An iterable whose iterators account for their consumer; everything else is the iterable's own."""

    def __init__(self, inner, rows):
        self._inner, self._rows = inner, rows

    def __iter__(self):
        return batches_of(iter(self._inner), rows=self._rows)

    def __getattr__(self, name):
        if name in ("_inner", "_rows"):
            raise AttributeError(name)  # while being unpickled
        return getattr(self._inner, name)

    def __getitem__(self, index):
        return self._inner[index]


class _SizedWrapped(Wrapped):
    def __len__(self):
        return len(self._inner)


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


# Where items are asked for from here: where one of the last batch took longer than that, those of the next are timed one
# by one, else together.
_LONG_ITEM_NS = 50_000


class _MapItems(_Own):
    """A dataset that is asked for items by index. The frames of its functions are known to those who read stacks."""

    __slots__ = ("_headrace_one_by_one",)

    def __init__(self, inner):
        _Own.__init__(self, inner)
        object.__setattr__(self, "_headrace_one_by_one", True)

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

    def __getitems__(self, indices):
        if _items is not None:
            if _begin_after(_COLLATE.handle, _GETITEM.handle):
                _GETITEM.begin()
            return _items(self._headrace_inner, indices, _GETITEM.handle)
        begin_ns = time.monotonic_ns()
        if self._headrace_one_by_one:
            items = [self[index] for index in indices]
        else:
            items, inner = [], self._headrace_inner
            if _begin_after(_COLLATE.handle, _GETITEM.handle):
                _GETITEM.begin()
            try:
                for index in indices:
                    items.append(inner[index])
            finally:
                _end_items(items)
        one_by_one = time.monotonic_ns() - begin_ns > _LONG_ITEM_NS * len(items)
        if one_by_one != self._headrace_one_by_one:
            object.__setattr__(self, "_headrace_one_by_one", one_by_one)
        return items


class _MapItemLists(_MapItems):
    """One that can itself be asked for all items of a batch at once."""

    __slots__ = ()

    def __getitems__(self, indices):
        if _begin_after(_COLLATE.handle, _GETITEM.handle):
            _GETITEM.begin()
        try:
            items = self._headrace_inner.__getitems__(indices)
        except BaseException:
            _end(_GETITEM.handle)
            raise
        _end_items(items)
        return items


def _end_items(items):
    try:
        count = len(items)
    except TypeError:
        count = 0
    _end_some(_GETITEM.handle, count)


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
        if _collated is not None:
            return _collated(self.inner, samples, handle, self.batched, self.in_worker)
        try:
            batch = self.inner(samples)
        except BaseException:
            _end(handle)
            raise
        rows = len(samples) if self.batched and hasattr(samples, "__len__") else 1
        if self.in_worker:
            _end_idle(handle, rows)
        else:
            _end_one(handle, rows)
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
        _account.move_to(_account.stage_id(WORKERS, 0))  # the trainer says how many
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
        if not isinstance(inner, Batches):
            _receive.see_sampler(inner)
    else:
        before = getattr(loader, "_iterator", None)  # of persistent workers
        with _receive.between_epochs("start_workers" if before is None else "receive", loader):
            inner = make(loader)
        receiving = queue = None
        if not isinstance(inner, Batches):
            receiving = _receive.Receiving.of(inner, loader, new=inner is not before)
            try:
                queue = ReadyBatches(inner, receiving is not None)
            except Exception:  # made differently in this version: its queue is not seen
                queue = NoQueue(loader.num_workers)
    if isinstance(inner, Batches):
        return inner
    batched = getattr(loader, "batch_sampler", None) is not None or loader.batch_size is not None
    kind = SizedLoaderBatches if hasattr(type(inner), "__len__") else LoaderBatches
    return kind(inner, rows=rows, collated=batched, makes_itself=loader.num_workers == 0, queue=queue,
                receiving=receiving)


def account_for_all(kind, reaches_workers):
    """Every loader of that class from here on, as if each were wrapped. reaches_workers(): whether processes that are
    started afresh can import this package; else what they are given is left as it is."""
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
        return batches_of(iterable, rows=rows)
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
