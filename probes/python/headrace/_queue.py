"""queue(): how full a bounded queue between two stages is."""
import os

from headrace import _account
from headrace._library import NONE, active, function

_queue_level = function("hrx_queue_level")


class queue:
    """A bounded queue between two stages, told its level under its own lock after each put and get:

        ready = headrace.queue("ready", producer="decode", consumer="trainer", capacity=8)
        ... ready.level(items.qsize())

    One process of a tree tells it."""

    def __init__(self, name, producer=None, consumer=None, capacity=0):
        self.name, self.producer, self.consumer, self.capacity = str(name), producer, consumer, int(capacity)
        self._pid, self._number = 0, NONE

    def level(self, occupancy):
        if self._pid != os.getpid():
            self._pid = os.getpid()
            if active() and _account.ensure():
                # 0 threads until a stage says otherwise
                ends = [NONE if end is None else _account.stage_id(end, 0) for end in (self.producer, self.consumer)]
                self._number = _account.register_queue(_account.encoded(self.name), *ends, self.capacity)
        if self._number != NONE:
            _queue_level(self._number, max(0, int(occupancy)))
