"""Short clips of four cameras at the dock, collected by a process of their own."""
import multiprocessing
from multiprocessing import shared_memory

import numpy as np
import torch
from torch import nn

from pace import Pace, options

SHAPE = (8, 3, 8, 112, 112)          # clips, colours, frames, height, width
BYTES = int(np.prod(SHAPE)) * 4


def collect(out):
    rng = np.random.default_rng()
    film = rng.random((24,) + SHAPE[1:], dtype=np.float32)
    while True:
        pick = rng.integers(0, len(film), SHAPE[0])
        out.put((film[pick], pick % 2))


def collect_in_place(out, free, names):
    rng = np.random.default_rng()
    film = rng.random((24,) + SHAPE[1:], dtype=np.float32)
    blocks = [shared_memory.SharedMemory(name) for name in names]
    slots = [np.ndarray(SHAPE, np.float32, block.buf) for block in blocks]
    while True:
        slot = free.get()
        pick = rng.integers(0, len(film), SHAPE[0])
        np.take(film, pick, axis=0, out=slots[slot], mode="clip")
        out.put((slot, pick % 2))


def main():
    args = options()
    torch.set_num_threads(1)
    multi = multiprocessing.get_context("fork")
    blocks, out, free = [], multi.Queue(4), multi.Queue()
    if args.fix:
        blocks = [shared_memory.SharedMemory(create=True, size=BYTES) for _ in range(4)]
        slots = [np.ndarray(SHAPE, np.float32, block.buf) for block in blocks]
        for slot in range(4):
            free.put(slot)
        child = multi.Process(target=collect_in_place, args=(out, free, [b.name for b in blocks]), daemon=True)
    else:
        child = multi.Process(target=collect, args=(out,), daemon=True)
    child.start()
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 7 * 7, 2))
    sgd = torch.optim.SGD(net.parameters(), 0.01)
    pace = Pace(args.seconds)
    while True:
        clips, moored = out.get()
        small = torch.from_numpy((slots[clips] if args.fix else clips)[..., ::16, ::16].copy())
        if args.fix:
            free.put(clips)
        loss = nn.functional.cross_entropy(net(small), torch.from_numpy(moored))
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if pace.done():
            break
    pace.show()
    child.terminate()
    child.join()
    slots = None
    for block in blocks:
        block.close()
        block.unlink()


if __name__ == "__main__":
    main()
