"""tf.data's analytical model of one of its pipelines, as stages and operators: which transformations run in which of its
threads, how long they worked, and how many run at once.

A transformation that runs on its own (map, batch or interleave with num_parallel_calls, prefetch) divides the pipeline: what
comes before it runs in its thread, what comes after it in the next one's, at last in the trainer's.
"""
import os
import re
import sys

from headrace import _account
from headrace._library import NONE, function

_worked = function("hrx_worked")
_stage_lived = function("hrx_stage_lived")
_queue_sampled = function("hrx_queue_sampled")
_queue_capacity = function("hrx_queue_capacity")

OWN_THREAD = "tf.data"  # the stage of what the trainer's own thread makes
_PREFETCH, _BEFORE = OWN_THREAD + " prefetch", OWN_THREAD + " before "

# Node classes of the model's format (model.proto) that have threads of their own.
_ASYNCHRONOUS = (2, 4, 6)
_INTERLEAVES = 2
_MOST = 0x7FFFFFFF
_LONG_NS = 1_000_000_000  # of a transformation, for one element
_WORTH_A_STAGE = 0.05  # of the trainer's waits, what its own thread does behind threads that make the batches

# Names of the model's nodes -> (as the program writes them, kind). Others are called what the model calls them.
_NAMES = {
    "Map": ("map", "map"), "ParallelMap": ("map", "map"), "Batch": ("batch", "batch"), "ParallelBatch": ("batch", "batch"),
    "PaddedBatch": ("padded_batch", "batch"), "MapAndBatch": ("map_and_batch", "map"),
    "Interleave": ("interleave", "fetch"), "ParallelInterleave": ("interleave", "fetch"), "FlatMap": ("flat_map", "fetch"),
    "LegacyParallelInterleave": ("interleave", "fetch"),  # also of num_parallel_reads
    "Shuffle": ("shuffle", "shuffle"), "ShuffleAndRepeat": ("shuffle", "shuffle"), "Filter": ("filter", "map"),
    "TFRecord": ("TFRecordDataset", "fetch"), "TextLine": ("TextLineDataset", "fetch"), "Generator": ("from_generator", "fetch"),
    "TensorSlice": ("from_tensor_slices", "fetch"), "Cache": ("cache", "cache"), "MemoryCache": ("cache", "cache"),
    "MemoryCacheImpl": ("cache", "cache"), "FixedLengthRecord": ("FixedLengthRecordDataset", "fetch"),
    "Unbatch": ("unbatch", "batch"), "Zip": ("zip", "zip"), "Prefetch": ("prefetch", "prefetch"),
}
# Nodes whose inputs come and go: a source is opened, read and closed, again and again.
_REOPENS = {"Repeat", "ForeverRepeat", "FiniteRepeat", "ShuffleAndRepeat", "FlatMap", "Interleave", "ParallelInterleave",
            "LegacyParallelInterleave"}
_MOST_UNSEEN = 9  # times what was seen; the rest waits for the next look
# Nodes that hand on what they get.
_LIGHT = {"Root", "Range", "Repeat", "ForeverRepeat", "Take", "Skip", "Options", "Model", "Shard", "AssertCardinality",
          "Tensor", "FromTensor", "Random", "MaxIntraOpParallelism", "PrivateThreadPool", "FiniteTake", "FiniteSkip", "FiniteRepeat", "Concatenate"}
# What more of can be made at once by a setting.
_DIVISIBLE = {"map", "batch", "padded_batch", "map_and_batch", "interleave", "TFRecordDataset", "TextLineDataset"}

# What an interleave may take turns with.
_SOURCES = {"flat_map", "from_generator", "TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset"}

# The classes by which the program wrote it.
_ASYNCHRONOUS_CLASSES = ("Parallel", "Prefetch", "MapAndBatch", "_DataService", "Snapshot")
# Kind of what runs the program's Python code: one thread of the process at a time does.
_PYTHON_KIND = "thread_call"
# After a batch, these leave it one.
_KEEP_BATCHES = {"PrefetchDataset", "MapDataset", "ParallelMapDataset", "OptionsDataset", "RepeatDataset", "TakeDataset", "SkipDataset",
                 "CacheDataset", "ShuffleDataset", "ConcatenateDataset", "DatasetV1Adapter"}


def _plain(name):
    """The name of a node without what its version and place add: ParallelMapV2(id:3) -> ParallelMap."""
    name = name.rpartition("::")[2].partition("(")[0].partition("[")[0]
    return re.sub(r"(Dataset)?(V\d+)?$", "", name)


def _walk(dataset):
    """The datasets that it is made of, from the last transformation to the first, along their first inputs."""
    for _ in range(1000):
        if dataset is None:
            return
        yield dataset
        inputs = getattr(dataset, "_input_dataset", None) or getattr(dataset, "_dataset", None)
        dataset = inputs


def is_asynchronous(dataset):
    """By the program's own words: whether another thread than the caller's makes its elements."""
    return any(type(each).__name__.lstrip("_").startswith(_ASYNCHRONOUS_CLASSES) for each in _walk(dataset))


def batch_size_of(dataset):
    """Rows of a batch where the program gave them as a number; 0 where it cannot be told."""
    for each in _walk(dataset):
        size = getattr(each, "_batch_size", None)
        if size is None:
            if type(each).__name__.strip("_") not in _KEEP_BATCHES:
                return 0
            continue
        try:
            return max(0, int(size.numpy() if hasattr(size, "numpy") else size))
        except Exception:
            return 0
    return 0


def python_names(dataset):
    """The words of its transformations that call Python (from_generator, or a map with py_function or numpy_function)."""
    names = {"from_generator"}
    for each in _walk(dataset):
        try:
            called = getattr(each, "_map_func", None) or getattr(each, "_predicate", None)
            calls = called is not None and b"PyFunc" in called.function.graph.as_graph_def().SerializeToString()
        except Exception:  # made differently in this version
            continue
        if calls:
            words = _NAMES.get(_plain(type(each).__name__.lstrip("_")), ("", ""))[0]
            names.update({words, "map_and_batch"} if words == "map" else {words})
    return names


def generator_of(dataset):
    """What its generator calls, where a library made it for the program: Keras, for a PyDataset. Else as tf.data names it."""
    for each in _walk(dataset):
        name = getattr(each, "_headrace_generator", None)
        if name:
            return name
    return "from_generator"


def sources_at_once(dataset):
    """How many sources its interleave takes turns with; 0 where there is none."""
    for each in _walk(dataset):
        try:
            length = getattr(each, "_cycle_length", None)
            if length is not None:
                return max(0, int(length.numpy() if hasattr(length, "numpy") else length))
        except Exception:  # made differently in this version
            return 0
    return 0


def pool_of(dataset):
    """Threads that run tf.data's calls: those of a private pool, else as many as there are cores. What the program says by
    set_inter_op_parallelism_threads changes nothing: with 1, 8 or 16, TensorFlow 2.21 ran as many calls at once as without."""
    try:
        size = int(dataset.options().threading.private_threadpool_size or 0)
    except Exception:  # made differently in this version
        size = 0
    return size if size > 0 else len(os.sched_getaffinity(0))


def _read(iterator):
    """The model now; raises where there is none."""
    return sys.modules["tensorflow.python.data.experimental.ops.iterator_model_ops"].get_model_proto(iterator)


class _Stage:
    """What one kind of tf.data's threads does: transformations, upstream first."""

    def __init__(self, name, threads, own_thread=False, python=(), sources=0, generator="from_generator"):
        self.name, self.threads, self.own_thread, self.generator = name, threads, own_thread, generator
        self.python = python  # words of what calls Python
        self.sources = sources  # that an interleave takes turns with; 0: not known
        self.told = None  # threads
        self.most = 0  # threads; 0: no limit is known
        self.operators = {}  # name -> [kind, busy ns, elements] that were not told yet
        self.room_ns = 0  # what its threads have lived and were not told to be busy
        self.takes = False  # in the trainer's own thread, what others have made

    def add(self, name, busy_ns, elements):
        words, kind = _NAMES.get(name, (name, "transform"))
        if words in self.python:
            kind = _PYTHON_KIND
        if words == "from_generator":
            words = self.generator
        sums = self.operators.setdefault(words, [kind, 0, 0])
        sums[1] += busy_ns
        sums[2] += elements

    def clear(self):
        for sums in self.operators.values():
            sums[1] = sums[2] = 0

    def busy_ns(self):
        return sum(sums[1] for sums in self.operators.values())

    def divisible(self):
        """The words of its transformations of which a setting lets several run at once, the longest work first. None where
        most of its work is another's: a generator that only a batch follows does not get faster by batches made at once."""
        work_ns = {name: sums[1] for name, sums in self.operators.items()}
        if "interleave" in work_ns:  # its sources are made and read in its calls
            work_ns["interleave"] += sum(work_ns.pop(name) for name in list(work_ns) if name in _SOURCES)
        found = sorted((name for name in work_ns if name in _DIVISIBLE), key=lambda name: -work_ns[name])
        return found if 2 * sum(work_ns[name] for name in found) >= sum(work_ns.values()) else []

    def find_setting(self):
        """By what it did so far: which setting is its own, and how many calls it allows at most."""
        divisible = self.divisible()
        if self.own_thread:
            return
        self.most = 0 if divisible else 1
        if divisible[:1] == ["interleave"] and self.sources:
            self.most = max(self.sources, self.threads)
        if divisible and self.name.startswith((_PREFETCH, _BEFORE)):
            self.name = OWN_THREAD + " " + divisible[0]  # its thread is that of what it runs

    def id(self):
        return _account.stage_id(self.name, self.threads, self.most)

    def register(self):
        stage = self.id()
        for name, (kind, _, _) in self.operators.items():
            _account.register_operator(_account.encoded(name), _account.encoded(kind), stage)
        self.told = self.threads

    def take(self, passed_ns):
        """Returns for how long it was busy, of the `passed_ns` of each of its threads: by operator. A transformation's time is
        known when it ends: what is more than its threads had until now waits for the next time, for a while."""
        self.room_ns = min(self.room_ns, _LONG_NS * self.threads) + self.threads * passed_ns
        busy_ns = self.busy_ns()
        part = min(1.0, self.room_ns / busy_ns) if busy_ns else 0.0
        keep = min(1.0, _LONG_NS * self.threads / busy_ns) if busy_ns else 0.0
        taken = {}
        for name, sums in self.operators.items():
            taken[name] = int(sums[1] * part)
            sums[1] = int(min(sums[1] - taken[name], sums[1] * keep))
        self.room_ns -= sum(taken.values())
        return taken

    def tell(self, taken, passed_ns, low, high):
        """`taken`: as take() gave it. `low`, `high`: parts of it on a CPU."""
        stage = self.id()
        waited_ns = max(0, passed_ns - sum(taken.values())) if self.takes else 0  # for what others make
        for name, busy_ns in taken.items():
            sums = self.operators[name]
            op = _account.register_operator(_account.encoded(name), _account.encoded(sums[0]), stage)
            _worked(op, sums[2], busy_ns, int(busy_ns * low), int(busy_ns * high), waited_ns)
            sums[2] = waited_ns = 0
        if self.own_thread:
            return
        busy_ns = sum(taken.values())
        _stage_lived(stage, self.threads * passed_ns, busy_ns, int(busy_ns * high))
        if self.told != self.threads:
            self.told = self.threads
            _account.set_stage_parallelism(stage, self.threads)


class _Ahead:
    """The buffer of a prefetch that the trainer takes from."""

    def __init__(self):
        self.capacity = self.told = self.occupancy = 0
        self.number = NONE

    def see(self, node):
        sizes = [p.value for p in node.parameters if p.name == "buffer_size"]
        self.occupancy = max(0, getattr(node, "buffered_elements", 0))
        self.capacity = max(1, round(sizes[0]) if sizes else 1, self.occupancy)

    def register(self, stage):
        self.told = self.capacity
        trainer = _account.stage_id(_account.TRAINER, 1, 1)
        self.number = _account.register_queue(b"batches", stage.id(), trainer, self.capacity)
        _queue_sampled(self.number, min(self.occupancy, _MOST), -1)

    def tell(self, taken):
        if self.number == NONE:
            return
        if self.told != self.capacity:
            self.told = self.capacity
            _queue_capacity(self.number, self.capacity)
        _queue_sampled(self.number, min(self.occupancy, _MOST), min(taken, _MOST))


class Pipeline:
    """The stages of one iterator's pipeline, in order, and what they did since it was last looked at."""

    def __init__(self, model, pool, python=(), sources=0, generator="from_generator"):
        self.pool = pool  # threads
        self.python, self.sources, self.generator = python, sources, generator
        self.before = {}  # node -> (busy ns, elements)
        self.unseen = {}  # node that reopens its inputs -> elements that it handed on and nobody was seen to make
        self.taken_before = 0
        self.by_owner = {}  # (node that divides, whether what comes before it) -> stage
        self.stages, self.ahead = [], None
        self.behind = None  # the stage of the trainer's thread while it is not known to be worth one
        self.update(model)
        found = [stage for stage in self.by_owner.values() if stage.operators]
        for stage in found:
            stage.find_setting()
        names = {}
        for stage in found:
            names[stage.name] = names.get(stage.name, 0) + 1
            if names[stage.name] > 1:
                stage.name += " %d" % names[stage.name]
        self.stages = found[::-1]  # walked from the last to the first
        if self.stages and self.stages[-1].own_thread and len(self.stages) > 1:
            self.behind = self.stages.pop()  # mostly little is left to the trainer's thread
            self.behind.takes = True
            self.behind.name = self.stages[-1].name.replace(OWN_THREAD, OWN_THREAD + " after", 1)
        for stage in found:
            stage.clear()

    @classmethod
    def of(cls, iterator):
        """None where the iterator has no model, or one of another format."""
        try:
            dataset = iterator._dataset
            made = cls(_read(iterator), pool_of(dataset), python_names(dataset), sources_at_once(dataset), generator_of(dataset))
        except Exception:
            return None
        return made if made.stages else None

    def read(self, iterator):
        """Returns what passed between the latest requests for a batch (ns, at most 100), and how many there were."""
        model = _read(iterator)
        taken = self.update(model)
        gaps = [1000 * int(gap) for gap in model.gap_times]
        return gaps[max(0, len(gaps) - taken):], taken

    def update(self, model):
        nodes = model.nodes
        now = {}

        def stage_of(key, name, threads, own_thread=False):
            stage = self.by_owner.get(key)
            if stage is None:
                stage = self.by_owner[key] = _Stage(name, threads, own_thread, self.python, self.sources, self.generator)
            stage.threads = threads
            return stage

        last = nodes[model.output]
        def grown(key):
            node = nodes[key]
            now[key] = node.processing_time, node.num_elements
            busy, elements = self.before.get(key, (0, 0))
            return max(0, node.processing_time - busy), max(0, node.num_elements - elements)

        def with_unseen(key, inputs):
            """How many times as much the inputs of such a node did as they were seen to do: what ended between two looks left
            no trace."""
            seen = sum(grown(each)[1] for each in inputs)
            unseen = self.unseen.get(key, 0) + grown(key)[1] - seen
            added = min(max(0, unseen), _MOST_UNSEEN * seen)
            self.unseen[key] = unseen - added
            return 1 + added / seen if seen else 1.0

        waiting = [(model.output, stage_of(None, OWN_THREAD, 1, True), 1.0)]
        visited = set()
        while waiting:
            key, stage, times = waiting.pop()
            if key in visited or key not in nodes:
                continue
            visited.add(key)
            node = nodes[key]
            name = _plain(node.name)
            inputs = list(node.inputs)
            own, before = stage, stage
            if name == "Prefetch" and stage.own_thread:
                self.ahead = self.ahead or _Ahead()
                self.ahead.see(node)
            if node.node_class in _ASYNCHRONOUS:
                words = _NAMES.get(name, (name, ""))[0]
                parallel = [p for p in node.parameters if p.name == "parallelism"] or [
                    p for p in node.parameters if p.name == "cycle_length"]
                if parallel:
                    own = stage_of((key, 0), "tf.data " + words, max(1, min(round(parallel[0].value), self.pool)))
                    before = stage_of((key, 1), _BEFORE + words, 1)
                else:
                    own = before = stage_of((key, 0), "tf.data " + words, 1)
            if name not in _LIGHT and (name != "Prefetch"):
                busy, elements = grown(key)
                own.add(name, int(times * busy), int(times * elements))
            # What is interleaved runs in the threads that do it; its first input is what they are made from.
            rest = own if node.node_class == _INTERLEAVES else before
            reopened = inputs[1:] if node.node_class == _INTERLEAVES or name == "FlatMap" else inputs
            of_reopened = times
            if name in _REOPENS:
                of_reopened *= with_unseen(key, [each for each in reopened if each in nodes])
            waiting.extend((each, before if at == 0 else rest, of_reopened if each in reopened else times)
                           for at, each in reversed(list(enumerate(inputs))))
        self.before = now
        taken, self.taken_before = last.num_elements - self.taken_before, last.num_elements
        self.taken = max(0, taken)
        return self.taken

    def register(self):
        """Everything in pipeline order; the trainer comes last."""
        for stage in self.stages:
            stage.register()
        makers = [stage for stage in self.stages if not stage.own_thread]
        if self.ahead is not None and makers:
            self.ahead.register(makers[-1])

    def weigh_behind(self, waited_ns):
        """What the trainer's thread does behind the other stages becomes one as soon as it is no small part of its waits."""
        stage = self.behind
        if stage is None:
            return
        stage.room_ns += waited_ns
        if stage.busy_ns() > _WORTH_A_STAGE * stage.room_ns:
            self.behind = None
            stage.room_ns -= waited_ns  # which take() adds
            self.stages.append(stage)

    def tell(self, passed_ns, waited_ns, waiting_cpu_ns, others_cpu_ns):
        """Records what was done in `passed_ns`, in which the trainer waited for `waited_ns`, and other threads of the
        process used so much CPU time, meanwhile and in all."""
        self.weigh_behind(waited_ns)
        passed = [waited_ns if stage.own_thread else passed_ns for stage in self.stages]
        taken = [stage.take(ns) for stage, ns in zip(self.stages, passed)]
        busy_ns = sum(sum(each.values()) for each in taken)
        high = min(1.0, others_cpu_ns / busy_ns) if busy_ns else 0.0
        low = min(high, waiting_cpu_ns / busy_ns) if busy_ns else 0.0
        for stage, each, ns in zip(self.stages, taken, passed):
            stage.tell(each, ns, low, high)
        if self.ahead is not None:
            self.ahead.tell(self.taken)
