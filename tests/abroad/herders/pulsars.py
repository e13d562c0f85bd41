"""Pulsar or not, from a radio telescope's spectrograms; two reader processes of our own and a queue."""
import multiprocessing as mp
import os
import shutil
import tempfile
from multiprocessing import shared_memory

import numpy as np
import torch
from torch import nn

from pace import Pace, options

SHAPE = (16, 512, 1024)      # beams, times, channels
BYTES = int(np.prod(SHAPE)) * 4
SLOTS = 4


def cut(recording, rng):
    start = int(rng.integers(recording.shape[1] - SHAPE[1]))
    return recording[:, start:start + SHAPE[1]]


def reader(path, seed, batches, free, names):
    torch.set_num_threads(1)
    recording = np.load(path, mmap_mode="r")
    rng = np.random.default_rng(seed)
    slots = [shared_memory.SharedMemory(name) for name in names]
    while True:
        if not slots:
            batches.put(np.array(cut(recording, rng)))
            continue
        number = free.get()
        np.ndarray(SHAPE, np.float32, slots[number].buf)[:] = cut(recording, rng)
        batches.put(number)


class PulsarNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(64, 16, 5, stride=4)
        self.out = nn.Linear(16, 1)

    def forward(self, spectra):
        folded = spectra[:, ::8, :].mean(2, keepdim=True) + spectra[:, ::8, ::32]     # coarse in time and channel
        return self.out(torch.relu(self.conv(folded)).mean(2)).squeeze(1)


def main():
    opts = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="pulsars")
    shared, readers = [], []
    try:
        path = os.path.join(folder, "recording.npy")
        np.save(path, np.random.default_rng(0).standard_normal((SHAPE[0], 2000, SHAPE[2]), dtype=np.float32))
        if opts.fix:
            shared = [shared_memory.SharedMemory(create=True, size=BYTES) for _ in range(SLOTS)]
        batches, free = mp.Queue(3), mp.Queue()
        for number in range(len(shared)):
            free.put(number)
        readers = [mp.Process(target=reader, args=(path, seed, batches, free, [s.name for s in shared]), daemon=True)
                   for seed in range(2)]
        for process in readers:
            process.start()
        model = PulsarNet()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        labels = (torch.arange(SHAPE[0]) % 2).float()
        pace, over = Pace(opts.seconds), False
        while not over:
            item = batches.get()
            array = np.ndarray(SHAPE, np.float32, shared[item].buf) if shared else item
            loss = nn.functional.binary_cross_entropy_with_logits(model(torch.from_numpy(array)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            del array
            if shared:
                free.put(item)
            over = pace.done()
        pace.show()
    finally:
        for process in readers:
            process.kill()
            process.join()
        for memory in shared:
            memory.unlink()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    main()
