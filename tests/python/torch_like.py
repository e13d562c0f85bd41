"""fake_loader with the insides of torch's iterators that headrace looks into: what receives batches from workers, keeps
their order and ends them."""
import queue
import threading
import time

import fake_loader

PIN_S = 0.02


def pin_loop(results, pinned, over):
    while not over.is_set():
        try:
            got = results.get(timeout=0.1)
        except queue.Empty:
            continue
        time.sleep(PIN_S)
        pinned.put(got)


class Iterator(fake_loader.MultiProcessIterator):
    def __init__(self, loader):
        self._in_order, self._shutdown = loader.in_order, False
        super().__init__(loader)
        self._over = threading.Event()
        if loader.pin_memory:
            self._data_queue = queue.Queue()
            threading.Thread(target=pin_loop, args=(self._worker_result_queue, self._data_queue, self._over), daemon=True).start()

    @property
    def _tasks_outstanding(self):
        return sum(len(task) == 1 for task in self._task_info.values())

    def _try_get_data(self, timeout=5):
        try:
            return True, self._data_queue.get(timeout=timeout)
        except queue.Empty:
            return False, None

    def __next__(self):
        while self._next_place < self._sent:
            while len(self._task_info[self._next_place]) == 1:
                success, got = self._try_get_data()
                if success:
                    self._task_info[got[0]] += (got[1],)
            data = self._task_info.pop(self._next_place)[1]
            self._next_place += 1
            self._send()
            if isinstance(data, fake_loader.WorkerError):
                raise data.error
            if not isinstance(data, fake_loader.End):
                return data
        if not self.persistent:
            self._shutdown_workers()
        raise StopIteration

    def _shutdown_workers(self):
        if not self._shutdown:
            self._shutdown = True
            self._over.set()
            self.shutdown()


class DataLoader(fake_loader.DataLoader):
    def __init__(self, dataset, in_order=True, pin_memory=False, **arguments):
        self.in_order, self.pin_memory = in_order, pin_memory
        super().__init__(dataset, **arguments)

    def _get_iterator(self):
        if not self.num_workers:
            return fake_loader.SingleProcessIterator(self)
        iterator = Iterator(self)
        iterator.persistent = self.persistent_workers
        return iterator
