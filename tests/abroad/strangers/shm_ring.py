"""A ring of frames in shared memory that one renderer process fills."""
import math
import multiprocessing as mp
from multiprocessing import shared_memory

import numpy as np
import torch

from pace import Pace, options

SLOTS, SIDE, BATCH = 4, 48, 8


class Ring:
    def __init__(self):
        self.memory = shared_memory.SharedMemory(create=True, size=SLOTS * BATCH * SIDE * SIDE * 4)
        self.free, self.full = mp.Semaphore(SLOTS), mp.Semaphore(0)
        self.frames = np.ndarray((SLOTS, BATCH, SIDE, SIDE), np.float32, self.memory.buf)

    def close(self):
        del self.frames
        self.memory.close()
        self.memory.unlink()


def render(ring, shapes):
    """Distance fields of circles, one after another."""
    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    n = 0
    while True:
        ring.free.acquire()
        for k in range(BATCH):
            field = np.full((SIDE, SIDE), 1e9, np.float32)
            for s in range(shapes):
                angle = 0.1 * (n + k) + s
                cx, cy = SIDE / 2 + 15 * math.cos(angle), SIDE / 2 + 15 * math.sin(1.7 * angle)
                field = np.minimum(field, np.sqrt((x - cx) ** 2 + (y - cy) ** 2) - 3)
            ring.frames[n // BATCH % SLOTS, k] = field
        n += BATCH
        ring.full.release()


def main():
    args = options()
    torch.set_num_threads(1)
    ring = Ring()
    renderer = mp.get_context("fork").Process(target=render, args=(ring, 10 if args.fix else 80), daemon=True)
    renderer.start()
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(8, 1, 1))
    pace, slot = Pace(args.seconds), 0
    with torch.inference_mode():
        while True:
            ring.full.acquire()
            net(torch.from_numpy(ring.frames[slot]).unsqueeze(1)).mean((2, 3))
            ring.free.release()
            slot = (slot + 1) % SLOTS
            if pace.tick():
                break
    pace.show()
    renderer.kill()
    renderer.join()
    ring.close()


if __name__ == "__main__":
    main()
