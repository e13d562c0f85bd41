"""Predicts by how much a bus will be late. Long delays are rare, so each batch is drawn by weights,
no trip twice in a batch."""
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

from pace import Pace, options

TRIPS, COLUMNS = 1_200_000, 8


class Trips(Dataset):
    def __init__(self, folder):
        self.features = np.load(os.path.join(folder, "trips.npy"), mmap_mode="r")
        self.delays = np.load(os.path.join(folder, "delays.npy"), mmap_mode="r")

    def __len__(self):
        return len(self.delays)

    def __getitems__(self, rows):
        return [(torch.tensor(self.features[i]), float(self.delays[i])) for i in rows]


class BalancedBatches(Sampler):
    """Batches in which the late trips are as frequent as the punctual ones."""

    def __init__(self, delays, batch_size, batches, quick=False):
        counts, edges = np.histogram(delays, 20)
        share = 1.0 / np.maximum(counts, 1)[np.clip(np.digitize(delays, edges) - 1, 0, 19)]
        self.weights = share / share.sum()
        self.batch_size, self.batches, self.quick = batch_size, batches, quick
        self.random = np.random.default_rng(5)
        if quick:
            self.upto = np.cumsum(self.weights)

    def __len__(self):
        return self.batches

    def draw(self):
        if self.quick:
            places = np.searchsorted(self.upto, self.random.random(self.batch_size * 2) * self.upto[-1])
            return np.unique(places)[:self.batch_size].tolist()
        return self.random.choice(len(self.weights), self.batch_size, replace=False, p=self.weights).tolist()

    def __iter__(self):
        for _ in range(self.batches):
            yield self.draw()


def prepare(folder):
    random = np.random.default_rng(2)
    np.save(os.path.join(folder, "trips.npy"), random.standard_normal((TRIPS, COLUMNS), dtype=np.float32))
    np.save(os.path.join(folder, "delays.npy"), random.exponential(3, TRIPS).astype(np.float32))


def main():
    args = options()
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="buses")
    try:
        prepare(folder)
        trips = Trips(folder)
        batches = BalancedBatches(np.asarray(trips.delays), 64, 500, quick=args.fix)
        loader = DataLoader(trips, batch_sampler=batches, num_workers=2, persistent_workers=True)
        model = nn.Sequential(nn.Linear(COLUMNS, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        pace, over = Pace(args.seconds), False
        while not over:
            for features, delays in loader:
                loss = nn.functional.huber_loss(model(features).squeeze(1), delays.float())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                over = pace.done()
                if over:
                    break
        pace.show()
        del loader
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
