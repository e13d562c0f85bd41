"""Trains on rows drawn by weight, without one twice in a batch."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from meter import Meter, arguments

ROWS = 300_000


class Rows(Dataset):
    def __init__(self):
        self.data = np.random.default_rng(0).normal(size=(1000, 128)).astype(np.float32)

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        row = self.data[index % 1000]
        return torch.from_numpy((row - row.mean()) / row.std())


class ByWeight(Sampler):
    def __init__(self, weights, size, fast):
        self.weights, self.size, self.fast = weights, size, fast

    def __iter__(self):
        rng = np.random.default_rng(1)
        if self.fast:
            sums = np.cumsum(self.weights / self.weights.sum())
            while True:
                drawn = np.unique(np.searchsorted(sums, rng.random(self.size + 8)))
                yield np.minimum(rng.permutation(drawn)[:self.size], ROWS - 1).tolist()
        while True:
            yield rng.choice(ROWS, self.size, replace=False, p=self.weights / self.weights.sum()).tolist()


def main():
    args = arguments()
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    weights = np.random.default_rng(2).random(ROWS)
    loader = DataLoader(Rows(), batch_sampler=ByWeight(weights, 64, args.fix), num_workers=2)
    meter = Meter(args.seconds)
    for batch in loader:
        optimiser.zero_grad()
        model(batch).square().mean().backward()
        optimiser.step()
        if meter.tick():
            break
    meter.show()


if __name__ == "__main__":
    main()
