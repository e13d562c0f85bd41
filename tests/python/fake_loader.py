"""A DataLoader in the manner of torch.utils.data, with as much of it as headrace.wrap() deals with: worker processes
(fork or spawn), prefetching, order, persistent workers, map and iterable datasets. Knows nothing of headrace."""
import itertools
import multiprocessing
import queue


def default_collate(samples):
    return list(samples)


class IterableDataset:
    pass


class WorkerError:
    def __init__(self, error):
        self.error = error


class End:
    pass


class Resume:
    pass


class Fetcher:
    def __init__(self, dataset, batched, collate_fn):
        self.dataset, self.batched, self.collate_fn = dataset, batched, collate_fn
        self.items = iter(dataset) if not hasattr(dataset, "__getitem__") else None

    def fetch(self, index):
        if self.items is not None:
            data = list(itertools.islice(self.items, len(index)))
            if not data:
                raise StopIteration
        elif not self.batched:
            data = self.dataset[index]
        elif getattr(self.dataset, "__getitems__", None):
            data = self.dataset.__getitems__(index)
        else:
            data = [self.dataset[i] for i in index]
        return self.collate_fn(data)


def worker_loop(dataset, batched, collate_fn, init_fn, indices, results, number):
    if init_fn is not None:
        init_fn(number)
    fetcher = Fetcher(dataset, batched, collate_fn)
    while True:
        task = indices.get()
        if task is None:
            return
        if isinstance(task, Resume):
            fetcher = Fetcher(dataset, batched, collate_fn)
            continue
        place, index = task
        try:
            results.put((place, fetcher.fetch(index)))
        except StopIteration:
            results.put((place, End()))
        except Exception as error:
            results.put((place, WorkerError(error)))


class SingleProcessIterator:
    def __init__(self, loader):
        self.fetcher = Fetcher(loader.dataset, loader.batch_sampler is not None, loader.collate_fn)
        self.indices = iter(loader.batch_sampler)

    def __iter__(self):
        return self

    def _next_index(self):
        return next(self.indices)

    def __next__(self):
        return self.fetcher.fetch(self._next_index())


class MultiProcessIterator:
    def __init__(self, loader):
        context = loader.context
        self._num_workers, self._prefetch_factor = loader.num_workers, loader.prefetch_factor
        self._worker_result_queue = self._data_queue = context.Queue()
        self._index_queues = [context.Queue() for _ in range(self._num_workers)]
        self._workers = []
        for number, indices in enumerate(self._index_queues):
            worker = context.Process(target=worker_loop, daemon=True, args=(
                loader.dataset, loader.batch_sampler is not None, loader.collate_fn, loader.worker_init_fn, indices,
                self._worker_result_queue, number))
            worker.start()
            self._workers.append(worker)
        self._reset(loader)

    def _reset(self, loader):
        self._indices = iter(loader.batch_sampler)
        self._task_info, self._sent, self._next_place = {}, 0, 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._send()

    def _next_index(self):
        return next(self._indices)

    def _send(self):
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = self._sent % self._num_workers
        self._index_queues[worker].put((self._sent, index))
        self._task_info[self._sent] = (worker,)
        self._sent += 1

    def __iter__(self):
        return self

    def __next__(self):
        while self._next_place < self._sent:
            while len(self._task_info[self._next_place]) == 1:
                try:
                    place, data = self._worker_result_queue.get(timeout=30)
                except queue.Empty:
                    raise RuntimeError("no worker answers") from None
                self._task_info[place] += (data,)
            data = self._task_info.pop(self._next_place)[1]
            self._next_place += 1
            self._send()
            if isinstance(data, WorkerError):
                raise data.error
            if not isinstance(data, End):
                return data
        raise StopIteration

    def shutdown(self):
        for indices in self._index_queues:
            indices.put(None)
        for worker in self._workers:
            worker.join(30)


class DataLoader:
    def __init__(self, dataset, batch_size=1, num_workers=0, collate_fn=default_collate, worker_init_fn=None,
                 context="fork", prefetch_factor=2, persistent_workers=False, num_batches=None):
        length = len(dataset) if hasattr(dataset, "__len__") else num_batches * batch_size
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers
        self.collate_fn, self.worker_init_fn, self.prefetch_factor = collate_fn, worker_init_fn, prefetch_factor
        self.context = multiprocessing.get_context(context)
        self.persistent_workers = persistent_workers
        self.batch_sampler = [list(range(i, min(i + batch_size, length))) for i in range(0, length, batch_size)]
        self._iterator = None

    def __len__(self):
        return len(self.batch_sampler)

    def _get_iterator(self):
        return MultiProcessIterator(self) if self.num_workers else SingleProcessIterator(self)

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers):
            self._iterator = self._get_iterator()
        elif self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            for indices in self._iterator._index_queues:
                indices.put(Resume())
            self._iterator._reset(self)
        return self._iterator
