"""Predicts the tip of a taxi ride from its record; the rides are streamed from monthly files."""
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from pace import Pace, options

COLUMNS, BATCH = 24, 2048


def write_months(folder, months=3, rides=40_000):
    rng = np.random.default_rng(7)
    weights = rng.normal(size=COLUMNS)
    for month in range(months):
        rows = rng.normal(size=(rides, COLUMNS)).astype(np.float32)
        tips = rows @ weights + rng.normal(size=rides) * 0.1
        np.savez(os.path.join(folder, f"2023-{month + 1:02d}.npz"), rides=rows, tips=tips.astype(np.float32))


class Rides(IterableDataset):
    def __init__(self, folder, by_block):
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.by_block = by_block

    def __iter__(self):
        while True:
            for path in self.files:
                with np.load(path) as month:
                    rides, tips = month["rides"], month["tips"]
                order = np.random.permutation(len(rides))
                if self.by_block:
                    for start in range(0, len(order) - BATCH + 1, BATCH):
                        chosen = order[start:start + BATCH]
                        yield torch.from_numpy(rides[chosen]), torch.from_numpy(tips[chosen])
                else:
                    for i in order:
                        yield torch.from_numpy(rides[i]), torch.tensor(tips[i])


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="fares-")
    try:
        write_months(folder)
        rides = Rides(folder, by_block=args.fix)
        loader = DataLoader(rides, batch_size=None if args.fix else BATCH)
        model = nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        pace = Pace(args.seconds)
        for features, tips in loader:
            loss = nn.functional.mse_loss(model(features).squeeze(1), tips)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pace.done():
                break
        print(f"loss {loss.item():.3f}")
        pace.show()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
