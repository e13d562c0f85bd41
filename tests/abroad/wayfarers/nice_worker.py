"""A loader worker that was made polite (os.nice(12)) on a machine where three jobs compress archives.
--fix: the worker isn't made polite."""
import multiprocessing
import os
import zlib

import numpy as np
import torch

from pace import Pace, options

JOBS = 3


def compress_archive(seed):
    block = np.random.default_rng(seed).integers(64, size=1 << 18, dtype=np.uint8).tobytes()
    while True:
        zlib.compress(block, 6)


class Spectra(torch.utils.data.Dataset):
    """An item is a whole batch."""

    def __init__(self):
        self.signals = np.random.default_rng(0).random((64, 32, 512), dtype=np.float32)

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        signals = self.signals[index % 64] * np.hanning(512)
        power = np.log1p(np.abs(np.fft.rfft(signals, axis=1)) ** 2)
        return torch.from_numpy(power.astype(np.float32)), torch.full((32,), float(index % 2))


def polite(_):
    os.nice(12)


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    jobs = [multiprocessing.Process(target=compress_archive, args=(seed,), daemon=True) for seed in range(JOBS)]
    loader = torch.utils.data.DataLoader(Spectra(), batch_size=None, num_workers=1, worker_init_fn=None if args.fix else polite)
    model = torch.nn.Linear(257, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for job in jobs:
        job.start()
    batches = iter(loader)
    try:
        pace = Pace(args.seconds)
        for power, labels in batches:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(power)[:, 0], labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        pace.show()
    finally:
        for job in jobs:
            job.terminate()
            job.join()


if __name__ == "__main__":
    main()
