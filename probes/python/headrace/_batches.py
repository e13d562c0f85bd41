"""The consumer's side of wrap(): an iterator that accounts for the wait for each batch, batches, rows and steps, and
for the queue that its batches come from."""
import ctypes
import threading
import time
import weakref

from headrace import _account, _pin, _receive
from headrace._account import LOADER, TRAINER, WORKERS, Process
from headrace._library import Source, function, quicken

_ask = function("hrx_ask")
_got = function("hrx_got")
_got_none = function("hrx_got_none")
_source_looked = function("hrx_source_looked")
_next_closed = function("hrx_next_closed")
_queue_sampled = function("hrx_queue_sampled")

_LOOK = 2  # answer of _ask and _got: the queue is to be looked at
_LOOK_EVERY_NS = 5_000_000  # a look costs some microseconds, as much as all else that is done for a batch
_PERIOD_NS = 1_000_000_000
_SAY_EVERY_NS = 50_000_000  # that an iterator is in use in this period
_MOST_ROWS = 0x7FFFFFFF  # of a batch
_NO_STAGE = 0x7FFFFFFF  # neither a stage nor an operator


# ---- Rows of a batch ----

def _first_dimension(value):
    shape = getattr(value, "shape", None)
    if shape is None:
        return None
    try:
        return int(shape[0])
    except (TypeError, ValueError, IndexError, KeyError):
        return None


_SINGLE = frozenset((int, float, bool, str, bytes, bytearray, type(None)))  # no columns


def rows_of(batch, collated):
    """Rows of a batch where they can be told, else 0. `collated`: a list holds one column an element, as torch's
    default_collate leaves it, rather than one row."""
    kind = type(batch)
    if kind is list or kind is tuple:  # what most batches are, the quick way
        if not batch:
            return 0
        inner = batch[0]
        if type(inner) in _SINGLE or not (collated or kind is tuple):
            return len(batch)
        if not hasattr(inner, "__len__") or isinstance(inner, (str, bytes, bytearray)):
            return len(batch)
        batch = inner
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


# ---- The iterators ----

class _State(Source):
    """What requests need, and the library's own __next__ (python_loader.c)."""

    _fields_ = [("is_usual", ctypes.c_uint32), ("is_collated", ctypes.c_uint32)]


class Batches:
    """An iterator that accounts for its consumer: the wait for each batch, batches, rows, and steps."""

    def __init__(self, inner, rows=None, collated=False, makes_itself=False, queue=None, receiving=None):
        self._inner, self._next = inner, inner.__next__
        self._rows, self._collated, self._queue = rows, collated, queue
        self._makes_itself = makes_itself  # the calling thread makes the batches of a DataLoader without workers
        self._receiving = receiving  # what of the work for a request the calling thread does, beside workers
        self._state = _State(op=_NO_STAGE, stage=_NO_STAGE, is_collated=collated)
        self._at = ctypes.addressof(self._state)
        self._prepared = False

    def __iter__(self):
        return self

    def _field(name):
        def get(self):
            return getattr(self._state, name)

        def put(self, value):
            setattr(self._state, name, value)

        return property(get, put)

    _source, _stage, _served = _field("op"), _field("stage"), _field("served")
    del _field

    def _prepare(self):
        """Registers what is needed in this segment, on this thread."""
        Process.has_loader = True
        if self._queue:
            sources = _receive.sources(self._inner) if self._receiving is not None else (WORKERS,)
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

    def _begin(self):
        """As __next__ begins where it has not been registered what is needed."""
        self._prepared = self._prepare()
        queue, state = self._queue, self._state
        state.look_every_ns = _LOOK_EVERY_NS if queue is not None and queue.is_looked_at else 0
        state.look_ns, state.taken = 0, -1
        return _ask(self._at)

    def _failed(self):
        if self._queue is not None:
            self._look()
        if self._receiving is not None:
            self._receiving.end_epoch()
            self._state.is_usual = 0
        _got_none(self._at)

    def _look(self):
        self._queue.look(_source_looked(self._at))

    def __next__(self):
        at, receiving = self._at, self._receiving
        is_first = receiving is not None and receiving.first
        told = _ask(at) if self._prepared else 1
        if told == 1:
            told = self._begin()
        try:
            if told == _LOOK:
                self._look()
            if is_first:
                receiving.begin_epoch()
            batch = self._next()
            if is_first:
                receiving.got_first()
            rows = self._rows_of(batch)
        except BaseException:
            self._failed()
            raise
        if _got(at, rows):
            self._look()
        # From here on the library's __next__ comes first.
        self._state.is_usual = self._prepared and self._rows is None and (receiving is None or not receiving.first)
        return batch

    def _rows_of(self, batch):
        said = self._rows
        try:
            rows = rows_of(batch, self._collated) if said is None else int(said(batch) if callable(said) else said)
        except Exception:  # an odd batch is no reason to end the program
            return 0
        return min(max(0, rows), _MOST_ROWS)

    def __del__(self):
        try:
            if self._served:
                _next_closed(self._served)
        except Exception:  # the interpreter is going away
            pass

    def __getattr__(self, name):
        if name in ("_inner", "_state"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __reduce__(self):
        raise TypeError("an iterator of headrace.wrap() cannot be pickled: wrap it in the process that uses it")


_OWN_NAMES = {"_inner", "_next", "_rows", "_collated", "_queue", "_makes_itself", "_receiving", "_prepared", "_state", "_at",
              "_source", "_stage", "_served"}


class LoaderBatches(Batches):
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


# Of other iterators the frame of __next__ stays: by it readers of stacks tell a request from a step.
quicken(LoaderBatches, "__next__")


class SizedLoaderBatches(LoaderBatches):
    def __len__(self):
        return len(self._inner)


class _SizedBatches(Batches):
    def __len__(self):
        return len(self._inner)


def batches_of(inner, **options):
    return (_SizedBatches if hasattr(type(inner), "__len__") else Batches)(inner, **options)


# ---- What waits for the consumer ----

class _InUse:
    """The loaders' iterators that batches are taken from, by period. One that both last periods saw, and that has not
    ended, is in use. So those of loaders taken in turn count together, and those of one epoch after the other do not."""

    lock = threading.Lock()
    now, before, earlier, end_ns = {}, {}, {}, 0

    @classmethod
    def workers(cls, iterator, now_ns):
        """How many workers they have, where a period ends; else 0."""
        with cls.lock:
            if now_ns < cls.end_ns:
                cls.now[id(iterator)] = weakref.ref(iterator)
                return 0
            cls.earlier, cls.before, cls.now = cls.before, cls.now, {id(iterator): weakref.ref(iterator)}
            cls.end_ns = now_ns + _PERIOD_NS
            found = [one() for key, one in cls.before.items() if key in cls.earlier]
            used = [one for one in found if one is not None and not getattr(one, "_shutdown", False)]
            return sum(one._num_workers for one in used or [iterator])


class ReadyBatches:
    """The batches that workers have made and the consumer has not taken yet: looked at when it asks and when it got
    one. The iterator's attributes are read with care: they are torch's own."""

    workers = 0  # processes of a loader
    is_looked_at = True  # by the iterator, now and then

    def __init__(self, iterator, received):
        self.iterator, self.received, self.pinned = iterator, received, _receive.pins(iterator)
        self.numbers, self.in_use_ns = [], 0
        self.workers = iterator._num_workers
        self.capacity = iterator._prefetch_factor * self.workers  # of all queues together
        self.occupancies()

    def occupancies(self):
        """Of each queue, in pipeline order."""
        iterator = self.iterator
        ready = iterator._worker_result_queue.qsize()
        early = _receive.early_batches(iterator)
        if self.pinned:
            return ready, iterator._data_queue.qsize() + early
        return (ready + early,)

    def register(self):
        taker = _receive.stage_id() if self.received else _account.stage_id(TRAINER, 1, 1)
        ends = [(b"batches", _account.stage_id(WORKERS, 0), taker)]
        if self.pinned:
            pinner = _pin.stage_id()
            ends = [(b"batches", ends[0][1], pinner), (b"pinned", pinner, taker)]
        self.numbers = [_account.register_queue(*end, self.capacity) for end in ends]
        if not Process.workers:
            _account.declare_workers(self.workers)

    def look(self, taken):
        """`taken`: batches taken since the last look; -1: there was none. A look costs microseconds."""
        if not self.numbers:
            return
        try:
            if self.workers:
                now_ns = time.monotonic_ns()
                if now_ns >= self.in_use_ns:
                    self.in_use_ns = now_ns + _SAY_EVERY_NS
                    _account.declare_workers(_InUse.workers(self.iterator, now_ns))
            for number, occupancy in zip(self.numbers, self.occupancies()):
                _queue_sampled(number, occupancy, taken)
        except Exception:  # closed, or made differently in this version
            self.numbers = []


class NoQueue:
    """Workers whose queue cannot be seen."""

    is_looked_at = False

    def __init__(self, workers):
        self.workers = workers

    def register(self):
        _account.declare_workers(self.workers)

    def look(self, taken):
        pass
