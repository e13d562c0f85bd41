"""A batch sampler that draws by class weights from a million samples anew for each batch, in the training process. --fix draws for 500 batches at once."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from pace import Pace, options

COUNT = 1_000_000


class Rows(Dataset):
    def __init__(self):
        self.values = torch.rand(2000, 48)

    def __len__(self):
        return COUNT

    def __getitem__(self, i):
        return self.values[i % 2000], i % 10


class ClassBalanced(Sampler):
    def __init__(self, labels, batch_size, at_once=1):
        self.weights = 1.0 / np.bincount(labels)[labels]
        self.batch_size, self.at_once = batch_size, at_once

    def draw(self, rng):
        cumulated = np.cumsum(self.weights)
        picks = np.searchsorted(cumulated, rng.random(self.batch_size * self.at_once) * cumulated[-1])
        return picks.reshape(self.at_once, self.batch_size).tolist()

    def __iter__(self):
        rng = np.random.default_rng(0)
        while True:
            yield from self.draw(rng)


if __name__ == "__main__":
    args = options()
    torch.set_num_threads(1)
    sampler = ClassBalanced(np.random.default_rng(1).integers(0, 10, COUNT) ** 2 // 10, 32, at_once=500 if args.fix else 1)
    net = torch.nn.Sequential(torch.nn.Linear(48, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    adam = torch.optim.Adam(net.parameters())
    pace = Pace(args.seconds)
    for rows, classes in DataLoader(Rows(), batch_sampler=sampler, num_workers=2):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(net(rows), classes).backward()
        adam.step()
        if pace.over():
            break
    pace.report()
