"""Is there a variant? Pile-ups of sequencing reads prepared by a multiprocessing Pool, a linear caller in torch."""
import collections
import multiprocessing
import os
import shutil
import tempfile
from multiprocessing import shared_memory

import numpy as np

from pace import Pace, options

READS, POSITIONS, CHANNELS, SITES, BATCH, AHEAD = 100, 221, 6, 120, 32, 4
SHAPE = (BATCH, READS, POSITIONS, CHANNELS)

store = desk = None


def sequence(path):
    rng = np.random.default_rng(31)
    sites = np.lib.format.open_memmap(path, "w+", np.uint8, (SITES, READS, POSITIONS, CHANNELS))
    for site in sites:
        site[:] = rng.integers(0, 255, size=site.shape, dtype=np.uint8)
    sites.flush()


def start_worker(path, memory):
    global store, desk
    store = np.load(path, mmap_mode="r")
    if memory:
        desk = np.ndarray((AHEAD,) + SHAPE, np.float32, buffer=memory.buf)


def pile_up(number):
    """The pile-ups of one batch, scaled to 0..1."""
    sites = np.random.default_rng(number).integers(SITES, size=BATCH)
    if desk is None:
        piles = np.empty(SHAPE, np.float32)
    else:
        piles = desk[number % AHEAD]
    for place, site in enumerate(sites):
        np.multiply(store[site], np.float32(1 / 255), out=piles[place])
    labels = (sites % 2).astype(np.float32)
    return (piles if desk is None else None), labels


def main():
    args = options()
    folder = tempfile.mkdtemp(prefix="variants")
    path = os.path.join(folder, "sites.npy")
    sequence(path)
    memory = None
    if args.fix:
        memory = shared_memory.SharedMemory(create=True, size=AHEAD * int(np.prod(SHAPE)) * 4)
    pool = multiprocessing.get_context("fork").Pool(2, start_worker, (path, memory))
    import torch

    torch.set_num_threads(1)
    caller = torch.nn.Linear(POSITIONS * CHANNELS, 1)
    optimizer = torch.optim.SGD(caller.parameters(), 0.01)
    pace, waiting = Pace(args.seconds), collections.deque()
    try:
        for number in range(AHEAD):
            waiting.append(pool.apply_async(pile_up, (number,)))
        while True:
            piles, labels = waiting.popleft().get()
            if piles is None:
                piles = np.ndarray((AHEAD,) + SHAPE, np.float32, buffer=memory.buf)[(number + 1) % AHEAD]
            depth = torch.from_numpy(piles[:, ::4]).mean(1).flatten(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(caller(depth)[:, 0], torch.from_numpy(labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            number += 1
            del piles
            waiting.append(pool.apply_async(pile_up, (number,)))
            if pace.done():
                break
        print(f"loss {loss.item():.4f}")
        pace.show()
    finally:
        pool.close()
        pool.join()
        if memory:
            memory.close()
            memory.unlink()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
