"""Saves model and optimiser every few steps, safely: written aside, synced, renamed."""
import os
import tempfile

import torch
from torch.utils.data import DataLoader, IterableDataset

from pace import Pace, options


class Stream(IterableDataset):
    def __init__(self, constant):
        self.constant = constant

    def __iter__(self):
        state = torch.Generator().manual_seed(1)
        kept = torch.zeros(200)
        while True:
            yield kept if self.constant else torch.randn(200, generator=state)


class Saver:
    def __init__(self, folder, interval):
        self.path, self.interval, self.steps = os.path.join(folder, "last.pt"), interval, 0

    def __call__(self, model, optimiser):
        self.steps += 1
        if self.steps % self.interval == 0:
            with open(self.path + ".tmp", "wb") as f:
                torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict()}, f)
                f.flush()
                os.fsync(f.fileno())
            os.replace(self.path + ".tmp", self.path)


if __name__ == "__main__":
    args = options()
    model = torch.nn.Sequential(torch.nn.Linear(200, 800), torch.nn.ReLU(), torch.nn.Linear(800, 200))
    optimiser = torch.optim.Adam(model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        save = Saver(folder, interval=100 if args.fix else 2)
        pace = Pace(args.seconds)
        for x in DataLoader(Stream(args.fix2), batch_size=32, num_workers=1):
            loss = (model(x) - x).square().mean()
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            save(model, optimiser)
            if pace.tick():
                break
        pace.show()
