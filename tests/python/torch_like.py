"""fake_loader with the insides of torch's iterators that headrace looks into: what receives batches from workers, keeps
their order and ends them."""
import queue

import fake_loader


class Iterator(fake_loader.MultiProcessIterator):
    def __init__(self, loader):
        self._in_order, self._shutdown = loader.in_order, False
        super().__init__(loader)

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
            self.shutdown()


class DataLoader(fake_loader.DataLoader):
    def __init__(self, dataset, in_order=True, **arguments):
        self.in_order = in_order
        super().__init__(dataset, **arguments)

    def _get_iterator(self):
        if not self.num_workers:
            return fake_loader.SingleProcessIterator(self)
        iterator = Iterator(self)
        iterator.persistent = self.persistent_workers
        return iterator
