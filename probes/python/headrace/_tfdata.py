"""tf.data in programs that were not changed for it: how long the trainer waits for its iterator, and what tf.data's threads
do meanwhile, by its own analytical model (tf.data.experimental.get_model_proto), which has the pipeline as it runs: rewritten,
with the parallelism that is in use now. That model is looked at a few times a second, on the trainer's thread.

An iterator is seen from its second batch on: the first shows how it is made. What the trainer waits for the first batch of a
later iterator, as each epoch begins with, is an operator of its own: it starts threads and fills buffers. One whose model is not there (autotuning is off, or
an older version) is only seen where the trainer's own thread makes its batches; else it is left alone, and seen from outside.
"""
import functools
import threading
import time

from headrace import _account, _tfmodel
from headrace._account import RECEIVER, TRAINER, Process, thread
from headrace._batches import _NO_STAGE, Batches
from headrace._library import active, function
from headrace._operator import _end, operator

_step = function("hrx_step")
_done = function("hrx_done")
_next_begin, _next_end = function("hrx_next_begin"), function("hrx_next_end")
_next_failed, _next_closed = function("hrx_next_failed"), function("hrx_next_closed")

# A look may take this part of the thread's time, and is not made more often, nor much less often, than that. The first one is dear.
_LOOK_SHARE, _LOOK_EVERY_NS, _LOOK_SELDOM_NS = 0.004, 100_000_000, 1_000_000_000
_LONG_GAP_NS = 10_000_000_000  # longer ones tf.data forgets
_SAMPLE_EVERY_NS = 5_000_000  # reading the CPU time of many threads takes microseconds

_STEP = operator("step", "consumer", TRAINER)


def _is_taker():
    """Whether what the calling thread takes are batches of a trainer's: not what one source takes of another."""
    if _account.is_asking() or Process.default_stage is not None or not active():
        return False
    return threading.current_thread() is threading.main_thread() or bool(_account.is_consumer())


class _Clock:
    """CPU time of the other threads of this process."""

    def __init__(self):
        self.others_ns = self.read()

    @staticmethod
    def read():
        return time.process_time_ns() - time.thread_time_ns()

    def since(self):
        now = self.read()
        passed, self.others_ns = now - self.others_ns, now
        return max(0, passed)


class _Source(Batches):
    """One iterator, while the program keeps it. Does not hold it: it ends when the program lets it go."""

    def __init__(self):
        super().__init__(iter(()))
        self._next = None
        self.pipeline = self.ends = None  # what tf.data does, by its model; the step that `fit` is inside
        self.seen = self.alone = self.fits = False
        self.rows_each = 0
        self.goes_on = False  # its first batch was accounted for
        self.clock, self.waited_ns = None, 0
        self.sampled_ns = self.sampled_cpu_ns = self.next_sample_ns = 0  # waits of which others' CPU time is known
        self.next_look_ns = self.last_look_ns = 0
        self.steps = []  # of fit since the last look: nanoseconds each

    def decide(self, iterator, fits=False):
        """After the first batch: what is to be accounted for."""
        self.seen, self.fits = True, fits
        dataset = getattr(iterator, "_dataset", None)
        try:
            self.rows_each = _tfmodel.batch_size_of(dataset)
            self._rows = self.rows_each or None  # else each batch is looked at
            self.pipeline = _tfmodel.Pipeline.of(iterator)
            if self.pipeline is None:
                self.alone = fits or _tfmodel.is_asynchronous(dataset)
                self._makes_itself = not self.alone
        except Exception:  # made differently in this version
            self.alone = True
        self._looked(time.monotonic_ns(), 0)

    def _prepare(self):
        Process.has_loader = True
        if not _account.ensure():
            return False
        if self.pipeline is not None:
            self.pipeline.register()
        own = _account.stage_id(_tfmodel.OWN_THREAD, 1) if self._makes_itself else 0
        if not _account.become_consumer():
            return False
        self._source = self._stage = _NO_STAGE
        if self._makes_itself:
            self._stage = min(own, _NO_STAGE)
            self._source = min(_account.register_operator(b"fetch", b"fetch", own), _NO_STAGE)
        if not self.goes_on:
            self._served = 0
        self.goes_on = False
        self.clock = _Clock()
        return True

    # ---- A loop over the iterator ----

    def first(self, iterator, call):
        """The first batch. Of the program's first iterator it is part of the start, of a later one part of the training."""
        if not _account.is_consumer():
            batch = call()
            self.decide(iterator)
            return batch
        stage = _account.stage_id(RECEIVER, 0, 1)
        op = min(_account.register_operator(b"first_batch", b"first", stage), _NO_STAGE)
        _next_begin(op, min(stage, _NO_STAGE), 0)
        thread.asking = True
        try:
            batch = call()
        except BaseException:
            _next_failed(op)
            raise
        finally:
            thread.asking = False
        self.decide(iterator)
        self._served, self.goes_on = _next_end(op, self.rows_each), not self.alone
        if self.alone:
            self.close()
        return batch

    def take(self, iterator, call):
        if not self.seen:
            return self.first(iterator, call)
        if self.alone:
            return call()
        self._next = call
        begin_ns, last = time.monotonic_ns(), True
        others_ns = _Clock.read() if begin_ns >= self.next_sample_ns else None
        try:
            batch = self.__next__()
            last = False
            return batch
        finally:
            self._next = None  # it holds the iterator
            now_ns = time.monotonic_ns()
            self.waited_ns += now_ns - begin_ns
            if others_ns is not None:
                self.sampled_ns += now_ns - begin_ns
                self.sampled_cpu_ns += max(0, _Clock.read() - others_ns)
                self.next_sample_ns = now_ns + _SAMPLE_EVERY_NS
            if self.pipeline is not None and (last or now_ns >= self.next_look_ns):
                self.look(iterator, now_ns)

    # ---- Keras: fit() asks for the batch inside of its step ----

    def fit(self, iterator, call):
        if not self.seen:
            result = call()
            self.decide(iterator, fits=True)
            return result
        if self.alone:
            return call()
        if not self._prepared or not _account.is_consumer():
            self._prepared = self._prepare()
            if _account.is_consumer():
                _STEP.begin()
        begin_ns = self.ends or time.monotonic_ns()
        try:
            result = call()
        except BaseException:  # mostly the end of an epoch
            self.look(iterator, time.monotonic_ns())
            self.steps, self.ends = [], None
            raise
        self.ends = time.monotonic_ns()
        self.steps.append(self.ends - begin_ns)
        if self.ends >= self.next_look_ns:
            self.look(iterator, self.ends)
        return result

    def told_steps(self, gaps_ns, batches):
        """Steps since the last look. `gaps_ns`: what passed between two requests, of the latest; `batches` were taken."""
        steps, self.steps = self.steps, []
        each = round(batches / len(steps)) if steps else 0  # steps_per_execution
        known = len(gaps_ns) // each if each else 0
        if not known and min(steps, default=0) < _LONG_GAP_NS:
            return 0
        stage = _account.stage_id(TRAINER, 1, 1)
        step = _account.register_operator(b"step", b"consumer", stage)
        waited_ns, last = 0, gaps_ns[len(gaps_ns) - known * each:]
        mean_ns = sum(last) / known if known else float("inf")
        for at, took_ns in enumerate(steps):
            place = at - (len(steps) - known)
            gap_ns = sum(last[place * each:(place + 1) * each]) if place >= 0 else mean_ns
            compute_ns = int(min(took_ns, gap_ns))
            waited_ns += took_ns - compute_ns
            _step(took_ns - compute_ns, compute_ns, self.rows_each * each)
            _done(step, 1, self.rows_each * each, 0, 0)
        return waited_ns

    # ---- What tf.data does ----

    def _looked(self, now_ns, cost_ns):
        self.last_look_ns = now_ns
        self.next_look_ns = now_ns + min(max(_LOOK_EVERY_NS, int(cost_ns / _LOOK_SHARE)), _LOOK_SELDOM_NS)

    def look(self, iterator, now_ns):
        passed_ns, began_ns = now_ns - self.last_look_ns, time.thread_time_ns()
        try:
            gaps_ns, batches = self.pipeline.read(iterator)
            if self.fits:
                self.waited_ns = self.told_steps(gaps_ns, batches)
            of_sampled = self.sampled_cpu_ns / self.sampled_ns if self.sampled_ns else 0.0
            if self.clock is not None:
                self.pipeline.tell(passed_ns, self.waited_ns, int(of_sampled * self.waited_ns), self.clock.since())
        except Exception:  # the iterator is gone, or made differently: what was seen of it stays
            self.alone = True
            self.close()
            return
        self._looked(now_ns, time.thread_time_ns() - began_ns)
        self.waited_ns = self.sampled_ns = self.sampled_cpu_ns = 0

    def close(self):
        """The step under way is the last one."""
        if self.fits:
            _end(_STEP.handle)
        elif self._served:
            _next_closed(self._served)
        self._served = 0

    def __del__(self):
        try:
            self.close()
        except Exception:  # the interpreter is going away
            pass


def _source_of(iterator):
    """None where it cannot be remembered."""
    own = getattr(iterator, "__dict__", None)
    if own is None:
        return None
    source = own.get("_headrace_source")
    if source is None:
        source = own["_headrace_source"] = _Source()
    return source


def account_for_iterators(module):
    """tensorflow.python.data.ops.iterator_ops"""
    kind, eager = module.OwnedIterator, module.context.executing_eagerly
    if "_headrace_accounted" in kind.__dict__:
        return

    def asking(name):
        inner = getattr(kind, name)

        @functools.wraps(inner)
        def asked(self):
            if _account.is_asking() or not eager() or not _is_taker():
                return inner(self)
            source = _source_of(self)
            return inner(self) if source is None else source.take(self, functools.partial(inner, self))

        setattr(kind, name, asked)

    asking("__next__")
    asking("get_next")
    kind._headrace_accounted = True


def account_for_fit(module):
    """The trainer of Keras 3 over TensorFlow: keras.src.backend.tensorflow.trainer"""
    kind = module.TensorFlowTrainer
    if "_headrace_accounted" in kind.__dict__:
        return
    make = kind.make_train_function

    @functools.wraps(make)
    def make_train_function(self, *arguments, **named):
        made = make(self, *arguments, **named)
        called = self.train_function
        if called is not None and not hasattr(called, "_headrace_inner"):
            self.train_function = _fitting(called)
        return self.train_function if made is called else made

    kind.make_train_function = make_train_function
    kind._headrace_accounted = True


def account_for_py_datasets(module):
    """keras.src.trainers.data_adapters.py_dataset_adapter: what tf.data sees as a generator is the program's own class."""
    kind = module.PyDatasetAdapter
    inner = kind.get_tf_dataset
    if hasattr(inner, "_headrace_inner"):
        return

    @functools.wraps(inner)
    def get_tf_dataset(self, *arguments, **named):
        made = inner(self, *arguments, **named)
        try:
            if getattr(self, "enqueuer", None) is None:  # else its workers call the class, and the generator takes what they made
                made._headrace_generator = type(self.py_dataset).__name__ + ".__getitem__"
        except AttributeError:  # made differently in this version
            pass
        return made

    get_tf_dataset._headrace_inner = inner
    kind.get_tf_dataset = get_tf_dataset


def _fitting(inner):
    @functools.wraps(inner)
    def function(iterator):
        source = None
        if getattr(iterator, "_dataset", None) is not None and _is_taker():
            source = _source_of(iterator)
        if source is None:
            return inner(iterator)
        return source.fit(iterator, functools.partial(_inside, inner, iterator))

    function._headrace_inner = inner
    return function


def _inside(inner, iterator):
    """What asks inside of a step is seen by the step."""
    thread.asking = True
    try:
        return inner(iterator)
    finally:
        thread.asking = False
