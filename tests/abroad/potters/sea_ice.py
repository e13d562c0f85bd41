"""Sea ice: a pool of processes cuts stacks of radar frames out of a long film, the parent fits a drift model on them."""
import collections
import multiprocessing
import os
import shutil
import tempfile
from multiprocessing import shared_memory

import numpy as np

from pace import Pace, options

STACK = (24, 320, 320)
FRAMES, SLOTS = 160, 6
film = None
slots = []


def open_film(path, names):
    global film
    film = np.load(path, mmap_mode="r")
    slots.extend(shared_memory.SharedMemory(name) for name in names)


def cut(start, slot):
    """24 frames as floats, in a slot of shared memory if the caller has named one."""
    if slot is None:
        return np.multiply(film[start:start + STACK[0]], 1 / 255, dtype=np.float32)
    stack = np.ndarray(STACK, np.float32, slots[slot].buf)
    np.multiply(film[start:start + STACK[0]], 1 / 255, out=stack, dtype=np.float32)
    return slot


class DriftModel:
    def __init__(self):
        self.weights = np.zeros(STACK[1] // 8, np.float32)

    def fit(self, stack):
        rows = stack[:, ::8, 160]                   # one line of each frame is enough for the drift
        error = rows @ self.weights - stack[:, 0, 0]
        self.weights -= 1e-3 * error @ rows / len(rows)
        return float(np.square(error).mean())


def run(args, folder):
    path = os.path.join(folder, "film.npy")
    np.save(path, np.random.default_rng(0).integers(0, 255, (FRAMES, *STACK[1:]), dtype=np.uint8))
    blocks = [shared_memory.SharedMemory(create=True, size=int(np.prod(STACK)) * 4) for _ in range(SLOTS if args.fix else 0)]
    views = [np.ndarray(STACK, np.float32, block.buf) for block in blocks]
    starts = np.random.default_rng(1)
    model, pace, pending = DriftModel(), Pace(args.seconds), collections.deque()
    with multiprocessing.get_context("fork").Pool(2, open_film, (path, [block.name for block in blocks])) as pool:
        def ask(slot):
            pending.append(pool.apply_async(cut, (int(starts.integers(FRAMES - STACK[0])), slot)))

        for slot in range(SLOTS):
            ask(slot if args.fix else None)
        while True:
            answer = pending.popleft().get()
            loss = model.fit(views[answer] if args.fix else answer)
            ask(answer if args.fix else None)
            if pace.done():
                break
        for rest in pending:
            rest.wait()
    del views
    for block in blocks:
        block.close()
        block.unlink()
    print(f"loss {loss:.4f}")
    pace.show()


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="sea_ice")
    try:
        run(options(), folder)
    finally:
        shutil.rmtree(folder)
