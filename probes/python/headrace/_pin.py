"""The thread of a DataLoader that takes batches from the workers and copies them into pinned memory, from where a device
can fetch them (`pin_memory=True`). It does what else the trainer's thread does: it receives and unpickles.
"""
import weakref

from headrace import _account
from headrace._account import PINNER, WORKERS, thread
from headrace._library import NONE, function
from headrace._operator import _begin, _end_one, operator

_wait_in = function("hrx_wait_in")
_wait_in_end = function("hrx_wait_in_end")

_PIN = operator("pin_memory", "copy")


def stage_id():
    _account.stage_id(WORKERS, 0)  # comes before it
    return _account.stage_id(PINNER, 1, 1)


def see(queue, receive):
    """Accounts for the thread that takes from that queue of the workers' batches. `receive`: the operator of a wait for
    one. Whatever the thread does between two requests is the copying of a batch: it puts it into a queue without an end."""
    get, taken_from = type(queue).get, weakref.ref(queue)
    working = False

    def accounted_get(*arguments, **named):
        nonlocal working
        if _account.stage_here() == NONE and _account.ensure():
            thread.given = True
            _account.move_to(stage_id())
        if working:
            working = False
            _end_one(_PIN.handle, 0)
        if _wait_in(receive.handle) and receive.bind():
            _wait_in(receive.handle)
        try:
            item = get(taken_from(), *arguments, **named)
        finally:
            _wait_in_end(receive.handle)
        working = True
        if _begin(_PIN.handle):
            _PIN.begin()
        return item

    queue.get = accounted_get
