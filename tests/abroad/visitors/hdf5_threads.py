"""Four threads of an executor read compressed volumes of one HDF5 file; h5py lets one thread at a time into the library.
--fix: two processes, each with its own handle."""
import collections
import concurrent.futures
import multiprocessing
import os
import tempfile
import time

import h5py
import numpy as np
import torch

from pace import Pace, options

COUNT = 48
file = None


def write(path):
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as out:
        volumes = out.create_dataset("volumes", (COUNT, 32, 96, 96), "int16", chunks=(1, 32, 96, 96), compression="gzip", compression_opts=4)
        for index in range(COUNT):
            volumes[index] = rng.normal(0, 30, (32, 96, 96)).astype(np.int16) + np.int16(index)


def opened(path):
    global file
    file = h5py.File(path, "r")


def read(index):
    volume = file["volumes"][index % COUNT]
    return volume[::2, ::6, ::6].astype(np.float32)


def in_order(executor, depth=8):
    waiting = collections.deque(executor.submit(read, index) for index in range(depth))
    index = depth
    while True:
        yield waiting.popleft().result()
        waiting.append(executor.submit(read, index))
        index += 1


def main():
    args = options()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scans.h5")
        write(path)
        if args.fix:
            executor = concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork"), opened, (path,))
        else:
            opened(path)
            executor = concurrent.futures.ThreadPoolExecutor(4, "reader")
        model = torch.nn.Conv3d(1, 2, 5, stride=3)
        pace = Pace(args.seconds)
        batch = []
        for volume in in_order(executor):
            batch.append(torch.from_numpy(volume))
            if len(batch) < 2:
                continue
            model(torch.stack(batch).unsqueeze(1)).square().mean().backward()
            model.zero_grad()
            time.sleep(0.001)  # The device's part.
            batch.clear()
            if pace.done():
                break
        pace.show()
        executor.shutdown(wait=True, cancel_futures=True)


if __name__ == "__main__":
    main()
