"""Trains a fault detector on cubes cut from a seismic survey; a process cuts them and puts them in a multiprocessing queue.

--fix: the cubes go through shared memory, and the queue has only their places."""
import multiprocessing
import os
import tempfile
from multiprocessing import shared_memory

import numpy as np
import torch
from torch import nn

from pace import Pace, options

CUBE, SLOTS = (160, 192, 256), 4


def shoot(path):
    rng = np.random.default_rng(4)
    trace = rng.normal(0, 1, (1, 1, 512)).astype(np.float32)
    survey = np.lib.format.open_memmap(path, "w+", np.float32, (224, 224, 512))
    survey[:] = trace + rng.normal(0, 0.1, (224, 224, 1)).astype(np.float32)
    survey.flush()


def cut(path, cubes):
    survey, rng = np.load(path, mmap_mode="r"), np.random.default_rng()
    while True:
        x, y, z = (int(rng.integers(size - side)) for size, side in zip(survey.shape, CUBE))
        cubes.put(np.array(survey[x:x + CUBE[0], y:y + CUBE[1], z:z + CUBE[2]]))


def cut_in_place(path, cubes, free, names):
    survey, rng = np.load(path, mmap_mode="r"), np.random.default_rng()
    blocks = [shared_memory.SharedMemory(name) for name in names]
    while True:
        slot = free.get()
        x, y, z = (int(rng.integers(size - side)) for size, side in zip(survey.shape, CUBE))
        np.ndarray(CUBE, np.float32, blocks[slot].buf)[:] = survey[x:x + CUBE[0], y:y + CUBE[1], z:z + CUBE[2]]
        cubes.put(slot)


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "survey.npy")
        shoot(path)
        cubes, free, blocks = multiprocessing.Queue(SLOTS), multiprocessing.Queue(), []
        if args.fix:
            blocks = [shared_memory.SharedMemory(create=True, size=4 * int(np.prod(CUBE))) for _ in range(SLOTS)]
            for slot in range(SLOTS):
                free.put(slot)
            cutter = multiprocessing.Process(target=cut_in_place, args=(path, cubes, free, [block.name for block in blocks]), daemon=True)
        else:
            cutter = multiprocessing.Process(target=cut, args=(path, cubes), daemon=True)
        cutter.start()
        model = nn.Sequential(nn.Conv3d(1, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        pace = Pace(args.seconds)
        while True:
            cube = cubes.get()
            if args.fix:
                slot, cube = cube, np.ndarray(CUBE, np.float32, blocks[cube].buf)
            view = torch.from_numpy(cube[::8, ::8, ::8].copy())[None, None]
            if args.fix:
                del cube
                free.put(slot)
            loss = nn.functional.cross_entropy(model(view), torch.tensor([int(view[0, 0, 0, 0, 0] > 0)]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        cutter.terminate()
        cutter.join()
        for block in blocks:
            block.close()
            block.unlink()
        pace.show()


if __name__ == "__main__":
    main()
