"""Workers read a licensed corpus through a reader that only one process may use: an fcntl lock on a file.

--fix gives every worker a lock file of its own (a licence each).
"""
import fcntl
import os
import tempfile
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

import meter


class Corpus(Dataset):
    def __init__(self, folder, own):
        self.folder, self.own, self.file = folder, own, None

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        if self.file is None:
            name = f"licence-{get_worker_info().id}" if self.own else "licence"
            self.file = open(os.path.join(self.folder, name), "w")
        fcntl.lockf(self.file, fcntl.LOCK_EX)
        try:
            time.sleep(0.0025)  # the licensed reader answers
            raw = numpy.random.default_rng(index).integers(0, 255, 2048, dtype="uint8")
        finally:
            fcntl.lockf(self.file, fcntl.LOCK_UN)
        return torch.from_numpy(raw.astype("float32") / 255)


def main():
    options = meter.arguments()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        loader = DataLoader(Corpus(folder, options.fix), batch_size=8, shuffle=True, num_workers=3)
        model = torch.nn.Linear(2048, 64)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        clock = meter.Meter(options.seconds)
        for batch in loader:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            if clock.tick():
                break
        clock.show()


if __name__ == "__main__":
    main()
