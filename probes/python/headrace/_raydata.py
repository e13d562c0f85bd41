"""Ray Data in programs that were not changed for it: how long the trainer waits for iter_batches() and its like, and what the
tasks of each operator do in their own processes.

A task belongs to the stage of its operator, by the name that Ray gives it: "ray.data MapBatches(Decode)". Rows that operators have made and the trainer
has not taken are the queue "rows". It has no bound: Ray makes as many as memory allows.
"""
import functools
import threading
import time

from headrace import _account
from headrace._account import TRAINER, Process, is_consumer, thread
from headrace._batches import _LOOK_EVERY_NS, LoaderBatches, ReadyBatches, rows_of
from headrace._library import NONE, active, function
from headrace._operator import _end, operator

_begin_after = function("hrx_begin_after")
_idle = function("hrx_idle")
_MOST = 0x7FFFFFFF
_STAGE = "ray.data "
_COLLATE = operator("collate", "thread_call")


# ---- The tasks' side ----

def _join(name):
    """The calling thread runs tasks of that operator."""
    Process.default_stage = _STAGE + name  # whatever else it takes is none of a trainer's
    if _account.ensure():
        stage = _account.stage_id(_STAGE + name, 1)
        if not thread.given or _account.stage_here() != stage:
            thread.given = True
            _account.move_to(stage)


def account_for_tasks(module):
    """ray.data._internal.execution.operators.map_operator"""
    inner = module._map_task
    if hasattr(inner, "_headrace_inner"):
        return

    @functools.wraps(inner)
    def _map_task(transformer, context, task, *blocks, **named):
        made = inner(transformer, context, task, *blocks, **named)
        name = getattr(task, "op_name", None)
        if not isinstance(name, str) or not active():
            return (yield from made)
        _join(name)
        return (yield from _slices(operator(name, "call"), made))

    _map_task._headrace_inner = inner
    module._map_task = _map_task


def _slices(op, inner):
    """Runs a task inside `op`. Between two of its blocks the thread is Ray's; after the last it waits for the next task."""
    handle, send, value = op.handle, inner.send, None
    while True:
        if _begin_after(handle, handle) and op.bind():
            _begin_after(handle, handle)
        try:
            item = send(value)
        except StopIteration as end:
            _end(handle)
            op.count(completions=1)
            _idle(handle)
            return end.value
        except BaseException:
            _end(handle)
            raise
        _end(handle)
        rows = getattr(item, "num_rows", None)  # of a block; what describes it follows
        if isinstance(rows, int) and rows > 0:
            op.count(rows=rows)
        try:
            send, value = inner.send, (yield item)
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:
            send, value = inner.throw, error


# ---- The trainer's side ----

class _ReadyRows(ReadyBatches):
    """Rows that the last operator has made and the trainer has not taken."""

    is_looked_at = False  # but when it took rows

    def __init__(self, generator):
        self.generator, self.numbers, self.taken, self.next_ns = generator, [], -1, 0
        self.last, self.rows_taken = None, 0

    def find(self):
        """The operator whose rows the trainer takes, once Ray has begun: an executor's, in the generator that asks it."""
        executor = self.generator.gi_frame.f_locals["executor"]
        return list(executor._topology)[-1]

    def occupancies(self):
        return (min(_MOST, max(0, self.last.metrics.rows_task_outputs_generated - self.rows_taken)),)

    def register(self):
        pass

    def took(self, rows):
        self.rows_taken += rows
        if self.last is None:
            try:
                self.last = self.find()
                self.occupancies()
            except Exception:  # made differently in this version, or by another process: its queue is not seen
                self.last, self.generator = False, None
                return
            self.generator = None
            if not _account.ensure():
                return
            self.numbers = [_account.register_queue(b"rows", _account.stage_id(_STAGE + self.last.name, 0),
                                                    _account.stage_id(TRAINER, 1, 1), 0)]
        if not self.last:
            return
        if self.taken >= 0:
            self.taken += rows
        now_ns = time.monotonic_ns()
        if now_ns >= self.next_ns:
            self.next_ns = now_ns + _LOOK_EVERY_NS
            ReadyBatches.look(self, self.taken)
            self.taken = 0

    def look(self, taken):
        pass


class _Collating:
    """What is called for each batch, in threads of the trainer's process that Ray starts for it."""

    def __init__(self, collate):
        self._collate, self._lock, self._threads = collate, threading.Lock(), 0

    def __call__(self, batch):
        # Without a thread of its own it is part of what the trainer waits for.
        if not active() or not _account.ensure() or is_consumer():
            return self._collate(batch)
        if _account.stage_here() == NONE:
            self._join()
        if _begin_after(_COLLATE.handle, _COLLATE.handle) and _COLLATE.bind():
            _begin_after(_COLLATE.handle, _COLLATE.handle)
        try:
            made = self._collate(batch)
        except BaseException:
            _end(_COLLATE.handle)
            _idle(_COLLATE.handle)
            raise
        _end(_COLLATE.handle)
        _COLLATE.count(completions=1)
        _idle(_COLLATE.handle)
        return made

    def _join(self):
        thread.given = True
        with self._lock:
            self._threads += 1
            stage = _account.stage_id(_STAGE + "collate", self._threads, 1)  # no setting is known to make more of it
            _account.set_stage_parallelism(stage, self._threads)
        _account.move_to(stage)

    def __getattr__(self, name):
        if name == "_collate":
            raise AttributeError(name)
        return getattr(self._collate, name)


class _RayBatches(LoaderBatches):
    """The program's first batch waits for Ray to begin, which is no work for batches: it is not counted. The first of a
    later pass waits for that pass alone."""

    has_begun = False  # in this process

    def _prepare(self):
        Process.has_loader = True
        return _account.become_consumer()

    def __next__(self):
        queue = self._queue
        if queue.last is not None or _RayBatches.has_begun:
            batch = super().__next__()
        else:
            thread.asking = True
            try:
                batch = self._next()
            finally:
                thread.asking = False
        _RayBatches.has_begun = True
        try:
            queue.took(rows_of(batch, True))
        except Exception:  # an odd batch is no reason to end the program
            pass
        return batch


class _Batches:
    """What iter_batches() gives."""

    def __init__(self, inner):
        self._inner = inner

    def __iter__(self):
        made = iter(self._inner)
        if _account.is_asking() or Process.default_stage is not None or not active() or not hasattr(made, "gi_frame"):
            return made
        return _RayBatches(made, collated=True, queue=_ReadyRows(made))

    def __getattr__(self, name):
        if name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    @property
    def __class__(self):
        return type(self._inner)


def account_for_iterators(module):
    """ray.data.iterator"""
    kind = module.DataIterator
    if "_headrace_accounted" in kind.__dict__:
        return
    inner = kind._iter_batches

    @functools.wraps(inner)
    def _iter_batches(self, *arguments, **named):
        collate = named.get("_collate_fn")
        if callable(collate) and active():
            named["_collate_fn"] = _Collating(collate)
        return _Batches(inner(self, *arguments, **named))

    kind._iter_batches = _iter_batches
    kind._headrace_accounted = True
