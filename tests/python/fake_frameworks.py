"""Stand-ins for tensorflow, keras and ray, with as much of them as the import hook deals with. Know nothing of headrace.

    write(folder)   puts the packages there, to be imported from there
"""
import pathlib
import textwrap

_FILES = {
    # tf.data: iterators whose elements a thread makes ahead (prefetch), several threads (map), or who asks.
    "tensorflow/python/data/ops/iterator_ops.py": """
        import queue, threading, time
        from tensorflow.python.eager import context

        class OutOfRange(Exception): pass

        class OwnedIterator:
            def __init__(self, dataset):
                self._dataset, self.ended, self.gaps = dataset, False, []
                self.nodes = {}
                self.elements = dataset.elements(self)

            def __iter__(self): return self

            def _next_internal(self):
                now = time.monotonic_ns()
                if self.ended: self.gaps = (self.gaps + [(now - self.ended) // 1000])[-100:]
                try: item = next(self.elements)
                except StopIteration: raise OutOfRange from None
                self.ended = time.monotonic_ns()
                return item

            def __next__(self):
                try: return self._next_internal()
                except OutOfRange: raise StopIteration from None

            def get_next(self): return self._next_internal()
    """,
    "tensorflow/python/eager/context.py": """
        eager = True
        def executing_eagerly(): return eager
    """,
    "tensorflow/python/data/experimental/ops/iterator_model_ops.py": """
        from types import SimpleNamespace
        looks = 0

        def get_model_proto(iterator):
            global looks
            looks += 1
            if not iterator._dataset.has_model(): raise LookupError("autotuning is off")
            return SimpleNamespace(nodes=iterator.nodes, output=1, gap_times=iterator.gaps)
    """,
    "tensorflow/data.py": """
        import queue, threading, time
        from types import SimpleNamespace
        from tensorflow.python.data.ops.iterator_ops import OwnedIterator
        import tensorflow.python.data.experimental.ops.iterator_model_ops

        class Dataset:
            _input_dataset, autotune, pool = None, True, 8
            def options(self): return SimpleNamespace(threading=SimpleNamespace(private_threadpool_size=self.pool))
            def __iter__(self): return OwnedIterator(self)
            def has_model(self):
                return self.autotune and (self._input_dataset is None or self._input_dataset.has_model())
            def map(self, function, num_parallel_calls=None):
                return (_MapDataset if num_parallel_calls is None else _ParallelMapDataset)(self, function, num_parallel_calls)
            def batch(self, size): return _BatchDataset(self, size)
            def prefetch(self, size): return _PrefetchDataset(self, size)
            def node(self, iterator, name, kind, parameters=()):
                node = SimpleNamespace(name=name + "(id:%d)" % (len(iterator.nodes) + 1), node_class=kind, processing_time=0,
                                       num_elements=0, buffered_elements=0, inputs=[], parameters=[SimpleNamespace(name=n, value=v)
                                                                              for n, v in parameters])
                number = len(iterator.nodes) + 1
                iterator.nodes[number] = node
                if self._input_dataset is not None: node.inputs.append(number + 1)
                return node

        def counted(node, elements, work=None):
            for element in elements:
                begin = time.monotonic_ns()
                if work: element = work(element)
                node.processing_time += time.monotonic_ns() - begin
                node.num_elements += 1
                yield element

        class Range(Dataset):
            def __init__(self, count): self.count = count
            def elements(self, iterator): return counted(self.node(iterator, "Range", 3), iter(range(self.count)))

        class _MapDataset(Dataset):
            def __init__(self, source, function, calls): self._input_dataset, self.function = source, function
            def elements(self, iterator):
                node = self.node(iterator, "Map", 3)
                return counted(node, self._input_dataset.elements(iterator), self.function)

        class _BatchDataset(Dataset):
            def __init__(self, source, size): self._input_dataset, self._batch_size = source, size
            def elements(self, iterator):
                node, source = self.node(iterator, "BatchV2", 3), self._input_dataset.elements(iterator)
                def batches():
                    batch = []
                    for element in source:
                        batch.append(element)
                        if len(batch) == self._batch_size:
                            yield batch
                            batch = []
                    if batch: yield batch
                return counted(node, batches())

        def ahead(make, size, threads):
            ready = queue.Queue(size)
            stop = threading.Event()
            def work():
                while not stop.is_set():
                    try: element = make()
                    except StopIteration: element = StopIteration
                    ready.put(element)
                    if element is StopIteration: return
            for _ in range(threads): threading.Thread(target=work, daemon=True).start()
            ended = 0
            while True:
                element = ready.get()
                if element is not StopIteration:
                    yield element
                    continue
                ended += 1
                if ended == threads: return

        class _PrefetchDataset(Dataset):
            def __init__(self, source, size): self._input_dataset, self.size = source, size
            def elements(self, iterator):
                node = self.node(iterator, "Prefetch", 4, [("buffer_size", self.size)])
                make = self._input_dataset.elements(iterator).__next__
                def filled():
                    element = make()
                    node.buffered_elements += 1
                    return element
                for element in counted(node, ahead(filled, self.size, 1)):
                    node.buffered_elements -= 1
                    yield element

        class _ParallelMapDataset(Dataset):
            def __init__(self, source, function, calls):
                self._input_dataset, self.function, self.calls = source, function, calls
            def elements(self, iterator):
                node = self.node(iterator, "ParallelMapV2", 4, [("parallelism", self.calls)])
                source, lock = self._input_dataset.elements(iterator), threading.Lock()
                def make():
                    with lock: element = next(source)
                    begin = time.monotonic_ns()
                    element = self.function(element)
                    node.processing_time += time.monotonic_ns() - begin
                    return element
                for element in ahead(make, self.calls, self.calls):
                    node.num_elements += 1
                    yield element
    """,
    # Keras: fit() asks for the batch inside of its step.
    "keras/src/backend/tensorflow/trainer.py": """
        from tensorflow.python.eager import context

        class TensorFlowTrainer:
            def __init__(self, step, steps_per_execution=1):
                self.step, self.train_function, self.steps_per_execution = step, None, steps_per_execution

            def make_train_function(self, force=False):
                if self.train_function is not None and not force: return self.train_function
                def function(iterator):
                    for _ in range(self.steps_per_execution):
                        context.eager = False
                        try: batch = iterator.get_next()
                        finally: context.eager = True
                        result = self.step(batch)
                    return result
                self.train_function = function

            def fit(self, dataset, epochs=1):
                self.make_train_function()
                results = []
                for _ in range(epochs):
                    iterator = iter(dataset)
                    try:
                        while True: results.append(self.train_function(iterator))
                    except Exception as error:
                        if type(error).__name__ != "OutOfRange": raise
                return results
    """,
    # Ray Data: tasks in processes of their own, whose blocks a generator takes.
    "ray/data/_internal/execution/operators/map_operator.py": """
        class Block:
            def __init__(self, rows): self.rows, self.num_rows = rows, len(rows)

        def _map_task(transformer, context, task, *blocks, **named):
            for block in blocks:
                made = Block(transformer(block.rows))
                stats = yield made
                yield ("about", made.num_rows, stats)
            return "done"
    """,
    "ray/data/iterator.py": """
        import multiprocessing, queue, threading, types
        from ray.data._internal.execution.operators import map_operator

        class SimpleNamespace(types.SimpleNamespace):
            __hash__ = object.__hash__

        def work(pipe, transformer, name, count, size):
            task = SimpleNamespace(op_name=name)
            for at in range(count):
                block = map_operator.Block(list(range(at * size, at * size + size)))
                made = map_operator._map_task(transformer, None, task, block)
                pipe.send(next(made).rows)
                pipe.send(made.send("written"))
                try: next(made)
                except StopIteration as end: assert end.value == "done"
            pipe.send(None)

        class _IterableFromIterator:
            def __init__(self, make): self.make = make
            def __iter__(self): return self.make()

        class DataIterator:
            def __init__(self, transformer, name, count): self.about = transformer, name, count

            def iter_batches(self, *, batch_size=4): return self._iter_batches(batch_size=batch_size)

            def iter_torch_batches(self, *, batch_size=4, collate_fn=None):
                return self._iter_batches(batch_size=batch_size, _collate_fn=collate_fn)

            def _iter_batches(self, *, batch_size=4, _collate_fn=None):
                made = self._uncollated(batch_size)
                if _collate_fn is None: return made
                def make():
                    collated = queue.Queue(2)
                    def collate():
                        for batch in made: collated.put(_collate_fn(batch))
                        collated.put(None)
                    threading.Thread(target=collate, daemon=True).start()
                    while (batch := collated.get()) is not None: yield batch
                return _IterableFromIterator(make)

            def _uncollated(self, batch_size):
                def make():
                    transformer, name, count = self.about
                    operator = SimpleNamespace(name=name, metrics=SimpleNamespace(rows_task_outputs_generated=0))
                    executor = SimpleNamespace(_topology={operator: None})
                    here, there = multiprocessing.get_context("fork").Pipe()
                    process = multiprocessing.get_context("fork").Process(
                        target=work, args=(there, transformer, name, count, batch_size))
                    process.start()
                    try:
                        while (rows := here.recv()) is not None:
                            here.recv()
                            operator.metrics.rows_task_outputs_generated += len(rows)
                            yield {"id": rows}
                        process.join(30)
                    finally:
                        process.kill()
                return _IterableFromIterator(make)
    """,
}


def write(folder):
    for name, text in _FILES.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    for path in list(pathlib.Path(folder).rglob("*")):
        if path.is_dir() and not (path / "__init__.py").exists() and path.relative_to(folder).parts[0] in (
                "tensorflow", "keras", "ray"):
            (path / "__init__.py").touch()
